"""Slides, filled from what was chosen: at most five lines, or one formula, or one figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from . import prose
from .choosing import chosen
from .pieces import MAX_LINES, Piece, Section, items

ALONE = ("figure",)
SHOWN = ("formula", "output", "table", "code", "list")
CLAIMS, SUMMARY = "What people get wrong", "Summary"


@dataclass
class Slide:
    """One slide: a heading or none, what it shows step by step, and what is said."""

    section: str
    heading: str = ""
    pieces: list[Piece] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kind: str = "plain"
    moving: str = ""  # the moving figure below it

    @property
    def lines(self) -> int:
        """Lines of text, code and output."""
        return sum(piece.lines for piece in self.pieces if piece.kind != "formula")

    @property
    def said(self) -> list[str]:
        """The notes; over a figure that no prose speaks of, its description."""
        return self.notes or [piece.alt for piece in self.pieces if piece.kind == "figure"]

    @property
    def shows(self) -> str:
        """The kind of evidence that it shows, or nothing."""
        return next((piece.kind for piece in self.pieces if piece.kind in (*ALONE, *SHOWN)), "")


def slides(sections: Iterable[Section]) -> list[Slide]:
    """The slides of the sections, in order."""
    found = []
    for section in sections:
        pieces = chosen(section)
        if section.heading == SUMMARY:
            found += _summary(pieces)
        elif section.heading == CLAIMS:
            found += _claims(pieces)
        else:
            found += _packed(section.heading, pieces)
    return found


def _packed(heading: str, pieces: Sequence[Piece]) -> list[Slide]:
    found = [Slide(heading, heading)]
    for piece in pieces:
        slide = found[-1]
        if piece.kind == "notes":
            slide.notes.append(piece.body)
        elif piece.kind == "moving":
            slide.moving = piece.body
        elif piece.kind == "break":
            if slide.pieces:
                found.append(Slide(heading))
        elif _goes_on(slide, piece):
            slide.pieces.append(piece)
        else:
            found.append(_begun(slide, piece, heading))
    return [_stopped(slide) for slide in _without_bare(found)]


def _begun(before: Slide, piece: Piece, heading: str) -> Slide:
    """A new slide for a piece that does not fit; a formula takes along the sentence that leads to it."""
    slide = Slide(heading)
    if piece.kind == "formula" and len(before.pieces) > 1 and before.pieces[-1].name == "lead":
        slide.pieces.append(before.pieces.pop())
        slide.notes += before.notes[-1:]  # what is said of it is said of both
    if piece.kind == "finding":  # apart from its numbers it is a sentence like any other
        piece = replace(piece, kind="text")
    slide.pieces.append(piece)
    return slide


def _stopped(slide: Slide) -> Slide:
    """A colon that announces nothing on this slide is a full stop."""
    for i, piece in enumerate(slide.pieces):
        after = slide.pieces[i + 1].kind if i + 1 < len(slide.pieces) else ""
        if piece.kind == "text" and piece.body.endswith((":", ",")) and after not in SHOWN:
            slide.pieces[i] = replace(piece, body=piece.body[:-1] + ".")
    return slide


def _goes_on(slide: Slide, piece: Piece) -> bool:
    """Whether a piece still fits on a slide and belongs there."""
    if slide.shows in ALONE or piece.kind in ALONE:
        return not slide.pieces and not slide.heading
    if piece.kind == "formula":
        return slide.shows != "formula" and slide.lines <= MAX_LINES - 2
    if piece.kind == "table":
        return not slide.shows and slide.lines + piece.lines <= MAX_LINES + (not slide.pieces)
    if slide.lines + piece.lines > (MAX_LINES - 2 if slide.shows == "formula" else MAX_LINES):
        return False
    if slide.shows and piece.kind in SHOWN:
        return False
    return not slide.shows or piece.kind in ("finding", "text") or slide.shows == "formula"


def _without_bare(found: list[Slide]) -> list[Slide]:
    """A slide that only says is said over the one before it."""
    kept: list[Slide] = []
    for slide in found:
        if slide.pieces or (slide.heading and not kept):
            kept.append(slide)
        elif kept:
            kept[-1].notes += slide.notes
    return kept


def _claims(pieces: Sequence[Piece]) -> list[Slide]:
    """A slide for each claim: what is said, what became of it, and its number."""
    found: list[Slide] = []
    for piece in pieces:
        if piece.kind == "claim":
            found.append(Slide(CLAIMS, f"“{piece.body}”", kind="claim"))
        elif found and piece.kind == "notes":
            found[-1].notes.append(piece.body)
        elif found and piece.kind != "break":
            if piece.kind in ALONE or found[-1].lines + piece.lines > MAX_LINES:
                if piece.kind in ("finding", "text"):
                    continue
                found.append(Slide(CLAIMS, kind="claim"))
            found[-1].pieces.append(piece)
    return found


def _summary(pieces: Sequence[Piece]) -> list[Slide]:
    """What was found, on one slide or two, and the question that is left."""
    found, end, left = [], Slide(SUMMARY, kind="end"), ""
    for piece in pieces:
        if piece.kind == "list":
            points = piece.body.splitlines()
            for part in _halves(points):
                body = "\n".join(part)
                found.append(Slide(SUMMARY, "Summary", [Piece("list", body)], kind="summary"))
        elif piece.kind == "notes" and piece.body.startswith("- "):
            for slide in found:
                slide.notes.append(piece.body)
            # What its last item says beyond its first sentence leads on, where nothing else does.
            left = " ".join(prose.sentences(items(piece.body)[-1])[1:])
        elif piece.kind == "notes" and found:
            end.notes.append(piece.body)
    last = end.notes[-1] if end.notes else left
    end.pieces = [Piece("text", " ".join(prose.sentences(last)))] if last else []
    return [*found, end]


def _halves(points: list[str]) -> list[list[str]]:
    if Piece("list", "\n".join(points)).lines <= MAX_LINES:
        return [points]
    half = (len(points) + 1) // 2
    return [points[:half], points[half:]]
