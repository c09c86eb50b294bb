"""Work done for a few queries at a time, in a few threads; and which data such a few can reach."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray as Array

__all__ = ["in_blocks", "in_tiles", "neighbours", "tiles"]

# Numbers in a block of weights. Two MiB and its temporaries stay near a core; the whole matrix would not.
BLOCK = 2**18
THREADS = min(4, os.cpu_count() or 1)
TILE = 128  # queries that look for their neighbours together


def in_blocks(work: Callable[[slice], Array], n_queries: int, n_data: int) -> Array:
    """Do ``work`` for a few rows at a time, in a few threads; what it returns is concatenated.

    >>> in_blocks(lambda rows: np.arange(10)[rows], 10, 2**17)
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    size = max(1, BLOCK // n_data)
    blocks: Iterator[slice] = (slice(start, start + size) for start in range(0, n_queries, size))
    return np.concatenate(list(_each(work, blocks)))


def in_tiles(
    work: Callable[[Array, Array | slice], None],
    q: Float[Array, "n_q d"],
    k: Float[Array, "n_k d"],
    *,
    gaussian: bool,
    weight: Float[Array, " n_k"] | None = None,
) -> None:
    r"""Do ``work`` for a few queries that lie close together and the keys that may have weight for them, both indices.

    A Gaussian reaches everywhere, but a key whose square of the distance exceeds the nearest key's by r has at most
    :math:`e^{-r/2}` of its weight. What is left out has less than a rounding error's share of all.

    >>> seen = []
    >>> keys = np.array([[0.0], [0.5], [9.0]])
    >>> in_tiles(lambda rows, near: seen.append(near), np.zeros((1, 1)), keys, gaussian=False)
    >>> seen
    [array([0, 1])]
    """
    keys = len(k) if weight is None else weight.sum() / weight.min()  # of the lightest, to weigh as much as all
    reach = 2 * (45 + np.log(keys)) if gaussian else 1 + 1e-9

    def one(group: Array) -> None:
        near = neighbours(q[group], k, reach, beyond=gaussian)
        size = max(1, BLOCK // (len(k) if isinstance(near, slice) else len(near)))
        for start in range(0, len(group), size):
            work(group[start : start + size], near)

    groups = tiles(q, TILE)
    for _ in map(one, groups) if len(groups) == 1 else _each(one, iter(groups)):
        pass


def _each(work: Callable[[Any], Any], parts: Iterator[Any]) -> Iterator[Any]:
    # glibc hands freed megabytes back to the kernel, and fetching them again for every block takes longer than
    # the arithmetic. It stops doing so once it has seen a larger array freed; this one is never touched.
    np.empty(8 * BLOCK)
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(work, parts)


def tiles(q: Float[Array, "n_q d"], size: int) -> list[Int[Array, " some"]]:
    """The queries in groups of at most ``size`` that lie close together: halved along the widest axis, and so on.

    >>> [sorted(group.tolist()) for group in tiles(np.array([[0.0], [9.0], [1.0], [8.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    done, open_ = [], [np.arange(len(q))]
    while open_:
        group = open_.pop()
        if len(group) <= size:
            done.append(group)
            continue
        axis = np.ptp(q[group], axis=0).argmax()
        half = len(group) // 2
        order = group[np.argpartition(q[group, axis], half)]
        open_ += [order[half:], order[:half]]
    return done


def neighbours(q: Float[Array, "n_q d"], k: Float[Array, "n_k d"], reach: float, *, beyond: bool) -> Array | slice:
    r"""The keys that may have weight for any query of a group; all of them as a slice, where most have.

    Distances are in bandwidths. With ``beyond``, a key counts within ``reach`` of the square of the nearest's:
    :math:`\lVert q - k \rVert^2 \le \min_j \lVert q - k_j \rVert^2 + \text{reach}`, which the box around the queries
    bounds; else within ``reach`` itself.

    >>> neighbours(np.array([[0.0], [1.0]]), np.array([[0.5], [5.0], [1.5], [9.0]]), 4.0, beyond=False)
    array([0, 2])
    """
    low, high = q.min(axis=0), q.max(axis=0)
    with np.errstate(over="ignore"):  # a squared distance beyond all numbers is no neighbour
        nearest = np.square(np.maximum(np.maximum(low - k, k - high), 0)).sum(axis=1)  # (n_k,), from the box
        if beyond:
            reach = reach + np.square(np.maximum(np.abs(k - low), np.abs(k - high))).sum(axis=1).min()
    found = np.flatnonzero(nearest <= reach)
    return found if 0 < len(found) < 0.8 * len(k) else slice(None)
