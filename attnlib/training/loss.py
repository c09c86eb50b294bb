"""The loss of one step, in one process or in several, and what a loss may return."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnlib.training.batches import moved, share

if TYPE_CHECKING:
    from attnlib.training.arguments import Settings
    from attnlib.training.distributed import Processes

__all__ = ["loss_of"]


def loss_of(model: nn.Module, settings: Settings, processes: Processes) -> Callable[[int], tuple[Tensor, float]]:
    """The loss of one step's batch as a sum, with a gradient, and the number of its terms.

    One process calls it directly. With several, each has the loss of its share of the batch, in a module whose
    gradients are those of all.
    """
    devices = {parameter.device for parameter in model.parameters()}
    device = devices.pop() if len(devices) == 1 else None  # a model on several sends things on by itself

    def whole(step: int) -> tuple[Tensor, float]:
        batch = settings.batches(step)
        found = settings.loss(model, batch if device is None else moved(batch, device))
        return _sum_and_count(found, 1.0)

    def shared(step: int) -> tuple[Tensor, float]:
        batch, rows = share(settings.batches(step), processes.rank, processes.size)
        found = settings.loss(model, batch if device is None else moved(batch, device))
        return _sum_and_count(found, rows)

    return whole if processes.size == 1 else processes.wrapped(_SharedLoss(model, shared))


class _SharedLoss(nn.Module):
    """A module, so that `torch.nn.parallel.DistributedDataParallel` takes it, whatever the loss calls of the model."""

    def __init__(self, model: nn.Module, loss: Callable[[int], tuple[Tensor, float]]) -> None:
        super().__init__()
        self.model = model
        self.forward = loss
        # Used by no batch: torch's advice to no longer look for parameters that are not used would be of no help.
        self.spare = nn.Parameter(torch.zeros_like(next(model.parameters()).detach().flatten()[:1]))


def _sum_and_count(found: Any, rows: float) -> tuple[Tensor, float]:
    """What a loss returned, as a sum and a number of terms; a mean is one over ``rows``."""
    pair = isinstance(found, tuple) and len(found) == 2
    total, count = found if pair else (found, rows)
    _check(total)
    if pair:
        return _pair(total, count, rows)
    return total * rows if rows != 1 else total, count


def _check(loss: object) -> None:
    if not isinstance(loss, Tensor):
        raise TypeError(f"loss must return a tensor; got {type(loss).__name__}")
    if loss.ndim:
        raise ValueError(
            f"loss must return one number, a tensor of shape (), or two, a sum and a count; got {tuple(loss.shape)}"
        )
    if not loss.requires_grad:
        raise ValueError("loss must depend on a parameter of the model that is trained; no gradient comes from it")


def _pair(total: Tensor, count: Any, weight: float) -> tuple[Tensor, float]:
    """The pair that a loss returned; where the share was empty, nothing."""
    try:
        terms = float(count)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"loss must return a sum and a number of terms; got {type(count).__name__} for it") from None
    if not (isfinite(terms) and terms >= 0):
        raise ValueError(f"loss must return a sum and a number of terms, zero or more; got {terms}")
    return (total, terms) if weight else (total * 0, 0.0)
