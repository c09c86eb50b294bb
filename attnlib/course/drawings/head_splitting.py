"""One projection cut into heads and joined again, as a drawing with shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from attnlib.plotting.canvas import Box, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.picture import CYCLE, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = ["heads_diagram"]

CELL = (0.36, 0.28)
TINT = 0.3  # how much of a head's colour fills its cells
GAP = 1.0  # between what stands one below the other


def heads_diagram(rows: Array, n_heads: int, *, title: str) -> Picture:
    """Rows ``(n, d_model)`` cut into ``n_heads`` pieces, each a matrix that attends by itself, and joined again.

    The numbers are written in, so that each can be followed. A head has one colour.

    Raises ``ValueError`` when ``n_heads`` does not divide the size of a row.

    >>> picture = heads_diagram(np.arange(8).reshape(2, 4), 2, title="Two heads")
    >>> "head 0 (2, 2): 0 1, 4 5" in picture.alt
    True
    """
    rows = np.asarray(rows)
    n, d = rows.shape
    if d % n_heads:
        raise ValueError(f"n_heads must divide {d}, the size of a row; got {n_heads}")
    cut = rows.reshape(n, n_heads, d // n_heads)
    page = Diagram()
    high = n * CELL[1] + GAP
    middle = -(n_heads - 1) * high / 2
    start = _side_by_side(page, "X W", cut, (d * CELL[0] / 2, middle))
    out = _side_by_side(page, "side by side", cut, (d * CELL[0] / 2 + 9.0, middle), written=False)
    for h in range(n_heads):
        _head(page, cut[:, h], h, (d * CELL[0] + 2.6, -h * high), start, out)
    page.text("split_heads", (start.side("right")[0] + 0.6, middle), align="left")
    page.text("merge_heads", (out.side("left")[0] - 0.6, middle), align="right")
    mix = page.box(f"times W_O {as_words((d, d))}", (out.x, out.side("bottom")[1] - 0.75))
    page.arrow(out.side("bottom"), mix.side("top"), words=as_words((n, d)), said="side by side to times W_O")
    return page.picture(title)


def _colour(head: int) -> str:
    return CYCLE[head % len(CYCLE)]


def _side_by_side(page: Diagram, name: str, cut: Array, at: tuple[float, float], *, written: bool = True) -> Box:
    """All heads' pieces of every row, ``(n, n_heads, d_head)``, as one matrix."""
    n, n_heads, d_head = cut.shape
    box = Box(name, *at, n_heads * d_head * CELL[0], n * CELL[1])
    for h in range(n_heads):
        x = box.side("left")[0] + (h + 0.5) * d_head * CELL[0]
        _piece(page, cut[:, h], h, (x, at[1]), written=written)
    shape = as_words((n, n_heads * d_head))
    page.text(f"{name} {shape}", (at[0], box.side("top")[1] + 0.16))
    page.say("Matrices", f"{name} {shape}")
    return box


def _head(page: Diagram, piece: Array, head: int, at: tuple[float, float], start: Box, out: Box) -> None:
    colour, shape = _colour(head), as_words(piece.shape)
    box = Box(f"head {head}", *at, piece.shape[1] * CELL[0], piece.shape[0] * CELL[1])
    _piece(page, piece, head, at)
    page.text(f"head {head} {shape}", (at[0], box.side("top")[1] + 0.16), colour=colour)
    numbers = ", ".join(" ".join(str(x) for x in row) for row in piece.tolist())
    page.say("Matrices", f"head {head} {shape}: {numbers}")
    attend = page.box("attention", (at[0] + 2.6, at[1]), name=f"attention of head {head}", colour=colour)
    bend = start.side("right")[0] + 0.5
    middle = start.side("right")
    page.arrow(middle, (bend, middle[1]), (bend, at[1]), box.side("left"), said=f"X W to head {head}", colour=colour)
    page.arrow(box.side("right"), attend.side("left"), said=f"head {head} to attention", colour=colour)
    bend, end = out.side("left")[0] - 0.5, out.side("left")
    points = attend.side("right"), (bend, at[1]), (bend, end[1]), end
    page.arrow(*points, said=f"attention of head {head} to side by side, {shape}", colour=colour)
    page.text(shape, ((attend.side("right")[0] + bend) / 2, at[1] + 0.14), colour=colour)


def _piece(page: Diagram, piece: Array, head: int, at: tuple[float, float], *, written: bool = True) -> None:
    """One head's numbers in its own tint, without a name."""
    rows, columns = piece.shape
    left, top = at[0] - columns * CELL[0] / 2, at[1] + rows * CELL[1] / 2
    tint = 1 - TINT * (1 - np.array(to_rgb(_colour(head))))

    def stroke(ax: Axes) -> None:
        for i, j in np.ndindex(rows, columns):
            corner = left + j * CELL[0], top - (i + 1) * CELL[1]
            ax.add_patch(Rectangle(corner, *CELL, facecolor=tint, edgecolor=_colour(head), linewidth=1.0, zorder=2))

    page.put(stroke, (left, top), (left + columns * CELL[0], top - rows * CELL[1]))
    if written:
        for i, j in np.ndindex(rows, columns):
            page.text(str(piece[i, j]), (left + (j + 0.5) * CELL[0], top - (i + 0.5) * CELL[1]))
