"""How far a prediction moves with the noise of the targets, and how large that noise is around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["variances"]


def variances(
    weigh: Callable[[Callable[[Array, Array | slice, Array], None]], None],
    residuals: Float[Array, "n_k n_targets"],
    n_queries: int,
    counts: Float[Array, " n_k"] | None = None,
) -> tuple[Float[Array, "n_q n_targets"], Float[Array, "n_q n_targets"]]:
    r"""That of each prediction, and that of the noise around it.

    .. math:: \sum_j W_j^2\, r_j^2, \qquad \sum_j |W_j|\, r_j^2 \Big/ \sum_j |W_j|

    ``weigh(use)`` calls ``use(rows, near, weights)`` for a few queries at a time, with the data that have weight.
    A row that counts as several shares its :math:`W_j` among them.

    >>> variances(lambda use: use(np.array([0]), slice(None), np.array([[0.5, 0.5]])), np.array([[2.0], [4.0]]), 1)
    (array([[5.]]), array([[10.]]))
    """
    squares = np.square(residuals)
    unknown = np.isnan(squares)  # a lonely point's
    if unknown.any():
        each = 1.0 if counts is None else counts[:, None]
        squares = np.where(unknown, np.nansum(each * squares, axis=0) / np.sum(each * ~unknown, axis=0), squares)
    alone = squares if counts is None else squares / np.maximum(counts, 1)[:, None]
    own, around, total = np.empty((3, n_queries, squares.shape[1]))

    def add_up(rows: Array, near: Array | slice, weights: Array) -> None:
        size = np.abs(weights)
        own[rows], around[rows] = size**2 @ alone[near], size @ squares[near]
        total[rows] = size.sum(axis=1, keepdims=True)

    weigh(add_up)
    return own, around / total
