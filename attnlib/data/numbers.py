"""German and English number words, in morphemes, with the known alignment: the data of lesson 12."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from attnlib._base.checks import check_at_least_one, check_one_of, check_size
from attnlib._base.needs import needs
from attnlib._base.seeds import Seed, generator
from attnlib.data.examples import Example

__all__ = ["LARGEST", "draw_numbers", "english", "german", "number"]

LARGEST = 999_999

_UNITS = (
    "ein eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
)
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_MORPHEMES = f"{_UNITS} {_TENS} achtzehn neunzehn null hundert tausend und".split()
_GERMAN = re.compile("|".join(sorted(_MORPHEMES, key=len, reverse=True)))  # the longest that fits: siebzehn, not sieb
_IS_TENS = {*_TENS.split(), *["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]}
_IS_HUNDRED, _IS_THOUSAND = {"hundert", "hundred"}, {"tausend", "thousand"}


def german(n: int) -> list[str]:
    """The morphemes of a number: units stand before tens.

    `num2words` writes *einhunderteinstausend*; the s is left out here, as German does before *tausend*.

    Raises ``TypeError`` when ``n`` is not an integer, ``ValueError`` when it is not from 0 to 999,999.

    >>> german(121_021)
    ['ein', 'hundert', 'ein', 'und', 'zwanzig', 'tausend', 'ein', 'und', 'zwanzig']
    """
    return _GERMAN.findall(_written(n, "de").replace("einstausend", "eintausend"))


def english(n: int) -> list[str]:
    """The words of a number, without the *and* and the commas that `num2words` writes: *one hundred twenty one*.

    Raises as `german`.

    >>> english(121_021)
    ['one', 'hundred', 'twenty', 'one', 'thousand', 'twenty', 'one']
    """
    return [word for word in re.findall("[a-z]+", _written(n, "en")) if word != "and"]


def number(n: int) -> Example:
    """``n`` in both languages. The alignment says which German morpheme each English word translates.

    Raises as `german`.

    >>> number(21).source, number(21).target, number(21).alignment
    (('ein', 'und', 'zwanzig'), ('twenty', 'one'), (2, 0))
    """
    source, target = german(n), english(n)
    stands = {role: i for i, role in enumerate(_roles(source))}
    return Example(tuple(source), tuple(target), tuple(stands[role] for role in _roles(target)), {"number": int(n)})


def draw_numbers(count: int, *, seed: Seed, draw: str = "mixed") -> list[int]:
    """Numbers below a million; the same one may come again.

    With ``draw="uniform"`` all are equally likely: nine of ten have six digits, and one in a hundred ends with two
    zeros. With "short" the number of digits is drawn first, six of them six times as often as one. With "round" every
    digit but the first is a zero three times in ten. "mixed" is both: short and round numbers come often, as they do
    in life.

    Raises ``ValueError`` when ``draw`` is another word.

    >>> draw_numbers(4, seed=0), draw_numbers(4, seed=0, draw="uniform")
    ([80638, 29013, 983117, 31], [522157, 889738, 992948, 557138])
    """
    check_one_of("draw", draw, _DRAWS)
    return _DRAWS[draw](generator(seed), check_at_least_one("count", count)).tolist()


def _uniform(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(LARGEST + 1, size=count)


def _by_digits(rng: np.random.Generator, count: int, lengths: Sequence[float], zeros: float) -> np.ndarray:
    """Numbers of six digits, five, ..., one in these proportions; after its first, a digit is 0 with ``zeros``."""
    digits = rng.integers(1, 10, size=(count, 6)) * (rng.random((count, 6)) < 1 - zeros)
    first = rng.choice(6, p=np.asarray(lengths) / sum(lengths), size=count)  # before the first digit stands nothing
    digits[np.arange(6) < first[:, None]] = 0
    digits[np.arange(count), first] = np.where(
        first == 5, rng.integers(10, size=count), rng.integers(1, 10, size=count)
    )
    return digits @ 10 ** np.arange(5, -1, -1)


_SHORT, _AS_MANY = (6, 5, 4, 3, 2, 1), (900_000, 90_000, 9_000, 900, 90, 10)  # how many there are of each length
_DRAWS = {
    "uniform": _uniform,
    "short": partial(_by_digits, lengths=_SHORT, zeros=0.1),
    "round": partial(_by_digits, lengths=_AS_MANY, zeros=0.3),
    "mixed": partial(_by_digits, lengths=_SHORT, zeros=0.3),
}


def _roles(words: list[str]) -> list[str]:
    """What each word stands for, in both languages alike: of the thousands or the ones; hundreds, tens or the rest."""
    thousand = next((i for i, word in enumerate(words) if word in _IS_THOUSAND), -1)
    roles = []
    for i, word in enumerate(words):
        part = "thousands" if i < thousand else "ones"
        if word in _IS_THOUSAND:
            roles.append("thousand")
        elif word in _IS_HUNDRED:
            roles.append(f"hundred of the {part}")
        elif words[i + 1 : i + 2] and words[i + 1] in _IS_HUNDRED:
            roles.append(f"how many hundred {part}")
        else:
            kind = "tens" if word in _IS_TENS else "und" if word == "und" else "rest"
            roles.append(f"{kind} of the {part}")
    return roles


def _written(n: int, language: str) -> str:
    needs("num2words", extra="course")
    from num2words import num2words  # here, since it loads sixty languages

    if check_size("n", n) > LARGEST:
        raise ValueError(f"n must be from 0 to {LARGEST}; got {n}")
    return num2words(int(n), lang=language)
