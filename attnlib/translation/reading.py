"""A string as a translator reads it: in pieces, which know every text, or in words, which do not."""

from __future__ import annotations

from collections.abc import Container

from attnlib.data.subwords import BytePairs
from attnlib.data.text import Vocabulary

__all__ = ["read_text", "words_of"]

SHORTEST = 3  # letters of a word that may be written together with others


def read_text(text: str, known: Vocabulary | BytePairs, place: str) -> list[int]:
    """The numbers of a text's pieces, or of its words; none of a blank text.

    Raises ``ValueError`` for a word that is not ``known``, at ``place``.

    >>> read_text("Einundzwanzig", Vocabulary([["ein", "und", "zwanzig"]]), "text 1")
    [4, 5, 6]
    """
    if isinstance(known, BytePairs):
        return known.encode(text.strip()) if text.strip() else []
    found = []
    for word in text.split():
        words = words_of(word, known) or words_of(word.lower(), known)
        if not words:
            raise ValueError(f"{place} must have words that the translator was trained on; got {word!r}")
        found += words
    return known.encode(found)


def words_of(word: str, known: Container[str]) -> list[str]:
    """The word, if it is known, or else the fewest known words of three letters and more that it is written from.

    None where it cannot be.

    >>> words_of("einundzwanzig", ["ein", "und", "zwan", "zig", "zwanzig"]), words_of("Ananas", ["An", "an", "a", "s"])
    (['ein', 'und', 'zwanzig'], [])
    """
    if word in known:
        return [word]
    best: list[list[str] | None] = [[]]  # for each beginning of the word
    for stop in range(1, len(word) + 1):
        ways = [
            [*before, word[start:stop]]
            for start, before in enumerate(best[: max(0, stop - SHORTEST + 1)])
            if before is not None and word[start:stop] in known
        ]
        best.append(min(ways, key=len, default=None))
    return best[-1] or []
