"""Attention that returns no weights: the same output, computed faster or with less memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlib._arrays import Array, is_torch, namespace
from attnlib.core.arguments import check_numbers
from attnlib.core.blockwise import blockwise, tile_of
from attnlib.core.sparse import Tile, sparse
from attnlib.patterns import Pattern
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["without_weights"]


def without_weights(
    q: Array,
    k: Array,
    v: Array,
    score: Callable[[Array, Array], Array],
    mask: Array | Pattern | None,
    causal: bool,
    bias: Array | None,
    dropout: float,
    block: int | None,
) -> Array:
    """The output of `attnlib.attention`, by torch's fused kernel or by tiles of ``block``; without it one tile is all.

    Under a pattern, tile by tile of what it lets be seen.

    >>> import numpy as np
    >>> q, k, v = np.zeros((1, 2)), np.eye(2), np.array([[1.0], [3.0]])
    >>> without_weights(q, k, v, scaled_dot, None, False, None, 0.0, None)
    array([[2.]])
    """
    if isinstance(mask, Pattern):

        def mean(tile: Tile) -> Array:
            hide = _hidden(mask.beside, tile), tile_of(bias, tile.rows, tile.columns)
            return without_weights(tile.q, tile.k, tile.v, score, hide[0], False, hide[1], dropout, None)

        return sparse(q, k, v, mask, causal, mean)
    if block is None and score is scaled_dot and is_torch(q):
        from attnlib.core.fused import fused  # here, so that NumPy needs no torch

        out = fused(q, k, v, mask=mask, bias=bias, causal=causal, dropout=dropout)
        if out is not None:
            return out
    check_numbers(q, k, v)
    return blockwise(q, k, v, score=score, mask=mask, causal=causal, bias=bias, dropout=dropout, block=block)


def _hidden(beside: Array | None, tile: Tile) -> Array | None:
    """The mask of a tile: what the pattern lets be seen there, and the mask beside it does not hide."""
    beside = tile_of(beside, tile.rows, tile.columns)
    if tile.seen is None:
        return beside
    seen = namespace(tile.q).asarray(tile.seen, device=tile.q.device)
    return seen if beside is None else seen & beside
