"""Charts: lines, points and runs. Every function takes arrays and words, and returns a `Picture`.

``title`` states what the picture shows. ``labels`` are the names of the axes, across and up, with their units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import StrMethodFormatter

from attnlib.plotting.picture import CYCLE, INK, PALE, QUERY, WEIGHTS, Picture, in_style, label, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

__all__ = ["bars", "lines", "runs", "scatter", "weighted_points"]

Labels = tuple[str, str]
Curves = Mapping[str, tuple[Any, ...]]


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
    label(ax, labels)
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
        label(ax, labels)
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
    edges: Mapping[str, float] | None = None,
    levels: Mapping[str, float] | None = None,
    legend_below: bool = False,
    share: bool = False,
) -> Picture:
    """Curves ``{name: (x, y)}`` in one plot, or ``{panel: {name: (x, y)}}`` in several side by side.

    ``log`` is "x", "y", "xy" or empty. ``marks`` are points ``{name: (x, y)}`` in the first plot, one or several, the
    name beside the last. A curve ``(x, y, low, high)`` has a shaded band. ``ticks`` are those of the axis across.
    ``points`` draws dots that no line joins, for an axis that only counts. ``edges`` are places ``{name: x}`` across,
    as upright lines, and ``levels`` heights ``{name: y}``, as flat ones. ``legend_below`` puts one legend for all
    plots, which have the same curves, below them. With ``share`` all plots have one scale upwards.

    >>> lines({"speed": ([0, 1], [0, 2])}, title="It speeds up", labels=("time (s)", "speed (m/s)"))
    It speeds up. One plot. Across: time (s). Up: speed (m/s). Lines: speed.
    """
    several = all(isinstance(value, Mapping) for value in panels.values())
    plots = dict(panels) if several else {"": panels}
    fig, axes = new_figure(max(7, 4.1 * len(plots)), 4, len(plots), squeeze=False, sharey=share)
    for i, (ax, (name, curves)) in enumerate(zip(axes[0], plots.items(), strict=True)):
        ax.set_title(name)
        _set_log(ax, log)
        _draw_curves(ax, curves, marks if i == 0 else None, points=points)
        if ticks is not None:
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        for place in (edges or {}).items():
            _draw_edge(ax, *place)
        for name, y in (levels or {}).items():
            ax.axhline(y, color=INK, linestyle=":", linewidth=1.2, zorder=0, label=f"_{name}")
        label(ax, labels if isinstance(labels[0], str) else labels[i])
        if share:
            ax.label_outer()
    for ax in axes[0]:
        if "y" in log:
            _plain_numbers(ax)
        else:
            _start_at_zero(ax)
        for level in (levels or {}).items():
            _name_level(ax, *level)
    if legend_below:
        for ax in axes[0]:
            ax.get_legend().remove()
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9.5)
    return Picture(fig, title)


@in_style
def runs(
    results: Mapping[str, Sequence[float]],
    *,
    title: str,
    labels: Labels,
    names: Sequence[str] | None = None,
    reference: Mapping[str, float] | None = None,
    log: bool = False,
    from_zero: bool = True,
    share: bool = False,
) -> Picture:
    """One dot a run for each entry of ``{name: results}``, and a bar at their median.

    With ``names``, one for each run, every run has a colour and a mark of its own, and there is no bar. ``reference``
    are levels ``{name: height}`` that are known without a run, as dashed lines. With ``share`` the axis goes from none
    to all, 0 to 1.

    >>> runs({"a": [1, 2], "b": [3, 4]}, title="b wins twice", labels=("", "points"), reference={"none": 0})
    b wins twice. One plot. Up: points. Lines: none. Dots: 2 for a, 2 for b.
    >>> runs({"a": [1, 4], "b": [4, 1]}, title="Each wins once", labels=("", "points"), names=["run 0", "run 1"])
    Each wins once. One plot. Up: points. Lines: run 0, run 1. Dots: 2 and 2.
    """
    fig, ax = new_figure(max(5, min(10, 1.4 * len(results) + 1)), 3.8)
    for i, (name, values) in enumerate(() if names else results.items()):
        places = i + 0.3 * (np.arange(len(values)) + 0.5) / len(values) - 0.15
        ax.scatter(places, values, s=40, color=CYCLE[0], alpha=0.8, label=f"_{name}")
        ax.hlines(np.median(values), i - 0.3, i + 0.3, color=INK, linewidth=1.5)
    for k, name in enumerate(names or ()):
        places = np.arange(len(results)) + 0.6 * ((k + 0.5) / len(names) - 0.5)
        values = [of_runs[k] for of_runs in results.values()]
        ax.scatter(places, values, s=55, color=CYCLE[k], marker="osD^vP"[k % 6], label=name, clip_on=False)
    for i, (name, height) in enumerate((reference or {}).items()):
        ax.axhline(height, color=PALE, linestyle=["--", ":", "-."][i % 3], label=name, zorder=0)
    if reference or names:
        ax.legend(fontsize=9.5)
    ax.set_xticks(range(len(results)), results)
    label(ax, labels)
    if log:
        ax.set_yscale("log")
    elif share:
        ax.set_ylim(-0.03, 1.03)
    elif from_zero:
        _start_at_zero(ax)
    return Picture(fig, title)


@in_style
def bars(
    names: Sequence[str], values: Sequence[float], *, title: str, label: str, top: float | None = None
) -> Picture:
    """A flat bar for each of ``names``, the first on top, with its value at the end.

    ``label`` is what the values are, ``top`` where the axis ends.

    >>> bars(["the", "a"], [0.7, 0.3], title="It is nearly sure", label="probability")
    It is nearly sure. Across: probability. Bars: the 0.7, a 0.3.
    """
    fig, ax = new_figure(7, 0.28 * len(names) + 1.1)
    drawn = ax.barh(range(len(names)), values, color=CYCLE[0], height=0.7)
    ax.bar_label(drawn, fmt="%.2g", padding=4, fontsize=9.5)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, top or 1.1 * max(values))
    ax.set_xlabel(label)
    said = ", ".join(f"{name} {value:.2g}" for name, value in zip(names, values, strict=True))
    return Picture(fig, title, f"Across: {label}. Bars: {said}.")


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
        last = np.ravel(x)[-1], np.ravel(y)[-1]
        ax.annotate(name, last, xytext=(6, 6), textcoords="offset points", fontsize=9.5)
    if any(curves):
        ax.legend(fontsize=9.5)


def _draw_edge(ax: Axes, name: str, x: float) -> None:
    ax.axvline(x, color=PALE, linestyle="--", linewidth=1.2, zorder=0, label=f"_{name}")
    ax.annotate(
        name, (x, 0), xycoords=("data", "axes fraction"), xytext=(4, 4), textcoords="offset points", fontsize=9
    )


def _name_level(ax: Axes, name: str, y: float) -> None:
    """Below its line, or above one that lies on the axis."""
    height = ax.transAxes.inverted().transform(ax.get_yaxis_transform().transform((0, y)))[1]
    place = (4, 3 if height < 0.08 else -11)
    ax.annotate(name, (0, y), xycoords=("axes fraction", "data"), xytext=place, textcoords="offset points", fontsize=9)


def _start_at_zero(ax: Axes) -> None:
    """An axis that starts just below small positive values makes them look like nothing."""
    low, high = ax.dataLim.intervaly
    if 0 <= low < high / 2:
        ax.set_ylim(bottom=0)


def _plain_numbers(ax: Axes) -> None:
    """Write 2.6 instead of 2.6 × 10⁰ where a logarithmic axis shows less than a power of ten."""
    low, high = ax.get_ylim()
    if 0.1 < low < high < 10 * low:
        ax.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _set_log(ax: Axes, log: str) -> None:
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
