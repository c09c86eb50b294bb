"""Attention over two levels, words in sentences and sentences in a document. It is in `attnlib.variants`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from attnlib._base.arrays import Array, namespace
from attnlib._base.checks import check_boolean, check_broadcast, check_floats, check_rank
from attnlib.core.attention import attention
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["TwoLevel", "two_level"]


class TwoLevel(NamedTuple):
    r"""What `two_level` returns: ``out`` ``(..., n_q, d_v)``, weights of ``words``, of ``sentences`` and ``joint``.

    .. math:: \text{joint}_{ist} = \text{sentences}_{is} \, \text{words}_{ist}

    >>> TwoLevel._fields
    ('out', 'words', 'sentences', 'joint')
    """

    out: Array
    words: Array
    sentences: Array
    joint: Array


def two_level(
    q: Float[Array, "... n_q d"],
    word_keys: Float[Array, "... n_sentences n_words d"],
    values: Float[Array, "... n_sentences n_words d_v"],
    *,
    sentence_q: Float[Array, "... n_q d"] | None = None,
    sentence_keys: Float[Array, "... n_sentences d"] | None = None,
    score: Callable[[Array, Array], Array] = scaled_dot,
    word_mask: Bool[Array, "... n_sentences n_words"] | None = None,
    sentence_mask: Bool[Array, "... n_sentences"] | None = None,
) -> TwoLevel:
    r"""Attend to words within each sentence, then to the sentences of the document.

    .. math:: \beta_{ist} = \text{softmax}_t\, s(q_i, k_{st}), \qquad
              \gamma_{is} = \text{softmax}_s\, s(q'_i, k'_{is}), \qquad
              \text{out}_i = \sum_{s,t} \gamma_{is}\, \beta_{ist}\, v_{st}

    The product :math:`\gamma_{is}\, \beta_{ist}` is a distribution over all words of the document.

    Parameters
    ----------
    q, word_keys, values
        Queries, and a key and a value for each word of each sentence.
    sentence_q
        :math:`q'`, what is asked of sentences; ``q`` unless given.
    sentence_keys
        :math:`k'`, one for each sentence; unless given, what the word weights make of the word keys,
        :math:`k'_{is} = \sum_t \beta_{ist} k_{st}`, which differs from query to query.
    score
        Of both levels; see `attnlib.scores`.
    word_mask, sentence_mask
        True for words and sentences that exist. A sentence without words counts as none; a document without
        sentences gives zeros.

    Raises
    ------
    ValueError
        Shapes that do not fit; otherwise as `attnlib.attention`.
    TypeError
        A mask that is not boolean.

    Notes
    -----
    Source: Yang et al. (2016), section 2.2, where queries are learned and belong to no input.

    Examples
    --------
    >>> import numpy as np
    >>> words = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> out, words, sentences, joint = two_level(np.zeros((1, 1)), words, values=words)
    >>> sentences, joint.sum(), out
    (array([[0.5, 0.5]]), np.float64(1.0), array([[2.5]]))
    """
    real = _check(q, word_keys, values, sentence_q, sentence_keys, word_mask, sentence_mask)
    word_mask = word_mask if word_mask is None else word_mask[..., None, :]  # (..., n_sentences, 1, n_words)
    # weights: (..., n_sentences, n_q, n_words)
    inner = attention(q[..., None, :, :], word_keys, values, score=score, mask=word_mask)
    if sentence_keys is None:  # another for each query: (..., n_q, n_sentences, d)
        sentence_keys = (inner.weights @ word_keys).swapaxes(-3, -2)  # (..., n_q, n_sentences, d)
    else:
        sentence_keys = sentence_keys[..., None, :, :]
    sentence_q = (q if sentence_q is None else sentence_q)[..., :, None, :]  # (..., n_q, 1, d)
    outer = attention(sentence_q, sentence_keys, inner.out.swapaxes(-3, -2), score=score, mask=real)
    # (..., n_q, n_sentences, n_words), (..., n_q, n_sentences)
    words, sentences = inner.weights.swapaxes(-3, -2), outer.weights[..., 0, :]
    return TwoLevel(outer.out[..., 0, :], words, sentences, sentences[..., None] * words)


def _check(
    q: Array,
    word_keys: Array,
    values: Array,
    sentence_q: Array | None,
    sentence_keys: Array | None,
    word_mask: Array | None,
    sentence_mask: Array | None,
) -> Array | None:
    """Raise unless everything fits; the mask of sentences that exist and have words, or None for all."""
    given = {"sentence_q": sentence_q, "sentence_keys": sentence_keys}
    given = {name: x for name, x in given.items() if x is not None}
    check_floats(q=q, word_keys=word_keys, values=values, **given)
    check_rank("(..., n_q, d)", q=q)
    for name, x in {"word_keys": word_keys, "values": values}.items():
        if x.ndim < 3:
            raise ValueError(f"{name} must have shape (..., n_sentences, n_words, d); got {tuple(x.shape)}")
    *lead, n_sentences, n_words = word_keys.shape[:-1]
    if tuple(values.shape[-3:-1]) != (n_sentences, n_words):
        got = f"word_keys {tuple(word_keys.shape)} and values {tuple(values.shape)}"
        raise ValueError(f"word_keys and values must have one row for each word; got {got}")
    if sentence_q is not None and sentence_q.shape != q.shape:
        raise ValueError(f"sentence_q must have the shape of q, {tuple(q.shape)}; got {tuple(sentence_q.shape)}")
    if sentence_keys is not None and (sentence_keys.ndim < 2 or sentence_keys.shape[-2] != n_sentences):
        got = tuple(sentence_keys.shape)
        raise ValueError(f"sentence_keys must have shape (..., n_sentences = {n_sentences}, d); got {got}")
    real = None
    if word_mask is not None:
        check_boolean("word_mask", word_mask)
        check_broadcast("word_mask", word_mask, (*lead, n_sentences, n_words))
        real = namespace(word_mask).any(word_mask, axis=-1)
    if sentence_mask is not None:
        check_boolean("sentence_mask", sentence_mask)
        check_broadcast("sentence_mask", sentence_mask[..., None, :], (*lead, 1, n_sentences))
        real = sentence_mask if real is None else sentence_mask & real
    return real if real is None else real[..., None, None, :]  # (..., n_sentences) -> (..., 1, 1, n_sentences)
