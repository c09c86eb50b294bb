"""Sequences to write backwards or as they are; they are in `attnlib.data.tasks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.checks import check_at_least_one
from attnlib._base.seeds import Seed, generator, tensors
from attnlib.data.text import FIRST, PAD

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["NOWHERE", "Reversal", "copying", "reversal"]

NOWHERE = -1  # a position that does not exist


class Reversal(NamedTuple):
    """What `reversal` returns: all ``(batch, length)`` int64, and ``lengths`` ``(batch,)``.

    >>> Reversal._fields
    ('source', 'target', 'alignment', 'lengths')
    """

    source: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]
    alignment: Int[Tensor, "batch length"]
    lengths: Int[Tensor, " batch"]


def reversal(
    batch: int, length: int | tuple[int, int], *, n_symbols: int = 10, distinct: bool = False, seed: Seed
) -> Reversal:
    r"""Write a sequence backwards.

    .. math:: y_t = x_{a_t}, \qquad a_t = n - 1 - t

    Symbols are `FIRST` to ``FIRST + n_symbols - 1``; below them stand `PAD`, `START`, `END` and the unknown, and
    ``alignment`` is :math:`a`. Where ``length`` is a pair ``(low, high)``, both included, sequences differ in
    length, and each is filled up with `PAD`, its alignment with `NOWHERE`. With ``distinct`` no symbol stands twice
    in a sequence, which makes a symbol enough to know the place.

    Raises ``ValueError`` too when ``distinct`` wants more symbols than there are.

    >>> data = reversal(1, 4, seed=0)
    >>> data.source, data.target, data.alignment
    (tensor([[ 9, 12, 13,  9]]), tensor([[ 9, 13, 12,  9]]), tensor([[3, 2, 1, 0]]))
    """
    low, high = _range("length", length)
    rng = generator(seed)
    batch, n_symbols = check_at_least_one("batch", batch), check_at_least_one("n_symbols", n_symbols)
    symbols = (_distinct if distinct else _any)(rng, n_symbols, (batch, high)) + FIRST
    lengths = rng.integers(low, high, size=batch, endpoint=True)
    place = np.arange(high)
    real = place < lengths[:, None]
    source = np.where(real, symbols, PAD)
    alignment = np.where(real, lengths[:, None] - 1 - place, NOWHERE)
    target = np.where(real, np.take_along_axis(source, alignment, axis=1), PAD)
    return Reversal(*tensors(source, target, alignment, lengths))


def copying(
    batch: int, length: int | tuple[int, int], *, n_symbols: int = 10, distinct: bool = False, seed: Seed
) -> Reversal:
    r"""Write a sequence as it is; the rest is as in `reversal`.

    .. math:: y_t = x_{a_t}, \qquad a_t = t

    >>> data = copying(1, 3, seed=0)
    >>> data.source, data.target, data.alignment
    (tensor([[ 9, 12, 13]]), tensor([[ 9, 12, 13]]), tensor([[0, 1, 2]]))
    """
    source, _, alignment, lengths = reversal(batch, length, n_symbols=n_symbols, distinct=distinct, seed=seed)
    place = torch.arange(source.shape[1]).expand_as(source)
    return Reversal(source, source.clone(), place.where(alignment != NOWHERE, NOWHERE), lengths)


def _any(rng: np.random.Generator, n_symbols: int, shape: tuple[int, int]) -> np.ndarray:
    return rng.integers(n_symbols, size=shape)


def _distinct(rng: np.random.Generator, n_symbols: int, shape: tuple[int, int]) -> np.ndarray:
    if n_symbols < shape[1]:
        raise ValueError(f"n_symbols must be at least {shape[1]}, the length, for distinct symbols; got {n_symbols}")
    return rng.permuted(np.broadcast_to(np.arange(n_symbols), (shape[0], n_symbols)), axis=1)[:, : shape[1]]


def _range(name: str, size: int | tuple[int, int]) -> tuple[int, int]:
    if not isinstance(size, tuple | list):
        n = check_at_least_one(name, size)
        return n, n
    if len(size) != 2:
        raise ValueError(f"{name} must be an integer or a pair (low, high); got {len(size)} numbers")
    low, high = (check_at_least_one(f"{name}[{i}]", n) for i, n in enumerate(size))
    if low > high:
        raise ValueError(f"{name} must be (low, high) with low not above high; got {tuple(size)}")
    return low, high
