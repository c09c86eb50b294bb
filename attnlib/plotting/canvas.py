"""Boxes, arrows, frames and words on a page that is measured in inches, up and to the right.

Drawn with Matplotlib alone, so that a drawing is a `Picture` like every chart: one look, one alt text, the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import dist
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from attnlib.plotting.picture import INK, Picture, readable, style, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LINE", "PAD", "Box", "Canvas", "Point", "as_words", "text_size"]

Point = tuple[float, float]
TEXT, LINE = 12.5, 0.205  # the size of all words in points, and the height of a line of them in inches
BASE = 0.047  # from the foot of a line to the foot of its letters
PAD = 0.1  # above and below the words of a box, together
MARGIN, NARROWEST = 0.15, 4.0
FRAME = "#777777"


class Box(NamedTuple):
    """A place on the page: its name, its middle and its size. Arrows start and end at its sides.

    >>> Box("norm", 0, 0, 2, 1).side("top", 0.25)
    (-0.5, 0.5)
    """

    name: str
    x: float
    y: float
    width: float
    height: float

    def side(self, side: str, share: float = 0.5) -> Point:
        """The point at this ``share`` of a side: "left" and "right" from below, "top" and "bottom" from the left."""
        across, up = self.x + (share - 0.5) * self.width, self.y + (share - 0.5) * self.height
        half = {"left": -self.width / 2, "right": self.width / 2, "bottom": -self.height / 2, "top": self.height / 2}
        return (self.x + half[side], up) if side in ("left", "right") else (across, self.y + half[side])


def as_words(shape: Sequence[int], names: Sequence[str] = ()) -> str:
    """A shape as it is written on an arrow, with the names of its axes where they are given.

    >>> as_words((2, 5, 16)), as_words((2, 5), ["batch", "n"])
    ('(2, 5, 16)', '(batch 2, n 5)')
    """
    axes = [f"{name} {size}" for name, size in zip(names, shape, strict=True)] if names else map(str, shape)
    return f"({', '.join(axes)})"


def text_size(words: str) -> Point:
    """Width and height of ``words`` in inches, as they are drawn.

    >>> text_size("query")[0] < text_size("queries")[0]
    True
    """
    font, lines = FontProperties(family="DejaVu Sans", size=TEXT), words.split("\n")
    widths = [text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines]
    return max(widths) / 72, LINE * len(lines)


class Canvas:
    """What the words of a drawing and its lines are put on, and what says in words what is on it.

    >>> page = Canvas()
    >>> words, mean = page.box("words", (0, 0)), page.box("their mean", (3, 0))
    >>> page.arrow(words.side("right"), mean.side("left"), words="(5, 16)", said="words to their mean")
    >>> page.picture("Many become one")
    Many become one. Boxes: words; their mean. Arrows: words to their mean, (5, 16).
    """

    def __init__(self) -> None:
        self._strokes: list[Callable[[Axes], object]] = []
        self._across: list[float] = []
        self._up: list[float] = []
        self._said: dict[str, list[str]] = {}

    def say(self, kind: str, words: str) -> None:
        """Add ``words`` to the alt text, beside what else there is of this ``kind``."""
        self._said.setdefault(kind, []).append(words)

    def put(self, stroke: Callable[[Axes], object], *corners: Point) -> None:
        """Draw ``stroke`` on the axes when the picture is made, with room for these ``corners``."""
        self._strokes.append(stroke)
        self._across += [x for x, _ in corners]
        self._up += [y for _, y in corners]

    def text(self, words: str, at: Point, *, colour: str = INK, align: str = "center", bold: bool = False) -> None:
        """Words, with their middle, or their "left" or "right" end, at a point."""
        (x, y), (width, height) = at, text_size(words)
        left = x - width * {"left": 0, "center": 0.5, "right": 1}[align]
        options = {"ha": align, "va": "baseline", "color": readable(colour), "size": TEXT, "zorder": 4}
        weight = "bold" if bold else "normal"
        for i, line in enumerate(words.split("\n")):
            low = y + height / 2 - (i + 1) * LINE + BASE
            corners = (left, low - BASE), (left + width, low - BASE + LINE)
            self.put(partial(_write, at=(x, low), words=line, weight=weight, **options), *corners)

    def box(
        self,
        words: str,
        at: Point,
        *,
        name: str | None = None,
        width: float | None = None,
        colour: str = INK,
        fill: str = "white",
        kind: str = "Boxes",
    ) -> Box:
        """A box around ``words``, as wide as they need unless ``width`` is given.

        Alt text calls it by ``name``, or by its first line, among what is of one ``kind``.

        >>> Canvas().box("scores", (1, 0), width=2).side("left")
        (0.0, 0.0)
        """
        wide, high = text_size(words)
        first, *more = words.split("\n")
        box = Box(name or first, *at, wide + 0.24 if width is None else width, high + PAD)
        self._outline(box, colour, fill, zorder=2)
        self.text(words, at)
        self.say(kind, ", ".join([box.name, *([] if name and " ".join([first, *more]) == name else more)]))
        return box

    def dot(self, words: str, at: Point, *, name: str) -> Box:
        """A small circle around one sign, such as the plus of a sum."""
        box = Box(name, *at, 0.24, 0.24)
        ring = {"facecolor": "white", "edgecolor": INK, "linewidth": 1.3, "zorder": 2}
        self.put(lambda ax: ax.add_patch(Ellipse(at, box.width, box.height, **ring)), *_corners(box))
        self.text(words, at)
        return box

    def frame(self, words: str, around: Sequence[Point]) -> Box:
        """A pale frame behind all that lies between these points, with ``words`` above its left end."""
        (left, right), (low, high) = ((min(c), max(c)) for c in zip(*around, strict=True))
        box = Box(words, (left + right) / 2, (low + high) / 2, right - left, high - low)
        self._outline(box, FRAME, "#f6f6f6", zorder=0, dashed=True)
        self.text(words, (left, high + 0.14), align="left", bold=True)
        return box

    def arrow(
        self,
        *points: Point,
        words: str = "",
        said: str = "",
        colour: str = INK,
        head: bool = True,
        side: str = "right",
        dashed: bool = False,
    ) -> None:
        """A line through ``points`` with a head at its end. ``words`` stand on its longest piece.

        They stand above a piece that lies ("below": under it), to the right of one that stands ("left": there).
        Alt text calls the arrow what is ``said`` and adds the words.
        """
        look = "-|>,head_width=0.28,head_length=0.55" if head else "-"
        options = {"arrowstyle": look, "mutation_scale": 13, "linewidth": 1.6 if colour == INK else 2.2, "zorder": 1}
        path = Path(points)
        ends = {"shrinkA": 0, "shrinkB": 0, "color": colour, "joinstyle": "round", "capstyle": "butt"}
        if dashed:
            options |= {"linestyle": (0, (3, 2)), "linewidth": 1.1}
        self.put(lambda ax: ax.add_patch(FancyArrowPatch(path=path, **options, **ends)), *points)
        if words:
            self._beside(points, words, colour, side)
        if said:
            self.say("Arrows", f"{said}, {words}" if words else said)

    def picture(self, title: str) -> Picture:
        """The drawing as a `Picture`, an inch of it an inch wide."""
        with style():
            middle = (min(self._across) + max(self._across)) / 2
            width = max(max(self._across) - min(self._across) + 2 * MARGIN, NARROWEST)
            low, high = min(self._up) - MARGIN, max(self._up) + MARGIN
            height = high - low + 0.18 + 0.21 * len(wrapped(title, width).split("\n"))
            figure = Figure(figsize=(width, height), layout="none")
            ax = figure.add_axes((0, 0, 1, (high - low) / height))
            ax.set(xlim=(middle - width / 2, middle + width / 2), ylim=(low, high))
            ax.axis("off")
            for stroke in self._strokes:
                stroke(ax)
            return Picture(figure, title, self.describe())

    def describe(self) -> str:
        """All that is on the page, in words."""
        return " ".join(f"{kind}: {'; '.join(words)}." for kind, words in self._said.items())

    def _outline(self, box: Box, colour: str, fill: str, *, zorder: int, dashed: bool = False) -> None:
        corner, size = (box.x - box.width / 2, box.y - box.height / 2), (box.width, box.height)
        options = {"edgecolor": colour, "facecolor": fill, "zorder": zorder, "linestyle": "--" if dashed else "-"}
        shape = "round,pad=0,rounding_size=0.06"
        self.put(
            lambda ax: ax.add_patch(
                FancyBboxPatch(
                    corner, *size, boxstyle=shape, linewidth=1.3 if colour in (INK, FRAME) else 2.2, **options
                )
            ),
            *_corners(box),
        )

    def _beside(self, points: Sequence[Point], words: str, colour: str, side: str) -> None:
        (x0, y0), (x1, y1) = max(pairwise(points), key=lambda ends: dist(*ends))
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        if abs(x1 - x0) > abs(y1 - y0):
            self.text(words, (x, y + (-0.15 if side == "below" else 0.14)), colour=colour)
        elif side == "left":
            self.text(words, (x - 0.07, y), colour=colour, align="right")
        else:
            self.text(words, (x + 0.07, y), colour=colour, align="left")


def _write(ax: Axes, at: Point, words: str, **options: object) -> None:
    ax.text(*at, words, **options)


def _corners(box: Box) -> tuple[Point, Point]:
    return (box.x - box.width / 2, box.y - box.height / 2), (box.x + box.width / 2, box.y + box.height / 2)
