"""`diagnose`: is this what the patient has, and if not, which experiment speaks against it?"""

from __future__ import annotations

import re
import textwrap
from types import EllipsisType

from attnlib.course.lab.causes import CAUSES, as_name, named
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lab.experiments import EXPERIMENTS
from attnlib.course.lab.ward import patient

__all__ = ["diagnose"]


def diagnose(case: str, cause: str | EllipsisType | None = None) -> None:
    """Say what patient 7 has, as case "15.07", in your words or by a name from the list; without any, print the list.

    The answer is one sentence: that it is right, or which experiment speaks against it, with what it says of this
    patient. The experiment is run while you wait.

    Raises ``ValueError`` when there is no such case, ``TypeError`` when the cause is no string.

    >>> diagnose("15.12", "its loss counts the padding")
    15.12 not that: `loss` would find it, and says here: The loss leaves the padding out (14 of 20
    positions are real).
    """
    if not isinstance(cause, str | EllipsisType | None):
        raise TypeError(f"cause must be a string, in your own words; got {type(cause).__name__}")
    match = re.fullmatch(r"15\.(\d\d?)", case) if isinstance(case, str) else None
    if match is None or int(match[1]) not in PATIENTS:
        raise ValueError(f"case must be from '15.01' to '15.{len(PATIENTS)}', a patient's number; got {case!r}")
    if cause is None:
        lines = [f"{name:20} {one.sentence}" for name, one in CAUSES.items()]
        print("\n".join(["One of these, in your own words or by the name in front:", *lines]))
        return
    words = f"{case} not attempted yet." if cause is ... else _answer(case, int(match[1]), cause)
    print(textwrap.fill(words, 96, break_on_hyphens=False))


def _answer(case: str, n: int, said: str) -> str:
    meant = named(said)
    if not meant:
        return f'{case} not understood. diagnose("{case}") prints the possible causes.'
    if len(meant) > 1:
        return f"{case} unclear: you could mean {' or '.join(meant)}. Say which."
    [guess], one = meant, patient(n)
    by_name = guess == as_name(said)
    if not by_name and guess != "nothing" and len(said.split()) < 3:
        return f"{case} too little to go by. Say in a sentence what is wrong, or give a name from the list of causes."
    if guess == PATIENTS[n].cause:
        # words are only searched for; whether they mean this, their author knows
        sure = "right" if by_name else "right, if this is what you mean"
        return f"{case} {sure}: {CAUSES[guess].sentence}."
    for name, ask in EXPERIMENTS.items():
        would_find = name in CAUSES[guess].found_by
        report = ask(one)
        if would_find and report.ok:
            return f"{case} not that: `{name}` would find it, and says here: {report.sentence}"
        if not would_find and not report.ok:
            return f"{case} not that: it does not explain `{name}`, which says here: {report.sentence}"
    raise AssertionError(f"no experiment speaks against {guess!r} in patient {n}")  # a test says that one does
