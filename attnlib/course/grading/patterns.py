"""What is systematically different between two arrays of one shape: a transpose, a factor, ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.course.grading.values import Leaf, Rules
from attnlib.course.grading.words import number, place

Same = Callable[[np.ndarray, np.ndarray], bool]


def pattern(expected: Leaf, got: Leaf, rules: Rules) -> str:
    """A sentence about how `got` differs from `expected`, "" where nothing is found.

    >>> from attnlib.course.grading.values import read
    >>> one, two = read([[0.0, 1.0], [2.0, 3.0]])[()], read([[0.0, 2.0], [4.0, 6.0]])[()]
    >>> pattern(one, two, Rules())
    'Every entry is 2 times what is expected.'
    """
    if expected.kind == "b" and got.kind == "b":
        inverted = np.array_equal(expected.array, ~got.array)
        return "Every entry is the opposite of what is expected." if inverted else ""
    if expected.kind not in "if" or got.kind not in "if" or got.array.size < 2:
        return ""
    e, g = expected.array.astype(float), got.array.astype(float)
    if not (np.isfinite(e).all() and np.isfinite(g).all()):
        return ""

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        return a.shape == b.shape and np.allclose(a, b, rtol=rules.rtol, atol=rules.atol)

    sums = [_sums] if expected.kind == "f" else []  # places and counts may sum to one by chance
    findings = (find(e, g, same) for find in (_zeros, _order, _factor, _shift, _shuffled, _nearly, *sums))
    return next((words for words in findings if words), "")


def _zeros(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    return "Every entry is 0." if not g.any() else ""


def _order(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    if g.ndim >= 2 and same(np.swapaxes(g, -1, -2), e):
        return "It is the transpose of what is expected: rows and columns are exchanged."
    if len(np.unique(e)) <= 2:  # they may be in reverse order by chance
        return ""
    for axis in range(g.ndim):
        if same(np.flip(g, axis), e):
            return f"The numbers are right, in reverse order along axis {axis}."
    return ""


def _factor(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    if not e.any() or np.ptp(e) == 0:
        return ""
    largest = np.unravel_index(np.argmax(np.abs(e)), e.shape)
    factor = g[largest] / e[largest]
    if not same(factor * e, g):
        return ""
    if same(-e, g):
        return "Every entry has the opposite sign of what is expected."
    return f"Every entry is {number(factor)} times what is expected."


def _shift(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    shift = float((g - e).mean())
    if np.ptp(e) == 0 or not same(e + shift, g):
        return ""
    return f"Every entry is {number(abs(shift))} too {'large' if shift > 0 else 'small'}."


def _sums(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    """Weights that do not sum to one where they should."""
    rows = np.asarray(g.sum(-1))
    if not np.allclose(e.sum(-1), 1, atol=1e-5) or np.allclose(rows, 1, atol=1e-5):
        return ""
    if g.ndim == 1:
        return f"The entries should sum to 1. Yours sum to {number(rows)}."
    if np.allclose(g.sum(-2), 1, atol=1e-5):
        return "Your entries sum to 1 down each column. They should sum to 1 along each row."
    if np.isclose(g.sum(), 1, atol=1e-5):
        return "All your entries together sum to 1. Each row should sum to 1 by itself."
    first = np.argwhere(~np.isclose(rows, 1, atol=1e-5))[0]
    return f"Each row should sum to 1. Your row {place(first)} sums to {number(rows[tuple(first)])}."


def _shuffled(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    if same(np.sort(g, axis=None), np.sort(e, axis=None)):
        return "The numbers are right, in a different order."
    return ""


def _nearly(e: np.ndarray, g: np.ndarray, same: Same) -> str:
    gap = float(np.abs(g - e).max())
    if gap > 1e-3 * np.abs(e).max():
        return ""
    return f"It is close: no entry is off by more than {gap:.1g}. Is something rounded, or a small number added?"
