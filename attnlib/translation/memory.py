r"""A translation memory: the stored translation of whatever is most like the text that is asked.

.. math:: p(y \mid x) = \sum_i \text{softmax}_i\Big(\frac{\cos(x, x_i)}{h}\Big)\, [y = y_i]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.checks import check_positive
from attnlib.core import attention
from attnlib.data.interface_texts import normalised
from attnlib.scores import dot

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["TranslationMemory", "letter_pieces"]


def letter_pieces(text: str, n: int = 3) -> list[str]:
    """The pieces of ``n`` letters of a text and its words, without capitals, punctuation and placeholders.

    >>> letter_pieces("Cut %1")
    [' cu', 'cut', 'ut ', ' cut ']
    """
    whole = f" {normalised(text)} "
    return [whole[i : i + n] for i in range(len(whole) - n + 1)] + [f" {word} " for word in whole.split()]


class TranslationMemory:
    r"""Attention over stored pairs: their sources are keys, their targets values.

    .. math:: p(y \mid x) = \sum_i \text{softmax}_i\Big(\frac{\cos(f(x), f(x_i))}{h}\Big)\, [y = y_i]

    with :math:`f` the counts of a text's ``pieces``, each divided by the root of the number of stored texts that have
    it. With a small ``bandwidth`` :math:`h` the most similar text decides, with a larger one equal translations vote.

    Raises ``ValueError`` without a pair, or for a bandwidth that is not positive.

    Source: Nadaraya (1964), Watson (1964) for the estimator; translators' own memories are as old as their computers.

    >>> memory = TranslationMemory([("Open the file", "打开文件"), ("Close the file", "关闭文件")])
    >>> memory.translate(["open file …"])
    ['打开文件']
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        bandwidth: float = 0.05,
        pieces: Callable[[str], Sequence[str]] = letter_pieces,
    ) -> None:
        self.pairs = list(pairs)
        self.pieces = pieces
        if not self.pairs:
            raise ValueError("pairs must hold at least one pair; got none")
        check_positive("bandwidth", bandwidth)
        self.bandwidth = bandwidth
        have = Counter(piece for source, _ in self.pairs for piece in set(pieces(source)))
        self._columns = {piece: i for i, piece in enumerate(sorted(have))}
        self._weights = np.array([have[piece] for piece in self._columns], dtype=np.float32) ** -0.5
        self._keys = self.features([source for source, _ in self.pairs])

    def features(self, texts: Sequence[str]) -> Float[Array, "n n_pieces"]:
        """One row of length 1 for each text, or of zeros where it shares no piece with what is stored.

        >>> TranslationMemory([("a", "b")]).features(["a", "c"])
        array([[1.],
               [0.]], dtype=float32)
        """
        rows = np.zeros((len(texts), len(self._columns)), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for piece in self.pieces(text):
                if piece in self._columns:
                    row[self._columns[piece]] += self._weights[self._columns[piece]]
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def attend(self, texts: Sequence[str]) -> Float[Array, "n n_pairs"]:
        """The weight of each stored pair.

        >>> TranslationMemory([("a", "b"), ("c", "d")], bandwidth=1).attend(["a"]).round(2)
        array([[0.73, 0.27]], dtype=float32)
        """
        queries = self.features(texts) / np.float32(self.bandwidth)
        return attention(queries, self._keys, self._keys[:, :1], score=dot).weights

    def similarity(self, texts: Sequence[str]) -> Float[Array, " n"]:
        """The cosine with the most similar stored source: 1 where it is stored, up to its order and repetitions."""
        return (self.features(texts) @ self._keys.T).max(axis=1)

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The stored translation with the largest weight, where equal ones add theirs."""
        targets = list(dict.fromkeys(target for _, target in self.pairs))
        place = {target: i for i, target in enumerate(targets)}
        groups = np.array([place[target] for _, target in self.pairs])
        written = []
        for weights in self.attend(texts):
            sums = np.bincount(groups, weights=weights, minlength=len(targets))
            written.append(targets[int(sums.argmax())])
        return written
