"""The generated question-answering task of `attnlib.data.tasks`, for attention over two levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_size
from attnlib._base.seeds import Seed, generator, tensors

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["Documents", "document_vocabulary", "documents"]


class Documents(NamedTuple):
    """What `documents` returns: ``words`` ``(batch, n_sentences, n_words)``, all else ``(batch,)``, int64.

    >>> Documents._fields
    ('words', 'question', 'answer', 'sentence', 'word')
    """

    words: Int[Tensor, "batch n_sentences n_words"]
    question: Int[Tensor, " batch"]
    answer: Int[Tensor, " batch"]
    sentence: Int[Tensor, " batch"]
    word: Int[Tensor, " batch"]


def documents(
    batch: int,
    n_sentences: int,
    n_words: int,
    *,
    n_topics: int = 4,
    n_answers: int = 6,
    n_fillers: int = 12,
    seed: Seed,
) -> Documents:
    r"""What does the sentence about this topic say? For attention to sentences, and in them to words.

    Every sentence begins with its topic, another in each sentence of a document. Somewhere after it stands one
    answer word; the rest are fillers. ``question`` is one of the document's topics, ``answer`` (0 to
    ``n_answers - 1``) what that topic's sentence says, at position ``word`` of sentence ``sentence``. Words are
    numbered as in `document_vocabulary`: word number ``n_topics + answer`` is the answer's.

    Raises ``ValueError`` too when there are more sentences than topics or fewer than two words to a sentence.

    >>> data = documents(1, 2, 4, seed=0)
    >>> data.question, data.answer, data.sentence, data.word
    (tensor([0]), tensor([1]), tensor([0]), tensor([1]))
    >>> [document_vocabulary()[word] for word in data.words[0, 0]]
    ['topic 0', 'answer 1', 'filler 11', 'filler 6']
    """
    batch, n_sentences = check_at_least_one("batch", batch), check_at_least_one("n_sentences", n_sentences)
    names = document_vocabulary(n_topics, n_answers, n_fillers)
    if n_sentences > n_topics:
        raise ValueError(f"n_sentences must not exceed n_topics = {n_topics}, one for each; got {n_sentences}")
    if check_size("n_words", n_words) < 2:
        raise ValueError(f"n_words must be at least 2, a topic and an answer; got {n_words}")
    rng, one = generator(seed), np.arange(batch)
    words = rng.integers(n_topics + n_answers, len(names), size=(batch, n_sentences, n_words))
    words[..., 0] = rng.permuted(np.tile(np.arange(n_topics), (batch, 1)), axis=1)[:, :n_sentences]
    places = rng.integers(1, n_words, size=(batch, n_sentences))
    answers = rng.integers(n_answers, size=(batch, n_sentences))
    np.put_along_axis(words, places[..., None], n_topics + answers[..., None], axis=2)
    sentence = rng.integers(n_sentences, size=batch)
    asked = (one, sentence)
    return Documents(*tensors(words, words[*asked, 0], answers[asked], sentence, places[asked]))


def document_vocabulary(n_topics: int = 4, n_answers: int = 6, n_fillers: int = 12) -> list[str]:
    """The words of `documents` in the order of their numbers: topics, answers, fillers. Its length is their count.

    >>> document_vocabulary(1, 2, 1)
    ['topic 0', 'answer 0', 'answer 1', 'filler 0']
    """
    counts = {"topic": n_topics, "answer": n_answers, "filler": n_fillers}
    return [f"{kind} {i}" for kind, n in counts.items() for i in range(check_at_least_one(f"n_{kind}s", n))]
