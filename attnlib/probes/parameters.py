"""The two probes of `attnlib.probes` that look at parameters: does a gradient reach them, and do they learn?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from attnlib._base.checks import check_positive, check_size
from attnlib.probes.outputs import UnfitError, first_tensor
from attnlib.probes.report import Report, round_two
from attnlib.probes.subject import modules_of, observe, probe, undisturbed

if TYPE_CHECKING:
    from jaxtyping import Shaped
    from torch import Tensor

__all__ = ["gradients", "overfits"]

SHOWN = 4  # names in a sentence


@probe
def gradients(
    model: Callable,
    x: Shaped[Tensor, "batch n ..."],
    *,
    expect_zero: Sequence[str] = (),
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Does a gradient reach every parameter?

    .. math:: \frac{\partial}{\partial \theta} \sum_{b,t,c} r_{btc} \, y_{btc} \neq 0, \qquad r \sim \mathcal N(0, 1)

    The loss is a random combination of the outputs: their plain sum has no gradient after a softmax or a layer
    normalisation, and would accuse innocent parameters. ``model`` is a module, or a function that mentions one;
    frozen parameters are left out. ``expect_zero`` names parameters that may stay without (``"pooler.*"``).

    The bias of the keys adds the same number to all scores of a query, which the softmax ignores. Its gradient is
    zero but for rounding. Such gradients (below a millionth of the largest in float32) are reported as *practically
    none*, and are no failure; in half precision, rounding is as large as an honest gradient, so that only exact
    zeros are told.

    Raises ``TypeError`` when there is no module, ``ValueError`` when a name in ``expect_zero`` fits no parameter.

    >>> layer = nn.Linear(3, 2)
    >>> gradients(layer, torch.randn(1, 4, 3))
    A gradient reaches every parameter (2).
    >>> gradients(lambda x: layer(x).detach(), torch.randn(1, 4, 3))
    The output has no gradient, so that none reaches any of 2 parameters.
    """
    named = _parameters(model)
    for pattern in expect_zero:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise ValueError(f"expect_zero must name parameters; got {pattern!r}, which fits none of {list(named)}")
    with observe(model, x, training=training, random=random, seed=seed) as subject:
        subject.baseline()
        with torch.enable_grad():
            out = subject.run(subject.x)
            if not out.requires_grad:
                raise UnfitError(f"The output has no gradient, so that none reaches any of {_count(named)}.")
            weights = torch.randn(out.shape, generator=subject.generator).to(out)
            loss = torch.where(out.isfinite(), out * weights, 0.0).sum()
            found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    sizes = {name: float(g.abs().max()) if g is not None else 0.0 for name, g in zip(named, found, strict=True)}
    return _gradient_report(sizes, _noise(found), expect_zero)


def _parameters(model: Callable) -> dict[str, Tensor]:
    modules = modules_of(model)
    if not modules:
        raise TypeError(f"model must be a module, or a function that mentions one; got {type(model).__name__}")
    several = [(f"{root}." if root else "", module) for root, module in modules.items()]
    named = {
        prefix + name: p for prefix, module in several for name, p in module.named_parameters() if p.requires_grad
    }
    if not named:
        raise ValueError("model must have a parameter with requires_grad; it has none")
    return named


def _noise(found: Sequence[Tensor | None]) -> float:
    """The size up to which a gradient is rounding, from the largest and the format of all."""
    there = [g for g in found if g is not None and g.isfinite().all()]
    if not there or any(g.dtype.itemsize < 4 for g in there):
        return 0.0
    return max(8 * torch.finfo(g.dtype).eps for g in there) * max(float(g.abs().max()) for g in there)


def _gradient_report(sizes: dict[str, float], noise: float, expect_zero: Sequence[str]) -> Report:
    asked = [name for name in sizes if not any(fnmatchcase(name, pattern) for pattern in expect_zero)]
    broken = [name for name in sizes if not isfinite(sizes[name])]
    none = [name for name in asked if sizes[name] == 0]
    faint = [name for name in asked if 0 < sizes[name] <= noise]
    said = [f"The gradient of {_listed(broken)} is NaN or infinite."] if broken else []
    if none:
        said.append(f"No gradient reaches {len(none)} of {_count(sizes)}: {_listed(none)}.")
    elif not broken:
        count = len(sizes) if len(asked) == len(sizes) else f"{len(asked)} of {len(sizes)} asked about"
        said.append(f"A gradient reaches every parameter ({count}).")
    if faint:
        said.append(f"Practically none, no more than rounding, reaches {_listed(faint)}.")
    found = np.array(list(sizes.values()))
    labels = ("parameter", "largest entry of its gradient")
    return Report("gradients", not (broken or none), " ".join(said), found, labels)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _count(names: Sequence[str] | dict) -> str:
    return f"{len(names)} parameter{'s' * (len(names) != 1)}"


@probe
def overfits(
    model: nn.Module,
    x: Shaped[Tensor, "batch n ..."],
    y: object,
    loss: Callable,
    *,
    steps: int = 200,
    lr: float = 1e-2,
    below: float | None = None,
    training: bool = False,
    seed: int = 0,
) -> Report:
    r"""Can the model learn one batch by heart?

    .. math:: \theta_{s+1} = \theta_s - \text{Adam}\bigl(\nabla_\theta\, \text{loss}(f_\theta(x), y)\bigr)

    What cannot, will learn nothing else: a forgotten gradient, a target shifted by one, a learning rate far off. A
    deep copy is trained, for at most ``steps`` steps, until its loss falls ``below`` (by default a twentieth of the
    first). Without ``training=True`` there is no dropout. ``loss(output, y)`` gets the model's first tensor.

    Raises ``TypeError`` when ``model`` is not a module, ``ValueError`` when the loss is not one number, or starts
    below zero while ``below`` is not given.

    Source: the advice is old; Karpathy (2019), *A recipe for training neural networks*, "overfit one batch".

    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(0)
    ...     layer, x = nn.Linear(3, 1), torch.randn(2, 4, 3)
    >>> report = overfits(layer, x, x[..., :1], nn.functional.mse_loss)
    >>> bool(report), str(report)[:15]
    (True, 'Fits one batch:')
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a module, which can be copied; got {type(model).__name__}")
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch tensor; got {type(x).__name__}")
    if check_size("steps", steps) == 0:
        raise ValueError("steps must be at least 1; got 0")
    check_positive("lr", lr)
    seed = check_size("seed", seed)
    copy = deepcopy(model)
    with undisturbed(copy, training=training, device=x.device), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        losses, target = _train(copy, x, lambda out: loss(out, y), steps, lr, below)
    taken = len(losses) - 1
    course = f"loss {round_two(losses[0])} to {round_two(losses[-1])} in {taken} step{'s' * (taken != 1)}"
    labels = ("step", "loss")
    if not isfinite(losses[-1]):
        sentence = f"Does not fit one batch: the loss is NaN or infinite after {taken} step{'s' * (taken != 1)}."
        return Report("overfits", False, sentence, np.array(losses), labels)
    ok = losses[-1] <= target
    words = "Fits one batch" if ok else "Does not fit one batch"
    return Report("overfits", ok, f"{words}: {course}.", np.array(losses), labels)


def _train(
    model: nn.Module, x: Tensor, loss: Callable, steps: int, lr: float, below: float | None
) -> tuple[list[float], float]:
    """The losses from the first to the one that is low enough, or the last; and how low that is."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    losses, target = [], below
    for step in range(steps + 1):
        value = loss(first_tensor(model(x.clone())))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise ValueError(f"loss must return one number as a tensor; got {getattr(value, 'shape', value)!r}")
        if not value.requires_grad:
            raise UnfitError("The loss has no gradient, so that nothing can be learned.")
        losses.append(value.item())
        if target is None:
            if losses[0] < 0:
                raise ValueError(
                    f"loss starts below zero, at {round_two(losses[0])}: say in below how low it must fall"
                )
            target = 0.05 * losses[0]
        if step == steps or losses[-1] <= target or not isfinite(losses[-1]):
            break
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return losses, target
