"""The rules of a lesson: what its cells may be, what an excursion may not do, what outputs are fit to be kept."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from markdown_it import MarkdownIt
from nbformat import NotebookNode

from publish.lessons.cells import EXCURSION, Cell, in_excursions, where
from publish.lessons.lessons import to_cell
from publish.lessons.minutes import FORMULA
from publish.lessons.numbers import distance_problems, well_formed
from publish.notebooks import ROOT, alt_of, shown, tags_of

MAX_LINES = 15
MAX_WIDTH = 110  # what JupyterLab shows on a small laptop without scrolling
UNCHECKED = "nbval-ignore-output"
NAME = r"[a-z][a-z0-9_]*"
WIDGET = "application/vnd.jupyter.widget-view+json"
FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
# What differs from one machine or one run to the next must not be printed by a lesson.
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|tmp|usr|opt|var)/\S+|[A-Z]:\\\S+|\S*site-packages\S*|0x[0-9a-f]{6,}|"
    + re.escape(str(ROOT))
)


def source_problems(cells: Sequence[Cell]) -> list[str]:
    """What is wrong with a lesson's cells, as far as one can tell without running them."""
    if not cells:
        return ["the lesson has no cells"]
    found = [f"{where(n, cell)} {problem}" for n, cell in enumerate(cells, 1) for problem in _cell_problems(cell)]
    found += _excursion_problems(cells)
    names = Counter(cell.figure for cell in cells if cell.figure)
    return found + [f"two cells have the figure name {name!r}" for name, count in names.items() if count > 1]


def _cell_problems(cell: Cell) -> Iterator[str]:
    code, unchecked = cell.kind == "code", UNCHECKED in cell.tags
    if cell.kind == "raw":
        yield "is a raw cell: a lesson has Markdown and code cells only"
    if cell.figure is not None and not re.fullmatch(NAME, str(cell.figure)):
        yield f"has the figure name {cell.figure!r}; expected lower-case letters, digits and _"
    if cell.figure is not None and (not code or cell.live):
        yield "has a figure name, but only a code cell that is not `live` stores a figure"
    if cell.live and not unchecked:
        yield f"is `live`: it needs the tag {UNCHECKED} as well"
    if cell.moving is not None and not (cell.has_slider and re.fullmatch(NAME, str(cell.moving.get("name")))):
        yield f"has moving: {cell.moving}; a live cell with @interact may have it, with a name for its page"
    if cell.within is not None and not well_formed(cell.within):
        yield f"has within: {cell.within!r}; expected a number above 0, or one for each of some words"
    if cell.within is not None and (not code or unchecked):
        yield "has `within`, but only a code cell whose output is compared has numbers to guard"
    if code and cell.lines > MAX_LINES:
        yield f"has {cell.lines} lines; more than {MAX_LINES} belong in attnlib"
    if not code:
        yield from (
            f"shows a `*` at “{text.strip()}”: none begins emphasis between a letter and a sign"
            for text in texts_of(cell.source)
            if "*" in text
        )
    widest = max(map(len, cell.source.splitlines()), default=0)
    if code and widest > MAX_WIDTH:
        yield f"has a line of {widest} characters; wrap it at {MAX_WIDTH}, or a reader has to scroll"


def texts_of(source: str) -> Iterator[str]:
    """The words of a Markdown text, without its marks, formulas and code."""
    for block in MarkdownIt().enable("table").parse(FORMULA.sub("…", source)):
        yield from (one.content for one in block.children or () if one.type == "text")


def _excursion_problems(cells: Sequence[Cell]) -> Iterator[str]:
    """Headings that do not mean what they seem to; code outside that stands where it could need an excursion."""
    begun = False
    for number, (cell, aside) in enumerate(zip(cells, in_excursions(cells), strict=True), 1):
        begun |= aside
        if cell.kind == "markdown":
            yield from (f"{where(number, cell)} {problem}" for problem in _heading_problems(cell, aside=aside))
        elif begun and not aside:
            yield f"{where(number, cell)} stands behind an excursion and could need it: put it before the first"


def _heading_problems(cell: Cell, *, aside: bool) -> Iterator[str]:
    headings = re.findall(r"^#{1,6} .*", FENCED.sub("", cell.source), re.MULTILINE)
    if any(re.match(r"#+ *excursion\b", line, re.IGNORECASE) and not EXCURSION.match(line) for line in headings):
        yield "has a heading that is nearly an excursion's; the form is `## Excursion: title`"
    if cell.starts_excursion:
        if cell.lines > 1:
            yield "holds more than the excursion's heading, and folds only the cells after it: put `+++` below it"
    elif any(map(EXCURSION.match, headings)):
        yield "has an excursion's heading inside: it needs a cell of its own, with `+++` above and below"
    elif aside and any(re.match("##? ", line) for line in headings):
        yield "has a heading inside, at which the excursion would not end: put `+++` above it"


def output_problems(notebook: NotebookNode) -> list[str]:
    """What is wrong with the outputs stored in a notebook."""
    found, runs = [], 0
    for number, node in enumerate(notebook.cells, 1):
        if node.cell_type == "code":
            runs += 1
            name = where(number, to_cell(node))
            if node.execution_count != runs:
                found.append(f"{name} was run as number {node.execution_count}, not as number {runs}")
            found += [f"{name} {problem}" for problem in _problems(node)]
    return found


def raised_untagged(node: NotebookNode) -> bool:
    """Whether a cell stores an error that the lesson does not mean to show."""
    raised = any(out.output_type == "error" for out in node.get("outputs", ()))
    return raised and "raises-exception" not in tags_of(node)


def _problems(node: NotebookNode) -> Iterator[str]:
    tags, pictures = tags_of(node), shown(node.outputs, "image/png")
    named = "figure" in node.metadata
    if "raises-exception" in tags and not any(out.output_type == "error" for out in node.outputs):
        yield "is tagged raises-exception and raised nothing"
    if raised_untagged(node):
        yield "stores an error and is not tagged raises-exception"
    if pictures and not named:
        yield "draws a picture and has no name for it: add `figure: some_name`"
    if named and len(pictures) != 1:
        yield f"has a figure name and draws {len(pictures)} pictures; expected one"
    if any(not alt or alt.startswith("<") for alt in map(alt_of, pictures)):
        yield "draws a picture without alt text: its text/plain says what it shows"
    for output in node.outputs:
        yield from _output_problems(output, ignored=UNCHECKED in tags)
    if "within" in node.metadata:
        yield from distance_problems(node.outputs, node.metadata["within"])


def _output_problems(output: Mapping, *, ignored: bool) -> Iterator[str]:
    if output.get("name") == "stderr" and not ignored:
        yield f"wrote to stderr: {output['text'].strip()[:200]!r}. Print a warning that is meant to be seen"
    if WIDGET in output.get("data", {}):
        yield "shows a widget: tag it live and nbval-ignore-output"
    texts = [output.get("text", ""), output.get("evalue", "")]
    texts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    for match in filter(None, map(MACHINE.search, texts)):
        yield f"prints {match.group()!r}, which is another on every machine"
