r"""From scores to weights: a softmax that knows masks, infinite scores and rows with nothing left.

And the online softmax, which has not seen all of its row yet: what is kept between one block of keys and the next.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, NamedTuple

from attnlib._base.arrays import Array, Library, library_of
from attnlib.core.arguments import check_softmax, count_true

if TYPE_CHECKING:
    from types import ModuleType

    from jaxtyping import Bool, Float

__all__ = ["OnlineSoftmax", "exponentials", "masked_softmax", "online_mean", "online_update", "softmax"]


def masked_softmax(
    scores: Float[Array, "... n_q n_k"], mask: Bool[Array, "... n_q n_k"] | None = None
) -> Float[Array, "... n_q n_k"]:
    r"""Positive weights that sum to one along the last axis, over the entries that ``mask`` allows.

    .. math:: \alpha_{ij} = \frac{m_{ij} \exp s_{ij}}{\sum_{j'} m_{ij'} \exp s_{ij'}}

    The largest score of a row is subtracted first, which changes nothing in the fraction and keeps ``exp``
    from overflowing. Scores of plus infinity share the row's weight equally. A row with nothing left (all
    masked, or all scores minus infinity) gives zeros, and a zero gradient.

    Raises ``ValueError`` when ``mask`` does not broadcast to ``scores`` or these hold NaN, ``TypeError`` when the
    mask is not boolean or the scores are not floating-point.

    Source: Bridle (1990) for the softmax; masking as in Vaswani et al. (2017), section 3.2.3.

    >>> import numpy as np
    >>> masked_softmax(np.array([[0.0, 0.0, 9.0]]), mask=np.array([[True, True, False]]))
    array([[0.5, 0.5, 0. ]])
    """
    library = check_softmax(scores, mask)
    return softmax(scores if mask is None else library.xp.where(mask, scores, -inf), library)


def softmax(scores: Float[Array, "... n_q n_k"], library: Library | None = None) -> Float[Array, "... n_q n_k"]:
    """The same as `masked_softmax`, where hidden scores are minus infinity already; of errors, only NaN is looked for.

    >>> import numpy as np
    >>> softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    library = library or library_of(scores)
    xp = library.xp
    exp_scores = exponentials(scores, library=library)
    half = getattr(scores.dtype, "itemsize", 4) == 2  # ends at 65,504, which is fewer than a long text has keys
    row_sum = xp.sum(exp_scores, axis=-1, keepdims=True, **({"dtype": xp.float32} if half else {}))  # (..., n_q, 1)
    alpha = exp_scores / xp.where(row_sum > 0, row_sum, 1.0)  # rows of zeros stay zeros
    return xp.astype(alpha, scores.dtype) if half else alpha


def exponentials(
    scores: Float[Array, "... n_q n_k"],
    top: Float[Array, "... n_q 1"] | None = None,
    library: Library | None = None,
) -> Float[Array, "... n_q n_k"]:
    r"""The numerators of `softmax`: unnormalised weights, the largest of a row being one, or zeros if nothing is left.

    .. math:: \exp(s_{ij} - \max_{j'} s_{ij'})

    ``top`` is subtracted, the row's largest score unless given. ``library`` is whose array it is, where that is known.

    Raises ``ValueError`` where a score is NaN.

    Source: as `masked_softmax`.

    >>> import numpy as np
    >>> exponentials(np.array([[1000.0, 1000.0, -np.inf]]))
    array([[1., 1., 0.]])
    """
    xp, readable = library or library_of(scores)
    top = largest(scores, xp) if top is None else top
    if not (readable and xp.all(xp.isfinite(top))):
        scores, top = _with_finite_tops(scores, top, xp, readable)
    return xp.exp(scores - top)


def largest(scores: Float[Array, "... n_q n_k"], xp: ModuleType) -> Float[Array, "... n_q 1"]:
    """The largest score of each row; minus infinity where there are no keys.

    >>> import numpy as np
    >>> largest(np.array([[1.0, 3.0]]), np)
    array([[3.]])
    """
    if scores.shape[-1] == 0:
        return xp.full((*scores.shape[:-1], 1), -inf, dtype=scores.dtype, device=scores.device)
    return xp.max(scores, axis=-1, keepdims=True)


def drop_weights(alpha: Array, dropout: float) -> Array:
    """Some weights set to zero and the others grown, as in training.

    >>> import numpy as np
    >>> drop_weights(np.ones(2), 0.0)
    array([1., 1.])
    """
    if not dropout:
        return alpha
    from torch.nn.functional import dropout as drop

    return drop(alpha, dropout)


class OnlineSoftmax(NamedTuple):
    """Of the keys so far: each query's largest score, and relative to it the sums of exponentials and of values.

    >>> OnlineSoftmax._fields
    ('top', 'row_sum', 'total')
    """

    top: Float[Array, "... n_q 1"]
    row_sum: Float[Array, "... n_q 1"]
    total: Float[Array, "... n_q d_v"]


def online_update(
    state: OnlineSoftmax | None,
    scores: Float[Array, "... n_q n_k"],
    v: Float[Array, "... n_k d_v"],
    dropout: float = 0.0,
    library: Library | None = None,
) -> OnlineSoftmax:
    r"""The state after one block of keys more. When the largest score grows, both sums shrink.

    .. math:: m' = \max(m, \max_j s_{ij}), \qquad \ell' = e^{m - m'} \ell + \sum_j e^{s_{ij} - m'}, \qquad
              y' = e^{m - m'} y + \sum_j e^{s_{ij} - m'} v_j

    It checks nothing.

    Source: Milakov and Gimelshein (2018), section 3.

    >>> import numpy as np
    >>> scores, v = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0], [20.0], [30.0]])
    >>> state = online_update(None, scores[:, :1], v[:1])
    >>> online_mean(online_update(state, scores[:, 1:], v[1:])).round(3)
    array([[25.752]])
    """
    library = library or library_of(scores)
    xp, row_sum, total = library.xp, 0.0, 0.0
    top = largest(scores, xp)
    if state is not None:
        top = xp.maximum(state.top, top)
        shrink = exponentials(state.top, top, library)
        row_sum, total = shrink * state.row_sum, shrink * state.total
    exp_scores = exponentials(scores, top, library)
    row_sum = row_sum + xp.sum(exp_scores, axis=-1, keepdims=True)
    return OnlineSoftmax(top, row_sum, total + drop_weights(exp_scores, dropout) @ v)


def online_mean(state: OnlineSoftmax, library: Library | None = None) -> Float[Array, "... n_q d_v"]:
    r"""The weighted mean of the values so far; zeros where nothing had a weight.

    .. math:: \text{out} = y / \ell

    Source: as `online_update`.

    >>> import numpy as np
    >>> online_mean(online_update(None, np.array([[-np.inf]]), np.array([[7.0]])))
    array([[0.]])
    """
    xp = (library or library_of(state.total)).xp
    return state.total / xp.where(state.row_sum > 0, state.row_sum, 1.0)


def _with_finite_tops(scores: Array, top: Array, xp: ModuleType, readable: bool) -> tuple[Array, Array]:
    """Scores and finite maxima with the same exponentials, where some maximum is infinite; NaN is named.

    Where numbers cannot be looked at, any maximum may be infinite, and no NaN is named.
    """
    if not readable:  # torch's alone. An infinity becomes the largest number, beside which all else weighs nothing
        most = xp.finfo(scores.dtype).max
        top = top.clamp(max=most)
        return scores.clamp(max=most), xp.where(top > -inf, top, 0.0)
    count = count_true(xp.isnan(top), xp)
    if count:
        raise ValueError(f"score must return numbers; got NaN for {count} of {prod(top.shape)} queries")
    if xp.any(top == inf):  # those of plus infinity share the weight
        # In their rows plus infinity becomes 0, and all else minus infinity.
        scores = xp.where(top == inf, xp.where(scores == inf, xp.zeros_like(scores), -inf), scores)
    return scores, xp.where(xp.isfinite(top), top, 0.0)
