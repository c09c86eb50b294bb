"""Exercises of lesson 13: maps and interventions."""

from __future__ import annotations

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception


def _cut(weights, i, j):
    closed = weights.copy()
    closed[i, j] = 0
    closed[i] /= closed[i].sum()
    return closed


def _zeroed(weights, i, j):
    closed = weights.copy()
    closed[i, j] = 0
    return closed


def _by_columns(weights, i, j):
    closed = _zeroed(weights, i, j)
    closed[:, j] /= closed[:, j].sum()
    return closed


def _shared_out(weights, i, j):
    closed = _zeroed(weights, i, j)
    others = np.arange(len(weights[i])) != j
    closed[i, others] += weights[i, j] / others.sum()
    return closed


def _whole_column(weights, i, j):
    closed = weights.copy()
    closed[:, j] = 0
    return closed / closed.sum(axis=1, keepdims=True)


def _score_of_zero(weights, i, j):
    scores = np.log(weights)
    scores[i, j] = 0
    return masked_softmax(scores)


def _swapped(weights, i, j):
    closed = weights.copy()
    closed[j, i] = 0
    closed[j] /= closed[j].sum()
    return closed


def _infinite(weights, i, j):
    closed = weights.copy()
    closed[i, j] = -np.inf
    closed[i] /= closed[i].sum()
    return closed


def _softmax_again(weights, i, j):
    scores = weights.copy()
    scores[i, j] = -np.inf
    return masked_softmax(scores)


def _softmax_of_the_row(weights, i, j):
    closed = weights.copy()
    closed[i] = _softmax_again(weights, i, j)[i]
    return closed


def _closed(n_layers, n, target, source):
    closed = np.zeros((n_layers, n, n), dtype=bool)
    closed[0, target, source] = True  # only the source's own row holds it so far
    closed[1:, target] = True  # by now every row may have read it
    closed[1:, target, target] = False
    return closed


def _marked(n_layers, n, place):
    closed = np.zeros((n_layers, n, n), dtype=bool)
    closed[place] = True
    return closed


def _for_every_row(n_layers, n, target, source):
    return _marked(n_layers, n, (slice(None), slice(None), source))


def _every_row_first(n_layers, n, target, source):
    return _closed(n_layers, n, target, source) | _marked(n_layers, n, (0, slice(None), source))


def _every_row_later(n_layers, n, target, source):
    closed = _marked(n_layers, n, (slice(1, None),)) & ~np.eye(n, dtype=bool)
    closed[0, target, source] = True
    return closed


def _all_but_the_source(n_layers, n, target, source):
    closed = _closed(n_layers, n, target, source)
    closed[1:, target, source] = False
    return closed


def _the_other_order(n_layers, n, target, source):
    closed = _marked(n_layers, n, (slice(1, None), target, source))
    closed[0, target] = True
    closed[0, target, target] = False
    return closed


def _blind(n_layers, n, target, source):
    closed = _marked(n_layers, n, (slice(None), target))
    closed[:, target, target] = False
    return closed


def _shares(said, right):
    return [(said != right)[right == answer].mean() for answer in (0, 1)]


def _habit(said, right):
    wrong = [(said != right)[right == answer].mean() for answer in (0, 1)]
    return np.ptp(wrong)  # the larger minus the smaller


def _said(rng, n):
    right = np.concatenate([[0, 0, 0, 1, 1, 1, 1, 1], rng.integers(0, 2, size=n)])
    return np.where(rng.random(len(right)) < np.where(right == 1, 0.8, 0.3), 1 - right, right), right


EXERCISES = [
    Exercise(
        id="13.1",
        title="A cut by hand",
        reference=_cut,
        cases=lambda rng: [
            (masked_softmax(rng.normal(size=(3, 5))), 1, 4),
            (masked_softmax(rng.normal(size=(4, 3))), 2, 0),
        ],
        hints=(
            "Two steps: what closes the entry, and what makes the row sum to one again?",
            "Work on a copy. One entry becomes 0; then divide that row by its sum.",
            "closed = weights.copy(); closed[i, j] = 0; closed[i] /= closed[i].sum()",
        ),
        misconceptions=[
            Misconception(
                "not renormalised",
                _zeroed,
                "The row sums to less than one now, so the output would be no mean. Divide the row by its sum.",
            ),
            Misconception(
                "by columns",
                _by_columns,
                "You divided a column by its sum. One row is one query's distribution: it is the row that must sum to "
                "one.",
            ),
            Misconception(
                "shared out equally",
                _shared_out,
                "You gave the lost weight to the others in equal parts. A softmax without that key gives it in "
                "proportion to what they had: divide by the sum.",
            ),
            Misconception(
                "for every query",
                _whole_column,
                "You closed the key for all queries. Close it for row i alone.",
            ),
            Misconception(
                "a score of zero",
                _score_of_zero,
                "You set the weight to 1, or the score to 0, and exp(0) is 1: the entry is wide open (lesson 09). The "
                "weight must be 0, the score minus infinity.",
            ),
            Misconception(
                "rows and columns exchanged",
                _swapped,
                "You closed the entry (j, i). Rows are queries: the entry where i reads j is weights[i, j].",
            ),
            Misconception(
                "a weight of minus infinity",
                _infinite,
                "You wrote an infinity into a weight, or left out the exp after it. Minus infinity closes a score, "
                "before the softmax; a weight is closed by 0.",
            ),
            Misconception(
                "softmax of the weights",
                _softmax_again,
                "You put the weights through a softmax. They have been through one, and a second flattens them. "
                "Divide the row that was cut by its sum.",
            ),
            Misconception(
                "the row before",
                lambda weights, i, j: _cut(weights, i - 1, j),
                "You closed an entry of row i - 1. Row i is weights[i]: counting starts at 0.",
            ),
            Misconception(
                "softmax of the row",
                _softmax_of_the_row,
                "You put the row through a softmax again. That flattens it: what is left would not grow in "
                "proportion. Divide it by its sum.",
            ),
        ],
    ),
    Exercise(
        id="13.2",
        title="Place a cut",
        reference=_closed,
        cases=lambda rng: [(2, 5, 3, 1), (3, 6, 0, 4), (1, 4, 2, 0)],
        hints=(
            "In the first layer every row holds its own word only. What does any other row hold after that layer?",
            "After the first layer everybody may have read the source. The source's own row is then not the only one "
            "that carries it.",
            "closed[0, target, source] = True; in later layers closed[1:, target, :] = True, except the target's own.",
        ),
        misconceptions=[
            Misconception(
                "the source alone, in every layer",
                lambda n_layers, n, target, source: _marked(n_layers, n, (slice(None), target, source)),
                "You closed the source in every layer. After the first, the other words have read it, and their rows "
                "carry it to the target.",
            ),
            Misconception(
                "first layer only",
                lambda n_layers, n, target, source: _marked(n_layers, n, (0, target, source)),
                "You closed the first layer only. In the next one the source is still there to be read, and so are "
                "copies of it in other rows.",
            ),
            Misconception(
                "last layer only",
                lambda n_layers, n, target, source: _marked(n_layers, n, (-1, target, source)),
                "You closed the last layer only. In earlier layers the target can read the source, and its residual "
                "connection keeps it.",
            ),
            Misconception(
                "transposed",
                lambda n_layers, n, target, source: np.swapaxes(_closed(n_layers, n, target, source), 1, 2),
                "You exchanged rows and columns. Rows are queries: target reads source at [layer, target, source].",
            ),
            Misconception(
                "layers exchanged",
                lambda n_layers, n, target, source: _closed(n_layers, n, source, target),
                "You kept the target's word from the source's row. Keep the source's word from the target's row.",
            ),
            Misconception(
                "first layer forgotten",
                lambda n_layers, n, target, source: _closed(n_layers, n, target, source) & ~_marked(n_layers, n, 0),
                "In the first layer the target still reads the source itself, and its residual connection keeps it.",
            ),
            Misconception(
                "everything",
                _blind,
                "You closed more than is needed. In the first layer no other word carries the source yet, so the "
                "target may read them all.",
            ),
            Misconception(
                "own entry too",
                lambda n_layers, n, target, source: (
                    _closed(n_layers, n, target, source) | _marked(n_layers, n, (slice(1, None), target))
                ),
                "You closed the target's own entry too. Its row holds nothing of the source, so leave it open.",
            ),
            Misconception(
                "the source for every row",
                _for_every_row,
                "You closed the source for every row. Close entries in the row of the target only.",
            ),
            Misconception(
                "the first layer for every row",
                _every_row_first,
                "In the first layer you closed the source for every row. Close entries in the row of the target only: "
                "later layers must keep out what the others have read there.",
            ),
            Misconception(
                "every row later",
                _every_row_later,
                "In the later layers you closed every row. Close entries in the row of the target only.",
            ),
            Misconception(
                "all but the source later",
                _all_but_the_source,
                "In the later layers you left the source open. The source's row holds its word there, too.",
            ),
            Misconception(
                "first and later exchanged",
                _the_other_order,
                "You closed all the others in the first layer and the source in the later ones. In the first, only "
                "the source's row holds it; later any other row may.",
            ),
        ],
    ),
    Exercise(
        id="13.3",
        title="Guessing or a habit?",
        reference=_habit,
        cases=lambda rng: [_said(rng, 25), tuple(1 - answers for answers in _said(rng, 14))],
        hints=(
            "Two groups of sentences: those whose right answer is 0, and those whose right answer is 1.",
            "In each group, the mean of said != right. Then the larger minus the smaller.",
            "shares = [(said != right)[right == answer].mean() for answer in (0, 1)]; max(shares) - min(shares)",
        ),
        misconceptions=[
            Misconception(
                "shares of ones",
                lambda said, right: abs(np.subtract(*[said[right == answer].mean() for answer in (0, 1)])),
                "You compared how often the model says 1, or took another number that comes to the same. Where 1 is "
                "right, saying 1 is no mistake: compare the errors of both groups.",
            ),
            Misconception(
                "per cent",
                lambda said, right: 100 * abs(np.subtract(*_shares(said, right))),
                "This is the difference in per cent. Give it from 0 to 1.",
            ),
            Misconception(
                "all together",
                lambda said, right: (said != right).mean(),
                "That is the share of wrong answers over both groups: the very number that hides a habit.",
            ),
            Misconception(
                "grouped by what was said",
                lambda said, right: abs(np.subtract(*[(said != right)[said == answer].mean() for answer in (0, 1)])),
                "You grouped by what the model said. Group by what would have been right.",
            ),
            Misconception(
                "of all answers",
                lambda said, right: abs(np.subtract(*[((said != right) & (right == a)).mean() for a in (0, 1)])),
                "You divided by all answers, or compared how often an answer is given with how often it is right, "
                "which comes to the same. Each group has its own size: take the mean within it.",
            ),
            Misconception(
                "what it says more often",
                lambda said, right: abs(2 * said.mean() - 1),
                "That is how one-sided the answers are. If the right answers are one-sided too, that need not be a "
                "habit.",
            ),
            Misconception(
                "signed",
                lambda said, right: np.subtract(*_shares(said, right)),
                "Your sign says which of the two is the habit. Return the larger minus the smaller.",
            ),
            Misconception(
                "the larger alone",
                lambda said, right: max(_shares(said, right)),
                "That is the larger share. A model that is always wrong would get 1 too: subtract the smaller.",
            ),
            Misconception(
                "the sum",
                lambda said, right: sum(_shares(said, right)),
                "You added the two shares. A guesser would get 1, and so would a model that never varies: subtract.",
            ),
            Misconception(
                "counts",
                lambda said, right: abs(np.subtract(*[((said != right) & (right == a)).sum() for a in (0, 1)])),
                "You counted the wrong answers, or took another number that comes to the same. The groups differ in "
                "size: take the share within each.",
            ),
        ],
    ),
]
