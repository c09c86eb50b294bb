r"""A softmax that has not seen all of its row yet: what is kept between one block of keys and the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attnlib._arrays import Array, namespace
from attnlib.core.dropout import dropped
from attnlib.core.softmax import exponentials, largest

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Kept", "carry_on", "mean_of"]


class Kept(NamedTuple):
    """Of the keys so far: each query's largest score, and relative to it the sums of exponentials and of values.

    >>> Kept._fields
    ('top', 'row_sum', 'total')
    """

    top: Float[Array, "... n_q 1"]
    row_sum: Float[Array, "... n_q 1"]
    total: Float[Array, "... n_q d_v"]


def carry_on(
    kept: Kept | None, scores: Float[Array, "... n_q n_k"], v: Float[Array, "... n_k d_v"], dropout: float = 0.0
) -> Kept:
    r"""What is kept after one block of keys more. When the largest score grows, both sums shrink.

    .. math:: m' = \max(m, \max_j s_{ij}), \qquad \ell' = e^{m - m'} \ell + \sum_j e^{s_{ij} - m'}, \qquad
              y' = e^{m - m'} y + \sum_j e^{s_{ij} - m'} v_j

    It checks nothing.

    Source: Milakov and Gimelshein (2018), section 3.

    >>> import numpy as np
    >>> scores, v = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0], [20.0], [30.0]])
    >>> kept = carry_on(None, scores[:, :1], v[:1])
    >>> mean_of(carry_on(kept, scores[:, 1:], v[1:])).round(3)
    array([[25.752]])
    """
    xp, row_sum, total = namespace(scores), 0.0, 0.0
    top = largest(scores) if kept is None else xp.maximum(kept.top, largest(scores))
    if kept is not None:
        shrink = exponentials(kept.top, top)
        row_sum, total = shrink * kept.row_sum, shrink * kept.total
    exp_scores = exponentials(scores, top)
    row_sum = row_sum + xp.sum(exp_scores, axis=-1, keepdims=True)
    return Kept(top, row_sum, total + dropped(exp_scores, dropout) @ v)


def mean_of(kept: Kept) -> Float[Array, "... n_q d_v"]:
    """The weighted mean of the values so far; zeros where nothing had a weight.

    >>> import numpy as np
    >>> mean_of(carry_on(None, np.array([[-np.inf]]), np.array([[7.0]])))
    array([[0.]])
    """
    return kept.total / namespace(kept.total).where(kept.row_sum > 0, kept.row_sum, 1.0)
