"""Pieces of queries, keys, masks and biases, for attention that never looks at all of them at once."""

from __future__ import annotations

from collections.abc import Iterator

from attnlib._backend import Array, namespace

__all__ = ["spans", "tile", "triangle"]


def spans(n: int, block: int) -> Iterator[slice]:
    """``n`` positions in pieces of ``block``; none at all are one piece, which is empty.

    >>> [(span.start, span.stop) for span in spans(5, block=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    return (slice(start, min(start + block, n)) for start in range(0, max(n, 1), block))


def tile(x: Array | None, rows: slice, columns: slice) -> Array | None:
    """The part of a mask or a bias for these queries and keys; an axis of one stays, for it broadcasts.

    >>> import numpy as np
    >>> tile(np.arange(4)[None], slice(5, 7), slice(1, 3))
    array([[1, 2]])
    """
    if x is None:
        return None
    x = x if x.ndim > 1 else x[None]
    everything = slice(None)
    return x[..., rows if x.shape[-2] > 1 else everything, columns if x.shape[-1] > 1 else everything]


def triangle(rows: slice, columns: slice, shift: int, like: Array) -> Array | None:
    """The causal mask of a tile whose query ``i`` stands at position ``i + shift``; None where it hides nothing.

    >>> import numpy as np
    >>> triangle(slice(0, 2), slice(1, 3), shift=1, like=np.zeros(1)).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    if columns.stop - 1 <= rows.start + shift:
        return None
    xp = namespace(like)
    query, key = (xp.arange(span.start, span.stop, device=like.device) for span in (rows, columns))
    return key[None, :] <= query[:, None] + shift
