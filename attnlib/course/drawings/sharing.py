"""Which process holds what, when several compute one model: a batch and its weights, cut one way or another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnlib.plotting.canvas import Canvas, Point
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, QUERY, VALUE, Picture

__all__ = ["shares_diagram"]

WIDE, HIGH, APART = 1.5, 1.1, 2.35  # of a block, and from one way to the next, in inches
COLOURS = (QUERY, KEY, VALUE, OUTPUT)
CUTS = {"rows": "cut into rows", "columns": "cut into columns", "": "whole in each"}


def shares_diagram(ways: Mapping[str, Mapping[str, tuple[str, str]]], n_processes: int, *, title: str) -> Picture:
    """For each of the ``ways`` its blocks ``{name: (cut, words)}``, each with a colour and number a process.

    A ``cut`` is "rows", "columns", or empty where each process has all of it; the words stand below the block.

    Raises ``ValueError`` for another cut or when ``n_processes`` is not from 2 to 8.

    >>> ways = {"data parallel": {"batch": ("rows", "a quarter each"), "weights": ("", "all")}}
    >>> shares_diagram(ways, 4, title="Who has what")
    Who has what. data parallel: batch cut into rows, a quarter each; weights whole in each, all.
    """
    if not 2 <= n_processes <= 8:
        raise ValueError(f"n_processes must be from 2 to 8, or the drawing has no room; got {n_processes}")
    page = Canvas()
    for column, (way, blocks) in enumerate(ways.items()):
        page.text(way, (APART * column, HIGH / 2 + 0.3), bold=True)
        for row, (name, (cut, words)) in enumerate(blocks.items()):
            if cut not in CUTS:
                raise ValueError(f"cut must be one of {', '.join(map(repr, CUTS))}; got {cut!r} for {name} of {way}")
            at = (APART * column, -row * (HIGH + 0.85))
            _block(page, at, cut, n_processes)
            page.text(words, (at[0], at[1] - HIGH / 2 - 0.2))
            page.say(way, f"{name} {CUTS[cut]}, {words}")
            if column == 0:
                page.text(name, (-WIDE / 2 - 0.15, at[1]), align="right")
    return page.picture(title)


def _block(page: Canvas, at: Point, cut: str, n: int) -> None:
    """A rectangle around ``at`` in one piece, or in ``n`` with their numbers."""
    if not cut:
        _piece(page, at, WIDE, HIGH, PALE, f"0 – {n - 1}")
        return
    wide, high = (WIDE / n, HIGH) if cut == "columns" else (WIDE, HIGH / n)
    for i, colour in zip(range(n), cycle(COLOURS), strict=False):
        along = (i - (n - 1) / 2) * (wide if cut == "columns" else -high)
        middle = (at[0] + along, at[1]) if cut == "columns" else (at[0], at[1] + along)
        _piece(page, middle, wide, high, colour, str(i))


def _piece(page: Canvas, at: Point, wide: float, high: float, colour: str, words: str) -> None:
    corner = (at[0] - wide / 2, at[1] - high / 2)
    page.put(
        partial(_fill, corner=corner, wide=wide, high=high, colour=colour),
        corner,
        (at[0] + wide / 2, at[1] + high / 2),
    )
    page.text(words, at)


def _fill(ax: Axes, corner: Point, wide: float, high: float, colour: str) -> None:
    for options in ({"facecolor": colour, "alpha": 0.28, "lw": 0}, {"fill": False, "edgecolor": INK, "lw": 1}):
        ax.add_patch(Rectangle(corner, wide, high, **options))
