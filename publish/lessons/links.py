"""The links of a lesson: to the lessons beside it, to those it names at the top, and to the works it comes from."""

import re
from collections.abc import Sequence
from dataclasses import replace

from attnlib.course.references import addresses
from publish.lessons.cells import Cell

REFERENCES = "## Where this comes from"
# The title of a work, with or without the link that it already has.
WORK = re.compile(r"\[?\*(?P<title>[^*\n]+)\*(?:\]\([^)\s]*\))?")
# What stands before and after it: ": A. Vaswani and others, [*…" and ", NeurIPS 2017, section 3; …".
NAME = r"(?:[^\W\d_a-z]\.[- ]?)+(?:(?:De|[a-z]+) )*[^\W\d_a-z][\w’'-]+"
AUTHORS = re.compile(rf"({NAME}(?:(?:,? and |, ){NAME})*(?: and others)?),? $")
YEAR = re.compile(r"(?:, arXiv \d{4}\.\d{5})?[^;.\[]*?\b(1[89]\d\d|20\d\d)\b")
# "Needs: lessons 07, 08. Needed for: lesson 11." at the top, up to the end of its line.
NEEDS = re.compile(r"(?<=Needs: ).*$", re.MULTILINE)
NUMBER = re.compile(r"\[?\b(?P<number>\d\d)\b(?:\]\([^)\s]*\))?")
START = "00_start_here"


def with_links(cells: Sequence[Cell], name: str) -> list[Cell]:
    """The cells of the lesson in the file ``name``, with the links that the course gives it.

    Works get the addresses of `attnlib.course.references`, and the last cell leads to the lessons beside this one.
    """
    if not cells:
        return []
    first, *rest = [_with_works(cell) for cell in cells if not is_navigation(cell)]
    return [_with_needs(first), *rest, *_navigation(name)]


def works(cells: Sequence[Cell]) -> dict[str, tuple[str, str]]:
    """The works that a lesson says it comes from, those that the course has a row for: title -> authors and year.

    Both stand beside the title: the authors between it and what came before, the year where the next work is not yet.
    """
    lines = [line for cell in cells if cell.source.startswith(REFERENCES) for line in cell.source.splitlines()]
    quoted: dict[str, tuple[str, str]] = {}
    for line in lines:
        for found in WORK.finditer(line):
            authors, year = AUTHORS.search(line[: found.start()]), YEAR.match(line[found.end() :])
            if found["title"] in addresses():
                quoted.setdefault(found["title"], (authors[1] if authors else "", year[1] if year else ""))
    return quoted


def is_navigation(cell: Cell) -> bool:
    """Is this the cell that leads to the lessons before and after?"""
    return cell.kind == "markdown" and (cell.source.startswith("← [") or cell.source.endswith(") →"))


def _with_works(cell: Cell) -> Cell:
    def linked(found: re.Match[str]) -> str:
        address = addresses().get(found["title"])
        return f"[*{found['title']}*]({address})" if address else f"*{found['title']}*"

    return replace(cell, source=WORK.sub(linked, cell.source)) if cell.source.startswith(REFERENCES) else cell


def _with_needs(cell: Cell) -> Cell:
    files = {lesson.number: lesson.file for lesson in _ready()}

    def linked(found: re.Match[str]) -> str:
        number = found["number"]
        return f"[{number}]({files[number]}.ipynb)" if number in files else number

    return replace(cell, source=NEEDS.sub(lambda line: NUMBER.sub(linked, line[0]), cell.source, count=1))


def _navigation(name: str) -> list[Cell]:
    ready = _ready()
    at = next((place for place, lesson in enumerate(ready) if lesson.file == name), None)
    if at is None:
        return []
    parts = [f"← {ready[at - 1].link()}"] if at else []
    parts += [f"[the map of the course]({START}.ipynb)"] if at > 1 else []
    parts += [f"{ready[at + 1].link()} →"] if at + 1 < len(ready) else []
    return [Cell("markdown", " · ".join(parts))]


def _ready() -> list:
    """The lessons of the course that can be read."""
    from attnlib.course.lessons import LESSONS  # not before a build has written the minutes that it reads

    return [lesson for lesson in LESSONS if lesson.ready]
