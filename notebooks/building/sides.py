"""The two sides of a lesson, source and notebook: which was edited since the last build, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import Enum

from nbformat import NotebookNode

from .lessons import (
    Cell,
    Lesson,
    LessonError,
    cell_id,
    default_slide,
    notebook_text,
    read_notebook,
    read_source,
    to_cells,
    unrun_notebook,
    where,
    with_slides,
)
from .rules import output_problems
from .running import tidy


class State(Enum):
    """How a lesson's source and its notebook stand to each other."""

    CURRENT = "is up to date"
    UNBUILT = "has no notebook yet"
    SOURCE = "was edited in the source since its build"
    NOTEBOOK = "was edited in the notebook since its build"
    CONFLICT = "was edited in the source and in the notebook since its build"
    OUTPUTS = "has outputs that are missing, older than its cells, or not as the build writes them"


def state(lesson: Lesson) -> State:
    """Compare a lesson's source, its notebook, and the fingerprints of the last build."""
    if not lesson.notebook.exists():
        return State.UNBUILT
    cells, notebook = sources(lesson), read_notebook(lesson.notebook)
    built, now, here = built_digests(notebook), digests(cells), digests(to_cells(notebook))
    if here == now:
        settled = built == now and _as_built(lesson, cells, notebook)
        return State.CURRENT if settled else State.OUTPUTS
    if here == built:
        return State.SOURCE
    return State.NOTEBOOK if now == built else State.CONFLICT


def _as_built(lesson: Lesson, cells: Sequence[Cell], notebook: NotebookNode) -> bool:
    """Whether the notebook file is what a build would write around these outputs."""
    fresh = unrun_notebook(cells, lesson.number)
    if len(fresh.cells) != len(notebook.cells):
        return False
    for new, old in zip(fresh.cells, notebook.cells, strict=True):
        if new.cell_type == "code":
            new.outputs, new.execution_count = old.outputs, old.execution_count
    tidy(fresh)
    return not output_problems(fresh) and notebook_text(fresh) == lesson.notebook.read_text("utf-8")


def sources(lesson: Lesson) -> list[Cell]:
    """The cells of a lesson's source."""
    try:
        return read_source(lesson.source.read_text("utf-8"))
    except LessonError as error:
        raise LessonError(f"source/{lesson.source.name}: {error}") from error


def advice(lesson: Lesson) -> str:
    """Say how a lesson's source and its notebook stand to each other, and what to do about it."""
    found, number = state(lesson), lesson.number
    if found in (State.CURRENT, State.UNBUILT, State.OUTPUTS):
        return f"{lesson.name} {found.value}" + ("" if found is State.CURRENT else f": make build NB={number}")
    notebook = read_notebook(lesson.notebook)
    built = built_digests(notebook)
    parts = [f"{lesson.name} {found.value}.\n"]
    if found is not State.SOURCE:
        parts.append("In the notebook:\n" + _listed(changed(built, to_cells(notebook))))
    if found is not State.NOTEBOOK:
        parts.append("In the source:\n" + _listed(changed(built, sources(lesson))))
    return "".join(parts) + REMEDY[found].format(n=number)


REMEDY = {
    State.SOURCE: "`make build NB={n}` runs it and writes the notebook.",
    State.NOTEBOOK: "`make pull NB={n}` keeps the edit: it writes it to the source. "
    "`make build NB={n} FORCE=1` discards it (a copy is left beside, as .bak).",
    State.CONFLICT: "`make pull NB={n} FORCE=1` takes the notebook's cells, `make build NB={n} FORCE=1` "
    "the source's. The other side is copied to a .bak file first.",
}


def _listed(lines: Sequence[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


def built_digests(notebook: NotebookNode) -> list[str]:
    """The fingerprints of the cells as they were when the notebook was built."""
    return notebook.metadata.get("attnlib", {}).get("cells", "").split()


def digests(cells: Sequence[Cell]) -> list[str]:
    """The fingerprints of cells as they are now, slide types filled in."""
    return [cell.digest() for cell in with_slides(cells)]


def changed(before: Sequence[str], after: Sequence[Cell]) -> list[str]:
    """Name the cells of ``after`` that differ from the fingerprints ``before``, a line each."""
    names = []
    for what, i, j, k, m in SequenceMatcher(None, before, digests(after), autojunk=False).get_opcodes():
        if what == "delete":
            names += [f"cell {n + 1} is gone" for n in range(i, j)]
        elif what != "equal":
            names += [where(n + 1, after[n]) for n in range(k, m)]
    return names


def without_slides(edited: Sequence[Cell], source: Sequence[Cell]) -> list[Cell]:
    """Take the slide types away that a build had filled in; what a person wrote stays.

    A cell is recognised by its id, which JupyterLab keeps. Where the notebook still has the slide type
    that the build gave it, the source's own word (often none) is restored.
    """
    by_id = {
        cell_id(i): (written, built.slide)
        for i, (written, built) in enumerate(zip(source, with_slides(source), strict=True))
    }
    found = []
    for i, cell in enumerate(edited):
        written, built = by_id.get(cell.id.partition("-")[2], (None, None))
        if written is not None and cell.slide == built:
            cell = replace(cell, slide=written.slide)
        elif cell.slide == default_slide(cell, first=i == 0):
            cell = replace(cell, slide=None)
        found.append(cell)
    return found
