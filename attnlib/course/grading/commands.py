"""The four functions that a notebook calls: `check`, `hint`, `solution`, `progress`."""

from __future__ import annotations

import textwrap
from typing import Any

from attnlib.course.grading import progress_file, registry
from attnlib.course.grading.grade import grade
from attnlib.course.grading.values import kind_of
from attnlib.course.source import show, source_of

_WIDTH = 96
_hints_shown: dict[str, int] = {}


def check(exercise: str, answer: Any) -> None:
    """Check your answer to an exercise, and print what came of it.

    Args:
        exercise: its id, "06.2".
        answer: your function, or your value where the exercise asks for one.

    Raises `ValueError` where there is no such exercise.

    >>> check("00.1", lambda weights, values: (weights * values).sum() / weights.sum())  # doctest: +ELLIPSIS
    00.1 right...
    """
    one = registry.find(exercise)
    verdict = grade(one, answer)
    word = progress_file.mark(one.id) if verdict.kind == "right" else ""
    _print(verdict.message, word)


def hint(exercise: str, n: int | None = None) -> None:
    """Print the next hint for an exercise, or hint number `n` of its three.

    Raises `ValueError` where there is no such exercise or hint.

    >>> hint("00.1", 1)
    hint 1 of 3: If all weights are 2, the answer should be the ordinary mean.
    """
    one = registry.find(exercise)
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

    Raises `ValueError` where there is no such exercise.

    >>> solution("00.1")
    def _weighted_mean(weights, values):
        return np.sum(weights * values) / np.sum(weights)
    """
    one = registry.find(exercise)
    shown = one.solution or one.reference
    source = source_of(shown)
    if source:
        show(source)
    else:
        _print(f"{one.id} is solved by {kind_of(shown)}, which is not written in Python.")


def progress() -> None:
    """Print how much of each lesson you have solved.

    >>> progress()  # doctest: +ELLIPSIS
    00 ...exercises solved.
    """
    solved, word = progress_file.solved()
    rows, right, total = [], 0, 0
    for lesson in registry.lessons():
        try:
            ids = [one.id for one in registry.load(lesson)]
        except ImportError as error:
            rows.append((lesson, f"could not be loaded: {error}"))
            continue
        done = [one for one in ids if one in solved]
        right, total = right + len(done), total + len(ids)
        rows.append((lesson, f"{len(done)} of {len(ids)}", _listed("done", done), _listed("open", ids, done)))
    _print(
        *_table(rows),
        f"{right} of {total} exercises solved." if rows else "There are no exercises yet.",
        word,
    )


def _listed(what: str, ids: list[str], without: list[str] = ()) -> str:
    left = [one for one in ids if one not in without]
    return f"{what} {' '.join(left)}" if left else ""


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    wide = max((len(row[2]) for row in rows if len(row) > 2), default=0)
    return ["  ".join((row[0], row[1], *(cell.ljust(wide) for cell in row[2:]))).rstrip() for row in rows]


def _print(*paragraphs: str) -> None:
    """One message, wrapped where it is prose; indented lines are code and stay as they are."""
    lines = [line for paragraph in paragraphs if paragraph for line in paragraph.split("\n")]
    print("\n".join(line if line.startswith("  ") else _wrap(line) for line in lines))


def _wrap(line: str) -> str:
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
