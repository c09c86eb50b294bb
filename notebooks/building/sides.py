"""The two sides of a lesson, source and notebook: which was edited since the last build, and what follows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from copy import deepcopy
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache

from nbformat import NotebookNode

from .lessons import (
    METADATA,
    Cell,
    LessonError,
    LessonFiles,
    notebook_text,
    read_notebook,
    read_source,
    to_cell,
    to_cells,
    unrun_notebook,
    where,
)
from .rules import output_problems
from .running import tidy

SHOWS_MINUTES = re.compile(r"\bcourse\.LESSONS\b|\bcourse_map\b")


class State(Enum):
    """How a lesson's source and its notebook stand to each other."""

    CURRENT = "is up to date"
    UNBUILT = "has no notebook yet"
    SOURCE = "was edited in the source since its build"
    NOTEBOOK = "was edited in the notebook since its build"
    CONFLICT = "was edited in the source and in the notebook since its build"
    OUTPUTS = "has outputs that are missing, older than its cells, or not as the build writes them"


def state(lesson: LessonFiles) -> State:
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


def _as_built(lesson: LessonFiles, cells: Sequence[Cell], notebook: NotebookNode) -> bool:
    """Whether the notebook is what a build would write around these outputs, but for JupyterLab's own notes."""
    fresh = _around(lesson, cells, notebook)
    return fresh is not None and not output_problems(fresh) and _without_notes(fresh) == _without_notes(notebook)


def _around(lesson: LessonFiles, cells: Sequence[Cell], notebook: NotebookNode) -> NotebookNode | None:
    """What a build would write, if running gave the outputs that a notebook has (None: it has others to fill)."""
    fresh = not_yet_run(lesson, cells)
    new, old = code_of(fresh), code_of(notebook)
    if len(fresh.cells) != len(notebook.cells) or len(new) != len(old):
        return None
    return _filled(fresh, old)


def _filled(fresh: NotebookNode, old: Sequence[NotebookNode]) -> NotebookNode:
    for node, kept in zip(code_of(fresh), old, strict=True):
        node.outputs, node.execution_count = deepcopy(kept.outputs), kept.execution_count
    tidy(fresh)
    return fresh


def _without_notes(notebook: NotebookNode) -> str:
    """A notebook less what JupyterLab writes into it on opening, folding and saving."""
    plain = deepcopy(notebook)
    plain.metadata = NotebookNode(attnlib=notebook.metadata.get("attnlib", {}))
    for node in plain.cells:
        node.metadata = NotebookNode({key: node.metadata[key] for key in METADATA if key in node.metadata})
    return notebook_text(plain)


def without_notes(lesson: LessonFiles) -> str | None:
    """What a notebook that is up to date should hold (None: it does), once JupyterLab has left its notes in it."""
    if state(lesson) is not State.CURRENT:
        return None
    fresh = _around(lesson, sources(lesson), read_notebook(lesson.notebook))
    text = notebook_text(fresh)
    return text if text != lesson.notebook.read_text("utf-8") else None


def not_yet_run(lesson: LessonFiles, cells: Sequence[Cell]) -> NotebookNode:
    """The notebook of a lesson, not yet run; one that shows the lessons' minutes says which it was built with."""
    notebook = unrun_notebook(cells, lesson.number)
    if any(cell.kind == "code" and SHOWS_MINUTES.search(cell.source) for cell in cells):
        known = lesson.course.minutes.read_bytes() if lesson.course.minutes.exists() else b""
        notebook.metadata["attnlib"]["minutes"] = hashlib.sha256(known).hexdigest()[:12]
    return notebook


def with_old_outputs(lesson: LessonFiles, cells: Sequence[Cell]) -> NotebookNode | None:
    """The lesson's notebook with the outputs of its last build, where only prose has changed since (None: more has).

    The outputs are then still those of the code. Whether they are those of `attnlib` as it is now, `make test` says.
    """
    if state(lesson) not in (State.SOURCE, State.CURRENT):
        return None
    old, fresh = read_notebook(lesson.notebook), not_yet_run(lesson, cells)
    if [*map(_what_runs, code_of(old))] != [*map(_what_runs, code_of(fresh))]:
        return None
    if old.metadata["attnlib"].get("minutes") != fresh.metadata["attnlib"].get("minutes"):
        return None
    filled = _filled(fresh, code_of(old))
    return None if output_problems(filled) else filled


def code_of(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells of a notebook."""
    return [node for node in notebook.cells if node.cell_type == "code"]


def _what_runs(node: NotebookNode) -> tuple[object, ...]:
    cell = to_cell(node)
    return cell.source, cell.tags, cell.figure


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


def advice(lesson: LessonFiles) -> str:
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
    State.SOURCE: "`make build` runs it, if its code has changed, and writes the notebook.",
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
    """The fingerprints of cells as they are now."""
    return [cell.digest() for cell in cells]


def changed(before: Sequence[str], after: Sequence[Cell]) -> list[str]:
    """Name the cells of ``after`` that differ from the fingerprints ``before``, a line each."""
    names = []
    for what, i, j, k, m in SequenceMatcher(None, before, digests(after), autojunk=False).get_opcodes():
        if what == "delete":
            names += [f"cell {n + 1} is gone" for n in range(i, j)]
        elif what != "equal":
            names += [where(n + 1, after[n]) for n in range(k, m)]
    return names
