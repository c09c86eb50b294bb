"""One step of decoding with a cache: what is computed for the new word, and what was kept."""

from __future__ import annotations

from attnlib.plotting.canvas import Box, Canvas
from attnlib.plotting.picture import INK, KEY, OUTPUT, QUERY, VALUE, Picture

__all__ = ["cache_diagram"]

CELL, ROW = 0.62, 1.15  # from one kept key to the next, and from keys to values, in inches


def cache_diagram(n_kept: int, *, title: str) -> Picture:
    """The step that writes a word when the keys and values of ``n_kept`` positions are there.

    Raises ``ValueError`` when ``n_kept`` is not from 1 to 9.

    >>> cache_diagram(2, title="One more").alt[:90]
    'One more. Keys: k1, kept; k2, kept; k3, new. Values: v1, kept; v2, kept; v3, new. Boxes: n'
    """
    if not 1 <= n_kept <= 9:
        raise ValueError(f"n_kept must be from 1 to 9, or the drawing has no room; got {n_kept}")
    page = Canvas()
    keys, values = (
        [_cell(page, f"{letter}{i + 1}", (CELL * i, y), kind, colour, new=i == n_kept) for i in range(n_kept + 1)]
        for letter, kind, y, colour in (("k", "Keys", 0.0, KEY), ("v", "Values", -ROW, VALUE))
    )
    middle, edge = CELL * n_kept / 2, CELL * n_kept + 2.3
    word = page.box("new\nword", (edge, -ROW / 2), name="new word")
    softmax = page.box(f"weights (1, {n_kept + 1})", (middle, 0.95))
    mean = page.box("weighted mean", (middle, -ROW - 0.95))
    page.text(f"kept: {n_kept} of {n_kept + 1}", (-0.45, -ROW / 2), align="right")

    def arrow(*points: tuple[float, float], words: str, said: str, colour: str, side: str = "right") -> None:
        page.arrow(*points, words=words, said=said, colour=colour, side=side)

    x, y = word.side("top")
    arrow((x, y), (x, softmax.y), softmax.side("right"), words="query", said="new word to weights", colour=QUERY)
    arrow(word.side("left", 0.8), (edge - 0.9, 0), keys[-1].side("right"), words="", said="its key", colour=KEY)
    arrow(
        word.side("left", 0.2), (edge - 0.9, -ROW), values[-1].side("right"), words="", said="its value", colour=VALUE
    )
    page.text("key", (edge - 1.15, 0.15), colour=KEY)
    page.text("value", (edge - 1.15, -ROW - 0.17), colour=VALUE)
    arrow((middle, 0.2), softmax.side("bottom"), words="all keys", said="keys to weights", colour=KEY)
    arrow((middle, -ROW - 0.2), mean.side("top"), words="all values", said="values to mean", colour=VALUE)
    left = -0.55 - 1.2
    turn = (left, softmax.y), (left, mean.y)
    arrow(softmax.side("left"), *turn, mean.side("left"), words="", said="weights to weighted mean", colour=INK)
    arrow(mean.side("right"), (edge, mean.y), words="output", said="weighted mean out", colour=OUTPUT)
    return page.picture(title)


def _cell(page: Canvas, words: str, at: tuple[float, float], kind: str, colour: str, *, new: bool) -> Box:
    state = "new" if new else "kept"
    fill = "white" if new else "#e9e9e9"
    return page.box(words, at, name=f"{words}, {state}", width=CELL - 0.1, colour=colour, fill=fill, kind=kind)
