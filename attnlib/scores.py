"""Scores: how well does each key answer each query? And minus infinity where a query may not attend.

Every function takes queries ``(..., n_q, d)`` and keys ``(..., n_k, d)``, NumPy arrays or torch tensors, and
gives one number for every pair, ``(..., n_q, n_k)``. A larger score earns a larger share of the weight.
(`squared_distance` is no score itself: `gaussian` is made of it.)
A score with parameters goes to `attention` as ``functools.partial(bilinear, w=w)``.

A mask meets a score in `masked_scores`. Shortcuts that make no array of scores say so to others: `attnlib.core.fused`
to torch's kernel, `attnlib.core.tiles` tile by tile, `attnlib.nn.fast_decode` for one new position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from math import inf
from operator import add
from typing import TYPE_CHECKING

from attnlib._base.arrays import (
    Array,
    Library,
    is_array,
    is_floating,
    is_torch,
    library_name,
    library_of,
    namespace,
)
from attnlib._base.checks import check_pair, check_positive, check_weight
from attnlib.patterns import Pattern

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["additive", "bilinear", "dot", "gaussian", "scaled_dot", "squared_distance"]


def _checked(score: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A score that checks its arguments; `attnlib.attention`, which has checked them, calls ``unchecked``."""

    @wraps(score)
    def public(q: Array, k: Array) -> Array:
        check_pair(q, k)
        return score(q, k)

    public.unchecked = score
    return public


@_checked
def dot(q: Float[Array, "... n_q d"], k: Float[Array, "... n_k d"]) -> Float[Array, "... n_q n_k"]:
    r"""The inner product of every query with every key.

    .. math:: s_{ij} = q_i \cdot k_j, \qquad S = Q K^\top

    Raises ``ValueError`` when ``q`` and ``k`` differ in ``d`` or their batch axes do not broadcast,
    ``TypeError`` when they are not floating-point arrays of one library and dtype.

    Source: Luong, Pham, Manning (2015), section 3.1, *dot*.

    >>> import numpy as np
    >>> dot(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.,  2.]])
    """
    return q @ k.mT


@_checked
def scaled_dot(q: Float[Array, "... n_q d"], k: Float[Array, "... n_k d"]) -> Float[Array, "... n_q n_k"]:
    r"""The inner product divided by :math:`\sqrt d`, which keeps its variance at one whatever ``d`` is.

    .. math:: s_{ij} = \frac{q_i \cdot k_j}{\sqrt d}, \qquad S = \frac{Q K^\top}{\sqrt d}

    The queries are divided, not the scores: fewer numbers, and half precision overflows later.

    Raises as `dot`.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.

    >>> import numpy as np
    >>> scaled_dot(np.array([[2.0, 0.0, 2.0, 0.0]]), np.array([[3.0, 1.0, 1.0, 1.0]]))
    array([[4.]])
    """
    return (q / q.shape[-1] ** 0.5) @ k.mT


def bilinear(
    q: Float[Array, "... n_q d_q"], k: Float[Array, "... n_k d_k"], w: Float[Array, "d_q d_k"]
) -> Float[Array, "... n_q n_k"]:
    r"""A learned inner product between queries and keys that may live in different spaces.

    .. math:: s_{ij} = q_i W k_j^\top, \qquad S = Q W K^\top

    With :math:`W = U V^\top` of low rank this is `dot` after two projections. ``w`` has shape ``(d_q, d_k)``.

    Raises ``ValueError`` when ``w`` is not ``(d_q, d_k)``; otherwise as `dot`.

    Source: Luong, Pham, Manning (2015), section 3.1, *general*.

    >>> import numpy as np
    >>> bilinear(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([[1.0], [10.0]]))
    array([[63., 84.]])
    """
    check_pair(q, k, same_d=False)
    check_weight("w", w, (q.shape[-1], k.shape[-1]), "(d_q, d_k)", like=q)
    return q @ w @ k.mT


def additive(
    q: Float[Array, "... n_q d_q"],
    k: Float[Array, "... n_k d_k"],
    w_q: Float[Array, "d_q d_hidden"],
    w_k: Float[Array, "d_k d_hidden"],
    w: Float[Array, " d_hidden"],
) -> Float[Array, "... n_q n_k"]:
    r"""A network with one hidden layer of tanh units looks at the query and the key together.

    .. math:: s_{ij} = \tanh(q_i W_q + k_j W_k)\, w

    Memory grows as ``n_q * n_k * d_hidden``: every pair has its own hidden layer.

    Raises ``ValueError`` when ``w_q``, ``w_k`` or ``w`` do not fit each other or ``q`` and ``k``; otherwise
    as `dot`.

    Source: Bahdanau, Cho, Bengio (2015), section 3.1 and appendix A.1.2.

    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> additive(np.array([[0.0]]), np.array([[0.0], [9.0]]), one, one, np.array([2.0])).round(3)
    array([[0., 2.]])
    """
    check_pair(q, k, same_d=False)
    check_weight("w_q", w_q, (q.shape[-1], -1), "(d_q, d_hidden)", like=q)
    check_weight("w_k", w_k, (k.shape[-1], w_q.shape[-1]), "(d_k, d_hidden)", like=q)
    check_weight("w", w, (w_q.shape[-1],), "(d_hidden,)", like=q)
    hidden = (q @ w_q)[..., :, None, :] + (k @ w_k)[..., None, :, :]  # (..., n_q, n_k, d_hidden)
    return namespace(q).tanh(hidden) @ w


def gaussian(
    q: Float[Array, "... n_q d"], k: Float[Array, "... n_k d"], bandwidth: float = 1.0
) -> Float[Array, "... n_q n_k"]:
    r"""Minus the squared distance, in bandwidths. Its softmax weights are those of Gaussian kernel regression.

    .. math:: s_{ij} = -\frac{\lVert q_i - k_j \rVert^2}{2 h^2}

    ``bandwidth`` is :math:`h`, in the units of ``q`` and ``k``.

    Raises ``ValueError`` when ``bandwidth`` is not positive; otherwise as `dot`.

    Source: Nadaraya (1964); Watson (1964).

    >>> import numpy as np
    >>> gaussian(np.array([[0.0]]), np.array([[0.0], [2.0], [4.0]]), bandwidth=2.0)
    array([[-0. , -0.5, -2. ]])
    """
    check_positive("bandwidth", bandwidth)
    check_pair(q, k)
    h = float(bandwidth)
    return -0.5 * squared_distance(q / h, k / h)


@_checked
def squared_distance(q: Float[Array, "... n_q d"], k: Float[Array, "... n_k d"]) -> Float[Array, "... n_q n_k"]:
    r"""The squared Euclidean distance of every query to every key.

    .. math:: \lVert q_i - k_j \rVert^2 = \sum_c (q_{ic} - k_{jc})^2

    It is summed feature by feature. Expanding the square is one matrix product instead, but subtracts large
    numbers from each other, and the digits that are lost are those of the near neighbours, which matter most.

    Raises as `dot`.

    >>> import numpy as np
    >>> squared_distance(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    return reduce(add, ((q[..., :, None, c] - k[..., None, :, c]) ** 2 for c in range(q.shape[-1])))


def masked_scores(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    score: Callable[[Array, Array], Array],
    mask: Bool[Array, "... n_q n_k"] | Pattern | None = None,
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    start: int | None = None,
    library: Library | None = None,
) -> Float[Array, "... n_q n_k"]:
    r"""The scores of queries and keys, with ``bias`` added, and minus infinity at what is hidden.

    .. math:: s_{ij} = s(q_i, k_j) + b_{ij} \quad\text{where}\quad m_{ij} = 1, \qquad s_{ij} = -\infty
              \quad\text{elsewhere}

    A bias of minus infinity hides a key too, even one whose score is plus infinity. With ``causal``, the first query
    stands at the key ``start``; unless given, the last query stands at the last key.

    >>> import numpy as np
    >>> masked_scores(np.ones((2, 1)), np.ones((2, 1)), lambda q, k: q @ k.mT, causal=True)
    array([[  1., -inf],
           [  1.,   1.]])
    """
    xp, n_q, n_k = (library or library_of(q)).xp, q.shape[-2], k.shape[-2]
    scores = getattr(score, "unchecked", score)(q, k)  # (..., n_q, n_k); ours would check q and k again
    if getattr(scores, "shape", ())[-2:] != (n_q, n_k):
        got = tuple(scores.shape) if is_array(scores) else type(scores).__name__
        raise ValueError(f"score must return shape (..., n_q, n_k) = (..., {n_q}, {n_k}); got {got}")
    if not hasattr(score, "unchecked") and not (is_floating(scores) and is_torch(scores) == is_torch(q)):
        got = f"{library_name(scores)} of dtype {scores.dtype}"
        raise TypeError(f"score must return floating-point numbers of {library_name(q)}; got {got}")
    if bias is not None:
        hidden = bias == -inf  # beside a score of plus infinity, a sum would be NaN
        scores = xp.where(hidden, bias, scores + xp.where(hidden, xp.zeros_like(bias), bias))
    if isinstance(mask, Pattern):
        mask = mask.dense(n_q, n_k, like=q)
    start = n_k - n_q if start is None else start
    if causal and start < n_k - 1:  # else the first query sees the last key already
        key = xp.arange(n_k, device=q.device)
        seen = key[None, :] <= xp.arange(n_q, device=q.device)[:, None] + start  # (n_q, n_k)
        mask = seen if mask is None else seen & mask
    return scores if mask is None else xp.where(mask, scores, -inf)
