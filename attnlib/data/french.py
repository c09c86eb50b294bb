"""A small grammar that writes the same sentence in English and in French: the data of lesson 13.

Half of the sentences are of one kind: *The animal did not cross the street because it was too tired*. English says
*it* of an animal and of a street, French says *il* or *elle*: to translate the word one must know what it stands for,
and that only the adjective tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from attnlib._base.checks import check_at_least_one, check_one_of
from attnlib._base.seeds import Seed, generator
from attnlib.data.examples import Example
from attnlib.data.french_words import (
    ACTS,
    ADJECTIVES,
    ANIMALS,
    COLOURS,
    FORMS,
    FRENCH,
    GENDER,
    OF_ANIMALS,
    PLACES,
    VERBS,
)

__all__ = ["because", "draw_because", "draw_others", "other_gender"]


Tokens = list[tuple[str, str]]  # a French token, and the name of the English one that it translates, or ""


def because(
    animal: str,
    place: str,
    adjective: str,
    *,
    verb: str = "cross",
    colours: tuple[str, str] = ("", ""),
    first: str = "animal",
) -> Example:
    """*The animal did not cross the place because it was too …*, with what *it* stands for in ``facts``.

    ``facts`` holds the ``gender`` of what *it* stands for and the ``other`` noun's, "m" or "f", and positions: of
    ``it``, the ``referent``, the ``distractor`` (the noun it does not stand for) and the ``adjective`` in the source;
    of the ``pronoun`` in the target, and there of the phrases ``wrote_referent`` and ``wrote_distractor``.

    With ``first="place"`` the two nouns change places: *The place did not cross the animal because …*

    Raises ``ValueError`` for a word that is not of this grammar.

    >>> english, french, _, facts = because("animal", "street", "wide")
    >>> " ".join(french)
    "l' animal n' a pas traversé la rue parce qu' elle était trop large"
    >>> english[facts["it"]], english[facts["referent"]], english[facts["distractor"]], french[facts["pronoun"]]
    ('it', 'street', 'animal', 'elle')
    >>> [french[i] for i in facts["wrote_referent"]]
    ['la', 'rue']
    """
    for name, word, known in (("animal", animal, ANIMALS), ("place", place, PLACES), ("verb", verb, VERBS)):
        check_one_of(name, word, known)
    check_one_of("adjective", adjective, sum(ADJECTIVES.values(), ()))
    check_one_of("first", first, ("animal", "place"))
    if len(colours) != 2:
        raise ValueError(f"colours must be two, for the animal and the place, or empty strings; got {colours!r}")
    nouns = {"animal": animal, "place": place}
    kind = "animal" if adjective in OF_ANIMALS else "place"
    other = "place" if kind == "animal" else "animal"
    gender = GENDER[nouns[kind]]
    phrases = [_phrase("animal", animal, colours[0]), _phrase("place", place, colours[1])]
    (subject, subject_fr), (thing, thing_fr) = phrases if first == "animal" else phrases[::-1]
    english = [*subject, ("did", "did"), ("not", "not"), (verb, "verb"), *thing]
    english += [(word, word) for word in ["because", "it", "was", "too"]] + [(adjective, "adjective")]
    french = [*subject_fr, ("n'", "not"), ("a", "did"), ("pas", "not"), (VERBS[verb], "verb"), *thing_fr]
    french += [("parce", "because"), ("qu'", "because")]
    french += [("il" if gender == "m" else "elle", "it"), ("était", "was"), ("trop", "too")]
    french += [(_form(adjective, gender), "adjective")]
    stands = {name: i for i, (_, name) in enumerate(english)}
    facts = {"gender": gender, "other": GENDER[nouns[other]], "it": stands["it"], "adjective": stands["adjective"]}
    facts |= {"referent": stands[kind], "distractor": stands[other]}
    facts["made of"] = {**nouns, "adjective": adjective, "verb": verb, "colours": colours, "first": first}
    written = [name.split()[-1] for _, name in french]
    facts |= {"pronoun": written.index("it")}
    for name, noun in (("wrote_referent", kind), ("wrote_distractor", other)):
        facts[name] = [i for i, word in enumerate(written) if word == noun]
    return _example(english, french, facts)


def other_gender(example: Example, noun: str) -> Example:
    """The sentence `because` with another noun of the same kind and the other gender, as its ``noun``.

    ``noun`` is "referent" or "distractor".

    >>> print(" ".join(other_gender(because("animal", "street", "wide"), "referent").target))
    l' animal n' a pas traversé le champ parce qu' il était trop large
    """
    check_one_of("noun", noun, ("referent", "distractor"))
    made = example.facts.get("made of")
    if made is None:
        raise ValueError(f"example must be a sentence that `because` made; got {' '.join(example.source)!r}")
    word = example.source[example.facts[noun]]
    kind, nouns = ("animal", ANIMALS) if word in ANIMALS else ("place", PLACES)
    return because(**made | {kind: nouns[nouns.index(word) - len(nouns) // 2]})


def draw_because(count: int, *, pairs: Iterable[tuple[str, str]], seed: Seed) -> list[Example]:
    """``count`` different sentences of the kind `because`, over these pairs of an animal and a place.

    >>> " ".join(draw_because(1, pairs=[("dog", "lake")], seed=0)[0].source)
    'the dog did not find the lake because it was too crowded'
    """
    pairs = list(pairs)

    def draw(rng: np.random.Generator) -> Example:
        animal, place = pairs[rng.integers(len(pairs))]
        adjective = _one(rng, ADJECTIVES[_one(rng, ("animal", "place"))])
        return because(animal, place, adjective, verb=_one(rng, VERBS), colours=(_colour(rng), _colour(rng)))

    return _different(draw, count, seed)


def draw_others(count: int, *, pairs: Iterable[tuple[str, str]], seed: Seed) -> list[Example]:
    """``count`` different sentences of other kinds, where *it* is an object, or there is none.

    >>> for example in draw_others(3, pairs=[("dog", "lake")], seed=0):
    ...     print(" ".join(example.source), "|", " ".join(example.target))
    the tortoise likes the brown ant and hears it | la tortue aime la fourmi brune et l' entend
    the grey mouse knows the frog and likes it | la souris grise connaît la grenouille et l' aime
    the brown dog crosses the black lake and does not leave it | le chien brun traverse le lac noir et ne le quitte pas
    """
    pairs = list(pairs)
    kinds = (_says_how, _sees, _sees_it, _crosses_it)
    return _different(lambda rng: kinds[rng.integers(len(kinds))](rng, pairs), count, seed)


def _says_how(rng: np.random.Generator, pairs: list[tuple[str, str]]) -> Example:
    kind = _one(rng, ("animal", "place"))
    noun, adjective = _one(rng, ANIMALS if kind == "animal" else PLACES), _one(rng, ADJECTIVES[kind])
    english, french = _phrase("noun", noun, _colour(rng))
    english += [("is", "is"), (adjective, "adjective")]
    return _example(english, [*french, ("est", "is"), (_form(adjective, GENDER[noun]), "adjective")], {})


def _sees(rng: np.random.Generator, pairs: list[tuple[str, str]]) -> Example:
    (english, french), _ = _two_animals(rng)
    return _example(english, french, {})


def _sees_it(rng: np.random.Generator, pairs: list[tuple[str, str]]) -> Example:
    (english, french), seen = _two_animals(rng)
    act = _one(rng, [act for act in ACTS if act not in dict(english)])
    english += [("and", "and"), (act, "second verb"), ("it", "it")]
    clitic = "l'" if _elides(ACTS[act]) else _article(GENDER[seen])
    return _example(english, [*french, ("et", "and"), (clitic, "it"), (ACTS[act], "second verb")], {})


def _crosses_it(rng: np.random.Generator, pairs: list[tuple[str, str]]) -> Example:
    animal, place = pairs[rng.integers(len(pairs))]
    (english, french), (english_place, french_place) = (
        _phrase(name, noun, _colour(rng)) for name, noun in (("animal", animal), ("place", place))
    )
    english += [("crosses", "verb"), *english_place, *((word, word) for word in ["and", "does", "not", "leave", "it"])]
    french += [("traverse", "verb"), *french_place, ("et", "and"), ("ne", "not"), (_article(GENDER[place]), "it")]
    return _example(english, [*french, ("quitte", "leave"), ("pas", "not")], {})


def _two_animals(rng: np.random.Generator) -> tuple[tuple[Tokens, Tokens], str]:
    one, two = (ANIMALS[i] for i in rng.permutation(len(ANIMALS))[:2])
    act = _one(rng, ACTS)
    (english, french), (english_two, french_two) = _phrase("one", one, _colour(rng)), _phrase("two", two, _colour(rng))
    return ([*english, (act, "verb"), *english_two], [*french, (ACTS[act], "verb"), *french_two]), two


def _phrase(name: str, noun: str, colour: str) -> tuple[Tokens, Tokens]:
    """Article, noun and colour in both languages; the tokens' names say whose they are."""
    if colour:
        check_one_of("colours", colour, COLOURS)
    french, gender = FRENCH[noun], GENDER[noun]
    paint = [(colour, f"colour of {name}")] if colour else []
    english = [("the", f"the {name}"), *paint, (noun, name)]
    painted = [(_form(colour, gender), f"colour of {name}")] if colour else []
    return english, [("l'" if _elides(french) else _article(gender), f"the {name}"), (french, name), *painted]


def _example(english: Tokens, french: Tokens, facts: Mapping[str, object]) -> Example:
    stands = {name: i for i, (_, name) in enumerate(english)}
    (source, _), (target, names) = zip(*english, strict=True), zip(*french, strict=True)
    return Example(source, target, tuple(stands[name] for name in names), facts)


def _different(draw: Callable[[np.random.Generator], Example], count: int, seed: Seed) -> list[Example]:
    """So many sentences, no two alike. After many in vain the grammar holds no more of them."""
    rng, drawn, in_vain = generator(seed), {}, 0
    while len(drawn) < check_at_least_one("count", count):
        example = draw(rng)
        in_vain = in_vain + 1 if example.source in drawn else 0
        if in_vain > 1000:
            raise ValueError(
                f"count must be at most about {len(drawn)} here, all the sentences there are; got {count}"
            )
        drawn[example.source] = example
    return list(drawn.values())


def _colour(rng: np.random.Generator) -> str:
    return _one(rng, COLOURS) if rng.random() < 0.5 else ""


def _one(rng: np.random.Generator, words: Iterable[str]) -> str:
    words = tuple(words)
    return words[rng.integers(len(words))]


def _form(adjective: str, gender: str) -> str:
    return FORMS[adjective].split("/")[gender == "f"]


def _article(gender: str) -> str:
    return "le" if gender == "m" else "la"


def _elides(word: str) -> bool:
    return word[0] in "aâeéioô"
