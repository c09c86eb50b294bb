r"""Attention: a weighted mean of values, with weights that come from comparing a query with keys.

.. math:: \text{out}_i = \sum_j \alpha_{ij} v_j, \qquad
          \alpha_{ij} = \frac{\exp s(q_i, k_j)}{\sum_{j'} \exp s(q_i, k_{j'})}

Everything in the package that attends goes through `attention`: kernel regression, every head of every
Transformer. A variant brings another score or another mask. The arrays are NumPy's or torch's, one code for
both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Never

from attnlib._base.arrays import Array
from attnlib.core.arguments import check_arguments, check_numbers
from attnlib.core.softmax import drop_weights, softmax
from attnlib.core.tiles import without_weights
from attnlib.scores import masked_scores, scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from attnlib.patterns import Pattern

__all__ = ["Attended", "attention"]


class Attended(NamedTuple):
    """What `attention` returns: ``out`` ``(..., n_q, d_v)`` and ``weights`` ``(..., n_q, n_k)`` or None.

    >>> Attended._fields
    ('out', 'weights')
    """

    out: Array
    weights: Array | None


def attention(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    score: Callable[[Array, Array], Array] = scaled_dot,
    mask: Bool[Array, "... n_q n_k"] | Pattern | None = None,
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    dropout: float = 0.0,
    weights: bool = True,
    block: int | None = None,
    **_others: Never,
) -> Attended:
    r"""Each query's weighted mean of the values: a softmax over the scores of its keys gives the weights.

    .. math:: \text{Attention}(Q, K, V) = \text{softmax}(s(Q, K) + B)\, V

    Parameters
    ----------
    q, k, v
        Queries ``(..., n_q, d)``, keys ``(..., n_k, d)``, values ``(..., n_k, d_v)``: floating-point NumPy
        arrays or torch tensors, of one dtype, on one device. Leading axes broadcast. Arrays of another library that
        speaks the array API do too.
    score
        A function of ``q`` and ``k`` that returns ``(..., n_q, n_k)``; see `attnlib.scores`.
    mask
        Boolean, True where the query may attend to the key; broadcasts to ``(..., n_q, n_k)``. A query that
        may attend to nothing gets weights and an output of zero. Or a pattern, `attnlib.masks.Band` or
        `attnlib.masks.BigBird`: what it hides is then, with ``weights=False``, never computed.
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

    Returns
    -------
    out, weights
        The weighted means ``(..., n_q, d_v)``, and the weights ``(..., n_q, n_k)`` or None.

    Raises
    ------
    ValueError
        Shapes that do not fit, a mask or a bias that does not broadcast, NaN in ``q``, ``k``, ``bias`` or the scores,
        anything but finite numbers in ``v``, a dropout outside [0, 1), ``causal`` or a pattern with more queries than
        keys, a block below one or beside weights or a pattern.
    TypeError
        Not an array, not floating-point, dtypes or libraries mixed, a mask that is not boolean.

    Notes
    -----
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
    library = check_arguments(q, k, v, score, mask, causal, bias, dropout, weights, block, **_others)
    if not weights:  # the same output, faster or with less memory
        return Attended(without_weights(q, k, v, score, mask, causal, bias, dropout, block, library), None)
    check_numbers(q, k, v, library)
    alpha = softmax(masked_scores(q, k, score, mask, causal, bias, library=library), library)  # (..., n_q, n_k)
    return Attended(drop_weights(alpha, dropout) @ v, alpha)
