"""What is shown of a section, by rule or by the word of its source, and what is said.

A rule shows the sentences that open a section, formulas and figures with the sentence that leads to them, questions,
the short output that answers one, and the sentence after it. A cell's ``deck`` says otherwise: see slides/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from . import prose
from .pieces import Piece, Section, fits, items, presentable, table_fits

EVIDENCE = ("formula", "figure", "output", "table", "list")
RESERVED = re.compile(r"(?:code|output|figure|table|list|no formula|/|lines [\d -]+|from left [\d. ]+)$")
OPENING, VERDICT, FINDING, LEAD = 3, 2, 2, 3  # at most so many lines


class DeckError(Exception):
    """A source asks for something that its cell does not have."""


def chosen(section: Section) -> list[Piece]:
    """The pieces of a section that are shown, in order, with the paragraphs to be said between them."""
    return list(_Choice(section).run())


class _Choice:
    """One walk through a section."""

    def __init__(self, section: Section):
        self.pieces = section.pieces
        self.evidence = {i for i in range(len(self.pieces)) if self._is_evidence(i)}
        self.leads = {lead for i in self.evidence if (lead := self._before(i)) is not None}
        self.after_output = False  # the next paragraph says what was found
        self.waiting: dict[int, list[str]] = {}  # what the source wants of a cell and has not been met yet

    def run(self) -> Iterator[Piece]:
        for i, piece in enumerate(self.pieces):
            yield from self._of(i, piece)
            self._nothing_left(i, piece)

    def _of(self, i: int, piece: Piece) -> Iterator[Piece]:
        if piece.kind == "paragraph":
            yield from self._of_paragraph(i, piece)
            yield replace(piece, kind="notes")
            return
        if piece.kind == "subheading":
            yield replace(piece, kind="break")
        if piece.kind in ("claim", "subheading"):
            self.after_output = False
            yield piece
        elif i in self.evidence:
            yield from self._own_words(piece)
            yield _cut(piece)
            self.after_output = piece.kind == "output"
        if piece.kind in ("formula", "list"):
            yield replace(piece, kind="notes")

    # What counts as evidence.

    def _is_evidence(self, i: int) -> bool:
        piece, deck = self.pieces[i], self.pieces[i].deck
        if piece.kind == "formula":
            return "no formula" not in (deck or ())
        if piece.kind == "figure":
            return deck != ()
        if piece.kind == "code":
            return "code" in (deck or ())
        if piece.kind in ("list", "table") and deck is None:
            return len(items(piece.body)) <= 5 if piece.kind == "list" else table_fits(piece.body.splitlines())
        if piece.kind != "output" or deck is not None:
            return piece.kind in (deck or ()) or any(word.startswith("lines ") for word in deck or ())
        return fits(piece) if piece.claim else presentable(piece) and self._answers(i)

    def _answers(self, i: int) -> bool:
        """Is an output the first thing that is shown after a question, or the only evidence of its section?"""
        for j in range(i - 1, -1, -1):
            piece = self.pieces[j]
            if piece.kind in ("claim", "figure") or piece.kind == "output" and presentable(piece):
                return False
            if piece.kind == "paragraph" and prose.question_in(piece.body):
                return not self._drawn_next(i)
        return not any(piece.kind in ("figure", "claim", "formula") for piece in self.pieces)

    def _drawn_next(self, i: int) -> bool:
        for piece in self.pieces[i + 1 :]:
            if piece.kind == "figure":
                return True
            if piece.kind == "paragraph":
                return False
        return False

    def _before(self, i: int) -> int | None:
        """The paragraph that leads to a piece of evidence, if nothing else is shown between them."""
        for j in range(i - 1, -1, -1):
            if self.pieces[j].kind == "paragraph":
                return j
            if j in self.evidence or self.pieces[j].kind == "claim":
                return None
        return None

    # What is shown of prose.

    def _of_paragraph(self, i: int, piece: Piece) -> Iterator[Piece]:
        if piece.deck is not None:
            yield from self._as_told(piece)
        elif piece.claim:
            yield _text(piece, prose.first(prose.sentences(piece.body), VERDICT), "verdict")
        else:
            yield from self._by_rule(i, piece)
        self.after_output = False

    def _by_rule(self, i: int, piece: Piece) -> Iterator[Piece]:
        question = prose.question_in(piece.body)
        told = [sentence for sentence in prose.sentences(piece.body) if not _within(sentence, question)]
        shown: list[str] = []
        if piece.opens:
            shown = prose.first(told, OPENING)
        elif self.after_output:
            shown = prose.first(told, 1) if told else []
        kind = "finding" if self.after_output else "text"
        if i in self.leads and not question and told and not piece.opens:
            lead = next((one for one in reversed(told) if one.endswith("?")), told[-1])
            if lead not in shown and lead[:1] != lead[:1].lower():
                shown.append(lead)
        if shown and (kind == "text" or prose.lines(" ".join(shown)) <= FINDING + LEAD):
            yield _text(piece, shown, kind)
        if question:
            yield _text(piece, [question], "question")

    def _as_told(self, piece: Piece) -> Iterator[Piece]:
        """What the source names of a paragraph: sentences by their first words, and words of its own between them."""
        wanted = self.waiting.setdefault(piece.cell, list(piece.deck or ()))
        here = prose.sentences(piece.body)
        while wanted:
            word = wanted[0]
            if word == "/":
                yield replace(piece, kind="break", body="")
            elif word.endswith("…"):
                sentence = next((one for one in here if one.startswith(word[:-1].strip())), None)
                if sentence is None:
                    return
                yield _text(piece, [sentence], "question" if prose.question_in(sentence) else "text")
            elif not RESERVED.match(word):
                yield _text(piece, [word], "question" if word.endswith("?") else "text")
            wanted.pop(0)

    def _own_words(self, piece: Piece) -> Iterator[Piece]:
        """What the source of a code cell asks before what it shows."""
        for word in piece.deck or ():
            if piece.kind != "formula" and piece.kind not in ("list", "table") and not RESERVED.match(word):
                yield _text(piece, [word], "question")

    def _nothing_left(self, i: int, piece: Piece) -> None:
        last = i + 1 == len(self.pieces) or self.pieces[i + 1].cell != piece.cell
        left = self.waiting.get(piece.cell) if last else None
        left = [word for word in left or () if word.endswith("…")]
        if left:
            raise DeckError(f"Cell {piece.cell} has no sentence that begins {left[0]!r}, in its order.")


def _text(piece: Piece, shown: list[str], kind: str) -> Piece:
    text = " ".join(shown)
    if text.endswith(":") and kind != "text":
        text = text[:-1] + "."
    return replace(piece, kind=kind, body=text)


def _within(sentence: str, question: str) -> bool:
    return bool(question) and sentence.strip("* ") in question


def _cut(piece: Piece) -> Piece:
    """An output with the lines that the source names, a list with the first sentence of each item."""
    if piece.kind == "list":
        shown = [" ".join(prose.first(prose.sentences(item), 1)) for item in items(piece.body)]
        return replace(piece, body="\n".join(f"- {item}" for item in shown))
    named = next((word for word in piece.deck or () if word.startswith("lines ")), "")
    if piece.kind != "output" or not named:
        return piece
    rows, kept = piece.body.splitlines(), []
    for part in named.split()[1:]:
        start, _, stop = part.partition("-")
        kept += rows[int(start) - 1 : int(stop or start)]
    return replace(piece, body="\n".join(kept))
