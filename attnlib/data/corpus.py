"""Corpora: your own pairs, or of two small languages, German numbers and a grammar's sentences, with translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from attnlib._base.checks import check_at_least_one, check_size
from attnlib._base.seeds import Seed, generator
from attnlib.data.examples import Example
from attnlib.data.french import draw_because, draw_others
from attnlib.data.french_words import ANIMALS, PLACES
from attnlib.data.numbers import draw_numbers, number
from attnlib.data.subwords import BytePairs
from attnlib.data.text import END, Pairs, Vocabulary, by_length, pad

__all__ = ["CORPORA", "Corpus", "french", "numbers"]

Text = str | Sequence[str]  # a whole sentence, or its words


@dataclass(frozen=True)
class Corpus:
    """Examples to train on and others that were ``held_out``, with the vocabularies of what is trained on.

    >>> corpus = numbers(30, 5)
    >>> corpus
    Corpus of 30 examples and 5 held out; 30 source and 29 target tokens
    """

    train: Sequence[Example]
    held_out: Sequence[Example]
    source: Vocabulary | BytePairs
    target: Vocabulary | BytePairs

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[Text, Text]], held_out: int = 0, *, n_tokens: int = 2000) -> Corpus:
        """A corpus of your own: pairs of sentences. The last ``held_out`` are kept apart.

        Of strings, at most ``n_tokens`` pieces of words are learned, one vocabulary for both languages: see
        `attnlib.data.subwords.BytePairs`. Lists of words stay as they are, and are the vocabularies.

        Raises ``ValueError`` for a pair that is none, has an empty side or another kind of sides than the first, which
        is named, and when all would be held out.

        >>> Corpus.of_pairs([("guten tag", "good day"), ("guten abend", "good evening")])
        Corpus of 2 examples and 0 held out; 268 source and 268 target tokens
        >>> Corpus.of_pairs([(["guten", "tag"], ["good", "day"]), (["guten", "abend"], ["good", "evening"])])
        Corpus of 2 examples and 0 held out; 7 source and 7 target tokens
        """
        if not isinstance(pairs, Iterable):
            raise TypeError(f"pairs must be a list of pairs; got {type(pairs).__name__}")
        pairs = list(pairs)
        for i, pair in enumerate(pairs):
            _check_pair(pair, i, pairs[0])
        end = len(pairs) - check_size("held_out", held_out)
        if end < 1:
            raise ValueError(f"pairs must be more than held_out = {held_out}, no side empty; got {len(pairs)}")
        if not isinstance(pairs[0][0], str):
            examples = [Example(tuple(source), tuple(target)) for source, target in pairs]
            return cls.of(examples[:end], examples[end:])
        pieces = BytePairs((side for pair in pairs[:end] for side in pair), n_tokens)
        examples = [Example(source, target) for source, target in pairs]
        return cls(examples[:end], examples[end:], pieces, pieces)

    @classmethod
    def of(cls, train: Iterable[Example], held_out: Iterable[Example]) -> Corpus:
        """A corpus with the vocabularies of ``train``; raises ``ValueError`` where it has no words."""
        train = list(train)
        texts = [[getattr(example, side) for example in train] for side in ("source", "target")]
        if not all(any(side) for side in texts):
            raise ValueError(
                f"train must have words on both sides, to make vocabularies of; got {len(train)} examples"
            )
        return cls(train, list(held_out), *map(Vocabulary, texts))

    def batches(self, batch_size: int = 64, *, seed: Seed = 0) -> Callable[[int], Pairs]:
        """The examples to train on, of like length together, for each step: see `attnlib.data.text.by_length`.

        Targets end with `attnlib.data.text.END`.
        """
        return by_length(self._pairs, batch_size, seed=seed)

    def batch(self, examples: Sequence[Example]) -> Pairs:
        """These examples as one batch, in their order."""
        source, target = (pad(list(side)) for side in zip(*map(self._encoded, examples), strict=True))
        return Pairs(source.tokens, target.tokens, source.lengths, target.lengths)

    @cached_property
    def _pairs(self) -> list[tuple[list[int], list[int]]]:
        return [self._encoded(example) for example in self.train]

    def _encoded(self, example: Example) -> tuple[list[int], list[int]]:
        return self.source.encode(example.source), [*self.target.encode(example.target), END]

    def __repr__(self) -> str:
        sizes = f"{len(self.source)} source and {len(self.target)} target tokens"
        return f"Corpus of {len(self.train)} examples and {len(self.held_out)} held out; {sizes}"


def _check_pair(pair: object, i: int, first: Sequence[object]) -> None:
    """Raise unless ``pair`` is two strings or two lists of words, as ``first`` is, and no side is empty."""
    sides = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else []
    strings = [isinstance(side, str) for side in sides]
    if len(sides) != 2 or strings[0] != strings[1] or not (strings[0] or all(map(_is_words, sides))):
        raise ValueError(
            f"pairs must hold two strings each; got {pair!r} at place {i}. Two lists of words are fine too"
        )
    if strings[0] != isinstance(first[0], str):
        raise ValueError(
            f"pairs must be all strings or all lists of words; got {pair!r} at place {i}, unlike the first"
        )
    for name, side in zip(("source", "target"), sides, strict=True):
        if not (side.strip() if strings[0] else side):
            raise ValueError(f"pairs must have no empty side; the {name} is empty in {pair!r} at place {i}")


def _is_words(side: object) -> bool:
    return isinstance(side, list | tuple) and all(isinstance(word, str) for word in side)


def numbers(train: int = 20_000, held_out: int = 1_000, *, draw: str = "mixed", seed: Seed = 0) -> Corpus:
    """Numbers below a million, from German morphemes to English words, no number both to train on and held out.

    ``draw`` is "mixed", in which short and round numbers come often, and again and again; "short" or "round", in which
    only these do; or "uniform". Held out are ``held_out`` of the different numbers that were drawn.

    Raises ``ValueError`` when ``draw`` is another word, or too few different numbers were drawn to hold out so many.

    >>> example = numbers(30, 5).train[0]
    >>> " ".join(example.source), " ".join(example.target)
    ('fünf hundert neun tausend sechs hundert dreißig', 'five hundred nine thousand six hundred thirty')
    """
    train, held_out = check_at_least_one("train", train), check_size("held_out", held_out)
    drawn = draw_numbers(train + 2 * held_out, draw=draw, seed=seed)
    different = list(dict.fromkeys(drawn))
    apart = generator(seed).permutation(different)[:held_out].tolist()
    hidden = set(apart)
    shown = [n for n in drawn if n not in hidden][:train]
    if len(shown) < train or len(apart) < held_out:
        raise ValueError(
            f"held_out must leave {train} of the numbers drawn to train on, of which {len(different)} are different; "
            f"got {held_out}"
        )
    examples = {n: number(n) for n in {*shown, *apart}}
    return Corpus.of([examples[n] for n in shown], [examples[n] for n in apart])


def french(train: int = 20_000, held_out: int = 1_000, *, seed: Seed = 0) -> Corpus:
    """Sentences from English to French, half of them `because`. A fifth of the pairs of animal and place is held out.

    ``train`` has no sentence with such a pair; ``held_out`` has nothing else, and all of it is `because`.

    >>> print(" ".join(french(20, 2).held_out[0].source))
    the grey fox did not cross the grey field because it was too sick
    """
    train, held_out = check_at_least_one("train", train), check_at_least_one("held_out", held_out)
    pairs = list(product(ANIMALS, PLACES))
    order = generator(seed).permutation(len(pairs))
    apart, known = ([pairs[i] for i in part] for part in (order[: len(pairs) // 5], order[len(pairs) // 5 :]))
    seeds = [(*(seed if isinstance(seed, Sequence) else (seed,)), part) for part in range(3)]
    others = draw_others(train // 2, pairs=known, seed=seeds[1]) if train > 1 else []
    shown = draw_because(train - len(others), pairs=known, seed=seeds[0]) + others
    return Corpus.of(shown, draw_because(held_out, pairs=apart, seed=seeds[2]))


CORPORA: dict[str, Callable[..., Corpus]] = {"numbers": numbers, "french": french}
