"""Words in a plane, and where they go: points that stay, arrows for what moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.picture import OUTPUT, VALUE, Picture, describe, in_style, label, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = ["moves"]


@in_style
def moves(
    paths: Mapping[str, tuple[Array, Array]], points: Mapping[str, Array], *, title: str, labels: tuple[str, str]
) -> Picture:
    """Arrows ``{name: (from, to)}`` in a plane, among ``points`` ``{name: (x, y)}`` that stay.

    >>> moves({"bank": ([1, 1], [2, 0])}, {"sea": [2, 1]}, title="It goes", labels=("water", "money"))
    It goes. One plot. Across: water. Up: money. Dots: 1 and 1. sea at (2.0, 1.0); bank from (1.0, 1.0) to (2.0, 0.0).
    """
    fig, ax = new_figure(6, 4.6)
    for place, names in _shared(points).items():
        ax.scatter(*place, s=55, color=VALUE, zorder=3)
        ax.annotate(", ".join(names), place, xytext=(8, 8), textcoords="offset points", color=VALUE)
    for name, (start, end) in paths.items():
        _arrow(ax, name, start, end)
    _make_room(ax, [*points.values(), *(place for path in paths.values() for place in path)])
    label(ax, labels)
    said = [f"{name} at {_written(place)}" for name, place in points.items()]
    said += [f"{name} from {_written(start)} to {_written(end)}" for name, (start, end) in paths.items()]
    return Picture(fig, title, f"{describe(fig)} {'; '.join(said)}.")


def _shared(points: Mapping[str, Array]) -> dict[tuple[float, ...], list[str]]:
    """The places, each with the names of all points that stand there."""
    places: dict[tuple[float, ...], list[str]] = {}
    for name, place in points.items():
        places.setdefault(tuple(np.round(np.asarray(place, dtype=float), 6).tolist()), []).append(name)
    return places


def _arrow(ax: Axes, name: str, start: Array, end: Array) -> None:
    look = {"arrowstyle": "-|>,head_width=0.35,head_length=0.7", "color": OUTPUT, "linewidth": 2.2}
    ax.scatter(*start, s=40, color=OUTPUT, zorder=3)
    ax.annotate("", end, start, arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
    ax.annotate(name, np.add(start, end) / 2, xytext=(8, 8), textcoords="offset points", color=OUTPUT)


def _make_room(ax: Axes, places: list[Array]) -> None:
    ends = np.array([np.asarray(place, dtype=float) for place in places])
    low, high = ends.min(axis=0), ends.max(axis=0)
    room = 0.15 * max((high - low).max(), 1e-6)
    ax.set(xlim=(low[0] - room, high[0] + 2 * room), ylim=(low[1] - room, high[1] + room))
    ax.set_aspect("equal")


def _written(point: Array) -> str:
    return f"({', '.join(f'{x + 0.0:.1f}' for x in np.asarray(point, dtype=float))})"
