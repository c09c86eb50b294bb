"""Reads what an answer returned into plain arrays, and compares them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

# The kinds of NumPy's dtype that an answer may have; unsigned integers count as integers.
_KINDS = {"b": "b", "i": "i", "u": "i", "f": "f", "c": "c", "U": "U"}


class UnreadableError(TypeError):
    """Something that is no number, string or array; its message says what, in words."""


@dataclass(frozen=True)
class Leaf:
    """One array of an output: its numbers, their kind, and whether it came as a torch tensor."""

    array: np.ndarray
    kind: str
    tensor: bool = False
    name: str = ""


Path = tuple[Any, ...]
Leaves = dict[Path, Leaf]


@dataclass(frozen=True)
class Rules:
    """How two readings are compared."""

    rtol: float = 1e-6
    atol: float = 1e-8
    loose: bool = False  # a typed-in value: 3 for 3.0, "b" for "B"


def read(value: Any) -> Leaves:
    """The arrays in `value`, by their place in it: `()` for an array, `(0,)` for the first of a tuple.

    Raises `UnreadableError` for a function, a set, a generator, an array of Python objects, ...

    >>> {path: leaf.array.shape for path, leaf in read((np.ones((2, 3)), 1.5)).items()}
    {(0,): (2, 3), (1,): ()}
    """
    return _read(value, (), "")


def _read(value: Any, path: Path, name: str) -> Leaves:
    if isinstance(value, dict):
        parts = [(key, repr(key), part) for key, part in value.items()]
    elif isinstance(value, tuple) or (isinstance(value, list) and not _is_array_like(value)):
        names = getattr(value, "_fields", [""] * len(value))
        parts = [(i, names[i], part) for i, part in enumerate(value)]
    else:
        return {path: _leaf(value, name)}
    reading: Leaves = {}
    for key, part_name, part in parts:
        reading |= _read(part, (*path, key), part_name)
    return reading


def _is_array_like(value: list[Any]) -> bool:
    try:
        return np.asarray(_plain(value)).dtype.kind in _KINDS
    except (TypeError, ValueError):
        return False


def _leaf(value: Any, name: str) -> Leaf:
    if value is None:
        return Leaf(np.array(None), "N", name=name)
    try:
        array = np.array(_plain(value))
    except (TypeError, ValueError) as error:
        raise UnreadableError(kind_of(value)) from error
    if array.dtype.kind not in _KINDS:
        raise UnreadableError(kind_of(value))
    return Leaf(array, _KINDS[array.dtype.kind], is_tensor(value), name)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a torch tensor; False without a look where torch was never imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _plain(value: Any) -> Any:
    """`value` with its tensors, also those in lists, as NumPy arrays."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, Fraction | Decimal):
        return float(value)
    if not is_tensor(value):
        return value
    value = value.detach().cpu().resolve_conj().resolve_neg()
    # NumPy has no bfloat16.
    return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()


def bare(value: Any) -> Any:
    """`value` made of nothing but numbers, strings, arrays and Python's own containers.

    Raises `TypeError` where it has other parts.

    >>> bare((np.float64(1.5), [None, {"a": np.ma.array([1])}]))
    (np.float64(1.5), [None, {'a': array([1])}])
    """
    if isinstance(value, tuple):
        return tuple(map(bare, value))
    if isinstance(value, list):
        return list(map(bare, value))
    if isinstance(value, dict):
        return {bare(key): bare(part) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        return np.asarray(value)
    plain = value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, Fraction, Decimal)
    if plain or isinstance(value, np.generic) or (is_tensor(value) and type(value).__module__.startswith("torch")):
        return value
    raise TypeError(kind_of(value))


def kind_of(value: Any) -> str:
    """What `value` is, with an article.

    >>> kind_of([1, 2]), kind_of(np.ones((2, 3))), kind_of("b"), kind_of(kind_of)
    ('a list', 'an array of shape (2, 3)', "the string 'b'", 'the function kind_of')
    """
    if value is None or value is Ellipsis:
        return "None" if value is None else "..."
    if is_tensor(value):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        objects = " of Python objects" if value.dtype.kind == "O" else ""
        return f"an array{objects} of shape {value.shape}"
    if isinstance(value, str):
        return f"the string {_short(repr(value))}"
    if isinstance(value, bool | int | float | complex | np.generic):
        return f"the number {value}" if not isinstance(value, bool | np.bool) else str(value)
    if callable(value) and hasattr(value, "__name__"):
        return f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def agree(expected: Leaves, got: Leaves, rules: Rules, *, strict: bool = True) -> bool:
    """Whether two outputs have the same parts, shapes, kinds and numbers.

    With `strict` a tensor must be a tensor.

    >>> agree(read([1.0, 2.0]), read(np.array([1.0, 2.0])), Rules())
    True
    >>> agree(read([1.0, 2.0]), read([1, 2]), Rules())
    False
    """
    return expected.keys() == got.keys() and all(
        leaf_agrees(leaf, got[path], rules, strict=strict) for path, leaf in expected.items()
    )


def leaf_agrees(expected: Leaf, got: Leaf, rules: Rules, *, strict: bool = True) -> bool:
    """Whether one part agrees, see `agree`."""
    return (
        expected.array.shape == got.array.shape
        and same_kind(expected, got, rules)
        and not (strict and lost_tensor(expected, got, rules))
        and bool(entries_agree(expected, got, rules).all())
    )


def same_kind(expected: Leaf, got: Leaf, rules: Rules) -> bool:
    """Whether floats came for floats, integers for integers, and so on."""
    if rules.loose and {expected.kind, got.kind} == {"i", "f"}:
        return True
    if expected.array.size == got.array.size == 0:
        return True  # an empty list has no kind
    # A count that was computed with floats is the same count.
    if (expected.kind, got.kind, expected.array.ndim) == ("i", "f", 0):
        return True
    return expected.kind == got.kind


def lost_tensor(expected: Leaf, got: Leaf, rules: Rules) -> bool:
    """Whether a torch tensor with entries was expected and something else came."""
    return expected.tensor and not got.tensor and expected.array.ndim > 0 and not rules.loose


def entries_agree(expected: Leaf, got: Leaf, rules: Rules) -> np.ndarray:
    """Which entries agree, for two leaves of one shape; NaN agrees with NaN only."""
    a, b = expected.array, got.array
    if expected.kind == "N" or got.kind == "N":
        return np.array(expected.kind == got.kind)
    if "U" in (expected.kind, got.kind):
        return _fold(a) == _fold(b) if rules.loose else np.asarray(a == b)
    if expected.kind in "bi" and got.kind in "bi":
        return np.asarray(a == b)
    wide = np.complex128 if "c" in (expected.kind, got.kind) else np.float64
    with np.errstate(all="ignore"):
        a, b = a.astype(wide), b.astype(wide)
        return np.isclose(b, a, rtol=rules.rtol, atol=rules.atol, equal_nan=True)


def _fold(strings: np.ndarray) -> np.ndarray:
    return np.strings.lower(np.strings.strip(strings.astype(str)))


def same_input(before: Any, after: Any) -> bool:
    """Whether an input is what it was. What cannot be compared counts as unchanged.

    >>> same_input([np.zeros(2), "a"], [np.zeros(2), "a"]), same_input(np.zeros(2), np.ones(2))
    (True, False)
    """
    if isinstance(before, list | tuple | dict):
        if type(before) is not type(after) or len(before) != len(after):
            return False
        if isinstance(before, dict):
            return before.keys() == after.keys() and all(same_input(before[k], after[k]) for k in before)
        return all(map(same_input, before, after))
    try:
        a, b = _leaf(before, ""), _leaf(after, "")
    except UnreadableError:
        return True
    exact = Rules(rtol=0, atol=0)
    return a.array.dtype == b.array.dtype and leaf_agrees(a, b, exact)
