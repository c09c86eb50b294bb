"""Runs an answer where it cannot harm the notebook: for a limited time, and apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attnlib.course.grading import in_process, in_thread
from attnlib.course.grading.runs import Run


def run(work: Callable[[], Iterator[Any]], seconds: float, rehearsal: Callable[[], bool] | None = None) -> Run:
    """Collect what `work` gives, until it ends, `seconds` are over or the reader interrupts.

    With a `rehearsal` in a process of its own, if the rehearsal is True there: then all that the work changes stays
    there, and it can be ended whatever it does. Else, and where there are no such processes, in a thread.

    >>> went = run(lambda: iter([2 + 2]), seconds=5)
    >>> went.end, went.results
    ('finished', [4])
    """
    went = in_process.run(work, seconds, rehearsal) if rehearsal else None
    return went or in_thread.run(work, seconds)
