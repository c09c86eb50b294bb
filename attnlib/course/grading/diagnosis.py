"""Says in words how a wrong output differs from the expected one. It never decides what is right."""

from __future__ import annotations

import numpy as np

from attnlib.course.grading.patterns import pattern
from attnlib.course.grading.values import (
    Leaf,
    Leaves,
    Path,
    Rules,
    entries_agree,
    leaf_agrees,
    lost_tensor,
    same_kind,
)
from attnlib.course.grading.words import KINDS, count_of, number, pair, place, shape_of


def describe(expected: Leaves, got: Leaves, rules: Rules) -> str:
    """The first difference between two outputs that do not agree.

    A typed-in value (`rules.loose`) is not told the number that is expected.

    >>> from attnlib.course.grading.values import read
    >>> describe(read(np.array([1.0, 2.0, 4.0])), read(np.array([1.0, 2.5, 4.0])), Rules())
    'At [1] yours is 2.5, expected 2; 1 of 3 entries differs.'
    """
    if expected.keys() != got.keys():
        return _structure(expected, got, rules)
    for path, leaf in expected.items():
        if not leaf_agrees(leaf, got[path], rules):
            part = _part(path, leaf)
            words = (_typed_in if rules.loose else _leaf)(leaf, got[path], rules)
            return f"{part}: {words}" if part else words
    return "Your answer differs from what is expected."


def _part(path: Path, leaf: Leaf) -> str:
    if not path:
        return ""
    key = path[-1]
    name = f"Part {key + 1}" if isinstance(key, int) else f"Entry {key!r}"
    return f"{name} ({leaf.name})" if leaf.name and isinstance(key, int) else name


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _structure(expected: Leaves, got: Leaves, rules: Rules) -> str:
    wanted, came = form(expected), form(got)
    if got.keys() == {()} and got[()].kind == "N":
        return f"None came, {wanted} was expected. Did you forget `return`?"
    if wanted == came:
        return f"The parts of what came are named {_keys(got)}, expected {_keys(expected)}."
    words = f"{_capital(came)} came, {wanted} was expected."
    if expected.keys() == {()}:
        for path, leaf in got.items():
            if leaf_agrees(expected[()], leaf, rules):
                return f"{words} {_part(path, leaf)} is right: return only that."
    return words


def form(reading: Leaves) -> str:
    """What an output is made of, with an article.

    >>> from attnlib.course.grading.values import read
    >>> form(read(np.ones((2, 3)))), form(read((1, 2)))
    ('an array of shape (2, 3)', 'a tuple or list of 2 parts')
    """
    if reading.keys() == {()}:
        leaf = reading[()]
        if leaf.kind in "NU" and not leaf.array.ndim:
            return "None" if leaf.kind == "N" else f"the string {number(leaf.array)}"
        return f"an array of {shape_of(leaf)}" if leaf.array.ndim else "a single number"
    firsts = {path[0] for path in reading}
    what = "a tuple or list" if all(isinstance(key, int) for key in firsts) else "a dictionary"
    return f"{what} of {len(firsts)} {'part' if len(firsts) == 1 else 'parts'}"


def _keys(reading: Leaves) -> str:
    return ", ".join(repr(key) for key in dict.fromkeys(path[0] for path in reading))


def _leaf(expected: Leaf, got: Leaf, rules: Rules) -> str:
    if got.kind == "N":
        return "None came. Did you forget `return`?"
    if expected.kind == "N":
        return f"{_capital(form({(): got}))} came, None was expected."
    if expected.array.shape != got.array.shape:
        return _shape(expected, got, rules)
    if not same_kind(expected, got, rules):
        return _kind(expected, got, rules)
    if entries_agree(expected, got, rules).all() and lost_tensor(expected, got, rules):
        return (
            "The numbers are right, but they came as a NumPy array or a list. A torch tensor is expected, "
            "so that gradients can flow through it."
        )
    words = _not_finite(expected, got) or pattern(expected, got, rules)
    return f"{words} {_entries(expected, got, rules)}".strip()


def _shape(expected: Leaf, got: Leaf, rules: Rules) -> str:
    e, g = expected.array, got.array
    words = f"{_capital(form({(): got}))} came, {shape_of(expected)} was expected."
    same_numbers = e.size == g.size and _reshaped_agrees(expected, got, rules)
    if g.ndim >= 2 and (*g.shape[:-2], g.shape[-1], g.shape[-2]) == e.shape:
        turned = Leaf(np.swapaxes(g, -1, -2), got.kind, got.tensor)
        if entries_agree(expected, turned, rules).all():
            return f"{words} It is the transpose of what is expected."
        return f"{words} Are rows and columns exchanged?"
    if same_numbers:
        return f"{words} The numbers are right; only the shape is not."
    if g.ndim == e.ndim - 1 and g.size:
        return f"{words} One axis is missing. Did you take one sum or mean too many, or leave out `keepdims`?"
    if g.ndim == e.ndim + 1:
        return f"{words} There is one axis too many. Is a sum or mean missing?"
    return words


def _reshaped_agrees(expected: Leaf, got: Leaf, rules: Rules) -> bool:
    flat = Leaf(got.array.reshape(expected.array.shape), got.kind, got.tensor)
    return bool(entries_agree(expected, flat, rules).all())


def _kind(expected: Leaf, got: Leaf, rules: Rules) -> str:
    one = expected.array.ndim == 0
    what = _capital(form({(): got})) if got.kind == "U" else number(got.array) if one else ""
    came = f"{what} came" if one else f"Your entries are {KINDS[got.kind]} ({got.array.dtype})"
    wanted = {"U": "a string", "b": "True or False"}.get(expected.kind, "a number") if one else ""
    words = f"{came}, expected {wanted or KINDS[expected.kind]}."
    if (expected.kind, got.kind) != ("f", "i"):
        return words
    words = f"{came}, expected {'a float' if one else 'floats'}."
    if entries_agree(expected, got, rules).all():
        return f"{words} The numbers are right."
    return f"{words} An integer{'' if one else ' array'} drops what comes after the decimal point."


def _not_finite(expected: Leaf, got: Leaf) -> str:
    if got.kind not in "fc" or expected.kind not in "ifc":
        return ""
    bad = ~np.isfinite(got.array) & np.isfinite(expected.array)
    if not bad.any():
        return ""
    values = got.array[bad]
    what = "infinite" if np.isinf(values).all() else "nan" if np.isnan(values).all() else "nan or infinite"
    if bad.all():
        return f"Every entry is {what}." if bad.ndim else ""
    count = int(bad.sum())
    return f"{count:,} of {bad.size:,} entries {'is' if count == 1 else 'are'} {what}."


def _entries(expected: Leaf, got: Leaf, rules: Rules) -> str:
    wrong = ~entries_agree(expected, got, rules)
    first = tuple(np.argwhere(wrong)[0])
    yours, ours = pair(got.array[first], expected.array[first])
    if not first:
        return f"Yours is {yours}, expected {ours}."
    return f"At {place(first)} yours is {yours}, expected {ours}; {count_of(int(wrong.sum()), wrong.size)}."


def _typed_in(expected: Leaf, got: Leaf, rules: Rules) -> str:
    """As `_leaf`, without giving the answer away."""
    if expected.array.shape != got.array.shape:
        return f"{_capital(form({(): got}))} came, {shape_of(expected)} was expected."
    if not same_kind(expected, got, rules):
        return _kind(expected, got, rules)
    wrong = ~entries_agree(expected, got, rules)
    first = tuple(np.argwhere(wrong)[0])
    yours = f"{number(got.array[first])} is {_how_far(expected.array[first], got.array[first])}."
    if not first:
        return yours
    return f"{count_of(int(wrong.sum()), wrong.size).capitalize()}. At {place(first)}, {yours}"


def _how_far(expected: np.generic, got: np.generic) -> str:
    """So much that a slip is seen, and too little to find the number by halving."""
    if got.dtype.kind not in "iuf" or not (np.isfinite(got) and np.isfinite(expected)):
        return "not it"
    if got * expected < 0:
        return "not it, and its sign is wrong"
    if abs(got) > 2 * abs(expected):
        return "more than twice what it should be"
    return "less than half of what it should be" if abs(got) < abs(expected) / 2 else "not it, though not far off"
