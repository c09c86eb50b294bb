"""The figures of the course. Every function takes arrays and words, and returns a `Picture`.

``title`` states what the picture shows. ``labels`` are the names of the axes, across and up, with their units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import PowerNorm

from attnlib._course_map import course_map
from attnlib._picture import (
    INK,
    KEY,
    OUTPUT,
    PALE,
    QUERY,
    SIGNED,
    VALUE,
    WEIGHTS,
    Picture,
    in_style,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = [
    "INK",
    "KEY",
    "OUTPUT",
    "PALE",
    "QUERY",
    "VALUE",
    "Picture",
    "course_map",
    "images",
    "lines",
    "matrices",
    "scatter",
    "surfaces",
    "weight_map",
    "weighted_points",
]

Labels = tuple[str, str]
Curves = Mapping[str, tuple[Any, ...]]
Ticks = tuple[Sequence | Mapping, Sequence | Mapping]


@in_style
def scatter(
    x: Array,
    y: Array,
    *,
    title: str,
    labels: Labels,
    curves: Curves | None = None,
    query: float | None = None,
    sizes: Array | None = None,
) -> Picture:
    """Data as dots, with ``curves`` ``{name: (x, y)}`` over them.

    ``query`` marks one place on the axis, and ``sizes`` (weights) makes the dots that count larger.

    >>> scatter([1.0, 2.0], [2.0, 4.0], title="It doubles", labels=("hours", "km"), query=1.5)
    It doubles. One plot. Across: hours. Up: km. Dots: 2.
    """
    fig, ax = new_figure(7, 4)
    if sizes is None:
        ax.scatter(x, y, s=14, color=PALE, alpha=0.8, linewidths=0)
    else:
        _weighted_dots(ax, x, y, sizes)
    if query is not None:
        ax.axvline(query, color=QUERY, linewidth=1.5)
    _draw_curves(ax, curves or {})
    _label(ax, labels)
    return Picture(fig, title)


@in_style
def weighted_points(weights: Mapping[str, Array], x: Array, y: Array, *, title: str, labels: Labels) -> Picture:
    """The same points in several plots, one for each entry of ``weights``: the heavier, the larger and darker.

    >>> weighted_points({"even": np.ones(2)}, [0, 1], [0, 1], title="Two points", labels=("x", "y"))
    Two points. One plot. Title: even. Across: x. Up: y. Dots: 2.
    """
    fig, axes = new_figure(max(5, 4.3 * len(weights)), 4.3, len(weights), squeeze=False)
    for ax, (name, w) in zip(axes[0], weights.items(), strict=True):
        _weighted_dots(ax, x, y, w)
        ax.set_title(name)
        ax.set_aspect("equal")
        _label(ax, labels)
    return Picture(fig, title)


@in_style
def lines(
    panels: Mapping[str, Curves] | Curves,
    *,
    title: str,
    labels: Labels | Sequence[Labels],
    log: str = "",
    marks: Curves | None = None,
    ticks: Sequence[float] | None = None,
    points: bool = False,
) -> Picture:
    """Curves ``{name: (x, y)}`` in one plot, or ``{panel: {name: (x, y)}}`` in several side by side.

    ``log`` is "x", "y", "xy" or empty. ``marks`` are single points ``{name: (x, y)}`` in the first plot.
    A curve ``(x, y, low, high)`` has a shaded band. ``ticks`` are those of the axis across. ``points`` draws
    dots that no line joins, for an axis that only counts.

    >>> lines({"speed": ([0, 1], [0, 2])}, title="It speeds up", labels=("time (s)", "speed (m/s)"))
    It speeds up. One plot. Across: time (s). Up: speed (m/s). Lines: speed.
    """
    several = all(isinstance(value, Mapping) for value in panels.values())
    plots = dict(panels) if several else {"": panels}
    fig, axes = new_figure(max(7, 4.1 * len(plots)), 4, len(plots), squeeze=False)
    for i, (ax, (name, curves)) in enumerate(zip(axes[0], plots.items(), strict=True)):
        ax.set_title(name)
        _set_log(ax, log)
        _draw_curves(ax, curves, marks if i == 0 else None, points=points)
        if "y" not in log:
            _start_at_zero(ax)
        if ticks is not None:
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        _label(ax, labels if isinstance(labels[0], str) else labels[i])
    return Picture(fig, title)


@in_style
def weight_map(
    weights: Array | Mapping[str, Array],
    *,
    title: str,
    labels: Labels | Sequence[Labels],
    ticks: Ticks | Sequence[Ticks] | None = None,
    share_scale: bool = True,
    gamma: float = 1.0,
) -> Picture:
    """Attention weights as a picture: a row for a query, a column for a key, dark where the weight is large.

    Several maps ``{name: weights}`` stand side by side. ``ticks`` are words for the columns and the rows: spread
    evenly from the first to the last, or ``{place: word}``. One pair serves all maps; a list has one for each.
    ``gamma`` below one makes small weights visible; the scale beside the map still reads in weights.

    >>> weight_map(np.eye(3), title="Each attends to itself", labels=("key", "query"))
    Each attends to itself. One plot. Across: key. Up: query. Grid of numbers: 3×3.
    """
    maps = dict(weights) if isinstance(weights, Mapping) else {"": weights}
    fig, axes = new_figure(max(6, 4.4 * len(maps)), 4.4, len(maps), squeeze=False)
    top = max(float(np.max(w)) for w in maps.values())
    for i, (ax, (name, w)) in enumerate(zip(axes[0], maps.items(), strict=True)):
        image = ax.imshow(
            w,
            cmap=WEIGHTS,
            norm=PowerNorm(gamma, vmin=0, vmax=top if share_scale else float(np.max(w))),
            aspect="auto",
            interpolation="nearest" if max(np.shape(w)) < 100 else "antialiased",
        )
        ax.set_title(name)
        _label(ax, labels if isinstance(labels[0], str) else labels[i])
        ax.xaxis.label.set_color(_darker(KEY))
        ax.yaxis.label.set_color(QUERY)
        if ticks is not None:
            _word_ticks(ax, ticks if isinstance(ticks, tuple) else ticks[i], np.shape(w))
        if i == len(maps) - 1 or not share_scale:
            fig.colorbar(image, ax=ax, label="weight", shrink=0.9)
    return Picture(fig, title)


@in_style
def matrices(
    named: Mapping[str, Array], *, title: str, colours: Mapping[str, str] | None = None, digits: int = 1
) -> Picture:
    """Small matrices side by side with their numbers written in, shaded by value; negative ones in purple.

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
        ax.set_title(f"{name} ({np.shape(m)[0]}×{np.shape(m)[1]})", color=_darker(colour), loc="left")
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set(visible=True, color=colour, linewidth=2)
    return Picture(fig, title)


@in_style
def surfaces(
    named: Mapping[str, Array],
    *,
    extent: tuple[float, float, float, float],
    title: str,
    labels: Labels,
    query: tuple[float, float] | None = None,
) -> Picture:
    """Functions of a plane, as contours: orange above zero, purple below. ``query`` marks a point of it.

    >>> surfaces({"s": np.eye(3)}, extent=(0, 1, 0, 1), title="A ridge", labels=("a", "b"), query=(0.5, 0.5))
    A ridge. One plot. Title: s. Across: a. Up: b. Dots: 1.
    """
    fig, axes = new_figure(min(10, 2.9 * len(named) + 0.4), 3.0, len(named), squeeze=False, sharey=True)
    for i, (ax, (name, z)) in enumerate(zip(axes[0], named.items(), strict=True)):
        across, up = np.linspace(*extent[:2], z.shape[1]), np.linspace(*extent[2:], z.shape[0])
        top = np.abs(z).max()
        ax.contourf(across, up, z, levels=np.linspace(-top, top, 21), cmap=f"{SIGNED}_r")
        ax.contour(across, up, z, levels=9, colors=INK, linewidths=0.5, linestyles="-")
        if query is not None:
            ax.scatter(*query, s=60, color=QUERY, edgecolors="white", zorder=3)
            ax.annotate("q", query, xytext=(6, 6), textcoords="offset points", color=QUERY, weight="bold")
        ax.set_title(name)
        ax.set_aspect("equal")
        _label(ax, (labels[0], labels[1] if i == 0 else ""))
    return Picture(fig, title)


@in_style
def images(rows: Mapping[str, Array], *, title: str) -> Picture:
    """Rows of small grey pictures ``{what the row is: (n, height, width)}``, 0 white and 1 black.

    >>> images({"seen": np.zeros((2, 4, 8)), "guessed": np.ones((2, 4, 8))}, title="Two of each")
    Two of each. Rows of small pictures: seen, 2; guessed, 2.
    """
    columns = max(len(row) for row in rows.values())
    fig, axes = new_figure(1.0 * columns + 1.2, 1.05 * len(rows) + 0.5, columns, len(rows), squeeze=False)
    for line, (name, pictures) in zip(axes, rows.items(), strict=True):
        for ax, picture in zip(line, pictures, strict=False):
            ax.imshow(picture, cmap="Greys", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
            ax.spines[:].set_color(PALE)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    counts = "; ".join(f"{name}, {len(row)}" for name, row in rows.items())
    return Picture(fig, title, f"Rows of small pictures: {counts}.")


def _weighted_dots(ax: Axes, x: Array, y: Array, weights: Array) -> None:
    share = np.asarray(weights) / np.max(weights)
    ax.scatter(x, y, s=6 + 60 * share, c=share, cmap=WEIGHTS, vmin=-0.25, vmax=1, linewidths=0)


def _draw_curves(ax: Axes, curves: Curves, marks: Curves | None = None, *, points: bool = False) -> None:
    for name, (x, y, *band) in curves.items():
        (line,) = ax.plot(x, y, label=name)
        if points:
            line.set(linestyle="none", marker="os^Dv"[len(ax.lines) % 5], markersize=8, alpha=0.8)
        if band:
            ax.fill_between(x, *band, color=line.get_color(), alpha=0.18, linewidth=0)
    for name, (x, y) in (marks or {}).items():
        ax.plot(x, y, "o", color=INK, markersize=6, linestyle="none")
        ax.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points", fontsize=9.5)
    if any(curves):
        ax.legend(fontsize=9.5)


def _start_at_zero(ax: Axes) -> None:
    """An axis that starts just below small positive values makes them look like nothing."""
    low, high = ax.dataLim.intervaly
    if 0 <= low < high / 2:
        ax.set_ylim(bottom=0)


def _set_log(ax: Axes, log: str) -> None:
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")


def _label(ax: Axes, labels: Labels) -> None:
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])


def _word_ticks(ax: Axes, ticks: tuple[Sequence, Sequence], shape: tuple[int, ...]) -> None:
    for axis, words, size in ((ax.xaxis, ticks[0], shape[1]), (ax.yaxis, ticks[1], shape[0])):
        if isinstance(words, Mapping):
            places, words = list(words), list(words.values())
        else:
            places = np.linspace(0, size - 1, len(words))
        axis.set_ticks(places, [str(word) for word in words])


def _darker(colour: str) -> str:
    """Orange letters on white are hard to read; the same hue, darker, is not."""
    return "#9c6a00" if colour == KEY else colour
