"""Masks as they meet the scores of a batch with heads: what each head of each sentence may attend to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Ellipse, Rectangle

from attnlib.plotting.canvas import Point, as_words, text_size
from attnlib.plotting.diagrams import HIDDEN, Diagram
from attnlib.plotting.picture import INK, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = ["mask_diagram"]

CELL = 0.2  # of a mask, in inches
GAP = 0.25  # between two heads


def mask_diagram(masks: Mapping[str, Array], *, shape: tuple[int, int, int, int], title: str) -> Picture:
    """Each mask broadcast to scores ``(batch, heads, n_q, n_k)``: a grid for each sentence (down) and head (across).

    A dot where a query (a row) may attend to a key (a column), grey where it may not.

    Raises ``ValueError`` when a mask does not broadcast to ``shape``.

    >>> mask_diagram({"causal": np.tril(np.ones((2, 2), bool))}, shape=(1, 1, 2, 2), title="The past is open")
    The past is open. Masks: causal (2, 2), for sentence 0 head 0: 10, 11.
    """
    page, left = Diagram(), 0.0
    for i, (name, mask) in enumerate(masks.items()):
        mask = np.asarray(mask).astype(bool)
        words = f"{name} {as_words(mask.shape)}"
        wide = shape[1] * (shape[3] * CELL + GAP) - GAP
        left += max(text_size(words)[0] - wide, 0) / 2
        _panel(page, words, _broadcast(name, mask, shape), left, first=i == 0)
        left += (wide + max(text_size(words)[0], wide)) / 2 + 0.7
    return page.picture(title)


def _broadcast(name: str, mask: Array, shape: tuple[int, int, int, int]) -> Array:
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to {shape}; got {mask.shape}") from None


def _panel(page: Diagram, words: str, masks: Array, left: float, *, first: bool) -> None:
    """The grids of one mask, ``(batch, heads, n_q, n_k)``, to the right of ``left``, under its name."""
    batch, n_heads, n_q, n_k = masks.shape
    wide, high = n_k * CELL, n_q * CELL
    said = []
    for b, h in np.ndindex(batch, n_heads):
        x, y = left + wide / 2 + h * (wide + GAP), -b * (high + GAP)
        _grid(page, masks[b, h], (x - wide / 2, y + high / 2))
        if b == 0:
            page.text(f"head {h}", (x, high / 2 + 0.16))
        if first and h == 0:
            page.text(f"sentence {b}", (left - 0.15, y), align="right")
        rows = ", ".join("".join("01"[int(seen)] for seen in row) for row in masks[b, h])
        said.append(f"for sentence {b} head {h}: {rows}")
    page.text(words, (left + (n_heads * (wide + GAP) - GAP) / 2, high / 2 + 0.45), bold=True)
    page.say("Masks", f"{words}, {'; '.join(said)}")


def _grid(page: Diagram, mask: Array, corner: Point) -> None:
    """One mask, its first row and column at this ``corner``."""
    (x, y), (rows, columns) = corner, mask.shape

    def stroke(ax: Axes) -> None:
        for i, j in np.ndindex(rows, columns):
            left, low = x + j * CELL, y - (i + 1) * CELL
            shade = "white" if mask[i, j] else HIDDEN
            ax.add_patch(Rectangle((left, low), CELL, CELL, facecolor=shade, edgecolor=INK, linewidth=0.8))
            if mask[i, j]:
                middle = left + CELL / 2, low + CELL / 2
                ax.add_patch(Ellipse(middle, CELL / 2.4, CELL / 2.4, facecolor=INK))

    page.put(stroke, corner, (x + columns * CELL, y - rows * CELL))
