"""Matrices with their numbers written in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.picture import (
    INK,
    QUERY,
    SIGNED,
    Picture,
    cell_names,
    frame_cells,
    in_style,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["matrices"]


@in_style
def matrices(
    named: Mapping[str, Array],
    *,
    title: str,
    colours: Mapping[str, str] | None = None,
    digits: int = 1,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    framed: Collection[tuple[int, int]] = (),
    frame: str = "framed",
) -> Picture:
    """Small matrices side by side with their numbers written in, shaded by value; negative ones in purple.

    ``rows`` are words for the rows of the first, and ``columns`` for the columns of all. The numbers at the places
    ``framed``, (row, column), get a thick frame in all; ``frame`` says in alt text what it stands for.

    >>> matrices({"Q": np.eye(2), "K": np.ones((3, 2))}, title="Two matrices")
    Two matrices. 2 plots. (1) Title: Q (2×2). Grid of numbers: 2×2. (2) Title: K (3×2). Grid of numbers: 3×2.
    """
    shapes = [np.shape(m) for m in named.values()]
    widths = [max(columns, 1.6) for _, columns in shapes]
    fig, axes = new_figure(
        min(10, 0.75 * sum(widths) + 0.4 * len(widths)),
        0.55 * max(rows for rows, _ in shapes) + 1.1,
        len(named),
        squeeze=False,
        width_ratios=widths,
    )
    for ax, (name, m) in zip(axes[0], named.items(), strict=True):
        top = np.abs(m).max() or 1
        ax.imshow(m, cmap=f"{SIGNED}_r", vmin=-2 * top, vmax=2 * top, aspect="auto")
        for (i, j), value in np.ndenumerate(m):
            ax.text(
                j,
                i,
                f"{round(float(value), digits) + 0.0:.{digits}f}",
                ha="center",
                va="center",
                fontsize=9.5,
            )
        colour = (colours or {}).get(name, INK)
        ax.set_title(f"{name} ({np.shape(m)[0]}×{np.shape(m)[1]})", color=readable(colour), loc="left")
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set(visible=True, color=colour, linewidth=2)
        ax.set_xticks(range(len(columns)), columns)
        frame_cells(ax, framed, inset=0.04, colour=QUERY, linewidth=3)
    axes[0, 0].set_yticks(range(len(rows)), rows)
    said = [f"{name}, {frame}: {_each(m, framed, rows, columns, digits)}." for name, m in named.items() if framed]
    return Picture(fig, title, " ".join(said) or None)


def _each(
    numbers: Array, places: Collection[tuple[int, int]], rows: Sequence[str], columns: Sequence[str], digits: int
) -> str:
    words = cell_names(places, rows, columns)
    return "; ".join(f"{word} {numbers[i][j]:.{digits}f}" for word, (i, j) in zip(words, places, strict=True))
