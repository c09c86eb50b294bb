"""What each data point differs by from the prediction of all the others, and how that depends on the bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from attnlib.core.attention import attention
from attnlib.regression.blocks import in_blocks
from attnlib.regression.local_line import Lines
from attnlib.scores import gaussian

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray as Array

__all__ = ["fit_and_own", "loo_residuals", "mean_square", "squared_error_and_slope"]


def fit_and_own(
    weights: Float[Array, "n_points n"], values: Float[Array, "n n_targets"], points: Int[Array, " n_points"]
) -> tuple[Float[Array, "n_points n_targets"], Float[Array, " n_points"]]:
    """What weights make of the values, and the weight of each of these data points on itself.

    >>> fit_and_own(np.array([[0.25, 0.75]]), np.array([[4.0], [8.0]]), np.array([1]))
    (array([[7.]]), array([0.75]))
    """
    return weights @ values, weights[np.arange(len(points)), points]


def loo_residuals(
    weigh: Callable[..., Array],
    values: Float[Array, "n n_targets"],
    counts: Float[Array, " n"] | None = None,
    smooth: Callable[[Array], tuple[Array, Array]] | None = None,
) -> Float[Array, "n n_targets"]:
    """By the closed form of `NadarayaWatson.loo_residuals`, or by a mask where that would lose digits.

    ``weigh(points, mask)`` gives the rows of weights of some data points, under a mask or None. ``smooth(points)``, if
    there is a shorter way, what these make of the values, and each point's weight on itself. One of a row that
    ``counts`` as several is left out, all of one that counts as less than one.

    >>> loo_residuals(lambda points, mask: np.full((len(points), 2), 0.5), np.array([[5.0], [7.0]]))
    array([[-2.],
           [ 2.]])
    """
    residuals = np.empty_like(values)

    def work(rows: slice) -> Array:
        points = np.arange(len(values))[rows]
        fit, own = smooth(points) if smooth else fit_and_own(weigh(points, None), values, points)
        if counts is not None:
            own = own / np.maximum(counts[rows], 1)
        lost = 1 - own < 1e-6
        shrink = np.where(lost, 1.0, 1 - own)[:, None]
        residuals[rows] = (values[rows] - fit) / shrink
        if lost.any():
            weights = weigh(points[lost], np.arange(len(values)) != points[lost][:, None])
            residuals[points[lost]] = values[points[lost]] - weights @ values
        return points

    in_blocks(work, len(values), len(values))
    return residuals


def mean_square(residuals: Float[Array, "n n_targets"], counts: Float[Array, " n"] | None) -> float:
    """The mean of the squares, each row counted as often as ``counts`` says.

    >>> float(mean_square(np.array([[1.0], [3.0]]), None)), float(mean_square(np.array([[1.0], [3.0]]), [3.0, 1.0]))
    (5.0, 3.0)
    """
    squares = residuals**2
    return np.mean(squares) if counts is None else np.average(squares.mean(axis=1), weights=counts)


def squared_error_and_slope(
    X: Float[Array, "n d"],
    values: Float[Array, "n n_targets"],
    bandwidth: Float[Array, " d"],
    degree: int = 0,
    counts: Float[Array, " n"] | None = None,
) -> tuple[float, Float[Array, " d"]]:
    r"""The mean squared leave-one-out error of Gaussian means or lines, and its derivatives by the logarithms of h.

    .. math:: \frac{\partial}{\partial \log h_c} \frac1n \sum_i r_i^2 = -\frac2n \sum_{ij} W_{ij}\, r_i
              (y_j - f_i(x_j)) \frac{(x_{ic} - x_{jc})^2}{h_c^2}, \qquad W_{ii} = 0, \quad r_i = y_i - f_i(x_i)

    with :math:`f_i` the mean or line around :math:`x_i` without its own target and :math:`W` its weights. Of a row
    that ``counts`` as several, the others stay, at no distance.

    Source: the derivative of weighted least squares, for a mean that of a softmax; Härdle and Marron (1985) for the
    error.

    >>> error, slope = squared_error_and_slope(np.array([[0.0], [1.0], [3.0]]), np.array([[5.0], [7.0], [6.0]]), [1.0])
    >>> round(error, 3), slope.round(3)
    (2.651, array([-1.125]))
    """
    X = (X - X.mean(axis=0)) / bandwidth

    def work(rows: slice) -> Array:
        others = np.arange(len(X)) != np.arange(len(X))[rows][:, None]
        score = gaussian if counts is None else partial(_leaving_one, counts, others)
        alpha = attention(X[rows], X, values, score=score, mask=others if counts is None else None).weights
        lines = Lines(alpha, X) if degree == 1 else None
        weights = lines.weights(X[rows]) if lines else alpha
        fit = weights @ values
        r = values[rows] - fit
        misses = r @ values.T - (r * fit).sum(axis=1, keepdims=True)  # (rows, n), times r
        if lines:
            steep = lines.slopes(r @ values.T)
            misses -= steep @ X.T - (steep * X[rows]).sum(axis=1, keepdims=True)
        each = np.ones(len(r)) if counts is None else counts[rows]
        pull = each[:, None] * weights * misses  # each row adds up to 0
        slope = 2 * ((pull.T @ X[rows]) * X).sum(axis=0) - pull.sum(axis=0) @ X**2
        return np.concatenate([[(each[:, None] * np.square(r)).sum()], 2 * slope])[None]

    n = len(X) if counts is None else counts.sum()
    total = in_blocks(work, len(X), len(X)).sum(axis=0) / (n * values.shape[1])
    return float(total[0]), total[1:]


def _leaving_one(counts: Array, others: Array, q: Array, k: Array) -> Array:
    """The Gaussian score of rows that count as several; of each query's own row one is left out."""
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant: nothing of it is left
        own, all_ = np.log(np.maximum(counts - 1, 0)), np.log(counts)
    return gaussian(q, k) + np.where(others, all_, own)
