"""A recurrent encoder and decoder as a drawing: what joins them, one vector or attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib.plotting.canvas import Box, as_words, text_size
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.picture import KEY, OUTPUT, QUERY, VALUE, Picture

if TYPE_CHECKING:
    from numpy import ndarray as Array

__all__ = ["translator_diagram"]

STEP = 1.15  # inches from one state to the next
WIDTH = 0.66  # of a state


def translator_diagram(
    source: Sequence[str], target: Sequence[str], states: Array, weights: Array, *, step: int, title: str
) -> Picture:
    """An encoder and a decoder twice: joined by the last state, and by attention at one ``step``, counted from 1.

    ``states`` ``(n, d)`` are the encoder's and ``weights`` ``(n_target, n)`` what the decoder gave them; those of
    ``step`` are written on the arrows. The state before the step asks.

    Raises ``ValueError`` when the shapes do not fit the words, weights are no mean, or there is no such step.

    >>> picture = translator_diagram("ab", "ba", np.zeros((2, 3)), np.eye(2)[::-1], step=1, title="Two joins")
    >>> "h1 to c1, 0.00; h2 to c1, 1.00" in picture.alt
    True
    """
    states, weights = np.asarray(states), np.asarray(weights)
    if weights.shape != (len(target), len(source)) or len(states) != len(source):
        raise ValueError(
            f"states and weights must have {len(source)} states and {(len(target), len(source))} weights; "
            f"got {len(states)} and {weights.shape}"
        )
    if (weights < 0).any() or not np.allclose(weights.sum(1), 1, atol=1e-6):
        raise ValueError("weights must sum to one in each row, and none may be negative")
    if not 1 <= step <= len(target):
        raise ValueError(f"step must be from 1 to {len(target)}; got {step}")
    page = Diagram()
    _by_one_vector(page, source, target, as_words(states.shape[1:]).replace(",)", ")"))
    _by_attention(page, source, target, weights[step - 1], step)
    return page.picture(title)


def _encoder(page: Diagram, source: Sequence[str], y: float) -> list[Box]:
    boxes = []
    for j, letter in enumerate(source):
        boxes.append(page.box(f"h{j + 1}", (j * STEP, y), width=WIDTH, colour=KEY))
        page.text(letter, (j * STEP, y - 0.85), bold=True)
        page.arrow((j * STEP, y - 0.7), boxes[j].side("bottom"), said=f"letter {letter} to h{j + 1}")
        if j:
            page.arrow(boxes[j - 1].side("right"), boxes[j].side("left"))
    return boxes


def _decoder(page: Diagram, target: Sequence[str], left: float, y: float) -> list[Box]:
    """States s0 to sn; every written letter is read by the next state."""
    boxes = [page.box("s0", (left, y), width=WIDTH, colour=QUERY)]
    for t, letter in enumerate(target, start=1):
        x = left + t * STEP
        boxes.append(page.box(f"s{t}", (x, y), width=WIDTH, colour=QUERY))
        page.text(letter, (x, y + 0.95), bold=True)
        page.arrow(boxes[t - 1].side("right"), boxes[t].side("left"))
        page.arrow(boxes[t].side("top"), (x, y + 0.8), said=f"s{t} to letter {letter}", colour=OUTPUT)
        if t < len(target):  # what was written is read next
            turn = x + STEP / 2
            points = (x + 0.12, y + 0.95), (turn, y + 0.95), (turn, y + 0.45), (x + STEP - 0.15, y + 0.45)
            page.arrow(*points, (x + STEP - 0.15, boxes[t].side("top")[1]), said=f"letter {letter} to s{t + 1}")
    return boxes


def _by_one_vector(page: Diagram, source: Sequence[str], target: Sequence[str], size: str) -> None:
    page.text("one vector", (-WIDTH / 2, 1.3), align="left", bold=True)
    last = _encoder(page, source, 0.0)[-1]
    c = page.box(f"c {size}", (last.x + 1.5, 0.0), name="c", colour=VALUE)
    states = _decoder(page, target, c.x + 1.5, 0.0)
    page.arrow(last.side("right"), c.side("left"), said=f"{last.name} to c", colour=VALUE)
    page.arrow(c.side("right"), states[0].side("left"), said="c to s0", colour=VALUE)
    for state in states[1:]:
        points = c.side("bottom"), (c.x, -0.75), (state.x, -0.75), state.side("bottom")
        page.arrow(*points, said=f"c to {state.name}", colour=VALUE)


def _by_attention(page: Diagram, source: Sequence[str], target: Sequence[str], weights: Array, step: int) -> None:
    y = -3.9
    page.text(f"attention, step {step}", (-WIDTH / 2, y + 2.1), align="left", bold=True)
    states = _encoder(page, source, y)
    decoder = _decoder(page, target, states[-1].x + 3.0, y)
    page.arrow(states[-1].side("right"), decoder[0].side("left"), said=f"{states[-1].name} to s0")
    middle, width = (states[0].x + states[-1].x) / 2, states[-1].x - states[0].x + WIDTH
    words = f"c{step}: mean of the states with these weights"
    c = page.box(words, (middle, y + 1.5), name=f"c{step}", width=max(width, text_size(words)[0] + 0.24), colour=VALUE)
    for state, weight in zip(states, weights, strict=True):
        end = state.x, c.side("bottom")[1]
        page.arrow(state.side("top"), end, said=f"{state.name} to c{step}, {weight:.2f}", colour=VALUE)
        page.text(f"{weight:.2f}", (state.x + 0.07, y + 0.75), colour=VALUE, align="left")
    asking, asked = decoder[step - 1], decoder[step]
    start, end = asking.side("top", 0.2), c.side("right", 0.75)
    page.arrow(start, (start[0], end[1]), end, said=f"{asking.name} to c{step}", words="query", colour=QUERY)
    start, turn = c.side("right", 0.25), max(c.side("right")[0], states[-1].side("right")[0]) + 0.5
    corners = (turn, start[1]), (turn, y - 0.75), (asked.x, y - 0.75)
    page.arrow(start, *corners, asked.side("bottom"), said=f"c{step} to {asked.name}", colour=VALUE)
