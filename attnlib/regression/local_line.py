r"""A line around each query: fitted by least squares, with the weights that the kernel gives to the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attnlib.core.attention import attention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy import ndarray as Array

__all__ = ["Lines", "lines_with_leverage", "local_lines", "straighten"]


def local_lines(
    q: Float[Array, "n_q d"],
    k: Float[Array, "n_k d"],
    y: Float[Array, "n_k n_targets"],
    score: Callable[[Array, Array], Array],
) -> tuple[Float[Array, "n_q n_targets"], Bool[Array, " n_q"]]:
    r"""The value of each query's line at the query, by moments; and where these are sure to have kept their digits.

    .. math:: \hat y(q) = \bar y + (q - m)^\top C^{-1} \Big( \sum_i \alpha_i k_i y_i - m \bar y \Big), \qquad
              m = \sum_i \alpha_i k_i, \quad C = \sum_i \alpha_i k_i k_i^\top - m m^\top

    All sums are one attention, whose values are :math:`y_i, k_i, k_i k_i^\top` and :math:`k_i y_i`. Differences of
    moments lose digits where the spread is small: near one key that has nearly all the weight, or far outside of the
    data. There `straighten` is asked.

    Source: Fan (1992), equation 2.3, for the line by moments.

    >>> k = np.array([[0.0], [1.0], [2.0]])
    >>> local_lines(np.array([[0.5]]), k, 10 * k, lambda q, k: -((q - k.T) ** 2))
    (array([[5.]]), array([ True]))
    """
    with np.errstate(over="ignore"):  # a squared distance beyond all numbers is no neighbour
        fit, _, sure = _by_moments(lambda columns: attention(q, k, columns, score=score, weights=False).out, q, k, y)
    return fit, sure


def lines_with_leverage(
    alpha: Float[Array, "n_q n_k"],
    q: Float[Array, "n_q d"],
    k: Float[Array, "n_k d"],
    y: Float[Array, "n_k n_targets"],
) -> tuple[Float[Array, "n_q n_targets"], Float[Array, " n_q"], Bool[Array, " n_q"]]:
    r"""The same from the weights of a mean, with what the line's value takes of a target at the query itself.

    .. math:: W_{ii} / \alpha_{ii} = 1 + (q_i - m)^\top C^{-1} (q_i - m)

    >>> k = np.array([[0.0], [1.0], [2.0]])
    >>> fit, leverage, sure = lines_with_leverage(np.full((1, 3), 1 / 3), k[:1], k, 10 * k)
    >>> leverage.round(9) / 3  # the weight that the line gives to the first target
    array([0.83333333])
    """
    return _by_moments(lambda columns: alpha @ columns, q, k, y)


def _by_moments(mean_of: Callable[[Array], Array], q: Array, k: Array, y: Array) -> tuple[Array, Array, Array]:
    """The lines' values at the queries, the leverage there, and where these are sure to have kept their digits."""
    middle, level = np.clip(q, k.min(axis=0), k.max(axis=0)).mean(axis=0), y.mean(axis=0)
    d, t, y = k - middle, q - middle, y - level
    (n, size), n_targets = d.shape, y.shape[1]
    squares, products = ((d[:, :, None] * x[:, None, :]).reshape(n, -1) for x in (d, y))
    means = mean_of(np.hstack([y, d, squares, products]))
    mean, m, rest = means[:, :n_targets], means[:, n_targets : n_targets + size], means[:, n_targets + size :]
    second, cross = rest[:, : size**2], rest[:, size**2 :].reshape(-1, size, n_targets)
    spread = second.reshape(-1, size, size) - m[:, :, None] * m[:, None, :]  # (n_q, d, d)
    cross = cross - m[:, :, None] * mean[:, None, :]  # (n_q, d, n_targets)
    step = t - m
    sure = _well_spread(spread, second[:, :: size + 1], step)
    spread = np.where(sure[:, None, None], spread, np.eye(size))
    slope = cross / spread if size == 1 else np.linalg.solve(spread, cross)
    ahead = step[:, :, None] / spread if size == 1 else np.linalg.solve(spread, step[:, :, None])
    leverage = 1 + np.einsum("qa,qa->q", step, ahead[:, :, 0])
    return level + mean + np.einsum("qa,qab->qb", step, slope), leverage, sure


def _well_spread(spread: Array, second: Array, step: Array) -> Array:
    """Is the spread no small difference of large moments, in any direction, and the query not far outside?"""
    own = np.einsum("qaa->qa", spread)
    with np.errstate(over="ignore"):
        sure = ((own > 1e-3 * second) & (step**2 < 100 * own)).all(axis=1)
    if spread.shape[1] == 1:
        return sure
    size = np.sqrt(np.where(sure[:, None], own, 1.0))
    related = np.where(sure[:, None, None], spread, 0.0) / (size[:, :, None] * size[:, None, :])
    return np.linalg.eigvalsh(related)[:, 0] > 1e-2


class Lines:
    r"""Lines around a few queries, fitted by least squares with the weights of a mean.

    Counting from the key with the largest weight, :math:`d_i = k_i - k_r` and :math:`t = q - k_r`, with
    :math:`m = \sum_i \alpha_i d_i` and :math:`C = \sum_i \alpha_i d_i d_i^\top - m m^\top`, the line's value at q
    is :math:`\sum_i \alpha_i (1 + (d_i - m)^\top C^{-1} (t - m))\, y_i`. Counted from there, the difference of a
    key that has nearly all the weight is exactly zero, and those of the others keep their digits.

    >>> k = np.array([[0.0], [1.0], [2.0]])
    >>> lines = Lines(np.array([[0.5, 0.25, 0.25]]), k)
    >>> lines.weights(np.array([[3.0]])) @ (5 * k), lines.slopes((5 * k).T)
    (array([[15.]]), array([[5.]]))
    """

    def __init__(self, alpha: Float[Array, "n_q n_k"], k: Float[Array, "n_k d"]) -> None:
        self.alpha = alpha
        self.heaviest = k[alpha.argmax(axis=1)]
        self.d = d = k - self.heaviest[:, None]
        self.m = m = np.einsum("qk,qka->qa", alpha, d)
        second = np.einsum("qk,qka,qkb->qab", alpha, d, d, optimize=True)  # (n_q, d, d)
        spread = second - m[:, :, None] * m[:, None, :]
        # Columns of very different spread are brought to one size first; what is then still flat has no slope.
        size = np.sqrt(np.maximum(np.einsum("qaa->qa", spread), 0))
        # Below 1e-140 its square is no longer a number.
        self.scale = np.where(size > 1e-140, 1 / np.maximum(size, 1e-140), 0)
        related = spread * self.scale[:, :, None] * self.scale[:, None, :]
        self.inverse = np.linalg.pinv(related, rcond=1e-13, hermitian=True)

    def weights(self, q: Float[Array, "n_q d"]) -> Float[Array, "n_q n_k"]:
        """What each key counts for the lines' values at the queries."""
        slope = self._divided_by_spread(q - self.heaviest - self.m)
        level = 1 - np.einsum("qa,qa->q", self.m, slope)[:, None]
        return self.alpha * (level + np.einsum("qka,qa->qk", self.d, slope))

    def slopes(self, y: Float[Array, "n_q n_k"]) -> Float[Array, "n_q d"]:
        """How steep each line is, for targets of its own."""
        weighted = self.alpha * y
        return self._divided_by_spread(
            np.einsum("qk,qka->qa", weighted, self.d) - self.m * weighted.sum(axis=1, keepdims=True)
        )

    def _divided_by_spread(self, x: Array) -> Array:
        return np.einsum("qab,qb->qa", self.inverse, x * self.scale) * self.scale


def straighten(
    alpha: Float[Array, "n_q n_k"], q: Float[Array, "n_q d"], k: Float[Array, "n_k d"]
) -> Float[Array, "n_q n_k"]:
    """Turn the weights of a mean into those of a line fitted by least squares with the same weights."""
    return Lines(alpha, k).weights(q)
