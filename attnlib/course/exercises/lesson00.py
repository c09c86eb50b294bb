"""The one exercise of lesson 00, to try `check` on."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _weighted_mean(weights, values):
    return np.sum(weights * values) / np.sum(weights)


EXERCISES = [
    Exercise(
        id="00.1",
        title="A weighted mean",
        reference=_weighted_mean,
        cases=lambda rng: [(rng.uniform(0.5, 3, size=n), rng.normal(size=n)) for n in (3, 5, 8)],
        hints=(
            "If all weights are 2, the answer should be the ordinary mean.",
            "Add up weight times value, then make up for weights that do not sum to one.",
            "(weights * values).sum() / weights.sum()",
        ),
        misconceptions=[
            Misconception(
                "not divided",
                lambda weights, values: np.sum(weights * values),
                "You added up weight times value. These weights do not sum to one, so divide by their sum.",
            ),
            Misconception(
                "divided by the count",
                lambda weights, values: np.mean(weights * values),
                "You divided by how many there are. Divide by the sum of the weights: a value with weight 2 "
                "counts as two values.",
            ),
            Misconception(
                "ignored the weights",
                lambda weights, values: np.mean(values),
                "That is the ordinary mean, in which every value counts the same. Let each count by its weight.",
            ),
            Misconception(
                "softmax",
                lambda weights, values: np.sum(np.exp(weights) * values) / np.sum(np.exp(weights)),
                "You took exponentials first. These are weights already, not scores: divide them by their sum.",
            ),
        ],
    )
]
