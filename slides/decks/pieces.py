"""What a lesson is made of, in the order of its cells: sections, and in each the pieces that a slide may show."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nbformat import NotebookNode

from building.cells import Cell
from building.excursions import in_excursions
from building.lessons import to_cell

from . import prose

LEFT_OUT = ("Exercises", "Where this comes from", "How exercises work")
NO_LECTURE = ("Summary", "What people get wrong", *LEFT_OUT)
EXERCISE = re.compile(r"\*\*\d\d\.\d+\*\*|.*\b(?:check|hint|solution|progress)\(", re.DOTALL)
CLAIM = re.compile(r"\*\*[\"“](.+?)[\"”]\*\*\s*", re.DOTALL)
RESERVED = re.compile(r"(?:code|output|figure|table|list|no formula|/|lines [\d -]+|from (?:left|below) [\d. ]+)$")
Words = tuple[str, ...] | None  # what the source says of a cell's slides, if it does
UNTOLD = re.compile(r"^Equal, to within .*\n?", re.MULTILINE)
MAX_LINES = 5
MAX_CODE = 8
ACROSS_LIST = 73  # letters on a line of a list, which is set smaller
MAX_ACROSS = 98  # letters of a printed line, at 20 pixels


class DeckError(Exception):
    """A source asks for something that its cell does not have."""


@dataclass(frozen=True)
class Piece:
    """One thing that a slide may show, or prose that the lecturer says: ``kind`` is what it is.

    ``text``, ``question``, ``list`` and ``table`` are Markdown; ``formula`` is TeX with its dollars; ``output`` is
    what a cell printed; ``code`` is Python; ``figure`` is a picture in base64; ``notes`` is a paragraph to be said.
    """

    kind: str
    body: str
    alt: str = ""
    name: str = ""
    steps: str = ""  # from where, and up to which shares of it, a drawing is uncovered
    deck: Words = None
    opens: bool = False  # the first paragraph of its section
    claim: bool = False
    cell: int = 0

    @property
    def lines(self) -> int:
        """On how many lines of a slide it will stand."""
        if self.kind in ("code", "output"):
            return len(self.body.splitlines())
        if self.kind == "list":
            return sum(prose.lines(item, ACROSS_LIST) for item in items(self.body))
        if self.kind == "table":
            return len(self.body.splitlines()) - 1
        return prose.lines(self.body)


@dataclass
class Section:
    """A heading and what stands below it."""

    heading: str
    pieces: list[Piece] = field(default_factory=list)
    title: bool = False  # the lesson's own heading, above all sections


def sections(notebook: NotebookNode) -> list[Section]:
    """The sections that a lecture has: no excursion, exercise, import or reference."""
    cells = [to_cell(node) for node in notebook.cells]
    found: list[Section] = []
    shown: Section | None = None  # the last section of the lecture proper
    for number, (cell, node, aside) in enumerate(zip(cells, notebook.cells, in_excursions(cells), strict=True), 1):
        if cell.moving and shown:  # one of an excursion belongs to what was shown last
            shown.pieces.append(Piece("moving", f"{notebook.cells[0].id[:2]}_{cell.moving['name']}", cell=number))
        if aside or (cell.slide == "skip" and cell.kind == "markdown"):
            continue
        for piece in _pieces(cell, node):
            if piece.kind == "heading":
                found.append(Section(piece.body, title=piece.name == "#"))
                shown = found[-1] if not piece.body.startswith(NO_LECTURE) else shown
            elif found:
                found[-1].pieces.append(replace(piece, cell=number))
    kept = [section for section in found if not section.title and not section.heading.startswith(LEFT_OUT)]
    return [_opened(section) for section in kept]


def _opened(section: Section) -> Section:
    """Mark the first paragraph; a summary is shown whole, whatever a claim in the same cell shows."""
    if section.heading == "Summary":
        section.pieces = [replace(piece, deck=None) for piece in section.pieces]
    for i, piece in enumerate(section.pieces):
        if piece.kind == "paragraph":
            section.pieces[i] = replace(piece, opens=True)
            break
        if piece.kind in ("figure", "output", "list", "table"):
            break
    return section


def _pieces(cell: Cell, node: NotebookNode) -> Iterator[Piece]:
    if cell.kind == "markdown":
        parts = prose.paragraphs(cell.source)
        for part, words in zip(parts, _assigned(parts, cell.deck), strict=True):
            yield from _of_paragraph(part, words)
    elif not cell.live and not EXERCISE.match(_without_imports(cell.source)):
        yield Piece("code", _without_imports(cell.source), deck=cell.deck)
        yield from _outputs(cell, node)


def _assigned(parts: Sequence[str], deck: Words) -> list[Words]:
    """What the source says of a cell, for each of its paragraphs: a quoted sentence is where it stands."""
    if deck is None:
        return [None] * len(parts)
    found: list[list[str]] = [[] for _ in parts]
    last = max((i for i, word in enumerate(deck) if word.endswith("…")), default=-1)
    below = max((i for i, part in enumerate(parts) if part.startswith("#")), default=-1) + 1 if last < 0 else 0
    plain = (i for i, part in enumerate(parts[below:], below) if not part.startswith(("#", "|", "$$", "- ")))
    place = next(plain, len(parts) - 1)
    for i, word in enumerate(deck):
        if RESERVED.match(word) and word != "/":
            found = [[*words, word] for words in found]
            continue
        if word.endswith("…"):
            place = _where(word[:-1].strip(), parts, place)
            if i and deck[i - 1] == "/":
                found[place].append("/")
        elif word == "/" and deck[i + 1 : i + 2] and deck[i + 1].endswith("…"):
            continue
        # Words of its own stand after the sentence before them, and the last ones after all that the cell shows.
        found[place if i <= last or last < 0 else -1].append(word)
    return [tuple(words) for words in found]


def _where(start: str, parts: Sequence[str], place: int) -> int:
    for i, part in enumerate(parts[place:], place):
        body = CLAIM.sub("", part)
        if any(sentence.startswith(start) for sentence in prose.sentences(body)):
            return i
    raise DeckError(f"No sentence begins with {start!r}, in its order, in the cell that begins {parts[0][:50]!r}.")


def _of_paragraph(part: str, words: Words) -> Iterator[Piece]:
    if heading := re.match(r"(##?) (.*)", part):
        yield Piece("heading", heading.group(2), name=heading.group(1))
        if rest := part.partition("\n")[2].strip():
            yield from _of_paragraph(rest, words)
    elif part.startswith("### "):
        yield Piece("subheading", part[4:])
    elif not EXERCISE.match(part):
        kind = {"$$": "formula", "- ": "list", "| ": "table"}.get(part[:2], "paragraph")
        if claim := CLAIM.match(part):
            yield Piece("claim", claim.group(1))
        yield Piece(kind, part[claim.end() :] if claim else part, deck=words, claim=bool(claim))


def _without_imports(code: str) -> str:
    lines = re.sub(r"^(?:import|from) .*\n?", "", code, flags=re.MULTILINE)
    return lines.strip("\n")


def _outputs(cell: Cell, node: NotebookNode) -> Iterator[Piece]:
    claim = any(tag.startswith("claim-") for tag in cell.tags)
    printed = "".join(out.text for out in node.outputs if out.output_type == "stream")
    pictures = [out for out in node.outputs if "image/png" in out.get("data", {})]
    if told := UNTOLD.sub("", printed).strip("\n"):
        yield Piece("output", told, deck=cell.deck, claim=claim)
    for out in node.outputs:
        if out.get("data", {}).get("text/markdown", "").startswith("|"):
            yield Piece("table", out.data["text/markdown"].strip(), deck=cell.deck, claim=claim)
    for out in pictures:
        alt = out.metadata.get("image/png", {}).get("alt", "")
        yield Piece("figure", out.data["image/png"], html.unescape(alt), cell.figure or "", _steps(cell), cell.deck)


def _steps(cell: Cell) -> str:
    """Where a drawing is cut into steps: ``left 0.3 0.6`` shows it in three."""
    return next((word.removeprefix("from ") for word in cell.deck or () if word.startswith("from ")), "")


def items(markdown: str) -> list[str]:
    """The items of a list."""
    return [" ".join(item.split()) for item in re.split(r"^- ", markdown, flags=re.MULTILINE) if item.strip()]


def readable(printed: str) -> str:
    """What ``show`` printed, for a slide: a name in words, an array of one row beside its name, without its shape."""
    printed = re.sub(r"^(\w+) +\(\d[\d, ]*\)\n(\[+[^\[\]\n]*\]+)$", r"\1  \2", printed, flags=re.MULTILINE)
    printed = re.sub(r"^\w+(?= )", lambda name: name.group().replace("_", " "), printed, flags=re.MULTILINE)
    return textwrap.dedent(printed)


def fits(piece: Piece) -> bool:
    """Whether something printed can be read from the last row."""
    printed = piece.body.splitlines()
    return len(printed) <= MAX_LINES and max(map(len, printed), default=0) <= MAX_ACROSS


def presentable(piece: Piece) -> bool:
    """Whether something printed is worth a slide without being named: short, and no array's shape above its rows."""
    return fits(piece) and not re.search(r"\((?:\d+, ?)+\d*\)\n\[|^\[\[|torch|Equivariant|Error", piece.body, re.M)


def table_fits(rows: Sequence[str]) -> bool:
    """Whether a table is small enough to be read."""
    return len(rows) <= 8 and all(len(prose.plain(row)) <= 130 for row in rows)
