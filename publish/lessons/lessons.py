"""What a lesson is: its files, and how they are read and written. Nothing here runs code.

A lesson has a source, ``source/NN_title.md`` (MyST Markdown, what people edit), and a notebook,
``NN_title.ipynb`` (executed, what people open). Both are read into the same list of `Cell`, so that
"has this lesson changed, and on which side" is a comparison of lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_notebook

from publish.lessons.cells import Cell

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
FOLDED = "jp-MarkdownHeadingCollapsed"  # JupyterLab's own name, in a cell's metadata
# Without jupytext's version number: an upgrade of jupytext is no edit of a lesson.
HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
  language: python
---

"""
METADATA = {"tags": list, "figure": str, "within": int | float | dict, "moving": dict}


class LessonError(Exception):
    """A lesson cannot be built, pulled or read; the message says why and what to do."""


@dataclass(frozen=True)
class Course:
    """Where the files of a course lie."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """The folder of the executed notebooks."""
        return self.root / "notebooks"

    @property
    def figures(self) -> Path:
        """The folder of the pictures."""
        return self.root / "figures"

    @property
    def minutes(self) -> Path:
        """What the package knows of how long lessons take."""
        return self.root / "attnlib" / "course" / "minutes.json"

    def lessons(self) -> list[LessonFiles]:
        """Every lesson that has a source, in order."""
        paths = sorted((self.notebooks / "source").glob("[0-9][0-9]_*.md"))
        found = [LessonFiles(self, path.stem) for path in paths]
        for number, count in Counter(lesson.number for lesson in found).items():
            if count > 1:
                raise LessonError(f"Two sources share the number {number}. Each lesson needs its own.")
        return found

    def orphans(self) -> list[Path]:
        """Notebooks and figures that no source accounts for."""
        known = {lesson.name for lesson in self.lessons()}
        numbers = {name[:2] for name in known}
        notebooks = [p for p in self.notebooks.glob("[0-9][0-9]_*.ipynb") if p.stem not in known]
        return sorted(notebooks) + sorted(p for p in self.figures.glob("*.png") if p.name[:2] not in numbers)


@dataclass(frozen=True)
class LessonFiles:
    """One lesson: its name (``01_title``) and its files."""

    course: Course
    name: str

    @property
    def number(self) -> str:
        """The two digits in front of the name."""
        return self.name[:2]

    @property
    def source(self) -> Path:
        """The text that people edit."""
        return self.course.notebooks / "source" / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        """The executed notebook."""
        return self.course.notebooks / f"{self.name}.ipynb"

    def figure(self, name: str) -> Path:
        """Where the picture of the cell with ``figure: name`` is written."""
        return self.course.figures / f"{self.number}_{name}.png"


def sources(lesson: LessonFiles) -> list[Cell]:
    """The cells of a lesson's source."""
    try:
        return list(_cells_of(lesson.source.read_text("utf-8")))
    except LessonError as error:
        raise LessonError(f"source/{lesson.source.name}: {error}") from error


@lru_cache(64)
def _cells_of(text: str) -> tuple[Cell, ...]:
    # Every lesson's minutes and state are asked for, several times in a build; reading one takes a tenth of a second.
    return tuple(read_source(text))


def to_cell(node: NotebookNode) -> Cell:
    """Read one notebook cell; metadata that the course does not know is left behind."""
    found = {key: _as_in_json(node.metadata[key]) for key in METADATA if key in node.metadata}
    found["tags"] = tuple(found.get("tags", ()))
    return Cell(node.cell_type, _trim(node.source), id=node.get("id", ""), **found)


def _as_in_json(value: object) -> object:
    """Write 5.0 as 5, as JupyterLab does when it saves a notebook."""
    if isinstance(value, dict):
        return {word: _as_in_json(one) for word, one in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _trim(text: str) -> str:
    """Leave out blank lines at the start and all blanks at the end: MyST does not keep them."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", text).rstrip()


def to_cells(notebook: NotebookNode) -> list[Cell]:
    """Read a notebook's cells; blank ones (JupyterLab leaves one at the end) do not count."""
    return [cell for cell in map(to_cell, notebook.cells) if cell.source.strip()]


def read_source(text: str) -> list[Cell]:
    """Read a lesson's Markdown."""
    try:
        notebook = jupytext.reads(text, fmt="md:myst")
    except Exception as error:
        raise LessonError(f"This is no lesson in MyST Markdown: {error}") from error
    for number, node in enumerate(notebook.cells, 1):
        _check_metadata(f"Cell {number}, which starts `{node.source[:40]}`,", node.metadata)
    return [replace(cell, id="") for cell in to_cells(notebook)]


def _check_metadata(name: str, metadata: dict[str, object]) -> None:
    for key, value in metadata.items():
        if key not in METADATA:
            raise LessonError(f"{name} has metadata {key!r}. A source knows {', '.join(METADATA)}.")
        if not isinstance(value, METADATA[key]):
            wanted = getattr(METADATA[key], "__name__", METADATA[key])
            raise LessonError(f"{name} has {key}: {value!r}. Expected a {wanted}.")


def write_source(cells: Iterable[Cell]) -> str:
    """Write a lesson's Markdown in its one canonical form."""
    nodes = [_to_node(cell, f"c{place}") for place, cell in enumerate(cells)]
    notebook = new_notebook(cells=nodes, metadata={"kernelspec": KERNEL})
    text = jupytext.writes(notebook, fmt="md:myst")
    return HEADER + text.partition("\n---\n")[2].lstrip("\n")


def canonical(text: str) -> str:
    """The canonical form of a lesson's Markdown."""
    return write_source(read_source(text))


def _to_node(cell: Cell, name: str) -> NotebookNode:
    ran = {"execution_count": None, "outputs": []} if cell.kind == "code" else {}
    # nbformat's own maker validates each cell, and the notebook then validates all of them again.
    return from_dict({"cell_type": cell.kind, "id": name, "metadata": cell.metadata(), "source": cell.source, **ran})


def unrun_notebook(cells: Sequence[Cell], number: str) -> NotebookNode:
    """Make the notebook of a lesson, not yet run, with the fingerprints that tell a later edit apart."""
    nodes = [_to_node(cell, f"{number}-c{place:02d}") for place, cell in enumerate(cells, 1)]
    for cell, node in zip(cells, nodes, strict=True):
        if cell.starts_excursion:
            node.metadata[FOLDED] = True
    built = {"cells": " ".join(cell.digest() for cell in cells)}
    return new_notebook(cells=nodes, metadata={"kernelspec": KERNEL, "attnlib": built})


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook file."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:
        raise LessonError(
            f"{path.name} is no notebook ({str(error)[:100]}). If a merge left it so, delete it: "
            f"make build NB={path.name[:2]} makes it again from the source."
        ) from error


def notebook_text(notebook: NotebookNode) -> str:
    """A notebook as it is written to a file: the same bytes for the same notebook."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"
