"""Exercises of lesson 09: masks, and what gets past them."""

from __future__ import annotations

import numpy as np

from attnlib import masks
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.masks import causal, padding, window


def _mask(lengths, n, back, ahead):
    return padding(lengths, n) & window(n, back=back, ahead=ahead)


def _reach(n_layers, back):
    return n_layers * back


def _case(rng):
    mask = rng.uniform(size=(5, 6)) < 0.5
    mask[1], mask[2] = False, True
    return rng.normal(size=(5, 6)), mask


def _solution(scores, mask):
    e = np.where(mask, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


EXERCISES = [
    Exercise(
        id="09.1",
        title="The causal mask of the last queries",
        reference=causal,
        solution=lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q,
        cases=lambda rng: [(4, 4), (2, 5), (1, 6)],
        hints=(
            "Query i of n_q stands at position i + n_k - n_q.",
            "Compare a column of the queries' positions with a row of 0 … n_k - 1.",
            "np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q.",
        ),
        misconceptions=[
            Misconception(
                "diagonal closed",
                lambda n_q, n_k: np.arange(n_k) < np.arange(n_q)[:, None] + n_k - n_q,
                "A position may attend to itself: use <=. With < the first row has nothing left.",
            ),
            Misconception(
                "future",
                lambda n_q, n_k: np.arange(n_k) >= np.arange(n_q)[:, None] + n_k - n_q,
                "Yours opens the future and closes the past. Rows are queries: key <= query.",
            ),
            Misconception(
                "inverted",
                lambda n_q, n_k: ~causal(n_q, n_k),
                "This is True where attending is forbidden, as torch's modules have it. Here True means may attend.",
            ),
            Misconception(
                "from the start",
                lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None],
                "Your queries are the first of the positions. They are the last: add n_k - n_q to their places.",
            ),
            Misconception(
                "one too far",
                lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q + 1,
                "One place of the future is open. Query i stands at i + n_k - n_q, not one further on.",
            ),
        ],
    ),
    Exercise(
        id="09.2",
        title="The padding mask",
        reference=padding,
        solution=lambda lengths, n_k: np.arange(n_k) < np.array(lengths)[:, None, None],
        cases=lambda rng: [([4, 2, 6], 6), ([1, 3], 5)],
        hints=(
            "Position j of a sentence is real if j is below its length.",
            "Compare np.arange(n) with a column of lengths; the column broadcasts.",
            "np.arange(n) < np.array(lengths)[:, None, None].",
        ),
        misconceptions=[
            Misconception(
                "inverted",
                lambda lengths, n: ~padding(lengths, n),
                "This is True for padding. Here True means may attend.",
            ),
            Misconception(
                "one too many",
                lambda lengths, n: np.arange(n) <= np.array(lengths)[:, None, None],
                "One padding position is open: positions begin at 0, so a sentence of length 2 has positions 0 and 1.",
            ),
            Misconception(
                "no axis for queries",
                lambda lengths, n: padding(lengths, n)[:, 0],
                "The shape is (batch, n). With (batch, 1, n) it broadcasts over the queries; yours would be taken for "
                "(n_q, n_k).",
            ),
            Misconception(
                "rows",
                lambda lengths, n: padding(lengths, n).swapaxes(1, 2),
                "Yours closes rows, the padding as queries. As keys it must not be seen: (batch, 1, n).",
            ),
            Misconception(
                "spelt out",
                lambda lengths, n: np.repeat(padding(lengths, n), n, axis=1),
                "You wrote the mask out for every query. Leave one row, (batch, 1, n): it broadcasts.",
            ),
            Misconception(
                "padding in front",
                lambda lengths, n: padding(lengths, n)[..., ::-1],
                "You put the padding in front. Sentences begin at position 0, and the padding stands behind.",
            ),
        ],
    ),
    Exercise(
        id="09.3",
        title="A softmax under a mask",
        reference=masked_softmax,
        solution=_solution,
        cases=lambda rng: [_case(rng) for _ in range(3)],
        hints=(
            "Hidden entries count neither above nor below the line of the fraction.",
            "Set the exponentials to zero where mask is False, then divide by their sum.",
            "Where the sum is zero, divide by one instead: np.where(total > 0, total, 1).",
        ),
        misconceptions=[
            Misconception(
                "scores times mask",
                lambda scores, mask: masked_softmax(scores * mask),
                "You multiplied the scores by the mask. A score of 0 has the weight e⁰ = 1 before dividing: nothing "
                "is hidden.",
            ),
            Misconception(
                "weights times mask",
                lambda scores, mask: masked_softmax(scores) * mask,
                "You hid the weights after the softmax. Rows no longer sum to one, and the hidden scores are still in "
                "the denominator.",
            ),
            Misconception(
                "a large negative number",
                lambda scores, mask: masked_softmax(np.where(mask, scores, -1e9)),
                "A row with nothing left became uniform over what is forbidden, since all its scores are -1e9. It "
                "should be zeros.",
            ),
            Misconception(
                "inverted",
                lambda scores, mask: masked_softmax(scores, ~mask),
                "You hid where mask is True. True means may attend.",
            ),
            Misconception(
                "down the columns",
                lambda scores, mask: masked_softmax(scores.T, mask.T).T,
                "Your columns sum to one. The softmax runs along the last axis, over the keys.",
            ),
            Misconception(
                "without exponential",
                lambda scores, mask: mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1),
                "The scores are not in it: what is open gets equal weights.",
            ),
        ],
    ),
    Exercise(
        id="09.4",
        title="A window on a padded batch",
        reference=_mask,
        solution=lambda lengths, n, back, ahead: padding(lengths, n) & masks.window(n, back=back, ahead=ahead),
        cases=lambda rng: [([5, 3], 6, 2, 1), ([2, 7, 4], 7, 1, 3)],
        hints=(
            "Two masks, one of shape (batch, 1, n) and one of shape (n, n).",
            "A word may attend where both allow it.",
            "padding(lengths, n) & window(n, back=back, ahead=ahead), or write the comparisons out.",
        ),
        misconceptions=[
            Misconception(
                "or",
                lambda lengths, n, back, ahead: padding(lengths, n) | window(n, back=back, ahead=ahead),
                "You joined the masks with or. Both must allow it: and.",
            ),
            Misconception(
                "turned round",
                lambda lengths, n, back, ahead: _mask(lengths, n, ahead, back),
                "back and ahead are exchanged. Key j lies before query i where j < i.",
            ),
            Misconception(
                "no padding",
                lambda lengths, n, back, ahead: np.repeat(window(n, back=back, ahead=ahead)[None], len(lengths), 0),
                "The padding is open as keys. A word near the end of a short sentence would see what follows.",
            ),
            Misconception(
                "one too few",
                lambda lengths, n, back, ahead: _mask(lengths, n, back - 1, ahead),
                "Your window has back places in all before the next word. It is itself and back before it.",
            ),
            Misconception(
                "one too many",
                lambda lengths, n, back, ahead: _mask(lengths, n, back + 1, ahead),
                "Your window reaches one place too far back.",
            ),
            Misconception(
                "not itself",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead) & ~np.eye(n, dtype=bool),
                "A word sees itself too.",
            ),
            Misconception(
                "no window",
                lambda lengths, n, back, ahead: np.repeat(padding(lengths, n), n, axis=1),
                "The whole sentence is open. Close what lies more than back before or ahead after a word.",
            ),
            Misconception(
                "rows too",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead) & padding(lengths, n).swapaxes(1, 2),
                "You closed the rows of padding queries too. What they compute is read by nobody; the exercise leaves "
                "them as they come.",
            ),
        ],
    ),
    Exercise(
        id="09.5",
        title="How far a stack of windows reaches",
        reference=_reach,
        cases=lambda rng: [(2, 3), (5, 2), (1, 4)],
        hints=(
            "Draw two layers. The last output reads back places of the layer below; what have those read?",
            "Each layer adds its own reach.",
            "n_layers * back.",
        ),
        misconceptions=[
            Misconception(
                "one layer",
                lambda n_layers, back: back,
                "That is one layer. What it reads has itself been computed from places further back.",
            ),
            Misconception(
                "added",
                lambda n_layers, back: n_layers + back,
                "You added layers and places. Every layer reaches back places further.",
            ),
            Misconception(
                "one layer less",
                lambda n_layers, back: (n_layers - 1) * back,
                "The first layer reaches back too.",
            ),
            Misconception(
                "power",
                lambda n_layers, back: back**n_layers,
                "Reach adds up from layer to layer, it does not multiply.",
            ),
            Misconception(
                "places",
                lambda n_layers, back: n_layers * (back + 1),
                "Each layer reaches back places back. The word itself is in the window too, but that is no distance.",
            ),
            Misconception(
                "count",
                lambda n_layers, back: n_layers * back + 1,
                "That is how many inputs it depends on, itself included. How far back the first of them is, is asked.",
            ),
        ],
    ),
]
