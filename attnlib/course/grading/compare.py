"""Compares what an answer gave with what the reference and the misconceptions give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.course.grading.diagnosis import describe, form
from attnlib.course.grading.trial import Outcome, outcomes
from attnlib.course.grading.values import Rules, agree


def expected(exercise: Exercise, cases: Sequence[tuple[Any, ...]]) -> list[Outcome]:
    """What the reference gives.

    Raises `RuntimeError` where the reference raises, or returns what cannot be compared.
    """
    with _quiet():
        wanted = list(outcomes(exercise.reference, cases, exercise.adapt))
    for outcome in wanted:
        if outcome.failure:
            raise RuntimeError(f"reference of {exercise.id} raised {outcome.failure}")
        if outcome.unreadable and exercise.compare is None:
            raise RuntimeError(f"reference of {exercise.id} returned {outcome.unreadable}; give `adapt` or `compare`")
    return wanted


def known_mistake(
    exercise: Exercise, cases: Sequence[tuple[Any, ...]], came: Sequence[Outcome]
) -> Misconception | None:
    """The misconception that gives the same on every case.

    One that raises must raise the same, and give numbers on at least one case: an exception alone has
    too many causes.
    """
    for misconception in exercise.misconceptions:
        with _quiet():
            gives = list(outcomes(misconception.function, cases, exercise.adapt))
        if all(outcome.failure for outcome in gives) or len(gives) != len(came):
            continue
        if all(map(lambda a, b: _mistake_agrees(exercise, a, b), gives, came)):
            return misconception
    return None


def _mistake_agrees(exercise: Exercise, gives: Outcome, came: Outcome) -> bool:
    if gives.failure and came.failure:
        return (gives.failure.type, gives.failure.text) == (came.failure.type, came.failure.text)
    return is_right(exercise, gives, came, strict=False)


def is_right(exercise: Exercise, wanted: Outcome, came: Outcome, *, strict: bool = True) -> bool:
    """Whether one call gave what was wanted."""
    if wanted.failure or came.failure:
        return False
    if exercise.compare is not None:
        return _own_comparison(exercise, wanted, came) is True
    if wanted.reading is None or came.reading is None:
        return False
    return agree(wanted.reading, came.reading, rules_of(exercise), strict=strict)


def _own_comparison(exercise: Exercise, wanted: Outcome, came: Outcome) -> bool | str:
    """What the exercise's own `compare` says, or the sentence that `adapt` found instead of an answer."""
    assert exercise.compare is not None
    if exercise.adapt is not None and isinstance(came.output, str):
        return came.output
    try:
        with _quiet():
            verdict = exercise.compare(wanted.output, came.output)
        return verdict if isinstance(verdict, str) else bool(verdict)
    except Exception:  # of an output that `compare` was not made for
        return False


def difference(exercise: Exercise, wanted: Outcome, came: Outcome) -> str:
    """Words for one call that gave something wrong."""
    own = _own_comparison(exercise, wanted, came) if exercise.compare is not None else False
    if isinstance(own, str) and own:
        return own
    if wanted.reading is not None and came.reading is not None:
        if not agree(wanted.reading, came.reading, rules_of(exercise)):
            with _quiet():
                return describe(wanted.reading, came.reading, rules_of(exercise))
    elif wanted.reading is not None:
        call = " Did you forget to call it?" if came.uncalled else ""
        came_words = came.unreadable[0].upper() + came.unreadable[1:]
        return f"{came_words} came, {form(wanted.reading)} was expected.{call}"
    return "Your answer does not match what is expected."


def rules_of(exercise: Exercise) -> Rules:
    """The tolerance of an exercise; a value that was typed in is compared more loosely."""
    return Rules(*exercise.tolerance, loose=exercise.asks_for_value)


@contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
