"""Exercises of lesson 24: wrong parts, and what becomes of them."""

from __future__ import annotations

import re

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.masks import causal

PARTS = {  # as the lesson lists them; which of them leak is computed in tests/test_capstone.py
    1: ("09.1", lambda n_q, n_k: np.tri(n_q, n_k, 1, dtype=bool)),
    2: ("07.1", lambda x, n_heads: x.reshape(n_heads, len(x), -1)),
    3: ("07.2", lambda heads, W_O: np.concatenate(list(heads[::-1]), axis=1) @ W_O),
    4: ("09.2", lambda scores, mask: _softmax(np.where(mask, scores, -1e4))),
    5: ("09.2", lambda scores, mask: _softmax(np.where(mask, scores, 0.0))),
    6: ("08.1", lambda places, d: _codes(places + 1, d)),
    7: ("09.2", lambda scores, mask: _columns(scores, mask)),
}


def _softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _codes(places, d):
    angles = places[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _columns(scores, mask):
    e = np.exp(scores - scores.max()) * mask
    total = e.sum(axis=0, keepdims=True)
    return e / np.where(total > 0, total, 1)


def _leaks():
    return [1, 2, 5, 7]


def _same_leaks(wanted, named):
    if not set(named) <= set(PARTS):
        return f"{sorted(set(named) - set(PARTS))} cannot be meant: the list has the numbers 1 to {len(PARTS)}."
    return set(named) == set(wanted) or "Not these. For each part, write out what the first row is made of."


def _numbers(named):
    return [int(number) for number in (re.findall(r"\d+", named) if isinstance(named, str) else np.ravel(named))]


def _from_the_start(n_q, n_k):
    return np.tri(n_q, n_k, dtype=bool)


WRONG_FOR = "Let it be wrong wherever there are fewer queries than positions."


def _hidden_fault(wanted, came):
    """Is it the right mask for as many queries as positions, and another one for fewer?"""
    n_q, n_k = wanted.shape
    if not np.array_equal(wanted, _from_the_start(n_q, n_k)):
        return np.array_equal(wanted, came)  # is it this mistake?
    if came.shape != wanted.shape or came.dtype != bool:
        return f"A mask of shape {wanted.shape} with True and False is expected; {came.shape}, {came.dtype} came."
    same = np.array_equal(came, causal(n_q, n_k))
    if n_q == n_k and not same:
        return f"It must be right for as many queries as positions: at {n_k} positions it is not the causal mask."
    if n_q < n_k and same:
        return f"It is right for {n_q} queries at the end of {n_k} positions too. " + WRONG_FOR
    return True


def _tied(W_O, n_heads):
    first, *_ = W_O.reshape(n_heads, -1, W_O.shape[1])
    return np.tile(first, (n_heads, 1))


EXERCISES = [
    Exercise(
        id="24.1",
        title="Which parts let later words through?",
        reference=_leaks,
        adapt=_numbers,
        compare=_same_leaks,
        hints=(
            "What a row is made of must come from its own place and from those before it. Does any number of a later "
            "place come in, even inside a sum?",
            "In part 2, look at which numbers of x stand in the first row of the second head. In part 5, what is "
            "exp(0)?",
            "A column's sum goes over the rows below too, and those belong to later words.",
        ),
        misconceptions=[
            Misconception(
                "only the mask",
                lambda: [1, 5],
                "These two leak. But a mask is not the only way: in two more the numbers of later places come into a "
                "row by a sum, or by how rows are cut.",
            ),
            Misconception(
                "without the columns",
                lambda: [1, 2, 5],
                "One part is missing: a sum that runs over later rows carries them into the earlier ones.",
            ),
            Misconception(
                "without the heads",
                lambda: [1, 5, 7],
                "One is missing. Write out the first row of the second head for four tokens of four numbers and two "
                "heads: are all of its numbers from the first token?",
            ),
            Misconception(
                "-1e4 too",
                lambda: [1, 2, 4, 5, 7],
                "One too many. exp(-1e4) is exactly 0, so nothing comes through where visible scores are far above "
                "-1e4. (Where they are not: exercise 15.4.)",
            ),
            Misconception(
                "without the zeros",
                lambda: [1, 2, 7],
                "One is missing: exp(0) is 1, so a hidden key with the score 0 has a weight, and its value comes in.",
            ),
        ],
    ),
    Exercise(
        id="24.2",
        title="A fault that nothing here meets",
        reference=_from_the_start,
        cases=lambda rng: [(4, 4), (2, 5), (5, 5), (7, 7), (3, 7), (1, 1), (2, 2), (12, 12)],
        adapt=np.asarray,
        compare=_hidden_fault,
        hints=(
            "The model asks for as many queries as there are positions. What else can be asked for?",
            "It must be right where n_q = n_k. Where n_q < n_k, the queries are the last of the positions; let them "
            "be the first.",
            "np.tri(n_q, n_k, dtype=bool) begins at the start. It would do harm with a cache, lesson 14.",
        ),
        misconceptions=[
            Misconception(
                "right",
                lambda n_q, n_k: causal(n_q, n_k),
                "It is right for 2 queries at the end of 5 positions too. " + WRONG_FOR,
            ),
            Misconception(
                "wrong everywhere",
                lambda n_q, n_k: np.tri(n_q, n_k, 1, dtype=bool),
                "It must be right for as many queries as positions: at 4 positions it is not the causal mask.",
            ),
            Misconception(
                "square",
                lambda n_q, n_k: np.tri(n_q, dtype=bool),
                "A mask of shape (2, 5) with True and False is expected; (2, 2), bool came.",
            ),
        ],
    ),
    Exercise(
        id="24.3",
        title="The right formula for wrong weights",
        reference=_tied,
        cases=lambda rng: [(rng.normal(size=(6, 4)), 3), (rng.normal(size=(8, 5)), 2)],
        hints=(
            "Adding heads up and multiplying is the same as multiplying each and adding up. By which matrix is each "
            "head multiplied?",
            "All of them by the first d_head rows of W_O; d_head is len(W_O) / n_heads.",
            "np.tile(W_O[: len(W_O) // n_heads], (n_heads, 1)).",
        ),
        misconceptions=[
            Misconception(
                "as it is",
                lambda W_O, n_heads: W_O.copy(),
                "This is the matrix as it was. That model used only the first d_head rows of W_O: all heads met "
                "those.",
            ),
            Misconception(
                "one part",
                lambda W_O, n_heads: W_O[: len(W_O) // n_heads],
                "These are the rows that all heads met. Side by side, each head has rows of its own: repeat them, "
                "once for each head.",
            ),
            Misconception(
                "each row repeated",
                lambda W_O, n_heads: np.repeat(W_O[: len(W_O) // n_heads], n_heads, axis=0),
                "You repeated row by row. Heads stand side by side as blocks, so repeat the whole part as a block: "
                "np.tile.",
            ),
            Misconception(
                "mean",
                lambda W_O, n_heads: _tied(W_O, n_heads) / n_heads,
                "You took a mean of the heads. They were added up.",
            ),
            Misconception(
                "mean of the parts",
                lambda W_O, n_heads: np.tile(W_O.reshape(n_heads, -1, W_O.shape[1]).mean(axis=0), (n_heads, 1)),
                "You took a mean of all parts of W_O. That model used the first alone.",
            ),
        ],
    ),
]
