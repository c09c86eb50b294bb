r"""Attention tile by tile, with memory for one tile of weights only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from attnlib._arrays import Array, at, namespace
from attnlib.core.masked_scores import masked_scores
from attnlib.core.online import carry_on, mean_of
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["blockwise", "tile_of"]


def blockwise(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    score: Callable[[Array, Array], Array] = scaled_dot,
    mask: Bool[Array, "... n_q n_k"] | None = None,
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    dropout: float = 0.0,
    block: int | None = 512,
) -> Float[Array, "... n_q d_v"]:
    r"""The same weighted mean as `attention`, tile by tile, without ever holding all weights.

    Going from one block of keys to the next, each query keeps its largest score so far, :math:`m`, and relative to it
    the sum of the exponentials and of the values that they weigh. When the largest score grows, both shrink:

    .. math:: m' = \max(m, \max_j s_{ij}), \qquad \ell' = e^{m - m'} \ell + \sum_j e^{s_{ij} - m'}, \qquad
              y' = e^{m - m'} y + \sum_j e^{s_{ij} - m'} v_j

    where :math:`j` runs over the keys of the block; in the end :math:`\text{out}_i = y / \ell`, up to rounding.
    Memory beyond the output grows as ``block²``, unless torch records gradients, for which it keeps every tile; with
    None all is one tile. The score sees some queries and keys at a time. It checks nothing: call `attention` with
    ``weights=False, block=512``.

    Source: Milakov and Gimelshein (2018), section 3, for one row; Rabe and Staats (2021), section 2, and Dao et al.
    (2022), section 3.1, for attention.

    >>> import numpy as np
    >>> from attnlib import attention
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 1000, 4))
    >>> bool(np.allclose(blockwise(q, k, v, block=64), attention(q, k, v).out))
    True
    """
    xp, n_q, n_k = namespace(q), q.shape[-2], k.shape[-2]
    first = n_k - n_q  # query r stands at key r + first
    wide = q.dtype if xp.finfo(q.dtype).bits > 16 else xp.float32  # long sums in half precision drift

    def mean(rows: slice) -> Array:
        kept = None
        for columns in spans(rows.stop + first if causal else n_k, block):  # keys beyond are hidden
            hide = {"mask": tile_of(mask, rows, columns), "bias": tile_of(bias, rows, columns), "causal": causal}
            start = first + rows.start - columns.start
            scores = masked_scores(q[..., rows, :], k[..., columns, :], score, **hide, start=start)
            scores = xp.astype(scores, wide, copy=False)
            kept = carry_on(kept, scores, xp.astype(v[..., columns, :], wide, copy=False), dropout)
        return xp.astype(mean_of(kept), v.dtype, copy=False)

    if block is None or n_q <= block:
        return mean(slice(0, n_q))
    return xp.concat([mean(rows) for rows in spans(n_q, block)], axis=-2)


def spans(n: int, block: int | None) -> Iterator[slice]:
    """``n`` positions in pieces of ``block``, or in one for None; none at all are one piece, which is empty.

    >>> [(span.start, span.stop) for span in spans(5, block=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    if block is None:  # a number that stays open where the graph is exported
        return iter([slice(0, n)])
    return (slice(start, min(start + block, n)) for start in range(0, max(n, 1), block))


def tile_of(
    x: Array | None, rows: slice | Int[np.ndarray, " n_q"], columns: slice | Int[np.ndarray, " n_k"]
) -> Array | None:
    """The part of a mask or a bias for these queries and keys; an axis of one stays, for it broadcasts.

    >>> tile_of(np.arange(4)[None], slice(5, 7), slice(1, 3))
    array([[1, 2]])
    """
    if x is None:
        return None
    x = x if x.ndim > 1 else x[None]
    x = at(x, rows, axis=-2) if x.shape[-2] > 1 else x
    return at(x, columns, axis=-1) if x.shape[-1] > 1 else x
