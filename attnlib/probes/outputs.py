"""What a probe makes of a model's outputs, and how it tells a change from rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attnlib._base.checks import check_size

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

__all__ = ["TOLERANCE", "NaNError", "ShapeError", "UnfitError", "at_least_one", "change", "first_tensor", "size_of"]

# Changes below these shares of an output's size are rounding: some hundred steps of the format, for kernels that
# add in another order. The half formats are so coarse that there it is only a few steps.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class UnfitError(Exception):
    """The model's answers do not allow the probe; the message is the sentence of the report."""


class NaNError(UnfitError):
    """The model's answer holds NaN where it counts; ``place`` says where first."""

    def __init__(self, place: str) -> None:
        super().__init__(f"The output holds NaN, first at [{place}], so that nothing can be told.")
        self.place = place


class ShapeError(ValueError):
    """The output has another shape than the probe can read."""


def first_tensor(output: Any) -> Tensor:
    """The tensor that an output is about: itself, its ``logits``, its ``last_hidden_state``, or its first entry.

    >>> first_tensor((torch.zeros(2), None))
    tensor([0., 0.])
    """
    found = next((getattr(output, name) for name in ("logits", "last_hidden_state") if hasattr(output, name)), output)
    found = found[0] if isinstance(found, tuple | list) and found else found
    found = torch.as_tensor(found) if isinstance(found, np.ndarray) else found
    if not isinstance(found, torch.Tensor):
        raise TypeError(
            "model must return a tensor, a tuple that starts with one, or an object with logits or last_hidden_state; "
            f"got {type(output).__name__}"
        )
    if found.is_complex():
        raise TypeError("model must return real numbers; got complex ones. Probe torch.view_as_real of them")
    return found


def change(before: Float[Tensor, "batch n d"], after: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n"]:
    """The largest change of every output, as a share of its size or of the median output's, whichever is larger.

    Its own size alone would make rounding look large where an output is the small rest of large terms; the largest
    of all would hide a leak behind one huge output.

    >>> change(torch.ones(1, 3, 2), torch.tensor([[[1.0, 1.0], [1.5, 1.0], [1.0, 1.0]]]))
    tensor([[0.0000, 0.5000, 0.0000]])
    """
    if before.shape != after.shape:
        raise UnfitError(f"The shape of the output changed with its input, {(*before.shape,)} to {(*after.shape,)}.")
    gap = torch.where(before == after, 0.0, (after - before).abs()).nan_to_num(nan=torch.inf)
    gap = torch.where(before.isnan() & after.isnan(), 0.0, gap)
    gap, size = (a.amax(-1) for a in (gap, before.abs().nan_to_num(posinf=0.0)))
    size = size.clamp_min(size.median())
    return torch.where(gap > 0, gap / size, 0.0)


def size_of(x: Tensor) -> Tensor:
    """The root mean square of the numbers in ``x``; one where that is zero."""
    numbers = x[x.isfinite()].double()
    size = numbers.square().mean().sqrt() if len(numbers) else torch.ones(())
    return torch.where(size > 0, size, 1.0).to(x.dtype)


def at_least_one(name: str, value: int) -> int:
    """The number itself; raise unless it is a positive integer."""
    if check_size(name, value) == 0:
        raise ValueError(f"{name} must be at least 1; got 0")
    return value
