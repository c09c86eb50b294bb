"""What is shown of a section, by rule or by the word of its source, and what is said.

A rule shows the sentences that open a section, formulas and figures with the sentence that leads to them, questions,
the short output that answers one, and the sentence after it. A cell's ``deck`` says otherwise: see slides/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import prose
from .pieces import MAX_LINES, RESERVED, Piece, Section, fits, items, presentable, readable, table_fits

EVIDENCE = ("formula", "figure", "output", "table", "list")
OPENING, FINDING, LEAD = 3, 3, 3  # at most so many lines


def chosen(section: Section) -> list[Piece]:
    """The pieces of a section that are shown, in order, with the paragraphs to be said between them."""
    return list(_Choice(section).run())


class _Choice:
    """One walk through a section."""

    def __init__(self, section: Section):
        self.pieces = section.pieces
        self.evidence = {i for i in range(len(self.pieces)) if self._is_evidence(i)}
        self.leads = {lead: i for i in sorted(self.evidence, reverse=True) if (lead := self._before(i)) is not None}
        self.after_output = False  # the next paragraph says what was found
        self.room = 0  # and has so many lines for it

    def run(self) -> Iterator[Piece]:
        for i, piece in enumerate(self.pieces):
            yield from self._of(i, piece)

    def _of(self, i: int, piece: Piece) -> Iterator[Piece]:
        if piece.kind == "paragraph":
            yield from self._of_paragraph(i, piece)
            yield replace(piece, kind="notes")
            return
        if piece.kind == "moving":
            yield piece
        if piece.kind == "subheading":
            yield replace(piece, kind="break")
        if piece.kind in ("claim", "subheading"):
            self.after_output = False
            yield piece
        elif i in self.evidence:
            before = piece.kind not in ("formula", "list", "table")
            yield from self._own_words(piece) if before else ()
            yield _cut(piece)
            yield from () if before else self._own_words(piece)
            self.after_output = piece.kind == "output"
            self.room = max(1, min(FINDING, MAX_LINES - _cut(piece).lines))
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
            if piece.kind in ("claim", "figure") or (piece.kind == "output" and presentable(piece)):
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

    def _room(self, i: int) -> int:
        """How many lines the words about a claim have, beside its number."""
        after = next((j for j in sorted(self.evidence) if j > i), None)
        between = self.pieces[i + 1 : after] if after is not None else []
        alone = after is None or any(piece.kind in ("claim", "paragraph") for piece in between)
        return MAX_LINES - 1 if alone else max(1, MAX_LINES - self.pieces[after].lines)

    # What is shown of prose.

    def _of_paragraph(self, i: int, piece: Piece) -> Iterator[Piece]:
        if piece.deck is not None:
            yield from self._as_told(piece)
        elif piece.claim:
            yield _text(piece, prose.first(prose.sentences(piece.body), self._room(i)), "verdict")
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
            shown = prose.first(told, self.room) if told and not told[0].startswith("(") else []
        kind = "finding" if self.after_output else "text"
        if shown:
            yield _text(piece, shown, kind)
        if i in self.leads and not question:
            lead = [one for one in self._lead(told, self.pieces[self.leads[i]].kind) if one not in shown]
            if lead:
                kind = "question" if lead[-1].endswith("?") else "text"
                yield replace(_text(piece, lead, kind), name="lead")
        if question:
            yield _text(piece, [question], "question")

    def _lead(self, told: list[str], kind: str) -> list[str]:
        """What leads to a piece of evidence: a question, the whole of a short paragraph, or the sentence before it."""
        asked = [one for one in told if one.endswith("?")]
        if asked and kind != "formula":
            return asked[-1:]
        if prose.lines(" ".join(told)) <= LEAD:
            return told
        lead = prose.first(told, LEAD) if kind == "figure" else told[-1:]
        return lead if lead and lead[0][:1] == lead[0][:1].upper() else []

    def _as_told(self, piece: Piece) -> Iterator[Piece]:
        """What the source names of a paragraph: sentences by their first words, and words of its own between them."""
        here = prose.sentences(piece.body)
        for word in piece.deck or ():
            if word == "/":
                self.after_output = False
                yield replace(piece, kind="break", body="")
            elif not RESERVED.match(word):
                quoted = [one for one in here if word.endswith("…") and one.startswith(word[:-1].strip())]
                shown = (quoted or [word])[0]
                asked = prose.question_in(shown) or shown.rstrip("*").endswith("?")
                kind = "verdict" if piece.claim else "finding" if self.after_output else "text"
                self.after_output = False
                yield replace(_text(piece, [shown], "question" if asked else kind), name="lead")

    def _own_words(self, piece: Piece) -> Iterator[Piece]:
        """What the source of a code cell asks before what it shows."""
        for word in piece.deck or ():
            if not RESERVED.match(word) and not word.endswith("…"):
                yield _text(piece, [word], "question" if word.endswith("?") else "text")


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
    if piece.kind != "output":
        return piece
    rows, kept = piece.body.splitlines(), []
    for part in named.split()[1:] or [f"1-{len(rows)}"]:
        start, _, stop = part.partition("-")
        kept += rows[int(start) - 1 : int(stop or start)]
    return replace(piece, body=readable("\n".join(kept)))
