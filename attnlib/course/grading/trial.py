"""Calls a function on the cases of an exercise and notes what came of each call."""

from __future__ import annotations

import copy
import linecache
import pickle
import sysconfig
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading.values import Leaves, UnreadableError, bare, kind_of, read, same_input

_INSTALLED = (
    *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).resolve().parents[2]),
    "<frozen",
    "<__array",
)


@dataclass(frozen=True)
class Failure:
    """An exception that left a function: what it was, and the learner's line that it came from."""

    type: str
    text: str
    line: int = 0
    source: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one call gave: an output and its arrays, or why there is none."""

    output: Any = None
    reading: Leaves | None = None
    unreadable: str = ""
    uncalled: bool = False
    failure: Failure | None = None
    changed: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Call:
    """One call: what it returned, and what its inputs were afterwards."""

    output: Any
    inputs: tuple[Any, ...]


def make_cases(exercise: Exercise) -> list[tuple[Any, ...]]:
    """The inputs of an exercise, the same every time; one case without inputs where it asks for a value.

    Raises `ValueError` where it makes no cases, or cases that are not tuples.
    """
    if exercise.cases is None:
        return [()]
    rng = np.random.default_rng(zlib.crc32(exercise.id.encode()))
    cases = list(exercise.cases(rng))
    if not cases or not all(isinstance(case, tuple) for case in cases):
        raise ValueError(f"cases of {exercise.id}: expected tuples of positional arguments, got {cases}")
    return cases


def outcomes(
    function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], adapt: Callable[[Any], Any] | None
) -> Iterator[Outcome]:
    """Call `function` on a copy of every case; ends early where it asks to exit."""
    for case, call in zip(cases, _calls(function, cases), strict=False):
        yield call if isinstance(call, Outcome) else _outcome(case, call, adapt)


def reference_runs(exercise: Exercise, cases: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the reference does its work here on the first case, which says that an answer could."""
    return next(outcomes(exercise.reference, cases, exercise.adapt)).failure is None


def sent_calls(
    function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], adapt: Callable[[Any], Any] | None
) -> Iterator[bytes]:
    """The same for an answer in a process of its own, in the words that `received` understands.

    What can be sent is read outside, by functions that the answer has not had in its hands.
    """
    for case, call in zip(cases, _calls(function, cases), strict=False):
        if isinstance(call, Outcome):
            yield pickle.dumps(call)
            continue
        try:
            yield pickle.dumps(_Call(bare(call.output), bare(call.inputs)))
        except Exception:  # of what has a meaning only there
            outcome = _outcome(case, call, adapt)
            yield pickle.dumps(replace(outcome, output=_bare_or_none(outcome.output)))


def _bare_or_none(value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(bare(value)))
    except Exception:
        return None


def received(
    cases: Sequence[tuple[Any, ...]], sent: Sequence[bytes], adapt: Callable[[Any], Any] | None
) -> list[Outcome]:
    """What came of the calls, see `sent_calls`; it ends where an answer has altered what is sent."""
    found = []
    for case, one in zip(cases, sent, strict=False):
        try:
            call = pickle.loads(one)
            found.append(call if isinstance(call, Outcome) else _outcome(case, call, adapt))
        except Exception:
            break
    return found


def _calls(function: Callable[..., Any], cases: Sequence[tuple[Any, ...]]) -> Iterator[_Call | Outcome]:
    """What each call gave, or the outcome that it is to have given nothing."""
    for case in cases:
        inputs = copy.deepcopy(case)
        try:
            output = function(*inputs)
        except BaseException as error:  # an answer may raise anything, SystemExit too
            failure = _failure(error)
            yield Outcome(failure=failure)
            if failure.type in ("SystemExit", "KeyboardInterrupt"):
                return
        else:
            yield _Call(output, inputs)


def _outcome(case: tuple[Any, ...], call: _Call, adapt: Callable[[Any], Any] | None) -> Outcome:
    output, inputs = call.output, call.inputs
    if isinstance(output, tuple) and output and all(isinstance(part, Number) for part in output):
        output = list(output)  # several numbers are a vector, in whatever brackets they come
    changed = tuple(i for i in range(len(case)) if not same_input(case[i], inputs[i]))
    came = kind_of(output)
    try:
        adapted = output if adapt is None or output is None else adapt(output)
    except Exception as error:
        return Outcome(output, unreadable=f"{came} ({_text(error)})", uncalled=callable(output), changed=changed)
    try:
        return Outcome(adapted, read(adapted), changed=changed)
    except UnreadableError as error:
        unreadable = str(error)
    except Exception as error:
        unreadable = f"{came} ({_text(error)})"
    return Outcome(adapted, unreadable=unreadable, uncalled=callable(adapted), changed=changed)


def _failure(error: BaseException) -> Failure:
    line, source = _own_line(error.__traceback__)
    return Failure(type(error).__name__, _message(error), line, source)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {_message(error)}"


def _message(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        return ""
    return text if len(text) <= 300 else text[:297] + "..."


def _own_line(traceback: TracebackType | None) -> tuple[int, str]:
    """The last line on the way to an exception that is not in an installed package."""
    found = (0, "")
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith(_INSTALLED):
            found = (traceback.tb_lineno, linecache.getline(name, traceback.tb_lineno).strip())
        traceback = traceback.tb_next
    return found
