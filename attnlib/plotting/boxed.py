"""Small pictures with boxes drawn upon them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from attnlib.plotting.picture import OUTPUT, PALE, Picture, in_style, new_figure

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["boxed"]

Found = Sequence[tuple[str, Sequence[float]]]


@in_style
def boxed(pictures: Array, found: Sequence[Found], *, title: str, columns: int = 5) -> Picture:
    """Small grey pictures ``(n, height, width)``, each with its boxes ``(word, (right, down, width, height))``.

    A box is given by its middle and its size, as shares of the picture; its word stands above it, or below where there
    is no room.

    >>> import numpy as np
    >>> boxed(np.zeros((1, 8, 8)), [[("ring", (0.5, 0.5, 0.2, 0.2))]], title="One ring")
    One ring. Small pictures with boxes: (1) ring.
    """
    rows = -(-len(pictures) // columns)
    fig, axes = new_figure(1.75 * columns, 1.75 * rows + 0.4, columns, rows, squeeze=False)
    for ax in axes.flat[len(pictures) :]:
        ax.set_visible(False)
    for ax, picture, boxes in zip(axes.flat, pictures, found, strict=False):
        height, width = picture.shape
        ax.imshow(picture, cmap="Greys", vmin=0, vmax=1.4, extent=(0, width, height, 0))
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=PALE)
        for word, (right, down, wide, high) in boxes:
            corner = (right - wide / 2) * width, (down - high / 2) * height
            ax.add_patch(Rectangle(corner, wide * width, high * height, fill=False, edgecolor=OUTPUT, linewidth=1.6))
            above = corner[1] > 0.13 * height
            y = corner[1] - 0.3 if above else corner[1] + high * height + 0.3
            place = {"ha": "center", "va": "bottom" if above else "top", "fontsize": 8.5, "color": OUTPUT}
            place["bbox"] = {"facecolor": "white", "alpha": 0.75, "pad": 0.4, "edgecolor": "none"}
            ax.text(min(max(right, 0.15), 0.85) * width, y, word, **place)
    said = "; ".join(f"({i}) {', '.join(word for word, _ in boxes)}" for i, boxes in enumerate(found, start=1))
    return Picture(fig, title, f"Small pictures with boxes: {said}.")
