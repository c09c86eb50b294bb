"""Attention that follows a pattern: scores are computed for the blocks that a query may see, and for no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._arrays import Array, at, namespace, split_rows
from attnlib.core.arguments import check_numbers

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from attnlib.patterns import Pattern

__all__ = ["Tile", "sparse"]


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
    pattern: Pattern,
    causal: bool,
    mean: Callable[[Tile], Array],
) -> Float[Array, "... n_q d_v"]:
    r"""The output of `attnlib.attention` under a pattern, from blocks of queries and the blocks of keys that they see.

    .. math:: \text{out}_i = \sum_{j \in S_i} \alpha_{ij} v_j, \qquad
              \alpha_{ij} = \frac{\exp s(q_i, k_j)}{\sum_{j' \in S_i} \exp s(q_i, k_{j'})}

    where :math:`S_i` are the keys that the pattern lets query i see, and ``mean`` attends within a tile. Global
    positions are keys of every tile, and their own queries share one tile over all keys. Of arguments, it checks the
    numbers only: call `attnlib.attention` with ``weights=False``.

    Source: Beltagy, Peters, Cohan (2020), section 3.2, for chunks; Zaheer et al. (2020), appendix D, for blocks.

    >>> from attnlib import attention, masks
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 500, 4))
    >>> band = masks.Band(back=20, dilation=2)
    >>> out = attention(q, k, v, mask=band, weights=False).out
    >>> bool(np.allclose(out, attention(q, k, v, mask=band.dense(500)).out))
    True
    """
    check_numbers(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    if not n_q:
        return mean(Tile(q, k, v, np.arange(0), np.arange(n_k), None))
    parts, places = [], []
    for strand in range(min(pattern.strands, n_q)):
        for tile in _tiles(q, k, v, pattern, causal, strand):
            parts.append(mean(tile))
            places.append(tile.rows)
    chosen = pattern.everywhere(n_k)
    chosen = chosen[chosen >= n_k - n_q]
    if len(chosen):  # what was computed for their queries did not see all
        rows, everything = chosen - (n_k - n_q), np.arange(n_k)
        seen = everything <= chosen[:, None] if causal else None
        parts.append(mean(Tile(at(q, rows, axis=-2), k, v, rows, everything, seen)))
        places.append(rows)
    return _in_place(parts, np.concatenate(places), n_q)


def _in_place(parts: list[Array], places: Int[np.ndarray, " n_rows"], n_q: int) -> Float[Array, "... n_q d_v"]:
    """The rows of ``parts`` at their ``places``; of two for one place, the later."""
    row_of = np.empty(n_q, dtype=np.int64)
    row_of[places] = np.arange(len(places))
    out = namespace(parts[0]).concat(parts, axis=-2)
    if len(places) == n_q and (row_of[1:] > row_of[:-1]).all():
        return out
    return at(out, row_of, axis=-2)


def _tiles(q: Array, k: Array, v: Array, pattern: Pattern, causal: bool, strand: int) -> Iterator[Tile]:
    """The tiles of every ``pattern.strands``-th query from ``strand`` on, over the keys where these may stand."""
    xp, step, n_q, n_k = namespace(q), pattern.strands, q.shape[-2], k.shape[-2]
    start, first = divmod(strand + n_k - n_q, step)  # the first query stands at key `first + start * step`
    rows, keys, chosen = np.arange(strand, n_q, step), np.arange(first, n_k, step), pattern.everywhere(n_k)
    shared = [[at(x, chosen, axis=-2)] if len(chosen) else [] for x in (k, v)]
    if step > 1:
        q, k, v = q[..., strand::step, :], k[..., first::step, :], v[..., first::step, :]
    block = pattern.block_of(n_k)
    blocks = [split_rows(x, block) for x in (k, v)]
    for q_block in split_rows(q, block, lacking=start % block):
        here, rows = rows[: q_block.shape[-2]], rows[q_block.shape[-2] :]
        query = here + n_k - n_q
        near = pattern.near(int(query[0]) // step, int(query[-1]) // step, len(blocks[0]))
        near = [number for number in near if number <= query[-1] // step // block] if causal else near
        column = np.concatenate([chosen, *(keys[number * block : (number + 1) * block] for number in near)])
        k_near, v_near = ([*own, *(x[number] for number in near)] for own, x in zip(shared, blocks, strict=True))
        k_near, v_near = (x[0] if len(x) == 1 else xp.concat(x, axis=-2) for x in (k_near, v_near))
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
