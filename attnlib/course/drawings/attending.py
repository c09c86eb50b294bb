"""One attention as a drawing: its real matrices, from queries, keys and values to the weighted means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.canvas import Box, as_words
from attnlib.plotting.diagrams import Diagram, grid_size
from attnlib.plotting.picture import INK, KEY, OUTPUT, QUERY, VALUE, Picture

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["attention_diagram"]

COLOURS = {
    "queries": QUERY,
    "keys": KEY,
    "values": VALUE,
    "scores": "signed",
    "weights": "weights",
    "out": OUTPUT,
}
ROOM = 1.0  # inches for an arrow with a shape on it


def attention_diagram(
    q: Array,
    k: Array,
    v: Array,
    scores: Array,
    weights: Array,
    out: Array,
    *,
    title: str,
    numbers: bool = False,
) -> Picture:
    """One attention: queries and keys give scores, a softmax makes them weights, and these average the values.

    All are matrices. With ``numbers`` they are written in.

    Raises ``ValueError`` when the weights are not the softmax of the scores, or ``out`` is not the weights times the
    values: then the arrows would not be true.

    >>> q, k, v = np.zeros((1, 3)), np.ones((2, 3)), np.array([[1.0], [3.0]])
    >>> picture = attention_diagram(q, k, v, q @ k.T, np.full((1, 2), 0.5), np.array([[2.0]]), title="A mean")
    >>> picture.alt[:112]
    'A mean. Matrices: queries (1, 3); keys (2, 3); values (2, 1); scores (1, 2); weights (1, 2); out (1, 1). Boxes: '
    """
    named = dict(zip(COLOURS, map(np.asarray, (q, k, v, scores, weights, out)), strict=True))
    _check(**{name: named[name] for name in ("values", "scores", "weights", "out")})
    page, boxes = Diagram(), {}
    digits = {name: _digits(m) if numbers else None for name, m in named.items()}
    places = _places({name: grid_size(m, digits[name]) for name, m in named.items()})
    for name, at in places.items():
        boxes[name] = page.grid(name, named[name], at, colour=COLOURS[name], digits=digits[name], caption=name)
    _arrows(page, boxes, {name: as_words(m.shape) for name, m in named.items()})
    return page.picture(title)


def _check(values: Array, scores: Array, weights: Array, out: Array) -> None:
    shifted = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    softmax = shifted / shifted.sum(axis=1, keepdims=True)
    if softmax.shape != weights.shape or not np.allclose(softmax, weights, atol=1e-6):
        raise ValueError(f"weights must be the softmax of the scores; got {weights.shape} for {scores.shape}")
    means = weights @ values
    if means.shape != out.shape or not np.allclose(means, out, rtol=1e-5, atol=1e-6):
        raise ValueError(f"out must be the weights times the values, {means.shape}; got {out.shape}")


def _digits(numbers: Array) -> int:
    """So many that three or four figures are written."""
    top = np.abs(numbers[np.isfinite(numbers)]).max()
    return 0 if top >= 100 else 1 if top >= 3 else 2


def _places(sizes: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The middle of each matrix: queries over keys over values on the left, scores over weights, out on the right."""
    wide, high = ({name: size[i] for name, size in sizes.items()} for i in (0, 1))
    column = wide["scores"] / 2 + max(wide[name] for name in ("queries", "keys")) / 2 + 2 * ROOM + 0.7
    keys = -(high["queries"] + high["keys"]) / 2 - 0.9
    weights = keys / 2 - (high["scores"] + high["weights"]) / 2 - 1.4
    values = min(keys - (high["keys"] + high["values"]) / 2 - 0.6, weights - high["weights"] / 2 - 0.3)
    right = column + (wide["weights"] + wide["out"]) / 2 + 2 * ROOM + 1.1
    return {
        "queries": (0, 0),
        "keys": (0, keys),
        "values": (0, values),
        "scores": (column, keys / 2),
        "weights": (column, weights),
        "out": (right, weights),
    }


def _arrows(page: Diagram, boxes: Mapping[str, Box], shapes: Mapping[str, str]) -> None:
    q, k, v, scores, weights, out = boxes.values()
    compare = page.box("score", (scores.side("left")[0] - ROOM - 0.35, scores.y), width=0.75)
    softmax = page.box("softmax", (scores.x, (scores.side("bottom")[1] + weights.side("top")[1] + 0.3) / 2))
    mean = page.box("weighted\nmean", (weights.side("right")[0] + ROOM + 0.5, weights.y), name="weighted mean")

    def arrow(start: Box, end: Box, colour: str, *points: tuple[float, float], words: str = "") -> None:
        page.arrow(*points, words=words, said=f"{start.name} to {end.name}", colour=colour)

    for part, colour, side in ((q, QUERY, "top"), (k, KEY, "bottom")):
        corner = compare.x, part.y
        arrow(part, compare, colour, part.side("right"), corner, compare.side(side), words=shapes[part.name])
    arrow(compare, scores, INK, compare.side("right"), scores.side("left"), words=shapes["scores"])
    arrow(scores, softmax, INK, scores.side("bottom"), softmax.side("top"), words=shapes["scores"])
    over = weights.x, weights.side("top")[1] + 0.28  # above its name
    arrow(softmax, weights, INK, softmax.side("bottom"), over, words=shapes["weights"])
    arrow(weights, mean, INK, weights.side("right"), mean.side("left"), words=shapes["weights"])
    arrow(v, mean, VALUE, v.side("right"), (mean.x, v.y), mean.side("bottom"), words=shapes["values"])
    arrow(mean, out, OUTPUT, mean.side("right"), out.side("left"), words=shapes["out"])
