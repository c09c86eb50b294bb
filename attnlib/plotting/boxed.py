"""Small pictures with boxes drawn upon them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from attnlib.plotting.picture import OUTPUT, PALE, Picture, in_style, new_figure

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["boxed"]

Found = Sequence[tuple[str, Sequence[float]]]
Point = tuple[float, float]
Edges = tuple[float, float, float, float]  # left, top, right, bottom
SIGN = 0.05, 0.11  # how wide and how high a letter is, as shares of a picture


@in_style
def boxed(pictures: Array, found: Sequence[Found], *, title: str, columns: int = 5) -> Picture:
    """Small grey pictures ``(n, height, width)``, each with its boxes ``(word, (right, down, width, height))``.

    A box is given by its middle and its size, as shares of the picture; its word stands above or below it, where there
    is most room.

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
        boxes = [(word, tuple(map(float, box))) for word, box in boxes]
        taken = []
        for _, (right, down, wide, high) in boxes:
            corner = (right - wide / 2) * width, (down - high / 2) * height
            ax.add_patch(Rectangle(corner, wide * width, high * height, fill=False, edgecolor=OUTPUT, linewidth=1.6))
            taken.append((*corner, corner[0] + wide * width, corner[1] + high * height))
        for word, place in _placed([word for word, _ in boxes], taken, (width, height)):
            ax.text(*place, word, ha="center", va="center", fontsize=8.5, color=OUTPUT)
    said = "; ".join(f"({i}) {', '.join(word for word, _ in boxes)}" for i, boxes in enumerate(found, start=1))
    return Picture(fig, title, f"Small pictures with boxes: {said}.")


def _placed(words: Sequence[str], boxes: Sequence[Edges], size: tuple[float, float]) -> Iterator[tuple[str, Point]]:
    """Where each word stands, beside its box and as little as possible upon other boxes and words."""
    taken, (width, height) = list(boxes), size
    for word, (left, top, right, bottom) in zip(words, boxes, strict=True):
        wide, high = SIGN[0] * width * len(word) / 2, SIGN[1] * height / 2  # half of each
        middle = (left + right) / 2
        across = [min(max(x, wide), width - wide) for x in (middle, left, right)]
        places = [(x, y) for y in (top - high, bottom + high) for x in across if high <= y <= height - high]
        best = min(places or [(middle, (top + bottom) / 2)], key=lambda at: _upon(_around(at, wide, high), taken))
        taken.append(_around(best, wide, high))
        yield word, best


def _around(at: Point, wide: float, high: float) -> Edges:
    return at[0] - wide, at[1] - high, at[0] + wide, at[1] + high


def _upon(word: Edges, taken: Sequence[Edges]) -> float:
    """How much of what is taken a word would cover."""
    sides = [(min(word[i + 2], other[i + 2]) - max(word[i], other[i]) for i in (0, 1)) for other in taken]
    return sum(max(0.0, next(pair)) * max(0.0, next(pair)) for pair in sides)
