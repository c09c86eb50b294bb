r"""Attention: a weighted mean of values, with weights that come from comparing a query with keys.

.. math:: \text{out}_i = \sum_j \alpha_{ij} v_j, \qquad
          \alpha_{ij} = \frac{\exp s(q_i, k_j)}{\sum_{j'} \exp s(q_i, k_{j'})}

Everything in the package that attends goes through `attention`: kernel regression, every head of every
Transformer. A variant brings another score or another mask. The arrays are NumPy's or torch's, one code for
both.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from attnlib._backend import Array, is_torch, namespace
from attnlib._checks import (
    broadcast_shapes,
    check_attention,
    check_bias,
    check_dropout,
    check_pair,
    check_scores,
    check_softmax,
)
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

__all__ = ["Attended", "attention", "exponentials", "masked_softmax"]


class Attended(NamedTuple):
    """What `attention` returns: ``out`` ``(..., n_q, d_v)`` and ``weights`` ``(..., n_q, n_k)`` or None."""

    out: Array
    weights: Array | None


def attention(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    score: Callable[[Array, Array], Array] = scaled_dot,
    mask: Bool[Array, "... n_q n_k"] | None = None,
    bias: Float[Array, "... n_q n_k"] | None = None,
    dropout: float = 0.0,
    weights: bool = True,
) -> Attended:
    r"""Each query's weighted mean of the values: a softmax over the scores of its keys gives the weights.

    .. math:: \text{Attention}(Q, K, V) = \text{softmax}(s(Q, K) + B)\, V

    Parameters
    ----------
    q, k, v
        Queries ``(..., n_q, d)``, keys ``(..., n_k, d)``, values ``(..., n_k, d_v)``: floating-point NumPy
        arrays or torch tensors, of one dtype, on one device. Leading axes broadcast.
    score
        A function of ``q`` and ``k`` that returns ``(..., n_q, n_k)``; see `attnlib.scores`.
    mask
        Boolean, True where the query may attend to the key; broadcasts to ``(..., n_q, n_k)``. A query that
        may attend to nothing gets weights and an output of zero.
    bias
        Added to the scores, as a relative position is; broadcasts to ``(..., n_q, n_k)``.
    dropout
        The chance that a weight is dropped, the others growing by ``1 / (1 - dropout)``: for training, with
        torch. The weights that are returned are those before it, whose rows sum to one.
    weights
        False returns None in place of the weights. With torch and the default score, the fused
        `torch.nn.functional.scaled_dot_product_attention` then does the work, without ever holding them (and
        without second derivatives, where torch has none).

    Raises
    ------
    ValueError
        Shapes that do not fit, a mask or a bias that does not broadcast, NaN in ``q``, ``k`` or ``bias``,
        anything but finite numbers in ``v``, a dropout outside [0, 1).
    TypeError
        Not an array, not floating-point, dtypes or libraries mixed, a mask that is not boolean.

    Source: Vaswani et al. (2017), section 3.2.1; for any score: Bahdanau, Cho, Bengio (2015), section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> q, k = np.array([[10.0, 0.0]]), np.eye(2)
    >>> out, weights = attention(q, k, v=np.array([[1.0], [2.0]]))
    >>> weights.round(3)
    array([[0.999, 0.001]])
    >>> out.round(3)
    array([[1.001]])
    """
    check_attention(q, k, v, score, mask)
    check_bias(bias, q, k, v)
    check_dropout(dropout, like=q)
    if not weights and score is scaled_dot and is_torch(q):
        check_pair(q, k, same_d=True)
        return Attended(_fused(q, k, v, mask, bias, dropout), None)
    scores = score(q, k)
    check_scores(scores, n_q=q.shape[-2], n_k=k.shape[-2])
    if bias is not None:
        scores = _biased(scores, bias)
    say, total = exponentials(scores, mask)
    if not weights and not dropout and v.dtype.itemsize > 2:  # divide the few outputs instead of the many weights
        return Attended(say @ v / total, None)
    alpha = say / total
    return Attended(_dropped(alpha, dropout) @ v, alpha if weights else None)


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
    say, total = exponentials(scores, mask)
    return say / total


def exponentials(
    scores: Float[Array, "... n_q n_k"], mask: Bool[Array, "... n_q n_k"] | None = None
) -> tuple[Float[Array, "... n_q n_k"], Float[Array, "... n_q 1"]]:
    r"""The numerators and the denominators of `masked_softmax`; for a row with nothing left, zeros and one.

    .. math:: m_{ij} \exp(s_{ij} - \max_{j'} s_{ij'}) \quad\text{and}\quad \sum_{j'} m_{ij'} \exp(\ldots)

    It checks nothing: `attention` and `masked_softmax` have done so.

    Source: as `masked_softmax`.

    >>> import numpy as np
    >>> say, total = exponentials(np.array([[1000.0, 1000.0, -np.inf]]))
    >>> say, total
    (array([[1., 1., 0.]]), array([[2.]]))
    """
    xp = namespace(scores)
    if mask is not None:
        scores = xp.where(mask, scores, -inf)
    if scores.shape[-1] == 0:  # no keys at all
        return scores, xp.ones((*scores.shape[:-1], 1), dtype=scores.dtype, device=scores.device)
    top = xp.max(scores, axis=-1, keepdims=True)
    if xp.any(top == inf):
        scores = xp.where(top == inf, xp.where(scores == inf, xp.zeros_like(scores), -inf), scores)
    say = xp.exp(scores - xp.where(xp.isfinite(top), top, 0.0))
    total = xp.sum(say, axis=-1, keepdims=True)
    return say, xp.where(total > 0, total, 1.0)


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, dropout: float) -> Tensor:
    """`attention` without weights, by torch's fused kernel, whose fast path wants four axes."""
    from torch.nn.functional import scaled_dot_product_attention

    lead = broadcast_shapes(*(x.shape[:-2] for x in (q, k, v, mask, bias) if x is not None))

    def four_axes(x: Tensor) -> Tensor:
        x = x.expand(*lead, *x.shape[-2:])
        return x.flatten(0, -4) if len(lead) > 2 else x[(None,) * (2 - len(lead))]

    allowed = mask if bias is None else bias if mask is None else bias.where(mask, -inf)
    if allowed is not None:
        allowed = four_axes(allowed.expand(*allowed.shape[:-2], q.shape[-2], k.shape[-2]))
    out = scaled_dot_product_attention(*map(four_axes, (q, k, v)), attn_mask=allowed, dropout_p=dropout)
    if not out.isfinite().all():  # an infinite score: the kernel answers NaN where the limit exists
        return attention(q, k, v, mask=mask, bias=bias, dropout=dropout).out
    return out.reshape(*lead, *out.shape[-2:])


def _biased(scores: Array, bias: Array) -> Array:
    """Their sum, but that minus infinity hides even what scores plus infinity."""
    xp, hidden = namespace(bias), bias == -inf
    return xp.where(hidden, bias, scores + xp.where(hidden, xp.zeros_like(bias), bias))


def _dropped(alpha: Array, dropout: float) -> Array:
    if not dropout:
        return alpha
    from torch.nn.functional import dropout as drop

    return drop(alpha, dropout)
