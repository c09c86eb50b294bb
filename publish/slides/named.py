"""What a deck may take from a lesson, by name: a figure, what a cell printed, a formula, code, a slider.

A name is that of a figure, a tag (``claim-3``) or any text that stands in one code cell alone; ``06:`` before it says
which lesson, where that is not the deck's own. A name that finds nothing, or more than one thing, is an error.
"""

import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from nbformat import NotebookNode

from attnlib.course.lessons import LESSONS
from publish.notebooks import ROOT, alt_of, lesson_notebook, shown, tags_of

NUMBERS = [lesson.number for lesson in LESSONS if lesson.ready]
MOVING = ROOT / "figures" / "moving"
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
EQUAL = re.compile(r"^Equal, to within .*\n?", re.MULTILINE)
SHAPED = re.compile(r"^(\w+) +\(\d[\d, ]*\)\n(\[+[^\[\]\n]*\]+)$", re.MULTILINE)
LABEL = re.compile(r"^[^\W_]\w*(?= )", re.MULTILINE)
TAG = re.compile(r"<[^>]+>")


class NotFoundError(LookupError):
    """A deck asks for something that its lesson does not have; the message says what it has."""


def resolved(deck: str, name: str) -> tuple[str, str]:
    """The number of the lesson that a name of a deck (``06_self_attention``) is looked for in, and the rest of it."""
    number, colon, rest = name.partition(":")
    return (number, rest.strip()) if colon and re.fullmatch(r"\d\d", number) else (deck[:2], name)


@lru_cache(32)
def cells(number: str) -> Sequence[NotebookNode]:
    """The cells of a lesson, as it was run."""
    if number not in NUMBERS:
        raise NotFoundError(f"There is no lesson {number}.")
    return lesson_notebook(number).cells


def cell(number: str, name: str) -> NotebookNode:
    """The one code cell that a name means."""
    found = [one for one in _code(number) if name in _names(one)]
    found = found or [one for one in _code(number) if name in one.source]
    if not found:
        raise NotFoundError(f"Lesson {number} has nothing named {name!r}. {_what_it_may_be(number, name)}")
    return _only(found, number, name, "code cell")


def _what_it_may_be(number: str, name: str) -> str:
    """A name that is near, or the lesson that has one of this name, or all figures that there are."""
    own = [known for one in _code(number) for known in _names(one)]
    if near := get_close_matches(name, own, 1):
        return f"The nearest name is {near[0]!r}."
    for other in NUMBERS:
        if any(name in _names(one) for one in _code(other)):
            return f"Lesson {other} has: write {other}:{name}."
    return f"Its names are: {', '.join(own)}."


def _code(number: str) -> list[NotebookNode]:
    return [one for one in cells(number) if one.cell_type == "code"]


def _names(one: NotebookNode) -> list[str]:
    """The names of a cell: its figure's, and those of its claims."""
    claims = [tag for tag in tags_of(one) if tag.startswith("claim-")]
    return [name for name in (one.metadata.get("figure"), *claims) if name]


def formula(number: str, name: str) -> str:
    """The one displayed formula with this TeX in it, without the point or comma of its sentence."""
    found = [tex.strip(" \n.,") for tex in FORMULA.findall(_prose(number)) if name in tex]
    return _only(found, number, name, "formula")


def written_table(number: str, name: str, rows: Sequence[str] = ()) -> str:
    """The one table of the prose with this text in it, or the rows of these names."""
    found = [table for table in TABLE.findall(_prose(number)) if name in table]
    return _picked(_only(found, number, name, "table"), rows, name)


def picture(number: str, name: str) -> tuple[str, str]:
    """A figure in base64, and its description."""
    out = _only(shown(cell(number, name).outputs, "image/png"), number, name, "figure")
    return out.data["image/png"], alt_of(out)


def printed(number: str, name: str, rows: Sequence[str] = ()) -> str:
    """What a cell shows as HTML, as a table in Markdown or as text; only the rows of these names, if any are given."""
    outputs = cell(number, name).outputs
    found = [out.data[kind].strip() for kind in ("text/html", "text/markdown") for out in shown(outputs, kind)]
    found = [text for text in found if text.startswith(("<", "|"))]
    text = "".join(out.text for out in outputs if out.output_type == "stream")
    text = found[0] if found else _readable(EQUAL.sub("", text).strip("\n"))
    if not text:
        raise NotFoundError(f"Lesson {number} prints nothing in the cell of {name!r}.")
    return _picked(text, rows, name).replace('.ipynb"', '.html"')  # links between lessons lead from deck to deck


def code(number: str, name: str) -> str:
    """The code of a cell, less its imports."""
    return re.sub(r"^(?:import|from) .*\n+", "", cell(number, name).source, flags=re.MULTILINE).strip("\n")


def slider(number: str, name: str) -> Path:
    """The page of a slider that needs no running notebook."""
    path = MOVING / f"{number}_{name}.html"
    if not path.is_file():
        have = sorted(page.stem[3:] for page in MOVING.glob(f"{number}_*.html"))
        raise NotFoundError(f"Lesson {number} has no slider {name!r}. It has: {', '.join(have) or 'none'}.")
    return path


def _prose(number: str) -> str:
    return "\n\n".join(one.source for one in cells(number) if one.cell_type == "markdown")


def _only(found: Sequence, number: str, name: str, what: str):
    if len(found) != 1:
        raise NotFoundError(f"Lesson {number} has {len(found)} of a {what} named {name!r} or with this text, not one.")
    return found[0]


def _readable(text: str) -> str:
    """Names in words; an array of one row beside its name, without its shape."""
    text = SHAPED.sub(r"\1  \2", text)
    return textwrap.dedent(LABEL.sub(lambda label: label.group().replace("_", " "), text))


def _picked(text: str, rows: Sequence[str], name: str) -> str:
    """The rows of these names, between the lines that begin and end a table."""
    lines = text.splitlines()
    head, end = (2, -1) if text.startswith("<") else (2 if text.startswith("|") else 0, len(lines))
    picked = [line for row in rows for line in _rows(lines[head:end], row, name)]
    return "\n".join([*lines[:head], *picked, *lines[end:]]) if rows else text


def _rows(lines: Sequence[str], start: str, name: str) -> list[str]:
    """The rows with this name; if there are none, those that begin with it."""
    start = start.strip()
    found = [(line, TAG.sub(" ", line).strip("| ")) for line in lines]
    for after in (r"\s\s|\s*[|\[]|$", ":", ""):
        if rows := [line for line, row in found if row.startswith(start) and re.match(after, row[len(start) :])]:
            return rows
    have = ", ".join(re.split(r"\s\s|[|\[:]", row)[0] for _, row in found)
    raise NotFoundError(f"The cell of {name!r} prints no row that begins {start!r}. Its rows: {have}.")
