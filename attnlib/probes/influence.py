"""Which output reads which input: seen by changing the input, and by its gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn

from attnlib.probes.outputs import NaNError, ShapeError, UnfitError, at_least_one, change
from attnlib.probes.subject import Subject, modules_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

__all__ = [
    "by_change",
    "by_gradient",
    "by_padding",
    "by_sequence",
    "is_inverted",
    "nan_of_the_future",
    "nan_of_the_padding",
    "needs_a_head_for_each",
    "orders",
    "padding_steps",
    "without_padding",
]


def by_change(subject: Subject, before: Tensor, draws: int, more: Sequence[Tensor] = ()) -> Float[Tensor, "n n"]:
    """How much output ``t`` changes at most when input ``s`` does, in any sequence; ``more`` inputs stay."""
    n = subject.x.shape[1]
    amounts = torch.zeros(n, n, dtype=torch.float64)
    for draw in range(draws):
        start = subject.answer(subject.x, *more, draw=draw) if draw else before
        for s in range(n):
            x = subject.x.clone()
            x[:, s] = subject.other(x[:, s])
            here = change(start, subject.answer(x, *more, draw=draw)).amax(0)
            amounts[:, s] = torch.maximum(amounts[:, s], here)
    return amounts


def by_padding(
    subject: Subject, before: Tensor, real: Tensor, s: int, steps: list[float]
) -> Float[Tensor, "steps batch n"]:
    """How much every real output changes when the padding at ``s`` does, by each of ``steps``."""
    found = torch.zeros(len(steps), *before.shape[:2], dtype=torch.float64)
    counts = (~real[:, s, None] & (True if subject.pooled else real)).cpu()
    for amounts, times in zip(found, steps, strict=True) if counts.any() else []:
        x = subject.x.clone()
        x[~real[:, s], s] = subject.other(x[~real[:, s], s], times)
        now = torch.where(counts[..., None], subject.answer(x, real), before)
        amounts.copy_(change(before, now))
    return found


def padding_steps(subject: Subject, draws: int, nan: bool) -> list[float]:
    """By how many sizes of ``x`` the padding is changed."""
    if not subject.x.is_floating_point():
        return [1.0] * (at_least_one("draws", draws) + 1)
    large = 1e2 if torch.float16 in subject.dtypes else 1e4
    return [1.0] * at_least_one("draws", draws) + [large] + [torch.nan] * nan


def is_inverted(subject: Subject, real: Bool[Tensor, "batch n"]) -> bool:
    """Do real outputs read one another under the opposite mask, and not under this one?"""
    padded = (real.sum(1) > 1) & ~real.all(1)
    if subject.pooled or not padded.any():
        return False
    if _read_each_other(subject, real, real, padded):
        return False
    try:
        return _read_each_other(subject, real, ~real, padded)
    except Exception:  # a model may refuse such a mask, and be right
        return False


def _read_each_other(subject: Subject, real: Tensor, mask: Tensor, padded: Tensor) -> bool:
    """Does the first or the last output of a padded sequence change when all its other real inputs do?"""
    before, rows = subject.answer(subject.x, mask), torch.arange(len(real))
    for end in (torch.zeros_like(rows), (real.sum(1) - 1).clamp(min=0).cpu()):
        others = real.clone()
        others[rows, end] = False
        x = subject.x.clone()
        x[others] = subject.other(x[others])
        amounts = change(before, subject.answer(x, mask))[rows, end]
        if (amounts[padded.cpu()] > subject.tolerance).any():
            return True
    return False


def nan_of_the_future(subject: Subject, found: NaNError) -> UnfitError:
    """Is there NaN because a causal mask hides the past? Then the numbers read later inputs and no earlier ones."""
    reads = by_change(subject, subject.answer(subject.x), draws=1) > subject.tolerance
    if reads.triu(1).any() and not reads.tril(-1).any():
        return _wrong_way(found, "outputs that are numbers read later inputs and no earlier ones")
    return found


def nan_of_the_padding(subject: Subject, real: Tensor, found: NaNError) -> UnfitError:
    """Is there NaN because a mask hides what is real? Then there is none under the opposite mask."""
    try:
        subject.baseline(~real, where=real)
    except Exception:  # NaN as well, or the model refuses such a mask
        return found
    return _wrong_way(found, "under the opposite one there is none")


def _wrong_way(found: NaNError, reason: str) -> UnfitError:
    return UnfitError(
        f"The output holds NaN, first at [{found.place}]: the mask is the wrong way round, for {reason}."
    )


def needs_a_head_for_each(subject: Subject, real: Tensor) -> bool:
    """Does the model break where there is one sequence more, so that their masks no longer fit the heads?"""
    more = torch.arange(len(real) + 1) % len(real)
    try:
        subject.answer(subject.x[more], real[more])
    except Exception:  # whatever it says: the batch of before did not break it
        return True
    return False


def by_sequence(subject: Subject, draws: int) -> Float[Tensor, "batch batch"]:
    """How much the answer to sequence ``b`` changes at most when sequence ``a`` does."""
    batch = len(subject.x)
    amounts = torch.zeros(batch, batch, dtype=torch.float64)
    for draw in range(draws):
        before = subject.answer(subject.x, draw=draw)
        for a in range(batch):
            x = subject.x.clone()
            x[a] = subject.other(x[a])
            amounts[:, a] = torch.maximum(amounts[:, a], change(before, subject.answer(x, draw=draw)).amax(1))
    return amounts


def orders(n: int, draws: int, generator: torch.Generator) -> list[Tensor]:
    """Two permutations of ``n`` that generate all others, and ``draws`` random ones."""
    swap, turn = torch.arange(n), torch.arange(n).roll(1)
    swap[:2] = swap[:2].flip(0)
    return [swap, turn, *(torch.randperm(n, generator=generator) for _ in range(draws))]


def by_gradient(subject: Subject) -> tuple[Bool[Tensor, "n n"] | None, str]:
    """Where a random combination of output ``t`` has a gradient at input ``s``; or None, and why it has none.

    Nothing is rounding here: what is not read gives exactly zero.
    """
    if subject.numpy:
        return None, "NumPy has none"
    with torch.enable_grad():
        leaves, out = _followed(subject)
        if not leaves:
            return None, "no nn.Embedding reads the tokens"
        if not out.requires_grad:
            return None, "the output has none"
        out = subject.arranged(out, *subject.x.shape[:2])
        weights = torch.randn(out.shape, generator=subject.generator).to(out)
        numbers = out.isfinite()
        loss = torch.where(numbers, out * weights, 0.0).sum((0, 2))
        return torch.stack([_nonzero(loss, t, leaves, numbers[:, t]) for t in range(len(loss))]), ""


def _nonzero(loss: Tensor, t: int, leaves: list[Tensor], numbers: Tensor) -> Bool[Tensor, " n"]:
    gradients = torch.autograd.grad(loss[t], leaves, retain_graph=True, allow_unused=True)
    there = [g.flatten(2) if g.ndim > 2 else g[..., None] for g in gradients if g is not None]  # (batch, n, features)
    if not all(g.isfinite().all() for g in there):
        output = "though the output is a number" if numbers.all() else "and so is the output"
        raise UnfitError(f"The gradient of output {t} is NaN or infinite, {output}.")
    read = [(g != 0).any(2).any(0) for g in there]
    return torch.stack(read).any(0).cpu() if read else torch.zeros(leaves[0].shape[1], dtype=torch.bool)


def _followed(subject: Subject) -> tuple[list[Tensor], Tensor]:
    """The inputs that gradients are taken at, floats or the embedded tokens, and the output."""
    if subject.x.is_floating_point():
        x = subject.x.clone().requires_grad_()
        return [x], subject.run(x)
    with _embedded(subject) as leaves:
        return leaves, subject.run(subject.x)


@contextmanager
def _embedded(subject: Subject) -> Iterator[list[Tensor]]:
    """Collect what the embeddings make of the tokens, each time cut off from the table behind it."""
    leaves: list[Tensor] = []

    def cut(module: nn.Module, args: tuple, out: Tensor) -> Tensor:
        tokens = args[0] if args else None
        if not isinstance(tokens, torch.Tensor) or not torch.equal(tokens, subject.x):  # positions, say
            return out
        leaves.append(out.detach().requires_grad_())
        return leaves[-1].clone()  # the model may add to it in place

    hooks = [module.register_forward_hook(cut) for module in _embeddings(modules_of(subject.model).values())]
    try:
        yield leaves
    finally:
        for hook in hooks:
            hook.remove()


def _embeddings(roots: Iterable[nn.Module]) -> list[nn.Module]:
    found = []
    for root in roots:
        try:
            found.append(root.get_input_embeddings())
        except (AttributeError, NotImplementedError):
            found.extend(module for module in root.modules() if isinstance(module, nn.Embedding))
    return [module for module in dict.fromkeys(found) if module is not None]


def without_padding(
    subject: Subject, before: Tensor, lengths: list[int], *more: Tensor
) -> list[tuple[int, int | None]]:
    """The sequences that answer differently alone, each with the first position where; ``more`` is cut alike."""
    found = []
    for b, length in enumerate(lengths):
        if length:
            cut = [a[b : b + 1, :length] for a in (subject.x, *more)]
            try:
                alone = subject.answer(*cut)
            except ShapeError as error:
                raise UnfitError(f"Sequence {b} alone: {error}.") from None
            wrong = change(before[b : b + 1, : alone.shape[1]], alone)[0] > subject.tolerance
            if wrong.any():
                found.append((b, None if subject.pooled else int(wrong.nonzero()[0])))
    return found
