r"""Kernels: how much a data point counts that lies ``u`` bandwidths away.

Every kernel here is one at ``u = 0`` and is not normalised, since regression divides by the sum of the weights
anyway. They take NumPy arrays of any shape. `attnlib.regression` puts them to work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from attnlib.scores import gaussian as gaussian_score
from attnlib.scores import squared_distance

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["KERNELS", "box", "epanechnikov", "gaussian", "log_kernel", "triangle"]

Kernel = Literal["gaussian", "box", "triangle", "epanechnikov"]  # for type checkers, which cannot read KERNELS


def gaussian(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""The bell curve, which never reaches zero.

    .. math:: K(u) = e^{-u^2/2}

    Source: Silverman (1986), table 3.1.

    >>> gaussian(np.array([0.0, 1.0, 2.0])).round(3)
    array([1.   , 0.607, 0.135])
    """
    return np.exp(-np.square(u) / 2)


def box(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""All points within one bandwidth count the same, all others nothing.

    .. math:: K(u) = [\, |u| \le 1 \,]

    Source: Silverman (1986), table 3.1.

    >>> box(np.array([0.0, 1.0, 2.0]))
    array([1., 1., 0.])
    """
    return np.where(np.abs(u) <= 1, 1.0, 0.0)


def triangle(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Falls in a straight line from one to zero at one bandwidth.

    .. math:: K(u) = \max(0, 1 - |u|)

    Source: Silverman (1986), table 3.1.

    >>> triangle(np.array([0.0, 0.5, 2.0]))
    array([1. , 0.5, 0. ])
    """
    return np.maximum(0.0, 1 - np.abs(u))


def epanechnikov(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""A parabola, zero beyond one bandwidth. Of all kernels it has the least mean squared error in the limit.

    .. math:: K(u) = \max(0, 1 - u^2)

    Source: Epanechnikov (1969); Silverman (1986), table 3.1.

    >>> epanechnikov(np.array([0.0, 0.5, 2.0]))
    array([1.  , 0.75, 0.  ])
    """
    return np.maximum(0.0, 1 - np.square(u))


KERNELS: dict[Kernel, Callable[[Array], Array]] = {
    "gaussian": gaussian,
    "box": box,
    "triangle": triangle,
    "epanechnikov": epanechnikov,
}


def log_kernel(name: Kernel) -> Callable[[Array, Array], Array]:
    r"""The kernel ``name`` as a score, whose softmax weights are those of the kernel: K over the sum of K.

    .. math:: s_{ij} = \log K(\lVert q_i - k_j \rVert)

    The Gaussian's logarithm is written out, because :math:`e^{-u^2/2}` is 0 in floating point from u = 39 on,
    and a query far from all data would have no neighbours where the mathematics gives it a nearest one.

    >>> log_kernel("box")(np.array([[0.0]]), np.array([[0.5], [3.0]]))
    array([[  0., -inf]])
    """
    if name == "gaussian":
        return gaussian_score
    kernel = KERNELS[name]

    def score(q: Array, k: Array) -> Array:
        with np.errstate(divide="ignore"):  # log 0 = -inf is meant: no weight
            return np.log(kernel(np.sqrt(squared_distance(q, k))))

    return score
