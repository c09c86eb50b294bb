"""A lesson without its excursions: run so, does it still show what it shows?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from nbformat import NotebookNode

from .cells import Cell
from .excursions import in_excursions
from .lessons import LessonError, LessonFiles, read_notebook, tags_of, to_cell, where
from .numbers import settle, texts
from .pictures import differences
from .rules import UNCHECKED
from .running import run, tidy


def without_excursions(notebook: NotebookNode) -> NotebookNode:
    """A notebook's cells outside its excursions."""
    core = deepcopy(notebook)
    aside = in_excursions([to_cell(node) for node in core.cells])
    core.cells = [node for node, out in zip(core.cells, aside, strict=True) if not out]
    return core


def could_need_one(cells: Sequence[Cell]) -> bool:
    """Does any code outside stand behind an excursion? What stands before all of them cannot need one."""
    aside = in_excursions(cells)
    first = aside.index(True) if True in aside else len(cells)
    return any(cell.kind == "code" and not out for cell, out in zip(cells[first:], aside[first:], strict=True))


def core_problems(lesson: LessonFiles) -> list[str]:
    """What goes wrong, or is shown differently, when a lesson is run without its excursions."""
    stored = without_excursions(read_notebook(lesson.notebook))
    fresh = deepcopy(stored)
    try:
        run(fresh, lesson.notebook.parent)
    except LessonError as error:
        return [str(error)]
    tidy(fresh)
    pairs = enumerate(zip(stored.cells, fresh.cells, strict=True), 1)
    return [
        f"{where(number, to_cell(old))} then shows something else: {problem}"
        for number, (old, new) in pairs
        if old.cell_type == "code" and UNCHECKED not in tags_of(old)
        for problem in shown_otherwise(old, new)
    ]


def shown_otherwise(stored: NotebookNode, fresh: NotebookNode) -> Iterator[str]:
    """What a cell shows, run again, that is not what it stores, beyond what may move."""
    kinds = [[kind for kind, _, _ in texts(node.outputs)] for node in (stored, fresh)]
    if kinds[0] != kinds[1]:
        yield f"{kinds[0]} are stored, a run gives {kinds[1]}"
    if wrong := settle(stored.outputs, fresh.outputs, stored.metadata.get("within"))[1]:
        yield wrong
    if wrong := differences(stored.outputs, fresh.outputs, tags_of(stored)):
        yield wrong
