"""The rules of a lesson: what its cells may be, and what outputs are fit to be kept."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nbformat import NotebookNode

from .cells import Cell
from .excursions import excursion_problems
from .lessons import raised_untagged, tags_of, to_cell, where
from .live import has_slider
from .numbers import distance_problems, well_formed

MAX_LINES = 15
MAX_WIDTH = 110  # what JupyterLab shows on a small laptop without scrolling
UNCHECKED = "nbval-ignore-output"
NAME = r"[a-z][a-z0-9_]*"
LIVE_TAGS = ("live", UNCHECKED)
WIDGET = "application/vnd.jupyter.widget-view+json"
ROOT = Path(__file__).resolve().parent.parent.parent
# What differs from one machine or one run to the next must not be printed by a lesson.
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|tmp|usr|opt|var)/\S+|[A-Z]:\\\S+|\S*site-packages\S*|0x[0-9a-f]{6,}|"
    + re.escape(str(ROOT))
)


def source_problems(cells: Sequence[Cell]) -> list[str]:
    """What is wrong with a lesson's cells, as far as one can tell without running them."""
    if not cells:
        return ["the lesson has no cells"]
    found = [problem for number, cell in enumerate(cells, 1) for problem in _cell_problems(where(number, cell), cell)]
    found += [f"{where(index + 1, cells[index])} {problem}" for index, problem in excursion_problems(cells)]
    names = Counter(cell.figure for cell in cells if cell.figure)
    found += [f"two cells have the figure name {name!r}" for name, count in names.items() if count > 1]
    return found


def _cell_problems(name: str, cell: Cell) -> Iterable[str]:
    if cell.kind == "raw":
        yield f"{name} is a raw cell: a lesson has Markdown and code cells only"
    if cell.figure is not None and not re.fullmatch(NAME, str(cell.figure)):
        yield f"{name} has the figure name {cell.figure!r}; expected lower-case letters, digits and _"
    if cell.figure is not None and (cell.kind != "code" or cell.live):
        yield f"{name} has a figure name, but only a code cell that is not `live` stores a figure"
    if cell.live and not set(LIVE_TAGS) <= set(cell.tags):
        yield f"{name} is `live`: it needs the tag nbval-ignore-output as well"
    if cell.moving is not None and not (has_slider(cell) and re.fullmatch(NAME, str(cell.moving.get("name")))):
        yield f"{name} has moving: {cell.moving}; a live cell with @interact may have it, with a name for its page"
    if cell.within is not None:
        yield from _within_problems(name, cell)
    if cell.kind == "code" and cell.lines > MAX_LINES:
        yield f"{name} has {cell.lines} lines; more than {MAX_LINES} belong in attnlib"
    widest = max(map(len, cell.source.splitlines()), default=0)
    if cell.kind == "code" and widest > MAX_WIDTH:
        yield f"{name} has a line of {widest} characters; wrap it at {MAX_WIDTH}, or a reader has to scroll"


def _within_problems(name: str, cell: Cell) -> Iterable[str]:
    if not well_formed(cell.within):
        yield f"{name} has within: {cell.within!r}; expected a number above 0, or one for each of some words"
    if cell.kind != "code" or UNCHECKED in cell.tags:
        yield f"{name} has `within`, but only a code cell whose output is compared has numbers to guard"


def median_lines(cells: Sequence[Cell]) -> float:
    """The median number of lines of the code cells."""
    return statistics.median([cell.lines for cell in cells if cell.kind == "code"] or [0])


def output_problems(notebook: NotebookNode) -> list[str]:
    """What is wrong with the outputs stored in a notebook."""
    found = []
    runs = 0
    for number, node in enumerate(notebook.cells, 1):
        if node.cell_type == "code":
            runs += 1
            name = where(number, to_cell(node))
            if node.execution_count != runs:
                found.append(f"{name} was run as number {node.execution_count}, not as number {runs}")
            found += [f"{name} {problem}" for problem in _problems(node)]
    return found


def _problems(node: NotebookNode) -> Iterable[str]:
    tags = tags_of(node)
    pictures = [out for out in node.outputs if "image/png" in out.get("data", {})]
    named = "figure" in node.metadata
    if "raises-exception" in tags and not any(out.output_type == "error" for out in node.outputs):
        yield "is tagged raises-exception and raised nothing"
    if raised_untagged(node):
        yield "stores an error and is not tagged raises-exception"
    if pictures and not named:
        yield "draws a picture and has no name for it: add `figure: some_name`"
    if named and len(pictures) != 1:
        yield f"has a figure name and draws {len(pictures)} pictures; expected one"
    alts = [out.metadata.get("image/png", {}).get("alt", "") for out in pictures]
    if any(not alt or alt.startswith("<") for alt in alts):
        yield "draws a picture without alt text: its text/plain says what it shows"
    for output in node.outputs:
        yield from _output_problems(output, ignored=UNCHECKED in tags)
    if "within" in node.metadata:
        yield from distance_problems(node.outputs, node.metadata["within"])


def _output_problems(output: Mapping, *, ignored: bool) -> Iterable[str]:
    if output.get("name") == "stderr" and not ignored:
        yield f"wrote to stderr: {output['text'].strip()[:200]!r}. Print a warning that is meant to be seen"
    if WIDGET in output.get("data", {}):
        yield "shows a widget: tag it live and nbval-ignore-output"
    texts = [output.get("text", ""), output.get("evalue", "")]
    texts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    for match in filter(None, map(MACHINE.search, texts)):
        yield f"prints {match.group()!r}, which is another on every machine"
