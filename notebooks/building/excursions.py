"""Excursions: sections that a reader may leave out, from a heading `## Excursion: ...` to the next `#` or `##`.

They are folded in JupyterLab and in the book, counted apart, and nothing outside needs
what they compute.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator, Sequence
from types import CodeType

from .cells import Cell

HEADING = re.compile(r"## Excursion: \S.*")
FOLDED = "jp-MarkdownHeadingCollapsed"  # JupyterLab's own name, in a cell's metadata
FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)


def in_excursions(cells: Sequence[Cell]) -> list[bool]:
    """Whether each cell belongs to an excursion."""
    found, inside = [], False
    for cell in cells:
        if cell.kind == "markdown" and re.match(r"##? ", cell.source):
            inside = starts(cell)
        found.append(inside)
    return found


def starts(cell: Cell) -> bool:
    """Whether a cell is the heading of an excursion."""
    return cell.kind == "markdown" and bool(HEADING.match(cell.source))


def core(cells: Sequence[Cell]) -> list[Cell]:
    """The lesson without its excursions."""
    return [cell for cell, aside in zip(cells, in_excursions(cells), strict=True) if not aside]


def excursion_problems(cells: Sequence[Cell]) -> Iterator[tuple[int, str]]:
    """What is wrong with a lesson's excursions: the index of a cell, and what is wrong with it."""
    for index, (cell, aside) in enumerate(zip(cells, in_excursions(cells), strict=True)):
        if cell.kind == "markdown":
            yield from ((index, problem) for problem in _heading_problems(cell, aside=aside))
    for index, names in _needed(cells):
        yield (
            index,
            (
                f"needs {', '.join(sorted(names))} from an excursion before it. "
                "Define it outside, or give what the excursion binds a name of its own"
            ),
        )


def _heading_problems(cell: Cell, *, aside: bool) -> Iterator[str]:
    headings = re.findall(r"^#{1,6} .*", FENCED.sub("", cell.source), re.MULTILINE)
    if any(re.match(r"#+ *excursion\b", line, re.IGNORECASE) and not HEADING.match(line) for line in headings):
        yield "has a heading that is nearly an excursion's; the form is `## Excursion: title`"
    if starts(cell):
        if cell.lines > 1:
            yield "holds more than the excursion's heading, and folds only the cells after it: put `+++` below it"
    elif any(map(HEADING.match, headings)):
        yield "has an excursion's heading inside: it needs a cell of its own, with `+++` above and below"
    elif aside and any(re.match("##? ", line) for line in headings):
        yield "has a heading inside, at which the excursion would not end: put `+++` above it"


def _needed(cells: Sequence[Cell]) -> Iterator[tuple[int, set[str]]]:
    """Cells outside that read names which an excursion bound last: missing without it, or something else."""
    bound: set[str] = set()
    for index, (cell, aside) in enumerate(zip(cells, in_excursions(cells), strict=True)):
        if cell.kind != "code":
            continue
        reads, binds = names(cell.source)
        if aside:
            bound |= binds
        else:
            if reads & bound:
                yield index, reads & bound
            bound -= binds


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell reads from cells before it, and those that it binds, as the compiler sees them."""
    try:
        code = compile(source, "cell", "exec", dont_inherit=True)
    except SyntaxError:  # a line for IPython only, or an error that the lesson shows
        return set(), set()
    return _names(code)


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    reads, binds, inner = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            binds.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "DELETE_NAME") and step.argval not in binds:
            reads.add(step.argval)
        elif isinstance(step.argval, CodeType):
            inner |= _names(step.argval)[0]
    # A function runs later: what the cell binds anywhere is there by then.
    return reads | (inner - binds), binds
