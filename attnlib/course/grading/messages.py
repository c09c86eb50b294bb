"""The messages of `check`, one function for each thing that can happen."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Sequence
from typing import Any

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading.runs import Run
from attnlib.course.grading.trial import Failure
from attnlib.course.grading.values import kind_of
from attnlib.course.grading.words import argument_names, inputs_in_words

Cases = Sequence[tuple[Any, ...]]


def not_attempted(exercise: Exercise) -> str:
    """Nothing was written yet."""
    return f"{exercise.id} not attempted yet."


def right(exercise: Exercise, count: int, went: Run) -> str:
    """The answer is right."""
    if exercise.asks_for_value:
        return f"{exercise.id} right."
    inputs = f"all {count} inputs" if count > 1 else "the input"
    does = "does what is asked" if exercise.compare else "agrees with ours"
    return _with_prints(f"{exercise.id} right. Your function {does} on {inputs}.", went)


def known(exercise: Exercise, words: str, went: Run) -> str:
    """The answer is a misconception that has words of its own."""
    return _with_prints(_not_yet(exercise, words), went)


def wrong(exercise: Exercise, cases: Cases, i: int, words: str, went: Run) -> str:
    """The answer is wrong on case `i` in a way that nobody foresaw."""
    if exercise.asks_for_value:
        return _not_yet(exercise, words)
    before = {0: "", 1: "Right on the first input. "}.get(i, f"Right on the first {i} inputs. ")
    message = _not_yet(exercise, f"{before}O{_where(exercise, cases, i)[1:]}: {words}")
    return _with_prints(message, went, warned=True)


def raised(exercise: Exercise, cases: Cases, i: int, failure: Failure, went: Run) -> str:
    """The answer raised on case `i`."""
    if failure.type == "SystemExit":
        return _with_prints(_not_yet(exercise, "Your function called exit. Return the result instead."), went)
    words = f"Your function raised an exception {_where(exercise, cases, i)}."
    if failure.type == "RecursionError":
        words += " A function in it calls itself without end."
    if failure.line:
        words += f"\n  line {failure.line}: {failure.source}".rstrip(" :")
    message = _not_yet(exercise, f"{words}\n  {failure.type}: {failure.text}".rstrip(" :"))
    return _with_prints(message, went, warned=True)


def changed(exercise: Exercise, inputs: Sequence[int], numbers_right: bool, went: Run) -> str:
    """The answer wrote into its inputs."""
    names = argument_names(exercise.reference, max(inputs) + 1)
    name = names[inputs[0]]
    words = (
        f"Your function changes its input {' and '.join(names[i] for i in inputs)} in place, so whoever "
        f"calls it finds other numbers there afterwards. Make a new array ({name} = {name} / 2 does, "
        f"{name} /= 2 does not) or work on a copy. "
    )
    words += "What it returns is right." if numbers_right else "What it returns is not right yet either."
    return _with_prints(_not_yet(exercise, words), went)


def stopped(exercise: Exercise, cases: Cases, i: int, seconds: float, went: Run) -> str:
    """The answer ran for too long, or the reader stopped it."""
    if went.end == "interrupted":
        words = f"{exercise.id} stopped, as you asked. Nothing was checked."
    else:
        units = "second" if seconds == 1 else "seconds"
        words = (
            f"{exercise.id} stopped. After {seconds:g} {units} your function was still running, "
            f"{_where(exercise, cases, i)}. Is there a loop in it that never ends?"
        )
    if went.survives:
        words += (
            " Your function could not be stopped and still runs in the background: "
            "restart the kernel (Kernel, Restart) before you go on."
        )
    return _with_prints(words, went)


def gone(exercise: Exercise, cases: Cases, i: int, went: Run) -> str:
    """The answer ended the process that it ran in; your notebook has another."""
    code, where = went.code, _where(exercise, cases, i)
    if code is None or code >= 0:
        words = f"Your function ended Python {where}, as os._exit does. Return the result instead."
    else:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        words = f"Python was ended by {name} in your function, {where}."
        if name == "SIGKILL":
            words += " Does it ask for more memory than there is?"
        if name in ("SIGSEGV", "SIGBUS"):
            words += " Does it call itself too often, or write to memory that is not its own?"
    return f"{exercise.id} stopped. {words} Your notebook goes on."


def no_outcome(exercise: Exercise, went: Run) -> str:
    """The answer left nothing to judge, not even an exception that can be shown."""
    words = f"{exercise.id} stopped. Your function ended without an answer and without an error that can be shown."
    return _with_prints(words, went)


def wrong_sort(exercise: Exercise, answer: Any) -> str:
    """A value came for a function or a function for a value; "" where neither did."""
    if exercise.asks_for_value and callable(answer):
        return f"{exercise.id} asks for a value, and {kind_of(answer)} came. Give what it returns."
    if not exercise.asks_for_value and not callable(answer):
        return (
            f"{exercise.id} asks for a function, and {kind_of(answer)} came. Give the function itself, "
            f'without calling it: check("{exercise.id}", f), not check("{exercise.id}", f(x)).'
        )
    return ""


def wrong_arguments(exercise: Exercise, function: Callable[..., Any], cases: Cases) -> str:
    """The function cannot be called with the inputs; "" where it can."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""  # some built-in functions do not tell
    for case in cases:
        try:
            signature.bind(*case)
        except TypeError:
            names = argument_names(exercise.reference, len(case))
            plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
            takes = signature.replace(parameters=plain, return_annotation=signature.empty)
            count = f"{len(case)} argument{'' if len(case) == 1 else 's'}"
            return _not_yet(
                exercise, f"Your function takes {takes}. It will be called with {count}: {', '.join(names)}."
            )
    return ""


def _not_yet(exercise: Exercise, words: str) -> str:
    return f"{exercise.id} not yet. {words}"


def _where(exercise: Exercise, cases: Cases, i: int) -> str:
    names = argument_names(exercise.reference, len(cases[i]))
    which = f"on input {i + 1} of {len(cases)}" if len(cases) > 1 else "on the input"
    return f"{which} ({inputs_in_words(names, cases[i])})" if names else "on the call"


def _with_prints(message: str, went: Run, *, warned: bool = False) -> str:
    """The message, then what Python warned of and what the answer printed, if anything."""
    if warned and went.warned:
        times = [f"  {text}" + (f" ({n:,} times)" if n > 1 else "") for text, n in went.warned.items()]
        message += "\nPython warned while your function ran:\n" + "\n".join(times[:3])
    if went.printed:
        message += "\nIt printed:\n" + "\n".join(f"  {line}" for line in went.printed.split("\n"))
    return message
