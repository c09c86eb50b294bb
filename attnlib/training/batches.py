"""A batch as one process has it: its share of the rows, on its device."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["moved", "share"]


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
