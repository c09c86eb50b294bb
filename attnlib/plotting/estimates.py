"""An estimate and where it came from, one above the other. All are in `attnlib.plotting`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import PowerNorm

from attnlib.plotting.picture import (
    KEY,
    PALE,
    QUERY,
    WEIGHTS,
    Picture,
    describe,
    in_style,
    label,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["curves_and_weights"]


@in_style
def curves_and_weights(
    x: Array,
    y: Array,
    fits: Mapping[str, tuple[Array, Array, Array]],
    *,
    title: str,
    labels: tuple[str, str],
    map_labels: tuple[str, str],
    ticks: Sequence[str] = (),
    places: Sequence[float] = (),
    gamma: float = 0.5,
    top: float | None = None,
) -> Picture:
    """Above, data as dots under a curve; below, the weights that made it; a column a fit, or one fit side by side.

    A fit is ``{name: (grid, curve, weights)}``, with a row of weights for a query and a column for a data point.
    ``ticks`` are words spread evenly over columns and rows of all maps. ``top`` is the darkest weight; unless given,
    each map has a scale of its own, from 0 to its largest. ``gamma`` below one makes small weights visible. With
    ``places``, ticks in the units of ``x``, which must rise, maps are drawn to that scale with a colour bar each, and
    the alt text says where their rows have the largest weight.

    >>> fit = ([0, 1], [1, 1], np.full((2, 2), 0.5))
    >>> words = {"title": "A mean", "labels": ("x", "y"), "map_labels": ("key", "query")}
    >>> curves_and_weights([0, 1], [0, 2], {"wide": fit}, **words)
    A mean. 2 plots. (1) Title: wide. Across: x. Up: y. Dots: 2. (2) Title: largest weight 0.50. Across: key. Up: \
query. Grid of numbers: 2×2.
    """
    said: list[str] = []
    alone = len(fits) == 1
    size = (9.0, 4.0, 2, 1) if alone else (3.4 * len(fits), 6.4, len(fits), 2)
    fig, axes = new_figure(*size, squeeze=False)
    for i, (name, (grid, curve, weights)) in enumerate(fits.items()):
        above, below = axes[0] if alone else axes[:, i]
        above.scatter(x, y, s=10, color=PALE, alpha=0.8, linewidths=0)
        above.plot(grid, curve)
        above.set_title(name)
        label(above, (labels[0], labels[1] if i == 0 else ""))
        most = float(np.max(weights))
        look = {"cmap": WEIGHTS, "norm": PowerNorm(gamma, vmin=0, vmax=top or most)}
        if len(places):
            image = below.pcolormesh(_edges(x), _edges(grid), weights, **look)
            below.invert_yaxis()
            fig.colorbar(image, ax=below, label="weight" if i == len(fits) - 1 else "")
            said.append(f"{name}: {_peaks(x, grid, weights, places)}.")
        else:
            below.imshow(weights, aspect="auto", interpolation="antialiased", **look)
        below.set_title(f"largest weight {most:.{2 if most >= 0.01 else 4}f}")
        label(below, (map_labels[0], map_labels[1] if i == 0 else ""))
        below.xaxis.label.set_color(readable(KEY))
        below.yaxis.label.set_color(QUERY)
        for axis, size in ((below.xaxis, weights.shape[1]), (below.yaxis, weights.shape[0])):
            even = np.linspace(0, size - 1, len(ticks)) if ticks else []
            axis.set_ticks(*([places] if len(places) else [even, list(ticks)]))
        below.tick_params("both", labelsize=8.5)
    return Picture(fig, title, " ".join([describe(fig), *said]))


def _edges(places: Array) -> Array:
    """Borders halfway between neighbours, and as far again outside."""
    places = np.asarray(places, float)
    halfway = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - halfway[0]], halfway, [2 * places[-1] - halfway[-1]]])


def _peaks(x: Array, grid: Array, weights: Array, places: Sequence[float]) -> str:
    rows = [int(np.argmin(np.abs(np.asarray(grid) - place))) for place in places]
    asked, found = (
        ", ".join(f"{value:.0f}" for value in some) for some in (places, x[np.argmax(weights[rows], axis=1)])
    )
    return f"rows at {asked} have their largest weight at {found}"
