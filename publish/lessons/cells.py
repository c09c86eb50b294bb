"""A cell of a lesson, reduced to what the course keeps of it, and the excursions that cells belong to.

An excursion is a section that a reader may leave out, from a heading `## Excursion: ...` to the next `#` or `##`. It
is folded in JupyterLab and in the book, counted apart, and nothing outside needs what it computes.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

EXCURSION = re.compile(r"## Excursion: \S.*")


@dataclass(frozen=True)
class Cell:
    """One cell, reduced to what the course keeps."""

    kind: str
    source: str
    tags: tuple[str, ...] = ()
    figure: str | None = None
    within: float | dict[str, float] | None = field(default=None, hash=False)
    moving: dict[str, object] | None = field(default=None, hash=False)
    id: str = field(default="", compare=False)

    @property
    def lines(self) -> int:
        """Number of lines that are not blank."""
        return sum(bool(line.strip()) for line in self.source.splitlines())

    @property
    def first_line(self) -> str:
        """The first line with something on it, to recognise the cell by."""
        return next((line.strip() for line in self.source.splitlines() if line.strip()), "")

    @property
    def live(self) -> bool:
        """Whether the output lives only in a running notebook and is not stored."""
        return "live" in self.tags

    @property
    def has_slider(self) -> bool:
        """Is this a cell with `@interact`?"""
        return self.kind == "code" and self.live and "@interact" in self.source

    @property
    def starts_excursion(self) -> bool:
        """Is this the heading of an excursion?"""
        return self.kind == "markdown" and bool(EXCURSION.match(self.source))

    def metadata(self) -> dict[str, object]:
        """The metadata that is written to a file, in one fixed order."""
        found = {"tags": list(self.tags) or None, "figure": self.figure, "within": self.within, "moving": self.moving}
        return {key: value for key, value in found.items() if value is not None}

    def digest(self) -> str:
        """A short fingerprint of everything that is kept."""
        kept = json.dumps([self.kind, self.source, self.metadata()], sort_keys=True)
        return hashlib.sha256(kept.encode()).hexdigest()[:12]


def where(number: int, cell: Cell) -> str:
    """Name a cell in a message, by its place and its first line."""
    line = cell.first_line
    return f"cell {number} (`{line if len(line) <= 60 else line[:57] + '...'}`)"


def in_excursions(cells: Sequence[Cell]) -> list[bool]:
    """Whether each cell belongs to an excursion."""
    found, inside = [], False
    for cell in cells:
        if cell.kind == "markdown" and re.match(r"##? ", cell.source):
            inside = cell.starts_excursion
        found.append(inside)
    return found


def core(cells: Sequence[Cell]) -> list[Cell]:
    """The lesson without its excursions."""
    return [cell for cell, aside in zip(cells, in_excursions(cells), strict=True) if not aside]
