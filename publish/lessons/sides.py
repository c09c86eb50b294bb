"""The two sides of a lesson, source and notebook: which was edited since the last build, and what follows.

The notebook holds the fingerprints of the cells that it was built from. `state` compares these with the cells of
both sides, and is the one place that decides; `kept` says what a build need not run again.
"""

import hashlib
import re
from collections.abc import Sequence
from copy import deepcopy
from difflib import SequenceMatcher
from enum import Enum

from nbformat import NotebookNode

from publish.lessons.cells import Cell, where
from publish.lessons.lessons import (
    METADATA,
    LessonFiles,
    notebook_text,
    read_notebook,
    sources,
    to_cell,
    to_cells,
    unrun_notebook,
)
from publish.lessons.rules import output_problems
from publish.lessons.running import tidy
from publish.notebooks import code_of

SHOWS_MINUTES = re.compile(r"\bcourse\.LESSONS\b|\bcourse_map\b")


class State(Enum):
    """How a lesson's source and its notebook stand to each other."""

    CURRENT = "is up to date"
    UNBUILT = "has no notebook yet"
    SOURCE = "was edited in the source since its build"
    NOTEBOOK = "was edited in the notebook since its build"
    CONFLICT = "was edited in the source and in the notebook since its build"
    OUTPUTS = "has outputs that are missing, older than its cells, or not as the build writes them"


REMEDY = {
    State.CURRENT: "",
    State.UNBUILT: ": make build NB={n}",
    State.OUTPUTS: ": make build NB={n}",
    State.SOURCE: "`make build` runs it, if its code has changed, and writes the notebook.",
    State.NOTEBOOK: "`make pull NB={n}` keeps the edit: it writes it to the source. "
    "`make build NB={n} FORCE=1` discards it (a copy is left beside, as .bak).",
    State.CONFLICT: "`make pull NB={n} FORCE=1` takes the notebook's cells, `make build NB={n} FORCE=1` "
    "the source's. The other side is copied to a .bak file first.",
}


def state(lesson: LessonFiles) -> State:
    """Compare a lesson's source, its notebook, and the fingerprints of the last build."""
    if not lesson.notebook.exists():
        return State.UNBUILT
    cells, notebook = sources(lesson), read_notebook(lesson.notebook)
    built, source, here = _built(notebook), digests(cells), digests(to_cells(notebook))
    if source == here:
        fresh = _with_outputs(lesson, cells, notebook)
        settled = source == built and fresh is not None and _without_notes(fresh) == _without_notes(notebook)
        return State.CURRENT if settled else State.OUTPUTS
    if here == built:
        return State.SOURCE
    return State.NOTEBOOK if source == built else State.CONFLICT


def edited_notebook(found: State) -> bool:
    """Whether a build would overwrite somebody's edit."""
    return found in (State.NOTEBOOK, State.CONFLICT)


def kept(lesson: LessonFiles, cells: Sequence[Cell]) -> NotebookNode | None:
    """The notebook that a build writes, if only prose has changed since the last one (None: more has).

    Its outputs are still those of the code. Whether they are those of `attnlib` as it is now, `make test` says.
    """
    if state(lesson) not in (State.SOURCE, State.CURRENT):
        return None
    return _with_outputs(lesson, cells, read_notebook(lesson.notebook))


def without_notes(lesson: LessonFiles) -> str | None:
    """What a notebook that is up to date should hold (None: it does), once JupyterLab has left its notes in it."""
    if state(lesson) is not State.CURRENT:
        return None
    text = notebook_text(_with_outputs(lesson, sources(lesson), read_notebook(lesson.notebook)))
    return text if text != lesson.notebook.read_text("utf-8") else None


def not_yet_run(lesson: LessonFiles, cells: Sequence[Cell]) -> NotebookNode:
    """The notebook of a lesson, not yet run; one that shows the lessons' minutes says which it was built with."""
    notebook = unrun_notebook(cells, lesson.number)
    if any(cell.kind == "code" and SHOWS_MINUTES.search(cell.source) for cell in cells):
        known = lesson.course.minutes.read_bytes() if lesson.course.minutes.exists() else b""
        notebook.metadata["attnlib"]["minutes"] = hashlib.sha256(known).hexdigest()[:12]
    return notebook


def _with_outputs(lesson: LessonFiles, cells: Sequence[Cell], notebook: NotebookNode) -> NotebookNode | None:
    """What a build would write if running gave the outputs of a notebook (None: they are of other code, or unfit)."""
    fresh = not_yet_run(lesson, cells)
    if _what_runs(fresh) != _what_runs(notebook):
        return None
    for node, old in zip(code_of(fresh), code_of(notebook), strict=True):
        node.outputs, node.execution_count = deepcopy(old.outputs), old.execution_count
    tidy(fresh)
    return None if output_problems(fresh) else fresh


def _what_runs(notebook: NotebookNode) -> tuple[object, ...]:
    cells = map(to_cell, code_of(notebook))
    return notebook.metadata.get("attnlib", {}).get("minutes"), *((c.source, c.tags, c.figure) for c in cells)


def _without_notes(notebook: NotebookNode) -> str:
    """A notebook less what JupyterLab writes into it on opening, folding and saving."""
    plain = deepcopy(notebook)
    plain.metadata = NotebookNode(attnlib=notebook.metadata.get("attnlib", {}))
    for node in plain.cells:
        node.metadata = NotebookNode({key: node.metadata[key] for key in METADATA if key in node.metadata})
    return notebook_text(plain)


def advice(lesson: LessonFiles) -> str:
    """Say how a lesson's source and its notebook stand to each other, and what to do about it."""
    found = state(lesson)
    said = f"{lesson.name} {found.value}"
    if found is State.SOURCE or edited_notebook(found):
        notebook = read_notebook(lesson.notebook)
        said += ".\n"
        if found is not State.SOURCE:
            said += "In the notebook:\n" + _changed(_built(notebook), to_cells(notebook))
        if found is not State.NOTEBOOK:
            said += "In the source:\n" + _changed(_built(notebook), sources(lesson))
    return said + REMEDY[found].format(n=lesson.number)


def _built(notebook: NotebookNode) -> list[str]:
    """The fingerprints of the cells as they were when the notebook was built."""
    return notebook.metadata.get("attnlib", {}).get("cells", "").split()


def digests(cells: Sequence[Cell]) -> list[str]:
    """The fingerprints of cells as they are now."""
    return [cell.digest() for cell in cells]


def _changed(before: Sequence[str], after: Sequence[Cell]) -> str:
    """Name the cells of ``after`` that differ from the fingerprints ``before``, a line each."""
    names = []
    for what, i, j, k, m in SequenceMatcher(None, before, digests(after), autojunk=False).get_opcodes():
        if what == "delete":
            names += [f"cell {n + 1} is gone" for n in range(i, j)]
        elif what != "equal":
            names += [where(n + 1, after[n]) for n in range(k, m)]
    return "".join(f"  {name}\n" for name in names)
