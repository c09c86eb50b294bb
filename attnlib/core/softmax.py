r"""From scores to weights: a softmax that knows masks, infinite scores and rows with nothing left."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING

from attnlib._arrays import Array, namespace, readable
from attnlib.core.arguments import check_softmax

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["exponentials", "largest", "masked_softmax", "softmax"]


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
    check_softmax(scores, mask)
    return softmax(scores if mask is None else namespace(scores).where(mask, scores, -inf))


def softmax(scores: Float[Array, "... n_q n_k"]) -> Float[Array, "... n_q n_k"]:
    """The same as `masked_softmax`, where hidden scores are minus infinity already; of errors, only NaN is looked for.

    >>> import numpy as np
    >>> softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    xp, exp_scores = namespace(scores), exponentials(scores)
    row_sum = xp.sum(exp_scores, axis=-1, keepdims=True)  # (..., n_q, 1)
    return exp_scores / xp.where(row_sum > 0, row_sum, 1.0)  # rows of zeros stay zeros


def exponentials(
    scores: Float[Array, "... n_q n_k"], top: Float[Array, "... n_q 1"] | None = None
) -> Float[Array, "... n_q n_k"]:
    r"""The numerators of `softmax`: unnormalised weights, the largest of a row being one, or zeros if nothing is left.

    .. math:: \exp(s_{ij} - \max_{j'} s_{ij'})

    ``top`` is subtracted, the row's largest score unless given.

    Raises ``ValueError`` where a score is NaN.

    Source: as `masked_softmax`.

    >>> import numpy as np
    >>> exponentials(np.array([[1000.0, 1000.0, -np.inf]]))
    array([[1., 1., 0.]])
    """
    xp = namespace(scores)
    top = largest(scores) if top is None else top
    if not _all_finite(top):
        scores, top = _with_finite_tops(scores, top)
    return xp.exp(scores - top)


def largest(scores: Float[Array, "... n_q n_k"]) -> Float[Array, "... n_q 1"]:
    """The largest score of each row; minus infinity where there are no keys.

    >>> import numpy as np
    >>> largest(np.array([[1.0, 3.0]]))
    array([[3.]])
    """
    xp = namespace(scores)
    if scores.shape[-1] == 0:
        return xp.full((*scores.shape[:-1], 1), -inf, dtype=scores.dtype, device=scores.device)
    return xp.max(scores, axis=-1, keepdims=True)


def _all_finite(top: Array) -> bool:
    """Is there no infinity and no NaN? Where numbers cannot be looked at, there may be."""
    xp = namespace(top)
    return readable(top) and bool(xp.all(xp.isfinite(top)))


def _with_finite_tops(scores: Array, top: Array) -> tuple[Array, Array]:
    """Scores and finite maxima with the same exponentials, where some maximum is infinite; NaN is named.

    Where numbers cannot be looked at, any maximum may be, and no NaN is named.
    """
    xp, read = namespace(scores), readable(scores)
    count = int(xp.sum(xp.astype(xp.isnan(top), xp.int64))) if read else 0
    if count:
        raise ValueError(f"score must return numbers; got NaN for {count} of {prod(top.shape)} queries")
    if not read or xp.any(top == inf):  # those of plus infinity share the weight
        # In their rows plus infinity becomes 0, and all else minus infinity.
        scores = xp.where(top == inf, xp.where(scores == inf, xp.zeros_like(scores), -inf), scores)
    return scores, xp.where(xp.isfinite(top), top, 0.0)
