"""Small pictures in colour, in rows, with words for rows and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.picture import OUTPUT, PALE, Picture, cell_names, in_style, new_figure

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["colour_images"]


@in_style
def colour_images(
    rows: Mapping[str, Array],
    *,
    title: str,
    columns: Sequence[str] = (),
    framed: Collection[tuple[int, int]] = (),
    frame: str = "framed",
) -> Picture:
    """Rows of small pictures ``{what the row is: (n, 3, height, width)}`` with values from 0 to 1.

    ``columns`` are words above; the pictures at the places ``framed``, (row, column), get a thick frame, and
    ``frame`` says in alt text what it stands for.

    Raises ``ValueError`` when a row has another shape.

    >>> colour_images({"red": np.zeros((2, 3, 4, 4))}, columns=["ring", "bar"], framed=[(0, 1)], title="Two pictures")
    Two pictures. Rows of small pictures in colour: red, 2. Columns: ring, bar. Pictures framed: red bar.
    """
    n, names = max(len(row) for row in rows.values()), list(rows)
    fig, axes = new_figure(0.85 * n + 1.2, 0.9 * len(rows) + 0.5, n, len(rows), squeeze=False)
    for i, (line, (name, pictures)) in enumerate(zip(axes, rows.items(), strict=True)):
        if np.ndim(pictures) != 4 or np.shape(pictures)[1] != 3:
            raise ValueError(f"{name} must be pictures (n, 3, height, width); got {tuple(np.shape(pictures))}")
        for j, ax in enumerate(line):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(j < len(pictures))
            if j < len(pictures):
                ax.imshow(np.clip(np.moveaxis(np.asarray(pictures[j]), 0, -1), 0, 1))
                marked = (i, j) in framed
                ax.spines[:].set(color=OUTPUT if marked else PALE, linewidth=4 if marked else 1)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, word in zip(axes[0], columns, strict=False):
        ax.set_title(word, loc="center", fontsize=10)
    said = f"Rows of small pictures in colour: {'; '.join(f'{name}, {len(row)}' for name, row in rows.items())}."
    said += f" Columns: {', '.join(columns)}." if columns else ""
    said = said.replace("\n", " ")
    if framed:
        said += f" Pictures {frame}: {'; '.join(cell_names(framed, names, columns))}."
    return Picture(fig, title, said)
