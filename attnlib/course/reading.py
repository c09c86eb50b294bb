"""The reading map: which lesson prepares which paper, those that lessons quote and those that come after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlib.course._tables import rows_of
from attnlib.course.lessons import LESSONS
from attnlib.course.references import address

__all__ = ["FURTHER", "Further", "as_markdown"]


@dataclass(frozen=True)
class Further:
    """A work that no lesson is made of, what it is about, and the lessons after which it can be read."""

    title: str
    address: str
    lessons: tuple[str, ...]
    about: str


def read() -> tuple[Further, ...]:
    """The table as it stands in ``further.csv``."""
    return tuple(Further(**row | {"lessons": tuple(row["lessons"].split())}) for row in rows_of("further"))


FURTHER = read()


def as_markdown(quoted: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    """The map as a page, with links from ``notebooks/``.

    ``quoted`` has by lesson the titles of the works that it quotes, with authors and year. A work stands once, where
    it is quoted first.

    >>> page = as_markdown({"06": {"Attention Is All You Need": ("A. Vaswani and others", "2017")}})
    >>> [line for line in page.splitlines() if "All You Need" in line]
    ['- A. Vaswani and others, [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762), 2017']
    """
    names = {lesson.number: lesson.link() for lesson in LESSONS}
    text, seen = [HEAD], set[str]()
    for number, quotes in quoted.items():
        works = {title: work for title, work in quotes.items() if title not in seen}
        seen.update(works)
        after = [work for work in FURTHER if work.lessons[-1] == number]
        if works or after:
            text.append(f"## {names[number]}\n")
            for title, (authors, year) in works.items():
                also = [other for other in quoted if other > number and title in quoted[other]]
                said = ", ".join(filter(None, (authors, _linked(title, address(title)), year)))
                text.append(f"- {said}" + (f" (also {', '.join(also)})" if also else ""))
            text += [f"- *after it:* {_linked(w.title, w.address)}: {w.about}{_with(w)}" for w in after]
            text.append("")
    return "\n".join(text)


HEAD = """\
# Reading map

What to read after which lesson: the works that a lesson quotes, each under the first that does, and (*after it*) \
some that no lesson quotes, each under the last that prepares it.
"""


def _linked(title: str, address: str) -> str:
    return f"[*{title}*]({address})" if address else f"*{title}*"


def _with(work: Further) -> str:
    *others, _ = work.lessons
    return f" (with lesson{'s' * (len(others) > 1)} {' and '.join(others)})" if others else ""
