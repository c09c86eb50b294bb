"""What lies and moves in a plane: words that go from place to place, queries and keys that meet or turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Ellipse

from attnlib.plotting.picture import (
    KEY,
    OUTPUT,
    PALE,
    QUERY,
    VALUE,
    Picture,
    describe,
    in_style,
    label,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = ["clocks", "moves", "two_vectors"]


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


@in_style
def two_vectors(q: Array, keys: Mapping[str, Array], *, title: str, reach: float | None = None) -> Picture:
    """A query and, in a plot for each, keys ``{name: (x, y)}``: their dot product, and the distance between them.

    ``reach`` is how far the axes go, by default as far as the longest.

    >>> two_vectors([1, 0], {"itself": [1, 0], "twice as long": [2, 0]}, title="The longer key wins")
    The longer key wins. The query (1.0, 0.0). itself (1.0, 0.0): q · k = 1.00, distance 0.00; twice as long \
(2.0, 0.0): q · k = 2.00, distance 1.00.
    """
    q, ends = np.asarray(q, dtype=float), {name: np.asarray(k, dtype=float) for name, k in keys.items()}
    reach = reach or 1.1 * max(np.abs([q, *ends.values()]).max(), 1e-6)
    fig, axes = new_figure(max(4.6, 3.4 * len(ends)), 4.2, len(ends), squeeze=False)
    scores = {name: f"q · k = {q @ k:.2f}, distance {np.linalg.norm(q - k):.2f}" for name, k in ends.items()}
    for ax, (name, k) in zip(axes[0], ends.items(), strict=True):
        ax.plot(*np.transpose([q, k]), color=PALE, linestyle=":", linewidth=1.5)
        for end, colour, letter in ((k, KEY, "k"), (q, QUERY, "q")):
            _ray(ax, end, colour, letter)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        ax.set_title(f"{name}\n{scores[name]}", fontsize=10.5)
    said = "; ".join(f"{name} {_written(k)}: {scores[name]}" for name, k in ends.items())
    return Picture(fig, title, f"The query {_written(q)}. {said}.")


def _ray(ax: Axes, end: Array, colour: str, letter: str) -> None:
    """An arrow from the origin, its letter beyond its tip."""
    ax.annotate("", end, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2.4, "shrinkA": 0})
    away = 12 * end / max(float(np.linalg.norm(end)), 1e-6)
    ax.annotate(letter, end, away, textcoords="offset points", ha="center", va="center", color=readable(colour))


@in_style
def clocks(q: Array, k: Array, rates: Sequence[float], *, places: Sequence[tuple[int, int]], title: str) -> Picture:
    """A query and a key as pairs of numbers, each pair turned by its rate times the position: rotary encoding.

    ``q`` and ``k`` are ``(n_pairs, 2)``. A column for each of ``places`` (where the query stands, where the key), a
    row for each pair. Pale hands are those of position 0, and above each column stands the score.

    Source: Su et al. (2021), section 3.

    >>> clocks([[1, 0]], [[0, 1]], [0.5], places=[(0, 0), (3, 3)], title="Both turn").alt[:74]
    'Both turn. query at 0, key at 0: score 0.00; query at 3, key at 3: score 0'
    """
    q, k = np.asarray(q, dtype=float), np.asarray(k, dtype=float)
    fig, axes = new_figure(max(3.3 * len(places), 4.5), 2.9 * len(rates), len(places), len(rates), squeeze=False)
    said = []
    for column, (at_q, at_k) in zip(axes.T, places, strict=True):
        score = sum(_turned(a, at_q * w) @ _turned(b, at_k * w) for a, b, w in zip(q, k, rates, strict=True))
        said.append(f"query at {at_q}, key at {at_k}: score {score:.2f}")
        column[0].set_title(said[-1])
        for ax, a, b, rate in zip(column, q, k, rates, strict=True):
            _clock(ax, {QUERY: (a, at_q * rate), KEY: (b, at_k * rate)})
    for ax, rate in zip(axes[:, 0], rates, strict=True):
        ax.set_ylabel(f"{rate:g} radian a step")
    return Picture(fig, title, f"{'; '.join(said)}. Clocks that turn by {', '.join(f'{r:g}' for r in rates)} a step.")


def _turned(pair: Array, angle: float) -> np.ndarray:
    """A row of two numbers times the matrix of a turn."""
    return pair @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def _clock(ax: Axes, hands: Mapping[str, tuple[Array, float]]) -> None:
    """Two hands ``{colour: (pair, angle)}``, each pale where it stood before the turn."""
    ax.add_patch(Ellipse((0, 0), 2, 2, facecolor="none", edgecolor=PALE))
    for (colour, (pair, angle)), name in zip(hands.items(), "qk", strict=True):
        ax.plot(*np.transpose([(0, 0), pair]), color=colour, alpha=0.3, linewidth=2, linestyle="-")
        look = {"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": colour, "linewidth": 2.4}
        end = _turned(pair, angle)
        ax.annotate("", end, (0, 0), arrowprops={**look, "shrinkA": 0, "shrinkB": 0})
        ax.annotate(name, 1.18 * end, ha="center", va="center", color=readable(colour), weight="bold")
    ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal")
