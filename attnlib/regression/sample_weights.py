"""Weights of the data: how many rows each row stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

    Score = Callable[[Array, Array], Array]

__all__ = ["counted", "weighted"]


def counted(
    X: Float[Array, "n d"], y: Array, weight: Float[Array, " n"] | None, *, at_least: int = 1
) -> tuple[Float[Array, "kept d"], Array, Float[Array, " kept"] | None]:
    """The rows that count, with their weights; None for weights that are all 1.

    Raises ``ValueError`` when ``weight`` is not one number for each row, finite and not negative, or when fewer than
    ``at_least`` are positive.

    >>> counted(np.array([[1.0], [2.0]]), np.array([5.0, 7.0]), [0.0, 2.0])
    (array([[2.]]), array([7.]), array([2.]))
    """
    if weight is None:
        return X, y, None
    try:
        numbers = np.asarray(weight)
        weight = numbers.astype(np.float64, casting="safe" if numbers.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, one for each row; got {weight!r}") from None
    if weight.ndim == 0:
        weight = np.full(len(X), weight)
    if weight.shape != (len(X),):
        raise ValueError(
            f"sample_weight must be one number for each row, of shape ({len(X)},); got shape {weight.shape}"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        raise ValueError(
            f"sample_weight must be finite and not negative; got {weight[bad][0]} for row {np.flatnonzero(bad)[0]}"
        )
    kept = weight > 0
    if kept.sum() < at_least:
        raise ValueError(
            f"sample_weight must be positive for at least {at_least} of {len(X)} rows; got zero for {sum(~kept)}"
        )
    return (X, y, None) if (weight == 1).all() else (X[kept], y[kept], weight[kept])


def weighted(score: Score, weight: Float[Array, " n"] | None, near: Array | slice) -> Score:
    r"""A score whose softmax weights are multiplied by those of the keys ``near``.

    .. math:: s_{ij} + \log w_j

    >>> weighted(lambda q, k: q @ k.T, np.array([1.0, np.e]), slice(None))(np.zeros((1, 1)), np.zeros((2, 1)))
    array([[0., 1.]])
    """
    if weight is None:
        return score
    more = np.log(weight[near])
    return lambda q, k: score(q, k) + more
