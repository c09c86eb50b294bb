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


def _preference(weights, referent, distractor):
    each = range(len(weights))
    return (weights[each, :, referent] > weights[each, :, distractor]).mean(axis=0)


def _nouns(weights, referent, distractor):
    each = np.arange(len(weights))
    return weights[each, :, referent], weights[each, :, distractor]


def _mean_ratio(weights, referent, distractor):
    a, b = _nouns(weights, referent, distractor)
    return a.mean(axis=0) / (a + b).mean(axis=0)


def _mean_difference(weights, referent, distractor):
    a, b = _nouns(weights, referent, distractor)
    return (a - b).mean(axis=0)


def _damage(before, after, right):
    was_right = before == right
    return (was_right & (after != right)).sum() / was_right.sum()


def _evidence(cut_referent, cut_distractor):
    return (cut_referent - cut_distractor).min()


def _shares(said, right):
    return [(said != right)[right == answer].mean() for answer in (0, 1)]


def _habit(said, right):
    wrong = [(said != right)[right == answer].mean() for answer in (0, 1)]
    return max(wrong) - min(wrong)


def _answers(rng, n):
    """Answers of a model that is mostly right, then disturbed: each kind of change occurs."""
    right = rng.integers(0, 3, size=n)
    before = np.where(rng.random(n) < 0.75, right, (right + 1) % 3)
    after = np.where(rng.random(n) < 0.5, before, rng.integers(0, 3, size=n))
    before[:4], after[:4] = right[:4], [right[0], *(right[1:3] + 1) % 3, right[3]]
    before[4:6], after[4:6] = (right[4:6] + 1) % 3, [right[4], (right[5] + 2) % 3]
    return before, after, right


def _maps(rng, batch, n_heads, n):
    places = np.array([rng.permutation(n)[:2] for _ in range(batch)])
    return masked_softmax(rng.normal(size=(batch, n_heads, n)) * 2), *places.T


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
            (masked_softmax(rng.normal(size=(4, 3))), 3, 0),
        ],
        hints=(
            "Two steps: what closes the place, and what makes the row sum to one again?",
            "Work on a copy. One entry becomes 0; then divide that row by its sum.",
            "closed = weights.copy(); closed[i, j] = 0; closed[i] /= closed[i].sum()",
        ),
        misconceptions=[
            Misconception(
                "not renormalised",
                _zeroed,
                "The row sums to less than one now, so the output would shrink. What is left grows in proportion.",
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
                "You closed the key for all queries. Only row i may not look there.",
            ),
            Misconception(
                "a score of zero",
                _score_of_zero,
                "You set the score to 0, and exp(0) is 1: the place is wide open. Lesson 09 has this one. The weight "
                "must be 0, the score minus infinity.",
            ),
        ],
    ),
    Exercise(
        id="13.2",
        title="Which noun does a head prefer?",
        reference=_preference,
        cases=lambda rng: [_maps(rng, 11, 3, 6), _maps(rng, 8, 2, 5)],
        hints=(
            "Every sentence has its own two positions. Which index picks one row of a batch at a time?",
            "weights[each, :, referent] with each = np.arange(len(weights)) has shape (batch, n_heads).",
            "(weights[each, :, referent] > weights[each, :, distractor]).mean(axis=0)",
        ),
        misconceptions=[
            Misconception(
                "all heads at once",
                lambda weights, referent, distractor: _preference(
                    weights.mean(axis=1, keepdims=True), referent, distractor
                ).repeat(weights.shape[1]),
                "You averaged the heads first. A head that prefers the referent and one that prefers the distractor "
                "would hide each other.",
            ),
            Misconception(
                "mean weights",
                _mean_ratio,
                "You compared mean weights. A few sentences with large weights would speak for all: count sentences.",
            ),
            Misconception(
                "the difference",
                _mean_difference,
                "That is how much more weight the referent has on average. Asked is in how many sentences it has.",
            ),
            Misconception(
                "the other way",
                lambda weights, referent, distractor: _preference(weights, distractor, referent),
                "That is the share in which the distractor has the larger weight.",
            ),
            Misconception(
                "largest of all",
                lambda weights, referent, distractor: (weights.argmax(axis=-1) == referent[:, None]).mean(axis=0),
                "You asked whether the referent has the largest weight of all words. Here it is only against the "
                "distractor.",
            ),
            Misconception(
                "by sentence",
                lambda weights, referent, distractor: np.greater(*_nouns(weights, referent, distractor)).mean(axis=1),
                "You took the mean over heads and kept the sentences. The sentences are what is counted: axis 0.",
            ),
        ],
    ),
    Exercise(
        id="13.3",
        title="The damage of a cut",
        reference=_damage,
        cases=lambda rng: [_answers(rng, 31), _answers(rng, 20)],
        hints=(
            "Which answers can be damaged at all?",
            "Count where before == right and after != right. Divide by how many were right before.",
            "was_right = before == right; (was_right & (after != right)).sum() / was_right.sum()",
        ),
        misconceptions=[
            Misconception(
                "all that changed",
                lambda before, after, right: (before != after).mean(),
                "You counted every answer that changed. From wrong to wrong, or from wrong to right, is no damage.",
            ),
            Misconception(
                "all that is wrong",
                lambda before, after, right: (after != right).mean(),
                "You counted what is wrong after the cut. Some of it was so before, and the cut had no part in that.",
            ),
            Misconception(
                "of all answers",
                lambda before, after, right: ((before == right) & (after != right)).mean(),
                "You divided by all answers. Those that were wrong before had nothing to lose: divide by those that "
                "were right.",
            ),
            Misconception(
                "the difference",
                lambda before, after, right: (after != right).mean() - (before != right).mean(),
                "You took the difference of two error rates. What the cut happened to repair makes its damage look "
                "smaller.",
            ),
            Misconception(
                "repaired",
                lambda before, after, right: ((before != right) & (after == right)).sum() / (before != right).sum(),
                "These are the answers that the cut put right.",
            ),
        ],
    ),
    Exercise(
        id="13.4",
        title="What every run shows",
        reference=_evidence,
        cases=lambda rng: [
            (rng.uniform(0.3, 1, size=n), rng.uniform(0, 0.4, size=n) * np.arange(1, n + 1) / n) for n in (3, 5)
        ],
        hints=(
            "A cut and its control belong to one run. What is compared first, and what then?",
            "The difference within each run; then the least of them.",
            "(cut_referent - cut_distractor).min()",
        ),
        misconceptions=[
            Misconception(
                "the mean",
                lambda cut_referent, cut_distractor: (cut_referent - cut_distractor).mean(),
                "That is the mean over runs. One run with a large effect would speak for one with none.",
            ),
            Misconception(
                "the best run",
                lambda cut_referent, cut_distractor: (cut_referent - cut_distractor).max(),
                "That is what the most obliging run shows. Every run shows only the least.",
            ),
            Misconception(
                "no control",
                lambda cut_referent, cut_distractor: cut_referent.min(),
                "You left the control out. Cutting anything may do harm: what counts is how much more the "
                "referent's does than the distractor's.",
            ),
            Misconception(
                "across runs",
                lambda cut_referent, cut_distractor: cut_referent.min() - cut_distractor.max(),
                "You compared the weakest cut of one run with the strongest control of another. Subtract within each "
                "run first.",
            ),
            Misconception(
                "minimum against minimum",
                lambda cut_referent, cut_distractor: cut_referent.min() - cut_distractor.min(),
                "These two may come from different runs. Subtract within each run first.",
            ),
            Misconception(
                "a ratio",
                lambda cut_referent, cut_distractor: (cut_referent / cut_distractor).min(),
                "A ratio grows without bound as the control comes near 0. Asked is a difference.",
            ),
        ],
    ),
    Exercise(
        id="13.5",
        title="Guessing or a habit?",
        reference=_habit,
        cases=lambda rng: [_said(rng, 25), _said(rng, 14)],
        hints=(
            "Two groups of sentences: those whose right answer is 0, and those whose it is 1.",
            "In each group, the mean of said != right. Then the larger minus the smaller.",
            "shares = [(said != right)[right == answer].mean() for answer in (0, 1)]; max(shares) - min(shares)",
        ),
        misconceptions=[
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
                "You divided by all answers. Each group has its own size: take the mean within it.",
            ),
            Misconception(
                "what it says more often",
                lambda said, right: abs(2 * said.mean() - 1),
                "That is how one-sided its answers are. If the right answers are one-sided too, this is no habit.",
            ),
            Misconception(
                "signed",
                lambda said, right: np.subtract(*_shares(said, right)),
                "The sign says which of the two is the habit. Asked is the larger minus the smaller.",
            ),
        ],
    ),
]
