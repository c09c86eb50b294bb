"""Attention worked out on paper: small matrices with all their numbers in. All are in `attnlib.plotting`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.canvas import Box, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.picture import KEY, OUTPUT, QUERY, VALUE, Picture

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["worked_attention"]

CELL = 0.5  # inches, both ways
SIGN = 0.55  # room for ×, = and the like


def worked_attention(q: Array, k: Array, v: Array, *, title: str) -> Picture:
    r"""Scaled dot-product attention as two products of matrices, every number written in.

    .. math:: \frac{Q K^\top}{\sqrt d} = S, \qquad \operatorname{softmax}(S)\, V = Y

    The numbers of ``q``, ``k`` and ``v`` are written whole, weights with two decimals and outputs with one.

    Raises ``ValueError`` when a reader with paper would get other numbers from those that are printed.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.

    >>> q, k, v = np.array([[2, 2, 0, 0]]), np.array([[1, 1, 0, 0], [0, 1, 0, 0]]), np.array([[8], [2]])
    >>> worked_attention(q, k, v, title="On paper").alt[:76]
    'On paper. Matrices: Q (1, 4); Kᵀ (4, 2); scores (1, 2); weights (1, 2); V (2'
    """
    q, k, v = (np.asarray(m, dtype=float) for m in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    out = weights @ v
    _check_on_paper(q=q, k=k, v=v, scores=scores, weights=weights, out=out)
    page, gap = Diagram(), CELL * (k.shape[1] + len(q)) / 2 + 1.0
    left = _row(page, 0.0, 0.0, ("Q", q, QUERY, 0), ("×", "Kᵀ", k.T, KEY, 0))
    root = f"÷ √{q.shape[1]} ="
    scored = _grid(page, left + SIGN + 0.5, 0.0, "scores", scores, "signed", 0, "S: s(qᵢ, kⱼ)")
    page.text(root, (left + SIGN / 2 + 0.25, 0.0), bold=True)
    start = scored.side("left")[0]
    weighed = _grid(page, start, -gap, "weights", weights, "weights", 2, "A: α(qᵢ, kⱼ)")
    top = weighed.x, weighed.side("top")[1] + 0.28
    page.arrow(scored.side("bottom"), top, words="softmax of each row", said="scores to weights", side="left")
    right = _row(page, weighed.side("right")[0], -gap, ("×", "V", v, VALUE, 0))
    page.text("=", (right + SIGN / 2, -gap), bold=True)
    _grid(page, right + SIGN, -gap, "out", out, OUTPUT, 1, "Y")
    page.say("Products", f"Q × Kᵀ {root} scores; weights × V = out")
    return page.picture(title)


def _row(page: Diagram, x: float, y: float, *parts: tuple[object, ...]) -> float:
    """Matrices from ``x`` on, each after its sign if it has one; where the last one ends."""
    for *sign, name, numbers, colour, digits in parts:
        if sign:
            page.text(sign[0], (x + SIGN / 2, y), bold=True)
            x += SIGN
        x = _grid(page, x, y, name, numbers, colour, digits).side("right")[0]
    return x


def _grid(
    page: Diagram, x: float, y: float, name: str, numbers: Array, colour: str, digits: int, symbol: str = ""
) -> Box:
    """A matrix of square cells whose left side is at ``x``, its name, shape and what an entry is called above it."""
    width = numbers.shape[1] * CELL
    caption = f"{symbol or name} {as_words(numbers.shape)}"
    return page.grid(
        name, numbers, (x + width / 2, y), colour=colour, digits=digits, cell=(CELL, CELL), caption=caption
    )


def _check_on_paper(**m: Array) -> None:
    """The printed digits must lead to the next printed digits."""
    for name in ("q", "k", "v", "scores"):
        if not np.allclose(m[name], m[name].round(), atol=1e-9):
            raise ValueError(f"{name} must be whole numbers, or what is printed is not what is computed with")
    printed = m["weights"].round(2)
    if not np.allclose(printed.sum(axis=1), 1) or np.any((printed @ m["v"]).round(1) != m["out"].round(1)):
        raise ValueError("the weights, rounded to two decimals, give other outputs; choose other numbers")
