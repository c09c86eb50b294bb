"""The four functions that a notebook calls: `check`, `hint`, `solution`, `progress`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from attnlib.course import progress_file
from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import registry
from attnlib.course.grading.grade import grade
from attnlib.course.grading.standalone import standalone
from attnlib.course.grading.values import kind_of
from attnlib.course.lessons import LESSONS
from attnlib.course.source import show, source_of

_WIDTH = 96
_NOTHING = object()
_hints_shown: dict[str, int] = {}


def check(exercise: str = "", answer: Any = _NOTHING) -> None:
    """Check your answer to an exercise, and print what came of it.

    Args:
        exercise: its id, "06.2".
        answer: your function, or your value where the exercise asks for one.

    Where there is no such exercise, it says which there are.

    >>> check("00.1", lambda weights, values: (weights * values).sum() / weights.sum())  # doctest: +ELLIPSIS
    00.1 right...
    """
    if isinstance(answer, str) and not isinstance(exercise, str):
        exercise, answer = answer, exercise  # the other way round
    if (one := _found(exercise)) is None:
        return
    if answer is _NOTHING:
        _print(f'answer: nothing came. It stands behind the id: check("{one.id}", your_answer).')
        return
    verdict = grade(one, answer)
    word = ""
    if verdict.kind == "right":
        word = progress_file.mark(one.id, _source(one, answer))
    elif verdict.kind != "not attempted":
        word = progress_file.tried(one.id)
    _print(verdict.message, word)


def hint(exercise: str = "", n: int | None = None) -> None:
    """Print the next hint for an exercise, or hint number `n` of its three.

    Raises `ValueError` where there is no such hint.

    >>> hint("00.1", 1)
    hint 1 of 3: If all weights are 2, the answer should be the ordinary mean.
    """
    if (one := _found(exercise)) is None:
        return
    if n is not None and n not in (1, 2, 3):
        raise ValueError(f"n: got {n!r}; there are hints 1, 2 and 3.")
    n = n or _hints_shown.get(one.id, 0) + 1
    if n > 3:
        _print(f'You have seen the three hints. solution("{one.id}") shows the solution.')
        return
    _hints_shown[one.id] = n
    last = f'If that does not help, solution("{one.id}") shows the solution.' if n == 3 else ""
    _print(f"hint {n} of 3: {one.hints[n - 1]}", last)


def solution(exercise: str = "") -> None:
    """Show the code of the solution.

    >>> solution("00.1")
    def _weighted_mean(weights, values):
        return np.sum(weights * values) / np.sum(weights)
    """
    if (one := _found(exercise)) is None:
        return
    shown = one.solution or one.reference
    source = source_of(shown)
    if source:
        show(source)
    else:
        _print(f"{one.id} is solved by {kind_of(shown)}, which is not written in Python.")


def progress(*, export: str | None = None, add: str | None = None, forget: str | None = None) -> None:
    """Print which exercises of each lesson you have solved, what comes next, and what was hard.

    Your progress is kept in one file on your machine, with the answers that were right, and sent nowhere.

    Args:
        export: a file to write all of it to, for a lecturer or another machine.
        add: another such file, whose contents are added to yours.
        forget: an exercise, "03.1", or a lesson, "03", or "all". A copy of the file is kept beside it.

    >>> progress()  # doctest: +ELLIPSIS
    00 · Start here ...exercises solved...
    """
    done = _exported(export), _added(add), _forgotten(forget)
    known, word = progress_file.progress()
    parts = {lesson: registry.titles(lesson) for lesson in registry.lessons()}
    heads = {lesson.number: lesson.heading for lesson in LESSONS}
    wide = max((len(heads.get(lesson, lesson)) for lesson in parts), default=0)
    rows = []
    for lesson, ids in parts.items():
        boxes = "".join("■" if one in known.solved else "□" for one in ids)
        left = " ".join(one for one in ids if one not in known.solved)
        rows.append(f"{heads.get(lesson, lesson):{wide}}  {boxes:6}  {left}".rstrip())
    total, right = sum(map(len, parts.values())), sum(one in known.solved for ids in parts.values() for one in ids)
    said = f"{right} of {total} exercises solved." if rows else "There are no exercises yet."
    _print(*done, *rows, said + _next(parts, known.solved), _hard(known.tries), word)


def _exported(file: str | None) -> str:
    if file is None:
        return ""
    try:
        progress_file.export(file)
    except OSError as error:
        return f"export: your progress cannot be written to {file} ({error.strerror})."
    return f"Written to {file}."


def _added(file: str | None) -> str:
    if file is None:
        return ""
    try:
        return progress_file.add(progress_file.of_file(file)) or f"The progress in {file} is added to yours."
    except ValueError as error:
        return f"add: {error}."


def _forgotten(what: str | None) -> str:
    if what is None:
        return ""
    known = {one for lesson in registry.lessons() for one in (lesson, *registry.titles(lesson))}
    if what not in {*known, "all"}:
        return f'forget: got {what!r}, expected an exercise like "03.1", a lesson like "03", or "all".'
    return progress_file.forget(what) or f"Forgotten: {what}. A copy of the old file is kept beside the new one."


def _hard(tries: Mapping[str, int]) -> str:
    """The exercises that took most tries."""
    most = sorted((one for one in tries if tries[one] > 2), key=lambda one: -tries[one])[:3]
    return f"Most tries: {', '.join(f'{one} ({tries[one]} wrong)' for one in most)}." if most else ""


def _next(parts: Mapping[str, Mapping[str, str]], solved: set[str]) -> str:
    """The first open exercise of a lesson that is begun, or else of all."""
    begun = [lesson for lesson, ids in parts.items() if solved & ids.keys() and ids.keys() - solved]
    for lesson in (*begun, *parts):
        for one, title in parts[lesson].items():
            if one not in solved:
                return f" Next: {one}, {title}."
    return ""


def _source(exercise: Exercise, answer: Any) -> str:
    """A right answer as source, to be used again; "" for a value, and where it cannot stand alone."""
    if exercise.asks_for_value:
        return ""
    try:
        return standalone(answer)
    except ValueError:
        return ""


def _found(exercise: str) -> Exercise | None:
    """The exercise; where there is none, say which there are, in a sentence and not in a traceback."""
    try:
        return registry.find(exercise)
    except ValueError as error:
        _print(str(error))
        return None


def _print(*paragraphs: str) -> None:
    """One message, wrapped where it is prose; indented lines are code and stay as they are."""
    lines = [line for paragraph in paragraphs if paragraph for line in paragraph.split("\n")]
    print("\n".join(line if line.startswith("  ") else _wrap(line) for line in lines))


def _wrap(line: str) -> str:
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
