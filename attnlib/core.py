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

from attnlib import masks
from attnlib._backend import Array, is_torch, namespace
from attnlib._checks import (
    check_bias,
    check_block,
    check_dropout,
    check_features,
    check_largest,
    check_numbers,
    check_scores,
    check_shapes,
    check_softmax,
)
from attnlib._tiles import spans, tile, triangle
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["Attended", "attention", "blockwise", "exponentials", "masked_softmax"]


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
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    dropout: float = 0.0,
    weights: bool = True,
    block: int | None = None,
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
    causal
        True hides the keys after each query, as a mask from `attnlib.causal` does, but costs less. The last query
        stands at the last key. Beside it, ``mask`` hides more.
    bias
        Added to the scores, as a relative position is; broadcasts to ``(..., n_q, n_k)``.
    dropout
        The chance that a weight is dropped, the others growing by ``1 / (1 - dropout)``: for training, with
        torch. The weights that are returned are those before it, whose rows sum to one.
    weights
        False returns None in place of the weights. With torch and the default score, the fused
        `torch.nn.functional.scaled_dot_product_attention` then does the work, without ever holding them (and
        without second derivatives, where torch has none).
    block
        The sum is taken over tiles of ``block`` queries by ``block`` keys, as `blockwise` says, so that memory grows
        as ``block²`` instead of ``n_q * n_k``: for long sequences, with any score, in both libraries. It needs
        ``weights=False``.

    Raises
    ------
    ValueError
        Shapes that do not fit, a mask or a bias that does not broadcast, NaN in ``q``, ``k``, ``bias`` or the scores,
        anything but finite numbers in ``v``, a dropout outside [0, 1), ``causal`` with more queries than keys, a
        block below one or beside weights.
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
    check_shapes(q, k, v, score, mask, causal)
    check_bias(bias, q, k, v)
    check_dropout(dropout, like=q)
    check_block(block, weights)
    if not weights and block is None and score is scaled_dot and is_torch(q):
        from attnlib._fused import fused

        check_features(q, k)
        out = fused(q, k, v, mask=mask, bias=bias, causal=causal, dropout=dropout)
        if out is not None:
            return Attended(out, None)
    check_numbers(q, k, v)
    if block is not None and k.shape[-2] > 0:
        options = {"score": score, "mask": mask, "causal": causal, "bias": bias, "dropout": dropout}
        return Attended(blockwise(q, k, v, block=block, **options), None)
    if causal:
        mask = masks.combine(masks.causal(q.shape[-2], k.shape[-2], like=q), mask)
    say, total = exponentials(_scores(q, k, score, bias), mask)
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
    scores: Float[Array, "... n_q n_k"],
    mask: Bool[Array, "... n_q n_k"] | None = None,
    top: Float[Array, "... n_q 1"] | None = None,
) -> tuple[Float[Array, "... n_q n_k"], Float[Array, "... n_q 1"]]:
    r"""The numerators and the denominators of `masked_softmax`; for a row with nothing left, zeros and one.

    .. math:: m_{ij} \exp(s_{ij} - \max_{j'} s_{ij'}) \quad\text{and}\quad \sum_{j'} m_{ij'} \exp(\ldots)

    ``top`` is subtracted, the row's largest score unless given. Of what `attention` checks, only NaN among the scores
    is left to be found here, and raises ``ValueError``.

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
    top = xp.max(scores, axis=-1, keepdims=True) if top is None else top
    check_largest(top)
    if xp.any(top == inf):
        scores = xp.where(top == inf, xp.where(scores == inf, xp.zeros_like(scores), -inf), scores)
    say = xp.exp(scores - xp.where(xp.isfinite(top), top, 0.0))
    total = xp.sum(say, axis=-1, keepdims=True)
    return say, xp.where(total > 0, total, 1.0)


def blockwise(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    score: Callable[[Array, Array], Array] = scaled_dot,
    mask: Bool[Array, "... n_q n_k"] | None = None,
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    dropout: float = 0.0,
    block: int = 512,
) -> Float[Array, "... n_q d_v"]:
    r"""The same weighted mean as `attention`, tile by tile, without ever holding all weights.

    Going from one block of keys to the next, each query keeps its largest score so far, :math:`m`, and relative to it
    the sum of the exponentials and of the values that they weigh. When the largest score grows, both shrink:

    .. math:: m' = \max(m, \max_j s_{ij}), \qquad \ell' = e^{m - m'} \ell + \sum_j e^{s_{ij} - m'}, \qquad
              y' = e^{m - m'} y + \sum_j e^{s_{ij} - m'} v_j

    where :math:`j` runs over the keys of the block; in the end :math:`\text{out}_i = y / \ell`, up to rounding.
    Memory beyond the output grows as ``block²``, unless torch records gradients, for which it keeps every tile. The
    score sees some queries and keys at a time. It checks nothing: call `attention` with ``weights=False, block=512``.

    Source: Milakov and Gimelshein (2018), section 3, for one row; Rabe and Staats (2021), section 2, and Dao et al.
    (2022), section 3.1, for attention.

    >>> import numpy as np
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 1000, 4))
    >>> bool(np.allclose(blockwise(q, k, v, block=64), attention(q, k, v).out))
    True
    """
    xp, n_k, shift = namespace(q), k.shape[-2], k.shape[-2] - q.shape[-2]
    wide = q.dtype if q.dtype.itemsize > 2 else xp.float32

    def mean(rows: slice) -> Array:
        top, total, out = xp.full((rows.stop - rows.start, 1), -inf, dtype=wide, device=q.device), 0.0, 0.0
        for columns in spans(rows.stop + shift if causal else n_k, block):  # keys beyond are hidden from all rows
            scores = _scores(q[..., rows, :], k[..., columns, :], score, tile(bias, rows, columns))
            allowed = masks.combine(tile(mask, rows, columns), triangle(rows, columns, shift, q) if causal else None)
            scores = xp.astype(scores if allowed is None else xp.where(allowed, scores, -inf), wide, copy=False)
            before, top = top, xp.maximum(top, xp.max(scores, axis=-1, keepdims=True))
            shrink, say = (exponentials(x, top=top)[0] for x in (before, scores))
            total = shrink * total + xp.sum(say, axis=-1, keepdims=True)
            out = shrink * out + _dropped(say, dropout) @ xp.astype(v[..., columns, :], wide, copy=False)
        return xp.astype(out / xp.where(total > 0, total, 1.0), v.dtype, copy=False)

    return xp.concat([mean(rows) for rows in spans(q.shape[-2], block)], axis=-2)


def _scores(q: Array, k: Array, score: Callable[[Array, Array], Array], bias: Array | None) -> Array:
    """What ``score`` says, and ``bias`` added, but that minus infinity hides even what scores plus infinity."""
    scores = score(q, k)
    check_scores(scores, n_q=q.shape[-2], n_k=k.shape[-2])
    if bias is None:
        return scores
    xp, hidden = namespace(bias), bias == -inf
    return xp.where(hidden, bias, scores + xp.where(hidden, xp.zeros_like(bias), bias))


def _dropped(alpha: Array, dropout: float) -> Array:
    if not dropout:
        return alpha
    from torch.nn.functional import dropout as drop

    return drop(alpha, dropout)
