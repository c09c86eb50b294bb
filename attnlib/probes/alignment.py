r"""Does a head point from one part of a text to what belongs to it in another? Asked of reactions, or of translations.

.. math:: \text{share} = \frac{1}{n} \sum_i \Big[\arg\max_{j \in \text{keys}} \alpha_{ij} \text{ is right for } i\Big]

An alignment, `attnlib.data.reactions.Alignment` or any object like it, says which tokens ask, which may be pointed at,
and which of these are right. What a model reaches is worth what simpler rules do not: `chance`, `same_place`,
`shifted`, `most_alike`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from attnlib._base.checks import check_share
from attnlib._base.seeds import Seed, generator

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray as Array
    from torch import Tensor

__all__ = ["chance", "interval", "most_alike", "points_right", "same_place", "shifted"]


class Aligned(Protocol):
    """What the functions below read of an alignment."""

    queries: Int[Array, " n_q"]
    keys: Int[Array, " n_k"]
    right: Bool[Array, "n_q n_k"]
    allowed: Bool[Array, "n_q n_k"]


def points_right(weights: Float[Tensor, "*heads n n"], alignment: Aligned) -> Bool[Array, "*heads n_q"]:
    """For each head and query: does the largest weight on a key that is allowed lie on a right one?

    ``weights`` may have axes for layers and heads in front. Of equal weights the first counts.

    Raises ``ValueError`` when the weights are not for as many positions as the alignment speaks of.

    >>> import torch
    >>> from attnlib.data.reactions import reactions
    >>> reaction = reactions()[0]
    >>> weights = torch.eye(len(reaction.tokens))[reaction.origin]
    >>> points_right(weights, reaction.alignment()).all()
    np.True_
    """
    last = max(alignment.queries.max(), alignment.keys.max())
    if weights.ndim < 2 or min(weights.shape[-2:]) <= last:
        raise ValueError(f"weights must be (..., n, n) with n above {last}; got {tuple(weights.shape)}")
    seen = weights.detach().cpu().numpy()[..., alignment.queries[:, None], alignment.keys]
    best = np.where(alignment.allowed, seen, -1).argmax(axis=-1)
    return alignment.right[np.arange(len(alignment.queries)), best]


def chance(alignment: Aligned) -> Float[Array, " n_q"]:
    """The chance that each query hits a right key by drawing one of those that are allowed.

    >>> from attnlib.data.reactions import reactions
    >>> chance(reactions()[0].alignment())[0].round(2)
    np.float64(0.05)
    """
    return (alignment.right & alignment.allowed).sum(axis=1) / np.maximum(alignment.allowed.sum(axis=1), 1)


def same_place(alignment: Aligned) -> Bool[Array, " n_q"]:
    """Is it right to point at the key that stands as far along among the keys as the query among the queries?

    Of the keys that are allowed, the nearest to that place.

    >>> from attnlib.data.reactions import reactions
    >>> bool(same_place(reactions()[0].alignment())[0])
    True
    """
    n_q, n_k = alignment.right.shape
    return _nearest(alignment, _along(n_q, n_k), alignment.allowed)


def shifted(alignment: Aligned, shift: int) -> Bool[Array, " n_q"]:
    """Is it right to point at key ``i + shift`` from query i? Of the keys that are allowed, the nearest to it.

    >>> from attnlib.data.reactions import reactions
    >>> bool(shifted(reactions()[0].alignment(), 0)[0])
    True
    """
    return _nearest(alignment, np.arange(alignment.right.shape[0]) + float(shift), alignment.allowed)


def most_alike(alignment: Aligned, alike: Float[Array, "n_q n_k"]) -> Bool[Array, " n_q"]:
    """Is it right to point at the key that is most like the query? Of equals, the nearest to the same place along.

    Raises ``ValueError`` when ``alike`` has another shape than the alignment.

    >>> from attnlib.data.reactions import reactions
    >>> alignment = reactions()[0].alignment()
    >>> bool(most_alike(alignment, alignment.right).all())
    True
    """
    n_q, n_k = alignment.right.shape
    alike = np.asarray(alike, dtype=float)
    if alike.shape != (n_q, n_k):
        raise ValueError(f"alike must be {(n_q, n_k)}, queries by keys; got {alike.shape}")
    seen = np.where(alignment.allowed, alike, -np.inf)
    return _nearest(alignment, _along(n_q, n_k), seen == seen.max(axis=1, keepdims=True))


def interval(
    values: Sequence[Float[Array, " n"]], *, level: float = 0.95, draws: int = 2000, seed: Seed = 0
) -> tuple[float, float]:
    """An interval for the mean of all values, of which those of one text belong together: texts are drawn anew.

    Source: Efron and Tibshirani (1993), chapter 13, the percentile interval.

    >>> interval([np.array([0.0, 1.0]), np.array([1.0, 1.0])], draws=100)
    (0.5, 1.0)
    """
    check_share("level", level)
    if not len(values):
        raise ValueError("values must hold those of one text at least; got none")
    totals, counts = (np.array([f(value) for value in values], dtype=float) for f in (np.sum, len))
    drawn = generator(seed).integers(len(values), size=(draws, len(values)))
    means = totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _along(n_q: int, n_k: int) -> Float[Array, " n_q"]:
    return np.arange(n_q) / max(n_q - 1, 1) * (n_k - 1)


def _nearest(alignment: Aligned, places: Float[Array, " n_q"], among: Bool[Array, "n_q n_k"]) -> Bool[Array, " n_q"]:
    n_q, n_k = alignment.right.shape
    distance = np.abs(places[:, None] - np.arange(n_k))
    return alignment.right[np.arange(n_q), np.where(among, distance, np.inf).argmin(axis=1)]
