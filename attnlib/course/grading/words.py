"""Small pieces of messages: inputs, places, pairs of numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlib.course.grading.values import Leaf, is_tensor, kind_of, read

KINDS = {
    "b": "True and False",
    "i": "integers",
    "f": "floats",
    "c": "complex numbers",
    "U": "strings",
    "N": "None",
}


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first `count` arguments of `function`, as far as it tells.

    >>> argument_names(lambda q, k: q @ k, 2)
    ['q', 'k']
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = []  # some built-in functions do not tell
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else f"argument {i + 1}" for i in range(count)]


def inputs_in_words(names: Sequence[str], inputs: Sequence[Any]) -> str:
    """The inputs of one call: arrays by their shape, the rest by value.

    >>> inputs_in_words(["q", "h"], [np.ones((2, 3)), 0.5])
    'q of shape (2, 3), h = 0.5'
    """
    return ", ".join(f"{name} {_input(value)}" for name, value in zip(names, inputs, strict=True))


def _input(value: Any) -> str:
    if isinstance(value, np.ndarray) or is_tensor(value):
        small = value.ndim == 1 and 0 < len(value) <= 4
        return f"= {brief(read(value)[()].array)}" if small else f"of shape {tuple(value.shape)}"
    if isinstance(value, float | np.generic):
        return f"= {number(value)}"
    if isinstance(value, str | int | list | tuple | dict) or value is None:
        text = repr(value)
        return f"= {text}" if len(text) <= 40 and "\n" not in text else f"({kind_of(value)})"
    return f"({kind_of(value)})"


def brief(array: np.ndarray) -> str:
    """A short array on one line.

    >>> brief(np.array([0.123456, 2]))
    '[0.1235, 2]'
    """
    return "[" + ", ".join(number(entry) for entry in array) + "]"


def pair(a: Any, b: Any) -> tuple[str, str]:
    """Two different numbers, with as few digits as tell them apart.

    >>> pair(0.3333333, 0.25), pair(0.3333333, 0.3333339)
    (('0.3333', '0.25'), ('0.333333', '0.333334'))
    """
    for digits in range(4, 18):
        texts = number(a, digits), number(b, digits)
        if texts[0] != texts[1]:
            return texts
    return number(a), number(b)


def number(value: Any, digits: int = 4) -> str:
    """One entry of an array, rounded.

    >>> number(0.123456), number(np.True_), number(np.str_("b"))
    ('0.1235', 'True', "'b'")
    """
    value = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return f"{value:.{digits}g}" if isinstance(value, float | complex) else repr(value)


def place(index: Sequence[int]) -> str:
    """Where an entry stands.

    >>> place((np.int64(0), np.int64(2)))
    '[0, 2]'
    """
    return str([int(i) for i in index])


def shape_of(leaf: Leaf) -> str:
    """A single number, or an array with its shape."""
    return f"shape {leaf.array.shape}" if leaf.array.ndim else "a single number"


def count_of(part: int, whole: int, what: str = "entries") -> str:
    """How many of how many.

    >>> count_of(3, 12), count_of(2, 2), count_of(1, 12)
    ('3 of 12 entries differ', 'all 2 entries differ', '1 of 12 entries differs')
    """
    if part == whole:
        return f"all {whole:,} {what} differ"
    return f"{part:,} of {whole:,} {what} differ{'s' if part == 1 else ''}"
