"""Kernel regression as Nadaraya and Watson defined it in 1964: the ancestor of attention.

An estimator with scikit-learn's conventions, for NumPy arrays. Its weights come from `attnlib.attention`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from attnlib._base.checks import check_one_of, check_share
from attnlib.core.attention import attention
from attnlib.regression.bandwidth_search import check_bandwidth, search_bandwidth
from attnlib.regression.blocks import in_blocks, in_tiles
from attnlib.regression.kernels import KERNELS, Kernel, log_kernel
from attnlib.regression.leave_one_out import fit_and_own, loo_residuals, mean_square, squared_error_and_slope
from attnlib.regression.local_line import lines_with_leverage, local_lines, straighten
from attnlib.regression.out_of_reach import fill, warn_empty
from attnlib.regression.sample_weights import counted, weighted
from attnlib.regression.variances import variances

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["NadarayaWatson"]


class NadarayaWatson(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel regression: predict the weighted mean of the targets, nearer points counting more.

    .. math:: \hat y(x) = \sum_i \alpha_i(x)\, y_i, \qquad
              \alpha_i(x) = \frac{K(\lVert x - x_i \rVert / h)}{\sum_j K(\lVert x - x_j \rVert / h)}

    This is `attnlib.attention` with the query :math:`x/h`, the keys :math:`x_i/h`, the values :math:`y_i` and
    the logarithm of the kernel as score. A row of weight :math:`w_i` counts as :math:`w_i` rows: its kernel is
    multiplied by it, and leaving one out leaves :math:`w_i - 1` of it.

    Parameters
    ----------
    kernel : {"gaussian", "box", "triangle", "epanechnikov"}
        How weight falls with distance.
    bandwidth : float, one float for each feature, or "loo"
        :math:`h`, in the units of ``X``. "loo" searches for the bandwidth, one for each feature, with the
        least leave-one-out error. One evaluation takes O(n_data²) time; one feature takes some 60 of them, three
        or more some hundreds with the Gaussian, whose slope is followed, else hundreds for each. It warns before
        it takes long, and shows its progress then if tqdm is installed.
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
        The data, which are the model, without rows of weight 0.
    sample_weight_ : ndarray (n_data,) or None
        Their weights, where there are any.

    Raises
    ------
    ValueError
        NaN or infinite data, a bandwidth that is not positive or does not match the features, an unknown
        ``kernel``, ``degree`` or ``empty``, weights that are negative, all 0 or not one for each row.

    Notes
    -----
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
        kernel: Kernel = "gaussian",
        *,
        bandwidth: float | Sequence[float] | Literal["loo"] = "loo",
        degree: Literal[0, 1] = 0,
        empty: Literal["nan", "nearest", "mean"] = "nan",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.empty = empty

    def fit(
        self,
        X: Float[Array, "n_data n_features"],
        y: Float[Array, "n_data ..."],
        sample_weight: Float[Array, " n_data"] | None = None,
    ) -> NadarayaWatson:
        """Keep the data and settle the bandwidth. ``X`` is ``(n_data, n_features)``. Returns self.

        ``sample_weight`` ``(n_data,)`` says how many rows each row stands for: 2 is a row given twice, 0 one left out.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0], sample_weight=[3.0, 1.0])
        >>> model.predict([[0.5]])
        array([5.5])
        """
        check_one_of("kernel", self.kernel, tuple(KERNELS))
        check_one_of("degree", self.degree, (0, 1))
        check_one_of("empty", self.empty, ("nan", "nearest", "mean"))
        searching = isinstance(self.bandwidth, str) and self.bandwidth == "loo"
        X, y = validate_data(
            self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, ensure_min_samples=1 + searching
        )
        X, y, self.sample_weight_ = counted(X, y, sample_weight, at_least=1 + searching)
        self.X_ = X
        self.y_ = y.astype(np.float64)
        self.__dict__.pop("_kept", None)  # the residuals of an earlier fit
        self._origin = X.mean(axis=0)
        if searching:
            values, smooth = self._values(), self.kernel == "gaussian"
            unit = _unit(X)
            Z = X / unit
            slope = None
            if smooth:

                def slope(h: Array) -> tuple[float, Array]:
                    return squared_error_and_slope(Z, values, h, self.degree, self.sample_weight_)

            steps = 60 if self.degree == 1 else 20  # of a local search, as counted with three to ten features
            found = search_bandwidth(
                Z, lambda h: self._loo_error(_times(unit, h)), slope, per_start=steps, weight=self.sample_weight_
            )
            self.bandwidth_ = _times(unit, found)
        else:
            self.bandwidth_ = check_bandwidth(self.bandwidth, X.shape[1])
        return self

    def predict(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries ..."]:
        """The regression at each row of ``X`` ``(n_queries, n_features)``, shaped like the targets."""
        X, values = self._check_queries(X), self._values()
        q, k = self._scaled(X, self.bandwidth_)
        out, empty = np.empty((len(X), values.shape[1])), np.zeros(len(X), dtype=bool)

        def average(rows: Array, near: Array | slice, alpha: Array) -> None:
            out[rows] = alpha @ values[near]

        def by_attention(rows: Array, near: Array | slice) -> None:
            out[rows] = attention(q[rows], k[near], values[near], score=self._score(near), weights=False).out

        def by_line(rows: Array, near: Array | slice) -> None:
            out[rows], sure = local_lines(q[rows], k[near], values[near], self._score(near))
            if not sure.all():
                by_weights(rows[~sure], slice(None))

        by_weights = self._by_weights(q, k, average, empty)
        never_empty = np.abs(q).max() < 1e150  # whose square is still a number
        plain = by_attention if self.kernel == "gaussian" and never_empty else by_weights
        self._in_tiles(by_line if self.degree == 1 else plain, q, k)
        warn_empty(self.empty, empty)
        return out.reshape(len(X), *self.y_.shape[1:])

    def standard_error(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries ..."]:
        r"""How far each prediction would move with other targets at the same ``X_``, one standard deviation.

        .. math:: \text{se}(x)^2 = \sum_j W_j(x)^2\, r_j^2

        with the leave-one-out residuals :math:`r_j`, so that the noise may differ from place to place. It knows
        nothing of the bias, by which a bandwidth that is too wide is wrong, and which moves with other ``X_``: where
        the regression is steep, a mean of data drawn anew may move half as far again.

        Source: White (1980) for such errors; Härdle (1990), section 4.2, for a kernel regression's.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [5.0, 7.0, 6.0])
        >>> model.standard_error([[1.0]]).round(3)
        array([0.859])
        """
        return np.sqrt(self._variances(X)[0]).reshape(-1, *self.y_.shape[1:])

    def predict_interval(
        self, X: Float[Array, "n_queries n_features"], level: float = 0.95
    ) -> tuple[Float[Array, "n_queries ..."], Float[Array, "n_queries ..."]]:
        r"""Between which two values a new observation at each row of ``X`` lies, with a chance of about ``level``.

        .. math:: \hat y(x) \pm z \sqrt{\text{se}(x)^2 + \sum_j |W_j(x)|\, r_j^2 \big/ \sum_j |W_j(x)|}

        The second sum is the variance of the noise near x; z is the normal distribution's quantile.

        Raises ``ValueError`` when ``level`` is not at least 0 and below 1.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [5.0, 7.0, 6.0])
        >>> [bound.round(2) for bound in model.predict_interval([[1.0]])]
        [array([2.92]), array([9.44])]
        """
        check_share("level", level)
        half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(sum(self._variances(X)))
        middle, half = self.predict(X), half.reshape(-1, *self.y_.shape[1:])
        return middle - half, middle + half

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

        warn_empty(self.empty, in_blocks(work, *out.shape))
        return out

    def loo_residuals(self) -> Float[Array, "n_data ..."]:
        r"""What each data point differs by from the prediction of all the others, without refitting.

        .. math:: y_i - \hat y_{-i}(x_i) = \frac{y_i - \hat y(x_i)}{1 - W_{ii}}

        Where :math:`W_{ii}` is so near one that the fraction would have lost its digits, a mask leaves the
        point out instead.

        Of a row of weight above 1, one is left out and :math:`W_{ii} / w_i` takes the place of :math:`W_{ii}`.

        Source: Golub, Heath, Wahba (1979), for any smoother that is linear in y.

        >>> model = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0])
        >>> model.loo_residuals()
        array([-2.,  2.])
        """
        check_is_fitted(self)
        residuals = self._loo_residuals(self.bandwidth_)
        warn_empty(self.empty, np.isnan(residuals).any(axis=1))
        return residuals.reshape(self.y_.shape)

    def loo_error(self) -> float:
        """Root mean square of `loo_residuals`, each counted by its weight, in the units of the targets.

        >>> round(NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0]).loo_error(), 3)
        2.0
        """
        return float(np.sqrt(mean_square(self.loo_residuals().reshape(len(self.y_), -1), self.sample_weight_)))

    def _score(self, near: Array | slice) -> Callable[[Array, Array], Array]:
        """The kernel's logarithm for some of the data, that of their weights added."""
        return weighted(log_kernel(self.kernel), self.sample_weight_, near)

    def _in_tiles(self, work: Callable[[Array, Array | slice], None], q: Array, k: Array) -> None:
        in_tiles(work, q, k, gaussian=self.kernel == "gaussian", weight=self.sample_weight_)

    def _alpha(self, q: Array, k: Array, near: Array | slice, mask: Array | None = None) -> tuple[Array, Array]:
        """Weights of a few scaled queries for the data ``near``, and which of the queries found no neighbour."""
        alpha = self._means(q, k, near, mask)
        return straighten(alpha, q, k[near]) if self.degree == 1 else alpha, alpha.max(axis=1) == 0

    def _means(self, q: Array, k: Array, near: Array | slice, mask: Array | None = None) -> Array:
        """The weights of a mean, of degree 0."""
        k = k[near]
        with np.errstate(over="ignore"):  # a squared distance beyond all numbers is no neighbour
            return attention(q, k, k, score=self._score(near), mask=mask).weights

    def _by_weights(
        self, q: Array, k: Array, use: Callable[[Array, Array | slice, Array], None], empty: Array
    ) -> Callable[[Array, Array | slice], None]:
        """Work for `in_tiles` that hands weights on; queries without neighbours are marked and get what is asked."""

        def work(rows: Array, near: Array | slice) -> None:
            alpha, lonely = self._alpha(q[rows], k, near)
            use(rows, near, alpha)
            empty[rows] = lonely
            if lonely.any():
                use(rows[lonely], slice(None), fill(self.empty, q[rows[lonely]], k, weight=self.sample_weight_))

        return work

    def _weights(self, X: Array, bandwidth: Array, mask: Array | None = None) -> tuple[Array, Array]:
        """The same in units of ``X``, with what `empty` asks for where there is no neighbour."""
        q, k = self._scaled(X, bandwidth)
        alpha, empty = self._alpha(q, k, slice(None), mask)
        if empty.any():
            left = True if mask is None else mask[empty]
            alpha[empty] = fill(self.empty, q[empty], k, left, self.sample_weight_)
        return alpha, empty

    def _scaled(self, X: Array, bandwidth: Array) -> tuple[Array, Array]:
        """Queries and data in bandwidths, counted from the middle of the data, where differences keep digits."""
        with np.errstate(over="ignore"):
            q, k = (X - self._origin) / bandwidth, (self.X_ - self._origin) / bandwidth
        if not (np.isfinite(q).all() and np.isfinite(k).all()):
            raise ValueError(f"bandwidth must not be so small that X / bandwidth is infinite; got {bandwidth.min()}")
        return q, k

    def _loo_residuals(self, bandwidth: Array) -> Array:
        def weigh(points: Array, mask: Array | None) -> Array:
            return self._weights(self.X_[points], bandwidth, mask)[0]

        values = self._values()
        k = self._scaled(self.X_, bandwidth)[1]

        def lines(points: Array) -> tuple[Array, Array]:
            alpha = self._means(k[points], k, slice(None))
            fit, own, sure = lines_with_leverage(alpha, k[points], k, values)
            own *= alpha[np.arange(len(points)), points]
            unsure = ~(sure & (own < 0.999))  # what is left out of would magnify the error
            if unsure.any():
                again = points[unsure]
                fit[unsure], own[unsure] = fit_and_own(weigh(again, None), values, again)
            return fit, own

        return loo_residuals(weigh, values, self.sample_weight_, lines if self.degree == 1 else None)

    def _kept_residuals(self) -> Array:
        """The leave-one-out residuals, found once for a fit and its settings."""
        settings = (self.kernel, self.degree, self.empty, *self.bandwidth_)
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] != settings:
            kept = self._kept = settings, self._loo_residuals(self.bandwidth_)
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: all but the residuals, which are found again."""
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def _variances(self, X: Array) -> tuple[Array, Array]:
        """That of each prediction, and that of the noise around it."""
        q, k = self._scaled(self._check_queries(X), self.bandwidth_)

        def weigh(use: Callable[[Array, Array | slice, Array], None]) -> None:
            work = self._by_weights(q, k, use, np.empty(len(q), dtype=bool))
            self._in_tiles(work, q, k)

        return variances(weigh, self._kept_residuals(), len(q), self.sample_weight_)

    def _loo_error(self, bandwidth: Array) -> float:
        error = np.sqrt(mean_square(self._loo_residuals(bandwidth), self.sample_weight_))
        return float(error) if np.isfinite(error) else np.inf

    def _values(self) -> Array:
        return self.y_.reshape(len(self.y_), -1)

    def _check_queries(self, X: Array) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)


def _unit(X: Array) -> Array:
    """For each feature what to measure it in, so that squares stay numbers: 1, or a power of two beside 1e±100."""
    largest = np.abs(X).max(axis=0)
    extreme = (largest > 1e100) | ((largest < 1e-100) & (largest > 0))
    return np.where(extreme, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def _times(unit: Array, h: Array) -> Array:
    """The bandwidth ``h`` in the units of the data; the largest number where it is beyond all of them."""
    with np.errstate(over="ignore"):
        return np.minimum(unit * h, np.finfo(np.float64).max)
