"""The ledger: sentences about attention that one reads everywhere, and what becomes of them when they are run.

A claim has a verdict, the lessons that show it (in a cell tagged ``claim-N``) and a test that keeps it shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.course._tables import rows_of
from attnlib.course.lessons import LESSONS

__all__ = ["CLAIMS", "Claim", "as_markdown"]


@dataclass(frozen=True)
class Claim:
    """A sentence, what is true of it, where it is shown, and the test that holds it."""

    number: int
    sentence: str
    verdict: str
    lessons: tuple[str, ...]
    test: str

    @property
    def shows(self) -> str:
        """What its test shows, in words."""
        return self.test.partition("::")[2].split("_", 3)[3].replace("_", " ")


def read() -> tuple[Claim, ...]:
    """The ledger as it stands in ``claims.csv``, where lessons are separated by spaces."""
    return tuple(
        Claim(**row | {"number": int(row["number"]), "lessons": tuple(row["lessons"].split())})
        for row in rows_of("claims")
    )


CLAIMS = read()


def as_markdown() -> str:
    """The ledger as a page, with links from ``notebooks/``.

    >>> as_markdown().splitlines()[0]
    '# Claims about attention, run'
    """
    head = [
        "# Claims about attention, run",
        "",
        "Sentences that are widely repeated, and what becomes of them. Each is shown in a lesson and held by a test.",
        "",
        "| # | one reads | what is true | shown in | its test shows |",
        "| ---: | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *map(_row, CLAIMS)]) + "\n"


def _row(claim: Claim) -> str:
    files = {lesson.number: lesson.file for lesson in LESSONS}
    shown = ", ".join(f"[{n}]({files[n]}.ipynb)" for n in claim.lessons)
    path = claim.test.partition("::")[0]
    return f"| {claim.number} | {claim.sentence} | {claim.verdict} | {shown} | [{claim.shows}](../{path}) |"
