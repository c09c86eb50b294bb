"""Grades an answer: finds out which of the things that can happen did, and the words for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import compare, messages
from attnlib.course.grading.runs import Run
from attnlib.course.grading.sandbox import run
from attnlib.course.grading.shrink import smallest
from attnlib.course.grading.stub import is_stub
from attnlib.course.grading.trial import Outcome, make_cases, outcomes, received, reference_runs, sent_calls

Kind = Literal["right", "not attempted", "misconception", "wrong", "raised", "changed inputs", "wrong type", "stopped"]


@dataclass(frozen=True)
class Verdict:
    """What `grade` found: its kind, the learner's message, and the name of the misconception if it is one."""

    kind: Kind
    message: str
    misconception: str | None = None


def grade(exercise: Exercise, answer: Any) -> Verdict:
    """Judge an answer without printing anything.

    >>> from attnlib.course.grading import Misconception
    >>> square = Misconception("square", lambda x: x * x, "You squared it. Double means times 2.")
    >>> exercise = Exercise(id="01.1", title="Double", reference=lambda x: 2 * x, hints=("", "", ""),
    ...                     cases=lambda rng: [(1.5,), (2.0,)], misconceptions=[square])
    >>> grade(exercise, lambda x: x + x).kind
    'right'
    >>> grade(exercise, lambda x: x**2).message
    '01.1 not yet. You squared it. Double means times 2.'
    """
    if is_stub(answer):
        return Verdict("not attempted", messages.not_attempted(exercise))
    if problem := messages.wrong_sort(exercise, answer):
        return Verdict("wrong type", problem)
    cases = make_cases(exercise)
    function = (lambda: answer) if exercise.asks_for_value else answer
    if problem := messages.wrong_arguments(exercise, function, cases):
        return Verdict("wrong type", problem)
    wanted = compare.expected(exercise, cases)  # before the answer runs, which may leave NumPy altered
    seconds = float(os.environ.get("ATTNLIB_CHECK_SECONDS") or exercise.seconds)
    trial = _try(exercise, function, cases, seconds)
    if trial.went.end == "gone":
        return Verdict("stopped", messages.gone(exercise, cases, _reached(trial), trial.went))
    if trial.went.end != "finished":
        return Verdict("stopped", messages.stopped(exercise, cases, _reached(trial), seconds, trial.went))
    return _judge(trial, wanted)


@dataclass(frozen=True)
class _Trial:
    """An answer's outcomes, and how the run went as a whole."""

    exercise: Exercise
    function: Callable[..., Any]
    cases: list[tuple[Any, ...]]
    came: list[Outcome]
    went: Run


def _try(exercise: Exercise, function: Callable[..., Any], cases: list[tuple[Any, ...]], seconds: float) -> _Trial:
    if exercise.asks_for_value:
        went = run(lambda: outcomes(function, cases, exercise.adapt), seconds)
        came = went.results
    else:
        went = run(
            lambda: sent_calls(function, cases, exercise.adapt),
            seconds,
            rehearsal=lambda: reference_runs(exercise, cases),
        )
        came = received(cases, went.results, exercise.adapt)
    if went.fault:  # ours or the exercise's: the learner's are outcomes
        raise went.fault
    return _Trial(exercise, function, cases, came, went)


def _reached(trial: _Trial) -> int:
    """The case that an answer was at; the SystemExit that stopped it there is an outcome too."""
    done = sum(outcome.failure is None or outcome.failure.type != "SystemExit" for outcome in trial.came)
    return min(done, len(trial.cases) - 1)


def _judge(trial: _Trial, wanted: list[Outcome]) -> Verdict:
    exercise, cases, came, went = trial.exercise, trial.cases, trial.came, trial.went
    pairs = zip(wanted, came, strict=False)  # an answer that exits leaves cases out
    wrong = next((i for i, (w, c) in enumerate(pairs) if not compare.is_right(exercise, w, c)), None)
    changed = next((outcome.changed for outcome in came if outcome.changed), ())
    if wrong is None and len(came) == len(wanted) and not changed:
        return Verdict("right", messages.right(exercise, len(cases), went))
    if not came or (wrong is None and not changed):  # it ended before all cases were tried
        return Verdict("stopped", messages.no_outcome(exercise, went))
    if _unwritten(came[0]):
        return Verdict("not attempted", messages.not_attempted(exercise))
    if wrong is not None and (known := compare.known_mistake(exercise, cases, came)):
        return Verdict("misconception", messages.known(exercise, known.words, went), known.name)
    if changed:
        return Verdict("changed inputs", messages.changed(exercise, changed, wrong is None, went))
    if failure := came[wrong].failure:
        return Verdict("raised", messages.raised(exercise, cases, wrong, failure, went))
    words = compare.difference(exercise, wanted[wrong], came[wrong])
    small = "" if exercise.asks_for_value else smallest(exercise, trial.function, cases[wrong])
    return Verdict("wrong", messages.wrong(exercise, cases, wrong, f"{words}\n{small}".rstrip(), went))


def _unwritten(outcome: Outcome) -> bool:
    """Whether a call met a `...` or a NotImplementedError that was left to be replaced."""
    if failure := outcome.failure:
        return failure.type == "NotImplementedError" or (failure.type == "TypeError" and "ellipsis" in failure.text)
    return outcome.output is Ellipsis
