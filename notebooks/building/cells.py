"""A cell of a lesson, reduced to what the course keeps of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field


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

    def metadata(self) -> dict[str, object]:
        """The metadata that is written to a file, in one fixed order."""
        found: dict[str, object] = {}
        if self.tags:
            found["tags"] = list(self.tags)
        if self.figure is not None:
            found["figure"] = self.figure
        if self.within is not None:
            found["within"] = self.within
        if self.moving is not None:
            found["moving"] = self.moving
        return found

    def digest(self) -> str:
        """A short fingerprint of everything that is kept."""
        kept = json.dumps([self.kind, self.source, self.metadata()], sort_keys=True)
        return hashlib.sha256(kept.encode()).hexdigest()[:12]
