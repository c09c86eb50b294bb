"""Probes of what is done with whole sequences: a loss that should skip the padding, a text written step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from attnlib._base.checks import check_integers, check_size
from attnlib.probes.outputs import change, first_tensor
from attnlib.probes.report import Report, round_two
from attnlib.probes.subject import Subject, observe, probe, undisturbed

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped
    from torch import Tensor

__all__ = ["padded_loss", "step_by_step"]


@probe
def padded_loss(
    loss: Callable,
    output: Float[Tensor, "batch n ..."],
    target: Shaped[Tensor, "batch n ..."],
    lengths: Sequence[int],
    *,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> Report:
    r"""Does a loss leave the padding out, of its sum and of what it divides by?

    .. math:: \mathcal L = \frac{\sum_b \sum_{t < \text{length}_b} \ell(y_{bt}, z_{bt})}{\sum_b \text{length}_b}

    ``loss(output, target)`` returns one number, with ``target`` as your own batches have it where padding stands. The
    outputs at the padding are changed, which must not change the loss; so must not two more positions of padding,
    which do where it is divided by ``batch * n``.

    Raises ``ValueError`` when the loss is not one number, or shapes or lengths do not fit.

    >>> output, target = torch.randn(2, 3, 5), torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> entropy = torch.nn.functional.cross_entropy
    >>> padded_loss(lambda y, z: entropy(y.mT, z, ignore_index=0), output, target, [3, 1])
    The loss leaves the padding out (4 of 6 positions are real).
    >>> padded_loss(lambda y, z: entropy(y.mT, z), output, target, [3, 1]).ok
    False
    """
    lengths = check_integers("lengths", lengths)
    if output.shape[:2] != target.shape[:2] or len(lengths) != len(output) or max(lengths) > output.shape[1]:
        raise ValueError(
            "output and target must be (batch, n, ...), and lengths hold a number up to n for each sequence; "
            f"got {tuple(output.shape)}, {tuple(target.shape)} and {lengths}"
        )
    padded = torch.arange(output.shape[1]) >= torch.tensor(lengths)[:, None]  # (batch, n)
    padded = padded.to(output.device)
    if not padded.any():
        return Report("padded_loss", True, f"Nothing to see: no sequence is shorter than {output.shape[1]}.")
    generator = torch.Generator().manual_seed(check_size("seed", seed))

    def noise(like: Tensor) -> Tensor:
        return 3 * torch.randn(like.shape, generator=generator).to(like)

    with undisturbed(loss, training=False, device=output.device), torch.no_grad():
        other = output.clone()
        other[padded] = noise(other[padded])
        b, s = padded.nonzero()[0]
        more = target[b, s].expand_as(target[:, :1])
        longer = torch.cat([output, *[noise(output[:, :1]) for _ in range(2)]], 1), torch.cat([target, more, more], 1)
        first, *found = (_number(loss(*pair)) for pair in ((output, target), (other, target), longer))
    reads, divides = (abs(value - first) > tolerance * abs(first) for value in found)
    counts = f"{int((~padded).sum())} of {padded.numel()} positions are real"
    if reads:
        said = f"The loss reads outputs at the padding: {round_two(first)} becomes {round_two(found[0])} ({counts})."
    elif divides:
        said = f"The loss is divided by the padding too: two more positions of it make {round_two(found[1])} of "
        said += f"{round_two(first)} ({counts})."
    else:
        said = f"The loss leaves the padding out ({counts})."
    return Report("padded_loss", not (reads or divides), said)


def _number(value: Any) -> float:
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise ValueError(f"loss must return one number as a tensor; got {getattr(value, 'shape', value)!r}")
    return value.item()


@probe
def step_by_step(
    model: Callable,
    step: Callable,
    x: Shaped[Tensor, "batch n ..."],
    *,
    n_tokens: int | None = None,
    tolerance: float | None = None,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Is a sequence answered one position at a time, with a cache, as it is all at once?

    .. math:: \text{step}(x_t, \text{state}_{t-1}) = f(x)_t

    ``step(x_t, state)`` gets one position, ``(batch, 1, ...)``, and what it returned beside the answer to the one
    before it, None at first. It finds a position that is off by one, a cache that is written over, and a mask that
    hides the wrong keys when there is one query. The first position alone says little: many mistakes begin later.

    Raises ``TypeError`` or ``ValueError`` when ``x`` or an answer has another shape or type than these.

    >>> x = torch.randn(2, 4, 3)
    >>> step_by_step(lambda x: x.cumsum(1), lambda x, state: [x if state is None else x + state] * 2, x)
    Step by step it gives the same as all at once (4 positions).
    >>> step_by_step(lambda x: x.cumsum(1), lambda x, state: (x, None), x)
    Step by step differs from all at once, first at position 1 (3 of 4 positions).
    """
    with observe(
        model, x, training=False, random=random, tolerance=tolerance, n_tokens=n_tokens, seed=seed
    ) as subject:
        subject.pooled = False
        before = subject.baseline()
        with undisturbed(step, training=False, device=subject.x.device), torch.no_grad():
            answers = _stepped(subject, step)
    wrong = (change(before, answers).amax(0) > 10 * subject.tolerance).nonzero()[:, 0].tolist()
    n = before.shape[1]
    said = f"Step by step it gives the same as all at once ({n} positions)."
    if wrong:
        said = f"Step by step differs from all at once, first at position {wrong[0]} ({len(wrong)} of {n} positions)."
    return Report("step_by_step", not wrong, said)


def _stepped(subject: Subject, step: Callable) -> Float[Tensor, "batch n d"]:
    state, found = None, []
    for t in range(subject.x.shape[1]):
        given = subject.x[:, t : t + 1].clone()
        output, state = step(given.numpy() if subject.numpy else given, state)
        found.append(subject.arranged(first_tensor(output), len(given), 1).cpu().double())
    return torch.cat(found, dim=1)
