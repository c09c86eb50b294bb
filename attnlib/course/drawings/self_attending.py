"""Self-attention of one sentence as a drawing, computed from its rows and its three matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.canvas import Box, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.picture import INK, KEY, OUTPUT, QUERY, VALUE, Picture

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["self_attention_diagram"]

# Where each matrix has its middle, in inches.
PLACES = {"X": (0, -1.9), "Q": (3.0, 0), "K": (3.0, -1.9), "V": (3.0, -4.05)}
PLACES |= {"S": (6.1, -0.95), "A": (6.1, -3.25), "Y": (9.6, -3.25)}


def self_attention_diagram(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, *, words: Sequence[str], title: str
) -> Picture:
    """One sentence attends to itself: its rows give queries, keys and values, these scores, weights and new rows.

    ``X`` has a row for each of ``words``; every number of what follows is computed from it and written in.

    Raises ``ValueError`` when there is not a word for each row.

    >>> picture = self_attention_diagram(np.eye(2), *[np.eye(2)] * 3, words=["old", "bank"], title="Two words")
    >>> picture.alt[:89]
    'Two words. Matrices: X (2, 2); Q (2, 2); K (2, 2); V (2, 2); S (2, 2); A (2, 2); Y (2, 2)'
    """
    if len(words) != len(X):
        raise ValueError(f"words must have one for each of the {len(X)} rows of X; got {len(words)}")
    X, W_Q, W_K, W_V = map(np.asarray, (X, W_Q, W_K, W_V))
    matrices = _computed(X, W_Q, W_K, W_V)
    page, boxes = Diagram(), {}
    colours = {"X": INK, "Q": QUERY, "K": KEY, "V": VALUE, "S": "signed", "A": "weights", "Y": OUTPUT}
    for name, colour in colours.items():
        digits = 0 if name == "X" and np.all(np.round(X) == X) else 1 if name in "XQKV" else 2
        boxes[name] = page.grid(name, matrices[name], PLACES[name], colour=colour, digits=digits, cell=(0.4, 0.28))
    for i, word in enumerate(words):
        x, y = boxes["X"].side("left", 1 - (i + 0.5) / len(words))
        page.text(word, (x - 0.08, y), align="right")
        x, y = boxes["Y"].side("right", 1 - (i + 0.5) / len(words))
        page.text(word, (x + 0.08, y), align="left")
    _arrows(page, boxes, {"Q": W_Q, "K": W_K, "V": W_V})
    return page.picture(title)


def _computed(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> dict[str, Array]:
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    S = Q @ K.T / np.sqrt(Q.shape[1])
    A = np.exp(S - S.max(axis=1, keepdims=True))
    A = A / A.sum(axis=1, keepdims=True)
    return {"X": X, "Q": Q, "K": K, "V": V, "S": S, "A": A, "Y": A @ V}


def _arrows(page: Diagram, boxes: dict[str, Box], projections: dict[str, Array]) -> None:
    x, s, a, y = (boxes[name] for name in "XSAY")
    corner = x.side("right")[0] + 0.25
    for (name, w), colour in zip(projections.items(), (QUERY, KEY, VALUE), strict=True):
        part = boxes[name]
        points = [x.side("right"), (corner, x.y), (corner, part.y), part.side("left")]
        words = f"W_{name} {as_words(w.shape)}"
        page.arrow(*points, said=f"X to {name}, {words}", colour=colour)
        page.text(words, ((corner + part.side("left")[0]) / 2, part.y + 0.14), colour=colour)
    for name, colour, share in (("Q", QUERY, 0.72), ("K", KEY, 0.28)):
        part, end = boxes[name], s.side("left", share)
        bend = part.side("right")[0] + 0.35
        page.arrow(part.side("right"), (bend, part.y), (bend, end[1]), end, said=f"{name} to S", colour=colour)
    page.text("Q Kᵀ / √d", (s.side("left")[0] - 0.55, s.y))
    page.arrow(s.side("bottom"), (a.x, a.side("top")[1] + 0.28), words="softmax", said="S to A")
    mean = page.box("A V", ((a.side("right")[0] + y.side("left")[0]) / 2, a.y))
    page.arrow(a.side("right"), mean.side("left"), said="A to A V")
    v = boxes["V"]
    page.arrow(v.side("right"), (mean.x, v.y), mean.side("bottom"), said="V to A V", colour=VALUE)
    page.arrow(mean.side("right"), y.side("left"), said="A V to Y", colour=OUTPUT)
