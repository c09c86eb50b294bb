"""Kernel regression as Nadaraya and Watson defined it in 1964: the ancestor of attention.

An estimator with scikit-learn's conventions, for NumPy arrays. Its weights come from `attnlib.attention`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from attnlib._checks import check_one_of
from attnlib.core.attention import attention
from attnlib.regression.bandwidth_search import search_bandwidth
from attnlib.regression.kernels import KERNELS, log_kernel
from attnlib.regression.local_line import local_lines, straighten
from attnlib.scores import squared_distance

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["NadarayaWatson"]

# Numbers in a block of weights. Two MiB and its temporaries stay near a core; the whole matrix would not.
BLOCK = 2**18
THREADS = min(4, os.cpu_count() or 1)


class NadarayaWatson(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel regression: predict the weighted mean of the targets, nearer points counting more.

    .. math:: \hat y(x) = \sum_i \alpha_i(x)\, y_i, \qquad
              \alpha_i(x) = \frac{K(\lVert x - x_i \rVert / h)}{\sum_j K(\lVert x - x_j \rVert / h)}

    This is `attnlib.attention` with the query :math:`x/h`, the keys :math:`x_i/h`, the values :math:`y_i` and
    the logarithm of the kernel as score.

    Parameters
    ----------
    kernel : {"gaussian", "box", "triangle", "epanechnikov"}
        How weight falls with distance.
    bandwidth : float, one float for each feature, or "loo"
        :math:`h`, in the units of ``X``. "loo" searches for the bandwidth, one for each feature, with the
        least leave-one-out error. One evaluation takes O(n_data²) time, one feature some 80 of them.
    degree : {0, 1}
        0 predicts with the weighted mean, 1 with a line fitted by weighted least squares around each query,
        which repairs the bias at the edges. Where the neighbours do not spread, the line is flat.
    empty : {"nan", "nearest", "mean"}
        What to predict for a query that no data point is within reach of (0/0; never so with the Gaussian):
        NaN, the nearest point's target, or the mean of all. `predict` and `weights` warn and name the
        queries. With "nan", the search rules out a bandwidth that leaves a data point without neighbours.

    Attributes
    ----------
    bandwidth_ : ndarray (n_features,)
        The bandwidth in use.
    X_, y_ : ndarray (n_data, n_features), (n_data,) or (n_data, n_targets)
        The data, which are the model.

    Raises
    ------
    ValueError
        NaN or infinite data, a bandwidth that is not positive or does not match the features, an unknown
        ``kernel``, ``degree`` or ``empty``.

    Source: Nadaraya (1964), On estimating regression; Watson (1964), Smooth regression analysis. For
    ``degree=1`` Fan (1992), Design-adaptive nonparametric regression.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 10.0, 20.0])
    >>> model = NadarayaWatson(bandwidth=1.0).fit(X, y)
    >>> model.predict([[1.0], [2.0]]).round(3)
    array([10.   , 14.964])
    >>> NadarayaWatson(bandwidth=1.0, degree=1).fit(X, y).predict([[1.0], [2.0]]).round(3)
    array([10., 20.])
    """

    def __init__(
        self,
        kernel: str = "gaussian",
        *,
        bandwidth: float | Sequence[float] | Literal["loo"] = "loo",
        degree: Literal[0, 1] = 0,
        empty: Literal["nan", "nearest", "mean"] = "nan",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.empty = empty

    def fit(self, X: Float[Array, "n_data n_features"], y: Float[Array, "n_data ..."]) -> NadarayaWatson:
        """Keep the data and settle the bandwidth. ``X`` is ``(n_data, n_features)``. Returns self."""
        check_one_of("kernel", self.kernel, tuple(KERNELS))
        check_one_of("degree", self.degree, (0, 1))
        check_one_of("empty", self.empty, ("nan", "nearest", "mean"))
        searching = isinstance(self.bandwidth, str) and self.bandwidth == "loo"
        X, y = validate_data(
            self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, ensure_min_samples=1 + searching
        )
        self.X_, self.y_ = X, y.astype(np.float64)
        self._origin = X.mean(axis=0)
        if searching:
            self.bandwidth_ = search_bandwidth(self.X_, self._loo_error)
        else:
            self.bandwidth_ = _check_bandwidth(self.bandwidth, X.shape[1])
        return self

    def predict(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries ..."]:
        """The regression at each row of ``X`` ``(n_queries, n_features)``, shaped like the targets."""
        X, values = self._check_queries(X), self._values()
        out = np.empty((len(X), values.shape[1]))

        def by_weights(rows: Array) -> Array:
            weights, empty = self._weights(X[rows], self.bandwidth_)
            out[rows] = weights @ values
            return empty

        def by_attention(rows: Array) -> Array:
            q, k = self._scaled(X[rows], self.bandwidth_)
            out[rows] = attention(q, k, values, score=log_kernel(self.kernel), weights=False).out
            return np.zeros(len(q), dtype=bool)

        def by_line(rows: Array) -> Array:
            q, k = self._scaled(X[rows], self.bandwidth_)
            out[rows], sure = local_lines(q, k, values, log_kernel(self.kernel))
            empty = np.zeros(len(q), dtype=bool)
            if not sure.all():
                empty[~sure] = by_weights(rows[~sure])
            return empty

        never_empty = np.abs(self._scaled(X, self.bandwidth_)[0]).max() < 1e150  # whose square is still a number
        plain = by_attention if self.kernel == "gaussian" and never_empty else by_weights
        order = np.argsort(X[:, 0])  # so that the queries of a block are near each other
        empty = np.empty(len(X), dtype=bool)
        work = by_line if self.degree == 1 else plain
        empty[order] = _in_blocks(lambda rows: work(order[rows]), len(X), len(values))
        self._warn_empty(empty)
        return out.reshape(len(X), *self.y_.shape[1:])

    def weights(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries n_data"]:
        """The matrix ``W`` with ``predict(X) == W @ y_``: one row for a query, one column for a data point.

        Rows sum to one. With ``degree=0`` no weight is negative.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0])
        >>> model.weights([[0.5], [1.0]]).round(3)
        array([[0.5  , 0.5  ],
               [0.378, 0.622]])
        """
        X = self._check_queries(X)
        out = np.empty((len(X), len(self.X_)))

        def work(rows: slice) -> Array:
            out[rows], empty = self._weights(X[rows], self.bandwidth_)
            return empty

        self._warn_empty(_in_blocks(work, *out.shape))
        return out

    def loo_residuals(self) -> Float[Array, "n_data ..."]:
        r"""What each data point differs by from the prediction of all the others, without refitting.

        .. math:: y_i - \hat y_{-i}(x_i) = \frac{y_i - \hat y(x_i)}{1 - W_{ii}}

        Where :math:`W_{ii}` is so near one that the fraction would have lost its digits, a mask leaves the
        point out instead.

        Source: Golub, Heath, Wahba (1979), for any smoother that is linear in y.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0])
        >>> model.loo_residuals()
        array([-2.,  2.])
        """
        check_is_fitted(self)
        residuals = self._loo_residuals(self.bandwidth_)
        self._warn_empty(np.isnan(residuals).any(axis=1))
        return residuals.reshape(self.y_.shape)

    def loo_error(self) -> float:
        """Root mean square of `loo_residuals`, in the units of the targets.

        >>> round(NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0]).loo_error(), 3)
        2.0
        """
        return float(np.sqrt(np.mean(self.loo_residuals() ** 2)))

    def _weights(self, X: Array, bandwidth: Array, mask: Array | None = None) -> tuple[Array, Array]:
        """Weights of a few queries, and which of the queries found no neighbour."""
        q, k = self._scaled(X, bandwidth)
        with np.errstate(over="ignore"):  # a squared distance beyond all numbers is no neighbour
            alpha = attention(q, k, k, score=log_kernel(self.kernel), mask=mask).weights
        empty = alpha.max(axis=1) == 0
        if self.degree == 1:
            alpha = straighten(alpha, q, k)
        if empty.any():
            alpha[empty] = self._fill(q[empty], k, True if mask is None else mask[empty])
        return alpha, empty

    def _scaled(self, X: Array, bandwidth: Array) -> tuple[Array, Array]:
        """Queries and data in bandwidths, counted from the middle of the data, where differences keep digits."""
        return (X - self._origin) / bandwidth, (self.X_ - self._origin) / bandwidth

    def _fill(self, q: Array, k: Array, mask: Array | bool) -> Array:
        if self.empty == "nan":
            return np.full((len(q), len(k)), np.nan)
        distance = squared_distance(q, k) if self.empty == "nearest" else np.zeros((len(q), len(k)))
        distance = np.where(mask, distance, np.inf)
        chosen = distance == distance.min(axis=1, keepdims=True)
        return chosen / chosen.sum(axis=1, keepdims=True)

    def _loo_residuals(self, bandwidth: Array) -> Array:
        values = self._values()
        residuals = np.empty_like(values)

        def work(rows: slice) -> Array:
            points = np.arange(len(values))[rows]
            weights, empty = self._weights(self.X_[rows], bandwidth)
            own = weights[np.arange(len(points)), points]
            lost = 1 - own < 1e-6
            shrink = np.where(lost, 1.0, 1 - own)[:, None]
            residuals[rows] = (values[rows] - weights @ values) / shrink
            if lost.any():
                others = np.arange(len(values)) != points[lost][:, None]
                weights, _ = self._weights(self.X_[points[lost]], bandwidth, mask=others)
                residuals[points[lost]] = values[points[lost]] - weights @ values
            return empty

        _in_blocks(work, len(values), len(values))
        return residuals

    def _loo_error(self, bandwidth: Array) -> float:
        error = np.sqrt(np.mean(self._loo_residuals(bandwidth) ** 2))
        return float(error) if np.isfinite(error) else np.inf

    def _values(self) -> Array:
        return self.y_.reshape(len(self.y_), -1)

    def _check_queries(self, X: Array) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _warn_empty(self, empty: Array) -> None:
        lonely = np.flatnonzero(empty)
        if not len(lonely):
            return
        named = ", ".join(map(str, lonely[:10])) + (", …" if len(lonely) > 10 else "")
        answer = {"nan": "NaN", "nearest": "that of the nearest point", "mean": "the mean of all targets"}
        warnings.warn(
            f"{len(lonely)} of {len(empty)} queries have no data within one bandwidth: {named}. "
            f"Their prediction is {answer[self.empty]}. A larger bandwidth, kernel='gaussian' or another "
            "empty= would change that",
            stacklevel=3,
        )


def _in_blocks(work: Callable[[slice], Array], n_queries: int, n_data: int) -> Array:
    """Do ``work`` for a few rows at a time, in a few threads; what it returns is concatenated."""
    size = max(1, BLOCK // n_data)
    blocks: Iterator[slice] = (slice(start, start + size) for start in range(0, n_queries, size))
    # glibc hands freed megabytes back to the kernel, and fetching them again for every block takes longer than
    # the arithmetic. It stops doing so once it has seen a larger array freed; this one is never touched.
    np.empty(8 * BLOCK)
    with ThreadPoolExecutor(THREADS) as pool:
        return np.concatenate(list(pool.map(work, blocks)))


def _check_bandwidth(bandwidth: float | Sequence[float], n_features: int) -> Array:
    try:
        h = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        h = np.array(np.nan)
    if isinstance(bandwidth, str) or h.shape not in ((), (1,), (n_features,)):
        raise ValueError(
            f"bandwidth must be a positive number, one for each of {n_features} features, or 'loo'; got {bandwidth!r}"
        )
    if not np.all(np.isfinite(h) & (h > 0)):
        raise ValueError(f"bandwidth must be positive and finite; got {bandwidth!r}")
    return np.broadcast_to(h, n_features).copy()
