"""A small English of which everything is known: sentences about two themes in which the verb goes by its subject.

*these wet ships near the owl sink slowly .* The verb goes by the first noun, whatever nouns stand between; *this* and
*these* go by the noun that follows. Most words of a sentence are of one theme. `language` knows how probable each word
is in each gap.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_one_of
from attnlib._base.seeds import Seed, extended, generator
from attnlib.data.hidden_markov import HiddenMarkov

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray as Array

__all__ = ["CLS", "KINDS", "MASK", "Sentences", "judged", "language", "other_number", "sentences"]

PAD, CLS, MASK = range(3)  # MASK is never drawn
LENGTH = 16  # of a row, filled up
KINDS = ("determiner", "adjective", "noun", "preposition", "verb", "adverb", "stop")
NUMBERS, STAGES = ("singular", "plural"), range(3)  # a stage for each noun phrase
THEMES = {  # nouns, verbs, adjectives
    "harbour": ("ship sailor gull wave", "sink drift sway", "wet blue"),
    "forest": ("tree bear owl hunter", "grow sleep hide", "green wild"),
}
DETERMINERS = {"singular": ("the", "this", "every"), "plural": ("the", "these", "many")}
PREPOSITIONS, ADVERBS = ("near", "behind"), ("slowly", "again", "today")
OWN = 0.85  # of the words that have a theme, the share that is of the sentence's


class Sentences(NamedTuple):
    """A batch: the words, filled up with 0; the kind of each as a number in `KINDS`, -1 where it fills up.

    ``plural`` is 1 where the subject is, ``nearest`` where the last noun before the verb is, else 0. ``theme`` is the
    number of the theme, and ``verb`` the position of the verb.
    """

    tokens: Int[Array, "n length"]
    kinds: Int[Array, "n length"]
    plural: Int[Array, " n"]
    nearest: Int[Array, " n"]
    theme: Int[Array, " n"]
    verb: Int[Array, " n"]


class State(NamedTuple):
    """What the hidden chain knows: what comes next, in which noun phrase, and what has been decided."""

    kind: str
    stage: int
    theme: int
    subject: int
    number: int  # of the noun phrase that is being written


@cache
def language(theme: int | None = None) -> HiddenMarkov:
    """The chain that writes these sentences: its words, and the probability of each of them in any gap.

    With a ``theme``, 0 or 1, the chain of the sentences of this theme. Raises ``ValueError`` for another one.

    >>> chain = language()
    >>> len(chain.words), len(chain.start)
    (46, 85)
    """
    if theme is not None:
        check_one_of("theme", theme, range(len(THEMES)))
    states, words = _states(), _words()
    number = {state: i for i, state in enumerate(states)}
    start, moves = np.zeros(len(states)), np.zeros((len(states), len(states)))
    for state in states:
        start[number[state]] = state.kind == "first" and theme in (None, state.theme)
        for following, p in _moves(state):
            moves[number[state], number[following]] += p
    writes = np.array([_writes(state, words) for state in states])
    return HiddenMarkov(start / start.sum(), moves, writes, words)


def sentences(n: int, seed: Seed) -> Sentences:
    """``n`` sentences. Errors: see `attnlib.data.tasks`.

    >>> batch, words = sentences(1, seed=3), language().words
    >>> " ".join(words[t] for t in batch.tokens[0] if t)
    '[CLS] these bears behind these sailors sleep slowly .'
    """
    tokens, states = language().draw(n, LENGTH, seed)
    facts = np.array([_facts(state) for state in _states()])[states]  # (n, length, 5)
    kinds, _, theme, subject, number = np.moveaxis(facts, -1, 0)
    nouns = (kinds == KINDS.index("noun")) * np.arange(LENGTH)
    return Sentences(
        tokens,
        kinds,
        plural=subject[:, 0],
        nearest=number[np.arange(n), nouns.argmax(axis=1)],
        theme=theme[:, 0],
        verb=(kinds == KINDS.index("verb")).argmax(axis=1),
    )


def judged(n: int, seed: Seed) -> tuple[Int[Array, "n length"], Int[Array, " n"], Sentences]:
    """``n`` sentences in half of which the verb has the wrong number, which of them, and what they were.

    Errors: see `attnlib.data.tasks`.

    >>> tokens, wrong, right = judged(4, seed=0)
    >>> wrong.tolist(), (tokens != right.tokens).sum(axis=1).tolist()
    ([1, 0, 1, 0], [1, 0, 1, 0])
    """
    right = sentences(n, seed)
    wrong, rows = generator(extended(seed, 1)).permutation(np.arange(n) % 2), np.arange(n)
    verbs = right.tokens[rows, right.verb]
    tokens = right.tokens.copy()
    tokens[rows, right.verb] = np.where(wrong, [other_number(int(verb)) for verb in verbs], verbs)
    return tokens, wrong, right


def other_number(token: int) -> int:
    """The same noun or verb in the other number: *ships* for *ship*. Raises ``ValueError`` for other words.

    >>> words = language().words
    >>> words[other_number(words.index("ships"))], words[other_number(words.index("sinks"))]
    ('ship', 'sink')
    """
    words = _words()
    word = words[token]
    for nouns, verbs, _ in THEMES.values():
        for stem in (*nouns.split(), *verbs.split()):
            if word in (stem, stem + "s"):
                return words.index(stem if word != stem else stem + "s")
    raise ValueError(f"token must be that of a noun or a verb; got {token}, {word!r}")


@cache
def _words() -> tuple[str, ...]:
    found = ["[PAD]", "[CLS]", "[MASK]"]
    for nouns, verbs, adjectives in THEMES.values():
        found += [stem + end for stem in (*nouns.split(), *verbs.split()) for end in ("", "s")] + adjectives.split()
    return (*found, *dict.fromkeys(sum(DETERMINERS.values(), ())), *PREPOSITIONS, *ADVERBS, ".")


@cache
def _states() -> tuple[State, ...]:
    found = {State("pad", 0, 0, 0, 0): None}
    for stage, theme, subject, number in product(STAGES, range(len(THEMES)), range(2), range(2)):
        number = subject if stage == 0 else number
        for kind in ("determiner", "adjective", "noun"):
            found[State(kind, stage, theme, subject, number)] = None
        if stage < STAGES[-1]:
            found[State("preposition", stage, theme, subject, 0)] = None
        for kind in ("first", "verb", "adverb", "stop"):
            found[State(kind, 0, theme, subject, 0)] = None
    return tuple(found)


def _moves(state: State) -> list[tuple[State, float]]:
    kind, stage, theme, subject, _ = state
    if kind == "first":
        return [(State("determiner", 0, theme, subject, subject), 1)]
    if kind == "determiner":
        return [(state._replace(kind="adjective"), 0.4), (state._replace(kind="noun"), 0.6)]
    if kind == "adjective":
        return [(state._replace(kind="noun"), 1)]
    verb = State("verb", 0, theme, subject, 0)
    if kind == "noun":
        more = (0.6, 0.4, 0)[stage]
        return [(verb, 1 - more)] + ([(State("preposition", stage, theme, subject, 0), more)] if more else [])
    if kind == "preposition":
        return [(State("determiner", stage + 1, theme, subject, n), 0.5) for n in range(2)]
    if kind == "verb":
        return [(state._replace(kind="adverb"), 0.5), (state._replace(kind="stop"), 0.5)]
    if kind == "adverb":
        return [(state._replace(kind="stop"), 1)]
    return [(State("pad", 0, 0, 0, 0), 1)]


def _writes(state: State, words: tuple[str, ...]) -> np.ndarray:
    p = np.zeros(len(words))
    alike = {"preposition": PREPOSITIONS, "adverb": ADVERBS, "stop": (".",), "first": ("[CLS]",), "pad": ("[PAD]",)}
    alike["determiner"] = DETERMINERS[NUMBERS[state.number]]
    if state.kind in alike:
        p[[words.index(word) for word in alike[state.kind]]] = 1 / len(alike[state.kind])
        return p
    column = ("noun", "verb", "adjective").index(state.kind)
    ends = {"noun": ("", "s")[state.number], "verb": ("s", "")[state.subject], "adjective": ""}
    for theme, lists in enumerate(THEMES.values()):
        stems = lists[column].split()
        share = OWN if theme == state.theme else (1 - OWN) / (len(THEMES) - 1)
        p[[words.index(stem + ends[state.kind]) for stem in stems]] = share / len(stems)
    return p


def _facts(state: State) -> tuple[int, ...]:
    return (KINDS.index(state.kind) if state.kind in KINDS else -1, *state[1:])
