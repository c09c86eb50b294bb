"""Classification by kernel regression: the probability of a class is the weighted share of its points nearby."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from attnlib._base.checks import check_one_of
from attnlib.regression.nadaraya_watson import NadarayaWatson
from attnlib.regression.sample_weights import counted

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped
    from numpy import ndarray as Array

    from attnlib.regression.kernels import Kernel

__all__ = ["NadarayaWatsonClassifier"]


class NadarayaWatsonClassifier(ClassifierMixin, BaseEstimator):
    r"""Kernel regression of labels: each class's probability is the weighted mean of its zeros and ones.

    .. math:: p(c \mid x) = \sum_i \alpha_i(x)\, [y_i = c]

    with the weights of `NadarayaWatson`, which does the work.

    Parameters
    ----------
    kernel, bandwidth
        As those of `NadarayaWatson`. "loo" searches for the bandwidth, one for each feature, with the least
        leave-one-out error of the probabilities (the Brier score).
    empty : {"mean", "nearest"}
        What to say for a query that no data point is within reach of: the shares of all data, or the nearest point's.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The labels, sorted, in the order of the columns of `predict_proba`.
    regression_ : NadarayaWatson
        The regression of the zeros and ones, (n_data, n_classes).

    Raises
    ------
    ValueError
        As `NadarayaWatson`, and for targets that are no labels.

    Notes
    -----
    Source: Nadaraya (1964), Watson (1964) for the estimator; Devroye, Györfi, Lugosi (1996), chapter 10, *The kernel
    rule*, for its use on labels.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> model = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y)
    >>> model.predict([[0.2], [2.9]])
    array(['low', 'high'], dtype='<U4')
    >>> model.predict_proba([[1.5]])
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        kernel: Kernel = "gaussian",
        *,
        bandwidth: float | Sequence[float] | Literal["loo"] = "loo",
        empty: Literal["mean", "nearest"] = "mean",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.empty = empty

    def fit(
        self,
        X: Float[Array, "n_data n_features"],
        y: Shaped[Array, " n_data"],
        sample_weight: Float[Array, " n_data"] | None = None,
    ) -> NadarayaWatsonClassifier:
        """Keep the data and settle the bandwidth. ``y`` holds labels, numbers or words. Returns self.

        ``sample_weight`` as in `NadarayaWatson.fit`; a class whose rows have no weight is none.
        """
        check_one_of("empty", self.empty, ("mean", "nearest"))
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        X, y, sample_weight = counted(X, column_or_1d(y), sample_weight)
        self.classes_, place = np.unique(y, return_inverse=True)
        regression = NadarayaWatson(self.kernel, bandwidth=self.bandwidth, empty=self.empty)
        self.regression_ = regression.fit(X, np.eye(len(self.classes_))[place], sample_weight)
        return self

    def predict_proba(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries n_classes"]:
        """The probability of each class at each row of ``X``; rows sum to one."""
        check_is_fitted(self)
        return self.regression_.predict(validate_data(self, X, reset=False, dtype=np.float64))

    def predict_log_proba(self, X: Float[Array, "n_queries n_features"]) -> Float[Array, "n_queries n_classes"]:
        """The logarithms of `predict_proba`; minus infinity where no data of a class are within reach.

        >>> NadarayaWatsonClassifier("box", bandwidth=1.0).fit([[0.0], [5.0]], [0, 1]).predict_log_proba([[0.5]])
        array([[  0., -inf]])
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Float[Array, "n_queries n_features"]) -> Shaped[Array, " n_queries"]:
        """The most probable class at each row of ``X``; of equals, the first."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]
