"""The target of a decoder and the same shifted right, one above the other."""

from __future__ import annotations

from collections.abc import Sequence

from attnlib.plotting.canvas import Canvas, text_size
from attnlib.plotting.picture import INK, OUTPUT, Picture

__all__ = ["shift_diagram"]

ABOVE, GAP = 1.5, 0.55  # from what goes in up to what must be written, and between two columns, in inches


def shift_diagram(goes_in: Sequence[str], written: Sequence[str], *, position: int, title: str) -> Picture:
    """What goes into a decoder below what it must write, and from where ``position`` (from 1) has been read.

    Solid arrows run to that position from each token that it may read; dashed ones show that a token which has been
    written goes in one place further on.

    Raises ``ValueError`` unless ``goes_in`` is a start symbol and then ``written`` without its last token, and when
    there is no such ``position``.

    >>> shift_diagram(["start", "c", "b"], ["c", "b", "end"], position=2, title="Shifted").alt
    'Shifted. Must be written: c; b; end. Goes in: start; c; b. Arrows: start, c to b.'
    """
    goes_in, written = list(map(str, goes_in)), list(map(str, written))
    if len(goes_in) != len(written) or goes_in[1:] != written[:-1]:
        raise ValueError(f"goes_in must be a start symbol and written without its last; got {goes_in}, {written}")
    if not 1 <= position <= len(written):
        raise ValueError(f"position must be from 1 to {len(written)}; got {position}")
    page = Canvas()
    wide = max(text_size(word)[0] for word in goes_in + written) + 0.24
    across = [i * (wide + GAP) for i in range(len(written))]
    heads = [page.box(w, (x, ABOVE), width=wide, kind="Must be written") for x, w in zip(across, written, strict=True)]
    feet = [page.box(word, (x, 0), width=wide, kind="Goes in") for x, word in zip(across, goes_in, strict=True)]
    for y, words in ((ABOVE, "must be written"), (0, "goes in")):
        page.text(words, (-wide / 2 - 0.15, y), align="right")
    for i, head in enumerate(heads[:-1]):
        out, into = head.side("bottom", 0.9), feet[i + 1].side("top", 0.1)
        page.arrow(out, into, dashed=True)
    for foot in feet[:position]:
        page.arrow(foot.side("top", 0.5), heads[position - 1].side("bottom", 0.5), colour=OUTPUT)
    page.say("Arrows", f"{', '.join(goes_in[:position])} to {written[position - 1]}")
    page.text("solid: may be read; dashed: becomes the next input", (sum(across) / len(across), -0.45), colour=INK)
    return page.picture(title)
