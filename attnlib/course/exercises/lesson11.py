"""Exercises of lesson 11: encoder and decoder."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import dot


def _shift(target, start):
    return np.concatenate([np.full_like(target[:, :1], start), target[:, :-1]], axis=1)


def _cross(y, memory, W_Q, W_K, W_V):
    return attention(y @ W_Q, memory @ W_K, memory @ W_V).out


def _chosen(log_p, target):
    return np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]


def _loss(log_p, target, pad):
    real = target != pad
    chosen = np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]
    return -(chosen * real).sum() / real.sum()


def _difference(d_model):
    return 4 * (d_model**2 + d_model) + 2 * d_model


def _share(p, n):
    return p ** (n + 1)


def _batch(rng):
    target = rng.integers(1, 6, size=(3, 5))
    target[1, 3:], target[2, 1:] = 0, 0
    scores = rng.normal(size=(3, 5, 6))
    return np.log(masked_softmax(scores)), target, 0


def _translation(rng):
    return rng.normal(size=(4, 5)), rng.normal(size=(6, 5)), *(rng.normal(size=(5, d)) for d in (3, 3, 2))


EXERCISES = [
    Exercise(
        id="11.1",
        title="Shifted right",
        reference=_shift,
        cases=lambda rng: [(rng.integers(4, 12, size=(2, 5)), 1), (rng.integers(4, 12, size=(3, 4)), 2)],
        hints=(
            "The first column is the start symbol. What is the last?",
            "The target without its last token, with start in front: the shape stays.",
            "np.concatenate([np.full_like(target[:, :1], start), target[:, :-1]], axis=1).",
        ),
        misconceptions=[
            Misconception(
                "rolled",
                lambda target, start: np.roll(target, 1, axis=1),
                "You rolled the target: its last token came round to the front. There belongs the start symbol.",
            ),
            Misconception(
                "by a sentence",
                lambda target, start: np.concatenate([np.full_like(target[:1], start), target[:-1]], axis=0),
                "You shifted the sentences of the batch. Tokens move within a sentence: axis=1.",
            ),
            Misconception(
                "one longer",
                lambda target, start: np.concatenate([np.full_like(target[:, :1], start), target], axis=1),
                "The last token is still there, and the input is one longer than the target. Nothing follows the last "
                "token, so it is never an input.",
            ),
            Misconception(
                "left",
                lambda target, start: np.concatenate([target[:, 1:], np.full_like(target[:, :1], start)], axis=1),
                "You shifted to the left: each position now holds the token after the one that it must say.",
            ),
            Misconception(
                "overwritten",
                lambda target, start: np.concatenate([np.full_like(target[:, :1], start), target[:, 1:]], axis=1),
                "You wrote start over the first token. All tokens move one place to the right.",
            ),
            Misconception(
                "not shifted",
                lambda target, start: target,
                "This is the target itself. Every row would carry the token that it must say.",
            ),
        ],
    ),
    Exercise(
        id="11.2",
        title="Cross-attention",
        reference=_cross,
        cases=lambda rng: [_translation(rng) for _ in range(3)],
        hints=(
            "Who asks? Who answers?",
            "Queries from y, keys and values from memory.",
            "attention(y @ W_Q, memory @ W_K, memory @ W_V).out.",
        ),
        misconceptions=[
            Misconception(
                "self",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, y @ W_K, y @ W_V).out,
                "Everything comes from y, which is self-attention. Keys and values come from the memory.",
            ),
            Misconception(
                "the other way",
                lambda y, memory, W_Q, W_K, W_V: attention(memory @ W_Q, y @ W_K, y @ W_V).out,
                "The memory asks and the decoder answers. It is the decoder's rows that ask.",
            ),
            Misconception(
                "bare memory",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, memory @ W_K, memory).out,
                "You averaged the memory's rows. The values are memory @ W_V.",
            ),
            Misconception(
                "keys and values exchanged",
                lambda y, memory, W_Q, W_K, W_V: (
                    masked_softmax((y @ W_Q)[:, : W_V.shape[1]] @ (memory @ W_V).T / np.sqrt(W_Q.shape[1]))
                    @ (memory @ W_K)
                ),
                "W_K and W_V are exchanged.",
            ),
            Misconception(
                "not scaled",
                lambda y, memory, W_Q, W_K, W_V: attention(y @ W_Q, memory @ W_K, memory @ W_V, score=dot).out,
                "The scores are not divided by the root of the size of a query.",
            ),
        ],
    ),
    Exercise(
        id="11.3",
        title="The loss of a padded batch",
        reference=_loss,
        cases=lambda rng: [_batch(rng) for _ in range(3)],
        hints=(
            "Pick the log-probability of the right token at each position: np.take_along_axis.",
            "Where target equals pad, leave it out, above and below the line of the mean.",
            "-(chosen * real).sum() / real.sum(), with real = target != pad.",
        ),
        misconceptions=[
            Misconception(
                "padding counted",
                lambda log_p, target, pad: -_chosen(log_p, target).mean(),
                "The padding counts. The model would be trained to say padding, and short sentences would count most.",
            ),
            Misconception(
                "divided by all",
                lambda log_p, target, pad: -(_chosen(log_p, target) * (target != pad)).mean(),
                "Padding is left out of the sum and not of the count: divide by the number of real tokens.",
            ),
            Misconception(
                "sum",
                lambda log_p, target, pad: -(_chosen(log_p, target) * (target != pad)).sum(),
                "This is the sum. Divide by the number of real tokens.",
            ),
            Misconception(
                "by sentence",
                lambda log_p, target, pad: np.mean(
                    [
                        -(_chosen(log_p, target) * (target != pad))[b].sum() / (target[b] != pad).sum()
                        for b in range(len(target))
                    ]
                ),
                "You took the mean of each sentence and then of the sentences, so a token of a short one counts more. "
                "The mean is over all real tokens.",
            ),
            Misconception(
                "sign",
                lambda log_p, target, pad: -_loss(log_p, target, pad),
                "The sign is wrong: log-probabilities are negative, and a loss is positive.",
            ),
            Misconception(
                "probabilities",
                lambda log_p, target, pad: (
                    -(np.exp(_chosen(log_p, target)) * (target != pad)).sum() / (target != pad).sum()
                ),
                "You averaged probabilities. Cross-entropy averages their logarithms.",
            ),
        ],
    ),
    Exercise(
        id="11.4",
        title="What a decoder layer has more",
        reference=_difference,
        cases=lambda rng: [(64,), (512,), (10,)],
        hints=(
            "Which sublayer does an encoder layer not have?",
            "Cross-attention with its four projections, and the normalisation around it.",
            "4 * (d**2 + d) + 2 * d.",
        ),
        misconceptions=[
            Misconception(
                "no norm",
                lambda d: 4 * (d**2 + d),
                "Cross-attention brings a normalisation of its own: a scale and a shift for each feature.",
            ),
            Misconception(
                "no biases",
                lambda d: 4 * d**2 + 2 * d,
                "The biases of the four projections are missing.",
            ),
            Misconception(
                "no output projection",
                lambda d: 3 * (d**2 + d) + 2 * d,
                "Cross-attention has four projections. The one that mixes the heads is missing.",
            ),
            Misconception(
                "a whole layer",
                lambda d: 4 * (d**2 + d) + 8 * d**2 + 5 * d + 4 * d,
                "You counted a network too. An encoder layer has one as well.",
            ),
            Misconception(
                "the decoder layer",
                lambda d: 8 * (d**2 + d) + 8 * d**2 + 5 * d + 6 * d,
                "That is the whole decoder layer with d_ff = 4 d. Only what it has more is asked for.",
            ),
            Misconception(
                "nothing",
                lambda d: 0,
                "A mask adds no parameters, but cross-attention does.",
            ),
        ],
    ),
    Exercise(
        id="11.5",
        title="From letters to words",
        reference=_share,
        cases=lambda rng: [(0.99, 8), (0.9, 3), (0.95, 20)],
        hints=(
            "All letters must be right, and so must the end.",
            "Independent chances multiply.",
            "p ** (n + 1).",
        ),
        misconceptions=[
            Misconception(
                "without the end",
                lambda p, n: p**n,
                "The end is a token too, and must be said in the right place: n + 1 of them.",
            ),
            Misconception(
                "the same",
                lambda p, n: p,
                "That is the share of right letters. A word needs all of its letters to be right.",
            ),
            Misconception(
                "mistakes add",
                lambda p, n: 1 - (n + 1) * (1 - p),
                "You added up the chances of a mistake. That is close while they are small, and can fall below zero.",
            ),
            Misconception(
                "at least one",
                lambda p, n: 1 - (1 - p) ** (n + 1),
                "That is the chance that at least one token is right.",
            ),
        ],
    ),
]
