"""Masks that are said instead of held: what they hide is never computed. `attnlib.masks` hands them on.

A pattern goes to `attnlib.attention` as ``mask``. It says which blocks of keys a block of queries may see, so that
`attnlib.core` scores those only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlib._base.arrays import Array, namespace
from attnlib._base.checks import check_at_least_one, check_integers, check_size

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

__all__ = ["Band", "BigBird", "Pattern", "mapped"]

LEAST, MOST = 32, 128  # queries in a block of a band: fewer take more calls, more score more that is hidden


@dataclass(frozen=True, eq=False)
class Pattern:
    """What `Band` and `BigBird` have in common; ``beside`` is a mask that hides more, as padding does.

    A pattern says twice who sees whom, and both have to agree: `inside` for pairs of positions, `near` for blocks of
    positions ``dilation`` apart.

    >>> Pattern(beside=np.ones((2, 1, 5), dtype=bool)).ndim
    3
    """

    dilation: ClassVar[int] = 1  # only positions so far apart, or multiples of it, see each other
    _: KW_ONLY
    beside: Bool[Array, "... n_q n_k"] | None = None

    @property
    def ndim(self) -> int:
        """The axes of the mask it stands for."""
        return 2 if self.beside is None else max(self.beside.ndim, 2)

    def block_of(self, n_k: int) -> int:
        """How many positions, ``dilation`` apart, are scored together."""
        raise NotImplementedError

    def everywhere(self, n_k: int) -> Int[np.ndarray, " n_global"]:
        """The positions that see all others and are seen by all."""
        raise NotImplementedError

    def near(self, first: int, last: int, n_blocks: int) -> list[int]:
        """The blocks of keys for queries ``first`` to ``last`` of one block; ``dilation`` is the unit."""
        raise NotImplementedError

    def inside(self, query: Int[np.ndarray, "n_q 1"], key: Int[np.ndarray, " n_k"]) -> np.ndarray:
        """Of the keys in those blocks, which may be seen."""
        raise NotImplementedError

    def check(self, n_q: int, n_k: int) -> None:
        """Raise unless it can say which of ``n_k`` keys ``n_q`` queries may see."""
        if n_q > n_k:
            raise ValueError(f"n_q must not exceed n_k, since a query stands at one of the keys; got {n_q} > {n_k}")
        self.everywhere(n_k)

    def dense(self, n_q: int, n_k: int | None = None, *, like: Array | None = None) -> Bool[Array, "... n_q n_k"]:
        """The same mask as an array. The last query stands at the last key, as in `attnlib.causal`.

        >>> Band(back=1).dense(3).astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 1, 1]])
        """
        n_q = check_size("n_q", n_q)
        n_k = n_q if n_k is None else check_size("n_k", n_k)
        self.check(n_q, n_k)
        query, key = np.arange(n_k - n_q, n_k)[:, None], np.arange(n_k)[None]
        chosen = np.isin(np.arange(n_k), self.everywhere(n_k))
        mask = self._linked(query, key, n_k) | chosen[query] | chosen[key]
        mask = mask if like is None else namespace(like).asarray(mask, device=like.device)
        return mask if self.beside is None else mask & self.beside

    def _linked(self, query: np.ndarray, key: np.ndarray, n_k: int) -> np.ndarray:
        """May this query see this key, whatever is seen everywhere?"""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Band(Pattern):
    r"""Each position sees ``back`` positions before it and ``ahead`` after it; some see, and are seen by, all.

    .. math:: m_{ij} = [\, i' - j = t\, d, \; -\text{ahead} \le t \le \text{back} \,]
              \;\lor\; [\, i' \in G \,] \;\lor\; [\, j \in G \,], \qquad i' = i + n_k - n_q

    As the ``mask`` of `attnlib.attention` with ``weights=False``, or of `attnlib.MultiHeadAttention`, it costs time
    in proportion to :math:`n\,(\text{back} + \text{ahead} + |G|)`, and memory to n, not to n². With weights asked for,
    they are the dense ones, ``(..., n_q, n_k)``. The last query stands at the last key.

    Parameters
    ----------
    back, ahead
        How many positions are seen on either side. With ``causal=True`` beside it, those after it are not.
    dilation
        :math:`d`: only every d-th position is seen, so that the window reaches d times as far.
    global_positions
        :math:`G`. They see everything, and everything sees them.
    beside
        A mask that hides more, ``(..., n_q, n_k)``, or ``(..., 1, n_k)`` for padding: see `attnlib.masks.combine`.

    Raises
    ------
    TypeError
        A size that is not an integer.
    ValueError
        A size that is negative, a dilation of zero and, when it is put to use, a global position that no key has.

    Notes
    -----
    ``dense`` gives the same mask as an array.

    Source: Beltagy, Peters, Cohan (2020), section 3.1: sliding window, dilated sliding window, global attention.

    Examples
    --------
    >>> Band(back=2, dilation=2, global_positions=[1]).dense(6).astype(int)
    array([[1, 1, 0, 0, 0, 0],
           [1, 1, 1, 1, 1, 1],
           [1, 1, 1, 0, 0, 0],
           [0, 1, 0, 1, 0, 0],
           [1, 1, 1, 0, 1, 0],
           [0, 1, 0, 1, 0, 1]])
    """

    back: int
    ahead: int = 0
    _: KW_ONLY
    dilation: int = 1
    global_positions: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_size("back", self.back)
        check_size("ahead", self.ahead)
        check_at_least_one("dilation", self.dilation)
        chosen = check_integers("global_positions", self.global_positions)
        for i, position in enumerate(chosen):
            check_size(f"global_positions[{i}]", position)
        object.__setattr__(self, "global_positions", tuple(sorted(set(chosen))))

    def block_of(self, n_k: int) -> int:
        """A power of two near half of the window."""
        half = max((self.back + self.ahead) // 2, 1)
        return min(max(1 << half.bit_length() - 1, LEAST), MOST)

    def everywhere(self, n_k: int) -> np.ndarray:
        """The global positions; raises for one that is not there."""
        if self.global_positions and self.global_positions[-1] >= n_k:
            raise ValueError(f"global_positions must lie below n_k = {n_k}; got {self.global_positions[-1]}")
        return np.array(self.global_positions, dtype=int)

    def near(self, first: int, last: int, n_blocks: int) -> list[int]:
        """From the block of the first key that one of the queries sees to that of the last."""
        block = self.block_of(0)
        return list(range(max(first - self.back, 0) // block, min((last + self.ahead) // block + 1, n_blocks)))

    def inside(self, query: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Those within the window."""
        before = query - key
        return (before <= self.back * self.dilation) & (before >= -self.ahead * self.dilation)

    def _linked(self, query: np.ndarray, key: np.ndarray, n_k: int) -> np.ndarray:
        steps, off = np.divmod(query - key, self.dilation)
        return (off == 0) & (steps <= self.back) & (steps >= -self.ahead)


@dataclass(frozen=True, eq=False)
class BigBird(Pattern):
    r"""Blocks that see their neighbours, some blocks drawn at random, and a few that see, and are seen by, all.

    .. math:: m_{ij} = [\, B_i - \text{back} \le B_j \le B_i + \text{ahead} \,] \;\lor\; [\, B_j \in R(B_i) \,]
              \;\lor\; [\, B_i \in G \,] \;\lor\; [\, B_j \in G \,], \qquad
              B_j = \lfloor j / \text{block} \rfloor, \quad B_i = \lfloor (i + n_k - n_q) / \text{block} \rfloor

    It is used as `Band` is, and costs as much as :math:`\text{back} + \text{ahead} + 1 + |R| + |G|` blocks for each.

    Parameters
    ----------
    block
        Positions in a block. The last one may be shorter.
    back, ahead
        How many neighbouring blocks are seen on either side.
    n_random
        :math:`|R|`: how many others each block sees, as far as there are so many. They are drawn from ``seed``, and
        depend on the number of blocks; with ``causal=True`` those after the query are hidden as all else is.
    global_blocks
        :math:`G`, where -1 is the last block, as in a list.
    seed
        Of the random choice: the same numbers give the same blocks, everywhere.
    beside
        A mask that hides more, as in `Band`.

    Raises
    ------
    TypeError
        A size that is not an integer.
    ValueError
        A size that is negative, a block of zero and, when it is put to use, a global block that is not there.

    Notes
    -----
    ``random_blocks`` gives those that are drawn, ``dense`` the same mask as an array.

    Source: Zaheer et al. (2020), section 2 and appendix D.

    Examples
    --------
    >>> BigBird(block=1, n_random=1, global_blocks=[0]).dense(6).astype(int)
    array([[1, 1, 1, 1, 1, 1],
           [1, 1, 1, 0, 1, 0],
           [1, 1, 1, 1, 1, 0],
           [1, 0, 1, 1, 1, 1],
           [1, 1, 0, 1, 1, 1],
           [1, 0, 0, 1, 1, 1]])
    """

    block: int = 64
    _: KW_ONLY
    back: int = 1
    ahead: int = 1
    n_random: int = 3
    global_blocks: Sequence[int] = (0, -1)
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least_one("block", self.block)
        for name in ("back", "ahead", "n_random", "seed"):
            check_size(name, getattr(self, name))
        object.__setattr__(self, "global_blocks", tuple(check_integers("global_blocks", self.global_blocks)))

    def random_blocks(self, n_blocks: int) -> tuple[tuple[int, ...], ...]:
        """The blocks drawn for each of ``n_blocks``: no neighbour and no global one.

        >>> BigBird(n_random=2, global_blocks=[0]).random_blocks(7)
        ((), (3, 5), (5, 6), (5, 6), (2, 6), (1, 3), (2, 4))
        """
        return _drawn_blocks(n_blocks, self.back, self.ahead, self.n_random, self._global(n_blocks), self.seed)

    def block_of(self, n_k: int) -> int:
        """The block."""
        return self.block

    def everywhere(self, n_k: int) -> np.ndarray:
        """The positions of the global blocks; raises for one that is not there."""
        numbers = self._global(-(-n_k // self.block))
        places = [np.arange(g * self.block, min((g + 1) * self.block, n_k)) for g in numbers]
        return np.concatenate([np.array([], dtype=int), *places])

    def near(self, first: int, last: int, n_blocks: int) -> list[int]:
        """The neighbours and the random ones. Global ones are seen anyway."""
        own, chosen = first // self.block, self._global(n_blocks)
        window = range(max(own - self.back, 0), min(own + self.ahead + 1, n_blocks))
        return sorted({*window, *self.random_blocks(n_blocks)[own]} - set(chosen))

    def inside(self, query: np.ndarray, key: np.ndarray) -> np.ndarray:
        """All of them."""
        return np.ones((1, 1), dtype=bool)

    def _global(self, n_blocks: int) -> tuple[int, ...]:
        for number in self.global_blocks if n_blocks else ():
            if not -n_blocks <= number < n_blocks:
                raise ValueError(f"global_blocks must be among the {n_blocks} there are; got {number}")
        return tuple(sorted({number % n_blocks for number in self.global_blocks})) if n_blocks else ()

    def _linked(self, query: np.ndarray, key: np.ndarray, n_k: int) -> np.ndarray:
        n_blocks = -(-n_k // self.block)
        own = np.arange(n_blocks)
        linked = (own <= own[:, None] + self.ahead) & (own >= own[:, None] - self.back)
        for i, drawn in enumerate(self.random_blocks(n_blocks)):
            linked[i, list(drawn)] = True
        return linked[query // self.block, key // self.block]


@lru_cache
def _drawn_blocks(
    n_blocks: int, back: int, ahead: int, n_random: int, chosen: tuple[int, ...], seed: int
) -> tuple[tuple[int, ...], ...]:
    """For each block so many of those that it does not see anyway; a global one sees all."""
    rng, rows = np.random.default_rng([seed, n_blocks]), []
    for own in range(n_blocks):
        left = [b for b in range(n_blocks) if not (own - back <= b <= own + ahead or b in chosen or own in chosen)]
        drawn = rng.choice(left, size=min(n_random, len(left)), replace=False) if left else ()
        rows.append(tuple(sorted(map(int, drawn))))
    return tuple(rows)


def mapped(
    change: Callable[[Array | None], Array | None], mask: Bool[Array, ...] | Pattern | None
) -> Bool[Array, ...] | Pattern | None:
    """``change`` applied to a mask, or to what stands beside a pattern.

    >>> mapped(lambda mask: mask[None], Band(back=1, beside=np.ones((2, 3), dtype=bool))).ndim
    3
    """
    if not isinstance(mask, Pattern):
        return change(mask)
    return mask if mask.beside is None else replace(mask, beside=change(mask.beside))
