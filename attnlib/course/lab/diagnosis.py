"""`diagnose`: is this what the patient has, and if not, which experiment speaks against it?"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from types import EllipsisType

from attnlib.course import progress_file
from attnlib.course.lab.causes import CAUSES, as_name, named
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lab.experiments import EXPERIMENTS
from attnlib.course.lab.ward import patient

__all__ = ["diagnose"]


def diagnose(case: str, cause: str | EllipsisType | None = None) -> None:
    """Say what patient 7 has, as case "15.07", by a name from the list; without any, print the list.

    The answer is one sentence: that it is right, and after how many wrong guesses, or which experiment speaks against
    it, with what it says of this patient. The experiment is run while you wait. Your own words are only searched for
    words that people use: the answer to them is which of the causes they may mean.

    Raises ``ValueError`` when there is no such case, ``TypeError`` when the cause is no string.

    >>> diagnose("15.12", "its loss counts the padding")
    15.12 do you mean this? Say it by the name in front; diagnose("15.12") lists all.
    padding in the loss  the loss counts padding
    """
    if not isinstance(cause, str | EllipsisType | None):
        raise TypeError(f"cause must be a string, a name from the list; got {type(cause).__name__}")
    match = re.fullmatch(r"15\.(\d\d?)", case) if isinstance(case, str) else None
    if match is None or int(match[1]) not in PATIENTS:
        raise ValueError(f"case must be from '15.01' to '15.{len(PATIENTS)}', a patient's number; got {case!r}")
    number = int(match[1])
    if cause is None:
        _list("One of these, by the name in front:", CAUSES)
    elif cause is ...:
        print(f"{case} not attempted yet.")
    elif (name := as_name(cause)) in CAUSES:
        print(textwrap.fill(_answer(case, number, name), 96, break_on_hyphens=False))
    elif meant := named(cause):
        one = "one of these" if len(meant) > 1 else "this"
        _list(f'{case} do you mean {one}? Say it by the name in front; diagnose("{case}") lists all.', meant)
    else:
        print(f'{case} not understood. diagnose("{case}") lists the possible causes.')


def _list(head: str, causes: Iterable[str]) -> None:
    print(head, *(f"{name:20} {CAUSES[name].sentence}" for name in causes), sep="\n")


def _answer(case: str, n: int, guess: str) -> str:
    kept = f"15.{n:02}"  # one name in the progress, whether it was asked as 15.4 or as 15.04
    if guess == PATIENTS[n].cause:
        wrong = progress_file.progress()[0].tries[kept]
        progress_file.mark(kept)
        return f"{case} right{_after(wrong)}: {CAUSES[guess].sentence}."
    progress_file.tried(kept)
    one = patient(n)
    for name, ask in EXPERIMENTS.items():
        would_find = name in CAUSES[guess].found_by
        report = ask(one)
        if would_find and report.ok:
            return f"{case} not that: `{name}` would find it, and says here: {report.sentence}"
        if not would_find and not report.ok:
            return f"{case} not that: it does not explain `{name}`, which says here: {report.sentence}"
    raise AssertionError(f"no experiment speaks against {guess!r} in patient {n}")  # a test says that one does


def _after(wrong: int) -> str:
    return f", after {wrong} wrong guess{'es' if wrong > 1 else ''}" if wrong else ""
