"""How good are translations?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnlib._base.needs import needs
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.nn.transformer import Transformer
from attnlib.translation.model import translate

__all__ = ["bleu", "exact_match", "text_scores"]


def exact_match(model: Transformer, corpus: Corpus, examples: Sequence[Example] | None = None) -> float:
    """The share of ``examples`` (those held out, unless given) that are translated without a mistake.

    >>> from attnlib.data.corpus import numbers
    >>> corpus = numbers(500, 5)
    >>> from attnlib.translation import translator
    >>> exact_match(translator(corpus), corpus)
    0.0
    """
    examples = corpus.held_out if examples is None else list(examples)
    if not examples:
        raise ValueError("examples must hold at least one; got none")
    written = translate(model, corpus, [example.source for example in examples])
    return sum(tuple(w) == tuple(e.target) for w, e in zip(written, examples, strict=True)) / len(examples)


def bleu(written: Iterable[Sequence[str]], examples: Iterable[Example]) -> float:
    r"""The BLEU score of translations, 0 to 100: how many of their n-grams, n to 4, stand in the right ones.

    .. math:: 100 \cdot \min(1, e^{1 - r / c}) \prod_{n=1}^4 p_n^{1/4}

    with r the length of all the right texts and c that of all that was written. Computed by `sacrebleu`, on the
    corpus's own tokens.

    Raises ``ValueError`` when there are not as many texts as examples, ``TypeError`` when a text is a string.

    Source: Papineni et al. (2002), section 2.3; Post (2018).

    >>> from attnlib.data.numbers import number
    >>> bleu([["one", "hundred", "twenty", "one"]], [number(121)])
    100.0
    """
    needs("sacrebleu", extra="torch")
    from sacrebleu import corpus_bleu

    written, examples = list(written), list(examples)
    if not examples or len(written) != len(examples):
        raise ValueError(
            f"written must hold a text for each of the examples, at least one; got {len(written)} and {len(examples)}"
        )
    if any(isinstance(text, str) for text in written):
        raise TypeError("written must hold lists of tokens; got a string. For words, write text.split()")
    texts, right = [" ".join(text) for text in written], [" ".join(example.target) for example in examples]
    return round(corpus_bleu(texts, [right], tokenize="none", force=True).score, 6)


def text_scores(written: Sequence[str], right: Sequence[str], *, tokenize: str = "zh") -> dict[str, float]:
    r"""BLEU and chrF of whole texts, 0 to 100, by `sacrebleu`.

    .. math:: \text{chrF} = \frac{5\, P R}{4 P + R}

    with P the share of the written pieces of one to six characters that stand in the right text, and R that of the
    right text's pieces that were written. ``tokenize`` is sacrebleu's way to cut texts for BLEU: "zh" takes Chinese
    character by character, and words of other letters whole.

    Raises ``ValueError`` when there are not as many texts as right ones, or none; ``TypeError`` for a string.

    Source: Papineni et al. (2002), section 2.3; Popović (2015), *chrF*; Post (2018).

    >>> text_scores(["打开所有文件"], ["打开所有文件"])
    {'BLEU': 100.0, 'chrF': 100.0}
    """
    needs("sacrebleu", extra="torch")
    from sacrebleu import corpus_bleu, corpus_chrf

    if isinstance(written, str) or isinstance(right, str):
        raise TypeError("written and right must be lists of texts; got a string")
    written, right = list(written), list(right)
    if not right or len(written) != len(right):
        raise ValueError(
            f"written must hold a text for each right one, at least one; got {len(written)} and {len(right)}"
        )
    scores = corpus_bleu(written, [right], tokenize=tokenize), corpus_chrf(written, [right])
    return {name: round(one.score, 6) for name, one in zip(("BLEU", "chrF"), scores, strict=True)}
