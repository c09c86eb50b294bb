r"""The same output without its weights: by torch's kernel, or tile by tile, with memory for one tile of weights only.

A tile is some queries and some keys: a block of each, or, under a pattern, a block and what it may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.arrays import Array, Library, at, is_torch, library_of, split_rows
from attnlib.core.arguments import check_numbers
from attnlib.core.softmax import drop_weights, online_mean, online_update, softmax
from attnlib.patterns import Pattern
from attnlib.scores import masked_scores, scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["blockwise", "sparse", "without_weights"]


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
    library: Library,
) -> Array:
    """The output of `attnlib.attention`, by torch's fused kernel or by tiles of ``block``; without it one tile is all.

    Under a pattern, tile by tile of what it lets be seen.

    >>> q, k, v = np.zeros((1, 2)), np.eye(2), np.array([[1.0], [3.0]])
    >>> without_weights(q, k, v, scaled_dot, None, False, None, 0.0, None, library_of(q))
    array([[2.]])
    """
    if isinstance(mask, Pattern):
        return sparse(q, k, v, score, mask, causal, bias, dropout, library)
    if block is None and score is scaled_dot and is_torch(q):
        from attnlib.core.fused import fused  # here, so that NumPy needs no torch

        out = fused(q, k, v, mask, causal, bias, dropout, library)
        if out is not None:
            return out
    check_numbers(q, k, v, library)
    options = {"score": score, "mask": mask, "causal": causal, "bias": bias, "dropout": dropout, "library": library}
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that overflows is taken again, below
        out = blockwise(q, k, v, block=block, **options)
    if not library.readable or library.xp.all(library.xp.isfinite(out)):
        return out
    if block is None:  # a sum of large values
        alpha = softmax(masked_scores(q, k, score, mask, causal, bias, library=library), library)
        return drop_weights(alpha, dropout) @ v
    less = 2.0 ** v.shape[-2].bit_length()  # a power of two, which changes no digit, above the number of values
    return blockwise(q, k, v / less, block=block, **options) * less


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
    library: Library | None = None,
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

    >>> from attnlib import attention
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 1000, 4))
    >>> bool(np.allclose(blockwise(q, k, v, block=64), attention(q, k, v).out))
    True
    """
    library = library or library_of(q)
    xp, n_q, n_k = library.xp, q.shape[-2], k.shape[-2]
    first = n_k - n_q  # query r stands at key r + first
    wide = q.dtype if xp.finfo(q.dtype).bits > 16 else xp.float32  # long sums in half precision drift
    outs = []
    for rows in spans(n_q, None if block is None or n_q <= block else block):
        state = None
        for columns in spans(rows.stop + first if causal else n_k, block):  # keys beyond are hidden
            scores = masked_scores(
                q[..., rows, :],
                k[..., columns, :],
                score,
                mask=tile_of(mask, rows, columns),
                causal=causal,
                bias=tile_of(bias, rows, columns),
                start=first + rows.start - columns.start,
                library=library,
            )
            scores = xp.astype(scores, wide, copy=False)
            state = online_update(state, scores, xp.astype(v[..., columns, :], wide, copy=False), dropout, library)
        outs.append(xp.astype(online_mean(state, library), v.dtype, copy=False))
    return outs[0] if len(outs) == 1 else xp.concat(outs, axis=-2)


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


class Tile(NamedTuple):
    """Some queries, the keys near them, and where both stand; ``seen`` says which may be seen, None for all.

    >>> Tile._fields
    ('q', 'k', 'v', 'rows', 'columns', 'seen')
    """

    q: Float[Array, "... n_q d"]
    k: Float[Array, "... n_k d"]
    v: Float[Array, "... n_k d_v"]
    rows: Int[np.ndarray, " n_q"]
    columns: Int[np.ndarray, " n_k"]
    seen: Bool[np.ndarray, "n_q n_k"] | None


def sparse(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    score: Callable[[Array, Array], Array],
    pattern: Pattern,
    causal: bool,
    bias: Float[Array, "... n_q n_k"] | None,
    dropout: float,
    library: Library,
) -> Float[Array, "... n_q d_v"]:
    r"""The output of `attnlib.attention` under a pattern, from blocks of queries and the blocks of keys that they see.

    .. math:: \text{out}_i = \sum_{j \in S_i} \alpha_{ij} v_j, \qquad
              \alpha_{ij} = \frac{\exp s(q_i, k_j)}{\sum_{j' \in S_i} \exp s(q_i, k_{j'})}

    where :math:`S_i` are the keys that the pattern lets query i see. Global positions are keys of every tile, and
    their own queries share one tile over all keys. Of arguments, it checks the numbers only: call `attnlib.attention`
    with ``weights=False``.

    Source: Beltagy, Peters, Cohan (2020), section 3.2, for chunks; Zaheer et al. (2020), appendix D, for blocks.

    >>> from attnlib import attention, masks
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 500, 4))
    >>> band = masks.Band(back=20, dilation=2)
    >>> out = attention(q, k, v, mask=band, weights=False).out
    >>> bool(np.allclose(out, attention(q, k, v, mask=band.dense(500)).out))
    True
    """
    check_numbers(q, k, v, library)
    outs, places = [], []
    for tile in _tiles(q, k, v, pattern, causal, library):
        mask = tile_of(pattern.beside, tile.rows, tile.columns)
        if tile.seen is not None:
            seen = library.xp.asarray(tile.seen, device=q.device)
            mask = seen if mask is None else seen & mask
        added = tile_of(bias, tile.rows, tile.columns)
        outs.append(without_weights(tile.q, tile.k, tile.v, score, mask, False, added, dropout, None, library))
        places.append(tile.rows)
    return _in_place(outs, np.concatenate(places), q.shape[-2], library)


def _in_place(
    outs: list[Array], places: Int[np.ndarray, " n_rows"], n_q: int, library: Library
) -> Float[Array, "... n_q d_v"]:
    """The rows of ``outs`` at their ``places``; of two for one place, the later."""
    row_of = np.empty(n_q, dtype=np.int64)
    row_of[places] = np.arange(len(places))
    out = library.xp.concat(outs, axis=-2)
    if len(places) == n_q and (row_of[1:] > row_of[:-1]).all():
        return out
    return at(out, row_of, axis=-2)


def _tiles(q: Array, k: Array, v: Array, pattern: Pattern, causal: bool, library: Library) -> Iterator[Tile]:
    """All tiles: of every ``pattern.dilation``-th query from each of the first on, then of the global positions."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    if not n_q:
        yield Tile(q, k, v, np.arange(0), np.arange(n_k), None)
        return
    chosen = pattern.everywhere(n_k)
    for offset in range(min(pattern.dilation, n_q)):
        yield from _dilated_tiles(q, k, v, pattern, causal, offset, chosen, library)
    chosen = chosen[chosen >= n_k - n_q]
    if len(chosen):  # what was computed for their queries did not see all
        rows, everything = chosen - (n_k - n_q), np.arange(n_k)
        seen = everything <= chosen[:, None] if causal else None
        yield Tile(at(q, rows, axis=-2), k, v, rows, everything, seen)


def _dilated_tiles(
    q: Array,
    k: Array,
    v: Array,
    pattern: Pattern,
    causal: bool,
    offset: int,
    chosen: Int[np.ndarray, " n_global"],
    library: Library,
) -> Iterator[Tile]:
    """The tiles of every ``pattern.dilation``-th query from ``offset`` on, over the keys where these may stand."""
    step, n_q, n_k = pattern.dilation, q.shape[-2], k.shape[-2]
    start, first = divmod(offset + n_k - n_q, step)  # the first query stands at key `first + start * step`
    rows = np.arange(offset, n_q, step)
    keys = np.arange(first, n_k, step)
    shared = [[at(x, chosen, axis=-2)] if len(chosen) else [] for x in (k, v)]
    if step > 1:
        q, k, v = q[..., offset::step, :], k[..., first::step, :], v[..., first::step, :]
    block = pattern.block_of(n_k)
    blocks = [split_rows(x, block) for x in (k, v)]
    for q_block in split_rows(q, block, lacking=start % block):
        here, rows = rows[: q_block.shape[-2]], rows[q_block.shape[-2] :]
        query = here + n_k - n_q
        near = pattern.near(int(query[0]) // step, int(query[-1]) // step, len(blocks[0]))
        near = [number for number in near if number <= query[-1] // step // block] if causal else near
        column = np.concatenate([chosen, *(keys[number * block : (number + 1) * block] for number in near)])
        k_near, v_near = ([*own, *(x[number] for number in near)] for own, x in zip(shared, blocks, strict=True))
        k_near, v_near = (x[0] if len(x) == 1 else library.xp.concat(x, axis=-2) for x in (k_near, v_near))
        yield Tile(q_block, k_near, v_near, here, column, _seen(pattern, causal, query[:, None], column, chosen))


def _seen(pattern: Pattern, causal: bool, query: np.ndarray, key: np.ndarray, chosen: np.ndarray) -> np.ndarray | None:
    """Which keys of a tile its queries may see; None for all. The first keys are global, and no others shall be."""
    near, seen = key[len(chosen) :], np.ones((len(query), len(key)), dtype=bool)
    seen[:, len(chosen) :] = pattern.inside(query, near)
    if len(chosen):
        seen[:, len(chosen) :] &= ~np.isin(near, chosen)
    if causal:
        seen &= key <= query
    return None if seen.all() else seen
