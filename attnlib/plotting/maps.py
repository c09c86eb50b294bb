"""Matrices as pictures: weights, surfaces, small images. All are in `attnlib.plotting`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import PowerNorm

from attnlib.plotting.picture import (
    INK,
    KEY,
    PALE,
    QUERY,
    SIGNED,
    WEIGHTS,
    Picture,
    frame_cells,
    in_style,
    label,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import ndarray as Array

Labels = tuple[str, str]
Ticks = tuple[Sequence[str] | Mapping[int, str], Sequence[str] | Mapping[int, str]]


@in_style
def weight_map(
    weights: Array | Mapping[str, Array],
    *,
    title: str,
    labels: Labels | Sequence[Labels],
    ticks: Ticks | Sequence[Ticks] | None = None,
    share_scale: bool = True,
    gamma: float = 1.0,
    scale: str | None = "weight",
    columns: int | None = None,
    rows_ask: bool | None = True,
    top: float | None = None,
    framed: Collection[tuple[int, int]] = (),
) -> Picture:
    """Attention weights as a picture: a row for a query, a column for a key, dark where the weight is large.

    Several maps ``{name: weights}`` stand side by side, or ``columns`` in a row. ``ticks`` are words for the
    columns and the rows: spread evenly from the first to the last, or ``{place: word}``. One pair serves all maps; a
    list has one for each.
    ``gamma`` below one makes small weights visible; the scale beside the map still reads in weights. ``scale`` says
    what it measures; None leaves it out. ``top`` is the darkest weight, by default the largest. Without ``rows_ask``
    the rows hold keys too, as the sentences of a document; None: nothing asks. Cells at the places ``framed``,
    (row, column), get a frame.

    >>> weight_map(np.eye(3), title="Each attends to itself", labels=("key", "query"))
    Each attends to itself. One plot. Across: key. Up: query. Grid of numbers: 3×3.
    """
    maps = _by_name(weights)
    columns = columns or len(maps)
    rows = -(-len(maps) // columns)
    size = (max(6, min(10, 4.4 * columns)), 4.4) if rows == 1 else (min(10, 3.3 * columns), 2.7 * rows)
    fig, axes = new_figure(*size, columns, rows, squeeze=False)
    top = top or max(float(np.max(w)) for w in maps.values())
    for i, (ax, (name, w)) in enumerate(zip(axes.flat, maps.items(), strict=True)):
        image = ax.imshow(
            w,
            cmap=WEIGHTS,
            norm=PowerNorm(gamma, vmin=0, vmax=top if share_scale else float(np.max(w))),
            aspect="auto",
            interpolation="nearest" if max(np.shape(w)) < 100 else "antialiased",
        )
        ax.set_title(name)
        label(ax, labels if isinstance(labels[0], str) else labels[i])
        if rows_ask is not None:
            ax.xaxis.label.set_color(readable(KEY))
            ax.yaxis.label.set_color(QUERY if rows_ask else readable(KEY))
        frame_cells(ax, framed, inset=0, colour=INK, linewidth=1.2)
        if ticks is not None:
            _word_ticks(ax, ticks if isinstance(ticks, tuple) else ticks[i], np.shape(w))
        if scale and not share_scale:
            fig.colorbar(image, ax=ax, label=scale, shrink=0.9)
    if scale and share_scale:
        fig.colorbar(image, ax=axes[0, -1] if rows == 1 else axes, label=scale, shrink=0.9)
    return Picture(fig, title)


@in_style
def attention_sheet(
    maps: Mapping[str, Array] | Sequence[Array], *, title: str, tokens: Sequence[str] | None = None, gamma: float = 0.5
) -> Picture:
    """Every head of every layer on one sheet: a row of small maps for each layer, a column for each head.

    ``maps`` holds for each layer ``(heads, n_q, n_k)``, as `attnlib.probes.attention_maps` gives for one sequence.
    Queries go down, keys across; ``tokens`` are only counted here, `weight_map` has room for them. ``gamma`` below
    one makes small weights visible.

    >>> attention_sheet([np.ones((2, 3, 3)) / 3] * 4, title="Nobody has learned")
    Nobody has learned. Small maps of weights, queries down, keys across: 4 layers of 2 heads, 3 by 3 each.
    """
    layers = {i: _numbers(m) for i, m in enumerate(maps.values() if isinstance(maps, Mapping) else maps)}
    for i, m in layers.items():
        if m.ndim != 3 or (tokens is not None and m.shape[2] != len(tokens)):
            wanted = "(heads, n_q, n_k)" if tokens is None else f"(heads, n_q, {len(tokens)}), a key for each token"
            raise ValueError(f"maps must be {wanted}; got {m.shape} for layer {i}")
    heads = max(len(m) for m in layers.values())
    fig, axes = new_figure(min(10, 1.15 * heads + 0.8), 1.15 * len(layers) + 0.5, heads, len(layers), squeeze=False)
    for i, (line, m) in enumerate(zip(axes, layers.values(), strict=True)):
        for head, ax in enumerate(line):
            ax.set(xticks=[], yticks=[])
            if head >= len(m):
                ax.axis("off")
                continue
            ax.imshow(m[head], cmap=WEIGHTS, norm=PowerNorm(gamma, vmin=0, vmax=1), aspect="auto")
            ax.spines[:].set(visible=True, color=PALE)
            if i == 0:
                ax.set_title(f"head {head}", size=9, weight="normal", loc="center")
        line[0].set_ylabel(f"layer {i}", size=9)
    sizes = " by ".join(map(str, layers[0].shape[1:]))
    said = f"Small maps of weights, queries down, keys across: {len(layers)} layers of {heads} heads, {sizes} each."
    return Picture(fig, title, said)


@in_style
def signed_map(
    numbers: Array | Mapping[str, Array],
    *,
    title: str,
    labels: Labels,
    ticks: Ticks | None = None,
    scale: str = "score",
    crosses: bool = False,
) -> Picture:
    """Signed numbers as a picture, brown above zero and purple below, several ``{name: numbers}`` side by side.

    One colour scale, centred on zero, serves all. ``ticks`` are words for the columns and the rows. With ``crosses``
    what is well above zero has one, for paper without colours.

    >>> signed_map(np.eye(2) - 0.5, title="Unlike signs", labels=("key", "query"))
    Unlike signs. One plot. Across: key. Up: query. Grid of numbers: 2×2.
    """
    maps = _by_name(numbers)
    fig, axes = new_figure(max(6, min(10, 4.4 * len(maps))), 4.2, len(maps), squeeze=False)
    top = max(float(np.abs(m).max()) for m in maps.values()) or 1
    for ax, (name, m) in zip(axes[0], maps.items(), strict=True):
        image = ax.imshow(m, cmap=f"{SIGNED}_r", vmin=-top, vmax=top, aspect="auto", interpolation="nearest")
        if crosses:
            rows, columns = np.nonzero(np.asarray(m) > top / 10)
            ax.plot(columns, rows, "+", color=INK, markersize=4, markeredgewidth=0.8)
        ax.set_title(name)
        label(ax, labels)
        if ticks is not None:
            _word_ticks(ax, ticks, np.shape(m))
    fig.colorbar(image, ax=axes[0], label=scale, shrink=0.9)
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
    """Functions of a plane, as contours: brown above zero, purple and dashed below. ``query`` marks a point of it.

    >>> surfaces({"s": np.eye(3)}, extent=(0, 1, 0, 1), title="A ridge", labels=("a", "b"), query=(0.5, 0.5))
    A ridge. One plot. Title: s. Across: a. Up: b. Dots: 1.
    """
    fig, axes = new_figure(min(10, 2.9 * len(named) + 0.4), 3.0, len(named), squeeze=False, sharey=True)
    for i, (ax, (name, z)) in enumerate(zip(axes[0], named.items(), strict=True)):
        across, up = np.linspace(*extent[:2], z.shape[1]), np.linspace(*extent[2:], z.shape[0])
        top = np.abs(z).max()
        ax.contourf(across, up, z, levels=np.linspace(-top, top, 21), cmap=f"{SIGNED}_r")
        lines = np.linspace(-top, top, 12)
        ax.contour(across, up, z, levels=lines, colors=INK, linewidths=0.6, linestyles=np.where(lines < 0, "--", "-"))
        if query is not None:
            ax.scatter(*query, s=60, color=QUERY, edgecolors="white", zorder=3)
            behind = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            ax.annotate("q", query, (7, 7), textcoords="offset points", color=QUERY, weight="bold", bbox=behind)
        ax.set_title(name)
        ax.set_aspect("equal")
        label(ax, (labels[0], labels[1] if i == 0 else ""))
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


@in_style
def strongest_keys(
    queries: Array, keys: Array, weights: Array, *, words: Sequence[str], title: str, count: int = 5
) -> Picture:
    """Small grey pictures that ask, each followed by the ``count`` of the ``keys`` that have its largest weights.

    ``queries`` is ``(m, height, width)``, ``keys`` ``(n, height, width)``, ``weights`` ``(m, n)``; ``words``
    are n, what each key is called. Below a key stands its word, and its weight.

    >>> strongest_keys(np.zeros((1, 4, 4)), np.ones((3, 4, 4)), np.array([[0.2, 0.7, 0.1]]), words="abc",
    ...                count=2, title="It asks b most")
    It asks b most. Pictures that ask, each with its largest weights: b 0.70, a 0.20.
    """
    fig, axes = new_figure(1.25 * (count + 1), 1.6 * len(queries) + 0.3, count + 1, len(queries), squeeze=False)
    said = []
    for line, query, row in zip(axes, queries, np.asarray(weights), strict=True):
        best = np.argsort(-row, kind="stable")[:count]
        under = [f"{words[key]} {row[key]:.2f}" for key in best]
        said.append(", ".join(under))
        colours = [QUERY, *[KEY] * count]
        for ax, picture, word, colour in zip(line, [query, *keys[best]], ["asks", *under], colours, strict=False):
            ax.imshow(picture, cmap="Greys", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(word.replace(" ", ": "), color=readable(colour))
            ax.spines[:].set(visible=True, color=colour, linewidth=2)
    return Picture(fig, title, f"Pictures that ask, each with its largest weights: {'; '.join(said)}.")


def _by_name(maps: Array | Mapping[str, Array]) -> dict[str, np.ndarray]:
    """As NumPy arrays, tensors too, by name."""
    named = {name: _numbers(m) for name, m in (maps if isinstance(maps, Mapping) else {"": maps}).items()}
    for name, m in named.items():
        if m.ndim != 2 or not m.size:
            raise ValueError(
                f"a map must have shape (n_q, n_k), neither of them 0; got {m.shape}{name and f' for {name}'}"
            )
    return named


def _numbers(m: Array) -> np.ndarray:
    return np.asarray(m.detach() if hasattr(m, "detach") else m)


def _word_ticks(ax: Axes, ticks: tuple[Sequence[str], Sequence[str]], shape: tuple[int, ...]) -> None:
    for axis, words, size in ((ax.xaxis, ticks[0], shape[1]), (ax.yaxis, ticks[1], shape[0])):
        if isinstance(words, Mapping):
            places, words = list(words), list(words.values())
        else:
            places = np.linspace(0, size - 1, len(words))
        axis.set_ticks(places, [str(word) for word in words])
        crowded = 0.1 * sum(len(str(word)) + 1 for word in words) > ax.get_position().width * ax.figure.get_figwidth()
        if axis is ax.xaxis and crowded:  # words would run into each other
            ax.tick_params("x", rotation=40)
            for word in ax.get_xticklabels():
                word.set(ha="right", rotation_mode="anchor")
