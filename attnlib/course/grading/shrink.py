"""Makes the input on which an answer is wrong small: the fewest rows and columns, and round numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading.compare import is_right
from attnlib.course.grading.sandbox import run
from attnlib.course.grading.trial import outcomes, reference_runs
from attnlib.course.grading.values import Leaves
from attnlib.course.grading.words import argument_names

_SECONDS = 1.0
_NUMBERS = 16  # more than these nobody reads

Case = tuple[Any, ...]


def smallest(exercise: Exercise, function: Callable[..., Any], case: Case) -> str:
    """A sentence with the smallest input found on which the answer is still wrong; "" where none is small enough.

    >>> exercise = Exercise(id="01.1", title="Sums", reference=lambda x: x.sum(axis=1), hints=("", "", ""),
    ...                     cases=lambda rng: [(rng.normal(size=(5, 4)),)], misconceptions=[])
    >>> smallest(exercise, lambda x: x.sum(axis=1) + 1, (np.ones((5, 4)),))
    'The smallest input found on which your answer is wrong: x = [[1]]. Yours is [2], expected [1].'
    """
    if any(callable(x) for x in case) or not any(isinstance(x, np.ndarray) for x in case):
        return ""
    went = run(lambda: _shrunk(exercise, function, case), _SECONDS, rehearsal=lambda: reference_runs(exercise, [case]))
    if not went.results:
        return ""
    small, wanted, came = went.results[-1]
    if sum(x.size if isinstance(x, np.ndarray) else 1 for x in small) > _NUMBERS:
        return ""
    names = argument_names(exercise.reference, len(small))
    given = ", ".join(f"{name} = {_written(x)}" for name, x in zip(names, small, strict=True))
    said = f"The smallest input found on which your answer is wrong: {given}."
    both = [_array(reading) for reading in (came, wanted)]
    if any(array is None or array.size > _NUMBERS for array in both):
        return said
    return f"{said} Yours is {_written(both[0])}, expected {_written(both[1])}."


def _array(reading: Leaves | None) -> np.ndarray | None:
    """What came, where that is one array or number."""
    return reading[()].array if reading and reading.keys() == {()} else None


def _shrunk(
    exercise: Exercise, function: Callable[..., Any], case: Case
) -> Iterator[tuple[Case, Leaves | None, Leaves | None]]:
    """Smaller and smaller ones, as long as the answer is wrong on them."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _cut(case):
            if _is_alike(candidate, case) and (both := _differ(exercise, function, candidate)):
                yield candidate, *both
                case, smaller = candidate, True
                break
    for digits in (1, 0):
        candidate = tuple(np.round(x, digits) + 0.0 if _is_float(x) else x for x in case)
        if _is_alike(candidate, case) and (both := _differ(exercise, function, candidate)):
            yield candidate, *both


def _is_alike(candidate: Case, case: Case) -> bool:
    """Is what was promised of the numbers still so: that they are positive, that rows sum to one?"""
    pairs = [(x, y) for x, y in zip(candidate, case, strict=True) if _is_float(y)]
    return all(holds(x) for x, y in pairs for holds in (_is_positive, _sums_to_one) if holds(y))


def _is_positive(x: np.ndarray) -> bool:
    return bool((x > 0).all())


def _sums_to_one(x: np.ndarray) -> bool:
    return x.ndim > 0 and np.allclose(x.sum(-1), 1)


def _cut(case: Case) -> Iterator[Case]:
    """All axes of one length cut by one, the longest first: what belongs together stays of one length."""
    lengths = {n for x in case if isinstance(x, np.ndarray) for n in x.shape if n > 1}
    for length in sorted(lengths, reverse=True):
        yield tuple(
            x[tuple(slice(n - 1 if n == length else n) for n in x.shape)] if isinstance(x, np.ndarray) else x
            for x in case
        )


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _differ(
    exercise: Exercise, function: Callable[..., Any], case: Case
) -> tuple[Leaves | None, Leaves | None] | None:
    """What is expected on this input and what comes, where the answer is wrong there."""
    with np.errstate(all="ignore"):
        wanted = next(outcomes(exercise.reference, [case], exercise.adapt))
        came = next(outcomes(function, [case], exercise.adapt))
    if wanted.failure or wanted.unreadable or came.failure or is_right(exercise, wanted, came):
        return None
    if any(leaf.kind == "f" and np.isnan(leaf.array).any() for leaf in (wanted.reading or {}).values()):
        return None  # there is no answer to this input
    return wanted.reading, came.reading


def _written(x: Any) -> str:
    """Numbers on one line, four digits of each."""
    if isinstance(x, np.ndarray):
        text = np.array2string(x, formatter={"float_kind": lambda v: f"{v + 0.0:.4g}"}, separator=", ")  # no -0
        return text.replace("\n", "")
    return f"{x + 0.0:.4g}" if isinstance(x, float) else repr(x)
