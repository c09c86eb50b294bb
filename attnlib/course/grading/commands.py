"""The four functions that a notebook calls: `check`, `hint`, `solution`, `progress`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import progress_file, registry
from attnlib.course.grading.grade import grade
from attnlib.course.grading.values import kind_of
from attnlib.course.lessons import LESSONS
from attnlib.course.source import show, source_of

_WIDTH = 96
_hints_shown: dict[str, int] = {}


def check(exercise: str, answer: Any) -> None:
    """Check your answer to an exercise, and print what came of it.

    Args:
        exercise: its id, "06.2".
        answer: your function, or your value where the exercise asks for one.

    Where there is no such exercise, it says which there are.

    >>> check("00.1", lambda weights, values: (weights * values).sum() / weights.sum())  # doctest: +ELLIPSIS
    00.1 right...
    """
    if (one := _found(exercise)) is None:
        return
    verdict = grade(one, answer)
    word = progress_file.mark(one.id) if verdict.kind == "right" else ""
    _print(verdict.message, word)


def hint(exercise: str, n: int | None = None) -> None:
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


def solution(exercise: str) -> None:
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


def progress() -> None:
    """Print which exercises of each lesson you have solved, and what comes next.

    >>> progress()  # doctest: +ELLIPSIS
    00 · Start here ...exercises solved...
    """
    solved, word = progress_file.solved()
    parts = {lesson: registry.titles(lesson) for lesson in registry.lessons()}
    heads = {lesson.number: lesson.heading for lesson in LESSONS}
    wide = max((len(heads.get(lesson, lesson)) for lesson in parts), default=0)
    rows = []
    for lesson, ids in parts.items():
        boxes = "".join("■" if one in solved else "□" for one in ids)
        left = " ".join(one for one in ids if one not in solved)
        rows.append(f"{heads.get(lesson, lesson):{wide}}  {boxes:6}  {left}".rstrip())
    total, right = sum(map(len, parts.values())), sum(one in solved for ids in parts.values() for one in ids)
    said = f"{right} of {total} exercises solved." if rows else "There are no exercises yet."
    _print(*rows, said + _next(parts, solved), word)


def _next(parts: Mapping[str, Mapping[str, str]], solved: set[str]) -> str:
    """The first open exercise of a lesson that is begun, or else of all."""
    begun = [lesson for lesson, ids in parts.items() if solved & ids.keys() and ids.keys() - solved]
    for lesson in (*begun, *parts):
        for one, title in parts[lesson].items():
            if one not in solved:
                return f" Next: {one}, {title}."
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
