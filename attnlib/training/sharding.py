"""A batch as one process has it, and the loss of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from attnlib.training.arguments import Settings
    from attnlib.training.distributed import Processes

__all__ = ["loss_of", "moved", "share"]


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


def share(batch: Any, rank: int, size: int) -> tuple[Any, float]:
    """Rows ``rank``, ``rank + size``, … of every tensor in ``batch``, and how many they are.

    With fewer rows than processes some have nothing to do. They are given row 0, to count for nothing: so they call
    the model as the others do, and wait for none of their gradients in vain.

    >>> share((torch.arange(5), {"y": torch.zeros(5, 2)}), rank=1, size=2)
    ((tensor([1, 3]), {'y': tensor([[0., 0.],
            [0., 0.]])}), 2.0)
    """
    tensors: list[Tensor] = []
    _each(batch, tensors.append, strict=True)
    if not tensors or any(tensor.ndim == 0 for tensor in tensors) or len({len(tensor) for tensor in tensors}) > 1:
        got = ", ".join(str(tuple(tensor.shape)) for tensor in tensors) or "no tensor"
        raise ValueError(
            "batches must give tensors with one row for each example, to be shared by several processes; "
            f"got shapes {got}"
        )
    rows = len(tensors[0])
    mine = slice(rank, None, size) if rank < rows else slice(0, 1)
    return _each(batch, lambda tensor: tensor[mine], strict=True), float(len(range(rank, rows, size)))


def moved(batch: Any, device: torch.device) -> Any:
    """``batch`` with its tensors on ``device``; itself when they are there, and what is no tensor as it is.

    >>> batch = {"x": torch.zeros(1)}
    >>> moved(batch, torch.device("cpu")) is batch
    True
    """
    away: list[bool] = []
    _each(batch, lambda tensor: away.append(tensor.device != device), strict=False)
    return _each(batch, lambda tensor: tensor.to(device), strict=False) if any(away) else batch


def _each(x: Any, change: Callable[[Tensor], Any], *, strict: bool, where: str = "batch") -> Any:
    """``x`` with every tensor in it changed. What is neither a tensor nor made of them is an error, or left as is."""
    if isinstance(x, Tensor):
        return change(x)
    if isinstance(x, dict):
        made = copy(x)
        for key, value in x.items():
            made[key] = _each(value, change, strict=strict, where=f"{where}[{key!r}]")
        return made
    if isinstance(x, tuple | list):
        parts = [_each(part, change, strict=strict, where=f"{where}[{i}]") for i, part in enumerate(x)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if is_dataclass(x) and not isinstance(x, type):
        made = copy(x)
        for field in fields(x):
            part = _each(getattr(x, field.name), change, strict=strict, where=f"{where}.{field.name}")
            object.__setattr__(made, field.name, part)  # it may be frozen
        return made
    if strict and x is not None:
        raise TypeError(
            "batches must give tensors, or tuples, lists, dicts or dataclasses of them, to be shared by several "
            f"processes; {where} is of type {type(x).__name__}"
        )
    return x


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
