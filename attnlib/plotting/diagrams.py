"""The kit for schematic drawings: boxes and arrows, and with them matrices as grids, masks, products and trees.

What a drawing says of a matrix is computed from the matrix: its shape, its shades, the product of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from attnlib.plotting.canvas import Box, Canvas, Point, as_words, text_size
from attnlib.plotting.picture import INK, SIGNED, WEIGHTS

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["Diagram", "Tree", "grid_size"]

Tree = str | tuple[str, Sequence["Tree"]]
Matrix = tuple[str, "Array", str]  # its name, its numbers, its colour

MOST = 8  # rows or columns that are drawn of a matrix; dots stand for the rest
CELL = (0.3, 0.28)  # of a grid without numbers, in inches
HIDDEN = "#8c8c8c"


class Diagram(Canvas):
    """A page for a drawing, measured in inches.

    >>> page = Diagram()
    >>> q, k = (page.grid(name, np.eye(2), (0, y)) for name, y in (("query", 0), ("key", -1.5)))
    >>> score = page.box("score", (2, -0.75))
    >>> for start, share in ((q, 0.75), (k, 0.25)):
    ...     page.arrow(start.side("right"), score.side("left", share), said=f"{start.name} to score")
    >>> page.picture("Two go in")
    Two go in. Matrices: query (2, 2); key (2, 2). Boxes: score. Arrows: query to score; key to score.
    """

    def grid(
        self,
        name: str,
        numbers: Array,
        at: Point,
        *,
        colour: str = INK,
        digits: int | None = None,
        cell: Point = CELL,
        caption: str | None = None,
    ) -> Box:
        """A matrix as a grid around ``at``, under its name and shape (or ``caption``): the darker, the larger.

        ``colour`` is one that its shades are made of, or "weights" or "signed" for the maps that the course has for
        these. With ``digits`` the numbers are written in. Rows and columns beyond the eighth are left out, and dots
        stand for them.

        >>> page = Diagram()
        >>> box = page.grid("keys", np.ones((100, 2)), (0, 0))
        >>> page.describe()
        'Matrices: keys (100, 2).'
        """
        numbers = _matrix(name, numbers)
        shown = numbers[:MOST, :MOST]
        box = Box(name, *at, *grid_size(numbers, digits, cell))
        line = INK if colour in ("weights", "signed") else colour
        self._cells(box, _shades(numbers, colour)[:MOST, :MOST], _written(shown, digits), line)
        self._dots(box, numbers.shape)
        words = f"{name} {as_words(numbers.shape)}"
        self.text(words if caption is None else caption, (box.x, box.side("top")[1] + 0.16), colour=line)
        self.say("Matrices", words)
        return box

    def mask(
        self, name: str, mask: Array, at: Point, *, rows: Sequence[object] = (), columns: Sequence[object] = ()
    ) -> Box:
        """A mask as a grid: a dot where a query (a row) may attend to a key (a column), grey where it may not.

        ``rows`` and ``columns`` are words beside and above it.

        >>> page = Diagram()
        >>> box = page.mask("causal", np.tril(np.ones((3, 3), bool)), (0, 0), rows="abc")
        >>> page.describe()
        'Masks: causal (3, 3), row by row open (1) or hidden (0): 100, 110, 111.'
        """
        mask = _matrix(name, mask).astype(bool)
        box = Box(name, *at, *grid_size(mask, cell=(0.34, 0.34)))
        self._cells(box, np.where(mask, "#ffffff", HIDDEN), np.where(mask, "●", ""), INK)
        top = box.side("top")[1] + 0.16
        for j, word in enumerate(columns):
            self.text(str(word), (box.side("top", (j + 0.5) / mask.shape[1])[0], top))
        for i, word in enumerate(rows):
            x, y = box.side("left", 1 - (i + 0.5) / mask.shape[0])
            self.text(str(word), (x - 0.08, y), align="right")
        self.text(f"{name} {as_words(mask.shape)}", (box.x, top + (0.25 if len(columns) else 0)))
        bits = ", ".join("".join("01"[int(open_)] for open_ in row) for row in mask)
        self.say("Masks", f"{name} {as_words(mask.shape)}, row by row open (1) or hidden (0): {bits}")
        return box

    def product(
        self, left: Matrix, right: Matrix, name: str, at: Point, *, colour: str = INK, digits: int | None = None
    ) -> tuple[Box, Box, Box]:
        """Two matrices ``(name, numbers, colour)``, and their product, which is computed: left × right = ``name``.

        >>> page, q, k = Diagram(), np.ones((3, 2)), np.ones((4, 2))
        >>> boxes = page.product(("Q", q, "#0072B2"), ("Kᵀ", k.T, "#E69F00"), "scores", (0, 0))
        >>> page.describe()
        'Matrices: Q (3, 2); Kᵀ (2, 4); scores (3, 4). Products: Q × Kᵀ = scores.'
        """
        a, b = _matrix(left[0], left[1]), _matrix(right[0], right[1])
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"{left[0]} must have as many columns as {right[0]} has rows; got {a.shape}, {b.shape}")
        x, boxes = at[0], []
        for sign, part in (("", (left[0], a, left[2])), ("×", (right[0], b, right[2])), ("=", (name, a @ b, colour))):
            if sign:
                self.text(sign, (x + 0.2, at[1]), bold=True)
                x += 0.4
            boxes.append(self._from_left(x, at[1], *part, digits))
            x += max(boxes[-1].width, text_size(f"{part[0]} {as_words(part[1].shape)}")[0])
        self.say("Products", f"{left[0]} × {right[0]} = {name}")
        return tuple(boxes)

    def tree(
        self, root: Tree, at: Point, *, colours: Mapping[str, str] | None = None, drop: float = 0.75
    ) -> dict[str, Box]:
        """A tree of words, its root at ``at``: a word alone, or ``(word, [trees below it])``.

        ``colours`` are those of the outlines of words that should stand out, ``drop`` is the height of a level.
        Returns the boxes of the words, the first of those that stand in it twice.

        >>> page = Diagram()
        >>> boxes = page.tree(("the", [("cat", ["sat", "ran"]), "dog"]), (0, 0))
        >>> page.describe()
        'Boxes: the; cat; sat; ran; dog. Branches: the to cat, dog; cat to sat, ran.'
        """
        leaves = list(_leaves(root))
        step = max(text_size(word)[0] for word in _words(root)) + 0.4
        boxes: dict[str, Box] = {}
        self._subtree(root, at[0] - step * len(leaves) / 2, at[1], (step, drop), colours or {}, boxes)
        for word, below in _branches(root):
            self.say("Branches", f"{word} to {', '.join(below)}")
        return boxes

    def _from_left(self, x: float, y: float, name: str, numbers: Array, colour: str, digits: int | None) -> Box:
        """A grid whose caption and cells start to the right of ``x``."""
        width = max(grid_size(numbers, digits)[0], text_size(f"{name} {as_words(numbers.shape)}")[0])
        return self.grid(name, numbers, (x + width / 2, y), colour=colour, digits=digits)

    def _cells(self, box: Box, shades: Array, words: Array, line: str) -> None:
        rows, columns = shades.shape[:2]
        size = box.width / columns, box.height / rows
        for i, j in np.ndindex(rows, columns):
            corner = box.x - box.width / 2 + j * size[0], box.y + box.height / 2 - (i + 1) * size[1]
            self._cell(corner, size, shades[i, j], str(words[i, j]), line)

    def _cell(self, corner: Point, size: Point, shade: object, word: str, line: str) -> None:
        look = {"facecolor": shade, "edgecolor": line, "linewidth": 1.0, "zorder": 2}
        self.put(
            lambda ax: ax.add_patch(Rectangle(corner, *size, **look)),
            corner,
            (corner[0] + size[0], corner[1] + size[1]),
        )
        if word:
            middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
            self.text(word, middle, colour="white" if _is_dark(shade) else INK)

    def _dots(self, box: Box, shape: tuple[int, ...]) -> None:
        """What is left out, at the first column and row: arrows start in the middle."""
        if shape[0] > MOST:
            self.text("⋮", (box.side("bottom", 0.5 / min(MOST, shape[1]))[0], box.side("bottom")[1] - 0.12))
        if shape[1] > MOST:
            self.text("⋯", (box.side("right")[0] + 0.14, box.side("right", 1 - 0.5 / min(MOST, shape[0]))[1]))

    def _subtree(
        self,
        tree: Tree,
        left: float,
        y: float,
        steps: Point,
        colours: Mapping[str, str],
        boxes: dict[str, Box],
    ) -> Box:
        word, below = _parted(tree)
        x = left + steps[0] * len(list(_leaves(tree))) / 2
        box = self.box(word, (x, y), colour=colours.get(word, INK))
        boxes.setdefault(word, box)
        for child in below:
            under = self._subtree(child, left, y - steps[1], steps, colours, boxes)
            self.arrow(box.side("bottom"), under.side("top"), head=False, colour=colours.get(under.name, INK))
            left += steps[0] * len(list(_leaves(child)))
        return box


def grid_size(numbers: Array, digits: int | None = None, cell: Point = CELL) -> Point:
    """Width and height of what `Diagram.grid` draws, without its caption.

    >>> grid_size(np.ones((2, 100)), cell=(0.5, 0.25))
    (4.0, 0.5)
    """
    shown = np.asarray(numbers)[:MOST, :MOST]
    words = [] if digits is None else _written(shown, digits).flat
    wide = max((text_size(word)[0] + 0.16 for word in words), default=0)
    return shown.shape[1] * max(wide, cell[0]), shown.shape[0] * cell[1]


def _matrix(name: str, numbers: Array) -> np.ndarray:
    numbers = np.asarray(numbers)
    if numbers.ndim != 2 or not numbers.size:
        raise ValueError(
            f"{name} must be a matrix with at least one number to be drawn as a grid; got {numbers.shape}"
        )
    return numbers


def _written(numbers: Array, digits: int | None) -> np.ndarray:
    if digits is None:
        return np.full(numbers.shape, "")
    return np.vectorize(lambda x: f"{round(float(x), digits) + 0.0:,.{digits}f}".replace("-", "−"))(numbers)


def _shades(numbers: Array, colour: str) -> np.ndarray:
    """A colour for each number: from pale to dark, from the smallest to the largest; around zero for "signed"."""
    numbers = numbers.astype(float)
    if colour == "weights":
        return mpl.colormaps[WEIGHTS](numbers / (numbers.max() or 1))[..., :3]
    if colour == "signed":
        return mpl.colormaps[f"{SIGNED}_r"](0.5 + numbers / (4 * (np.abs(numbers).max() or 1)))[..., :3]
    low, high = numbers.min(), numbers.max()
    share = 0.08 + 0.62 * ((numbers - low) / (high - low) if high > low else np.full(numbers.shape, 0.5))
    return 1 - share[..., None] * (1 - np.array(to_rgb(colour)))


def _is_dark(shade: object) -> bool:
    return float(np.dot(to_rgb(shade), (0.299, 0.587, 0.114))) < 0.5


def _parted(tree: Tree) -> tuple[str, Sequence[Tree]]:
    return (tree, ()) if isinstance(tree, str) else tree


def _words(tree: Tree) -> Iterator[str]:
    word, below = _parted(tree)
    yield word
    for child in below:
        yield from _words(child)


def _leaves(tree: Tree) -> Iterator[str]:
    word, below = _parted(tree)
    if not below:
        yield word
    for child in below:
        yield from _leaves(child)


def _branches(tree: Tree) -> Iterator[tuple[str, list[str]]]:
    word, below = _parted(tree)
    if below:
        yield word, [_parted(child)[0] for child in below]
    for child in below:
        yield from _branches(child)
