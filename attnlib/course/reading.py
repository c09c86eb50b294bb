"""The reading map: which lesson prepares which paper, those that lessons quote and those that come after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from attnlib.course._tables import rows_of
from attnlib.course.lessons import LESSONS

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


def as_markdown(quoted: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    """The map as a page, with links from ``notebooks/``; ``quoted`` has titles and addresses by lesson.

    >>> page = as_markdown({"06": [("Attention Is All You Need", "https://arxiv.org/abs/1706.03762")]})
    >>> [line for line in page.splitlines() if "All You Need" in line]
    ['- [*Attention Is All You Need*](https://arxiv.org/abs/1706.03762)']
    """
    names = {lesson.number: lesson.link() for lesson in LESSONS}
    text = [HEAD]
    for number, works in quoted.items():
        after = [work for work in FURTHER if work.lessons[-1] == number]
        if works or after:
            text.append(f"## {names[number]}\n")
            text += [f"- {_linked(title, address)}" for title, address in works]
            text += [f"- *after it:* {_linked(w.title, w.address)}: {w.about}{_with(w)}" for w in after]
            text.append("")
    return "\n".join(text)


HEAD = """\
# Reading map

What can be read after which lesson: the works that a lesson is made of, and some that the course leaves out, each \
after the last of the lessons that prepare it.
"""


def _linked(title: str, address: str) -> str:
    return f"[*{title}*]({address})" if address else f"*{title}*"


def _with(work: Further) -> str:
    others = " and ".join(work.lessons[:-1])
    return f" (with lesson {others})" if others else ""
