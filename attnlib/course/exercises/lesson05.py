"""Exercises of lesson 05: reading step by step, looking back, and what each costs."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import additive


def _context(s, H, W_q, W_k, w):
    return attention(s[None], H, H, score=lambda q, k: additive(q, k, W_q, W_k, w)).out[0]


def _by_hand(s, H, W_q, W_k, w):
    scores = np.tanh(s @ W_q + H @ W_k) @ w
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ H


def _gru_step(x, h, z, r, W, U):
    return z * h + (1 - z) * np.tanh(x @ W + (r * h) @ U)


def _depth(n, k):
    return -(-n // (k - 1))


def _crossing(d):
    return 5 * d // 2 + 1


def _whole_words(p, n):
    return p**n


def _weights(s, H, W_q, W_k, w):
    return masked_softmax(np.tanh(s @ W_q + H @ W_k) @ w)


def _without_tanh(s, H, W_q, W_k, w):
    return masked_softmax((s @ W_q + H @ W_k) @ w) @ H


def _one_state(s, H, W_q, W_k, w):
    return H[_weights(s, H, W_q, W_k, w).argmax()]


def _scaled(s, H, W_q, W_k, w):
    return masked_softmax(np.tanh(s @ W_q + H @ W_k) @ w / np.sqrt(len(w))) @ H


def _exchanged(x, h, z, r, W, U):
    return (1 - z) * h + z * np.tanh(x @ W + (r * h) @ U)


def _gate_after(x, h, z, r, W, U):
    return z * h + (1 - z) * np.tanh(x @ W + r * (h @ U))


def _no_reset(x, h, z, r, W, U):
    return z * h + (1 - z) * np.tanh(x @ W + h @ U)


def _no_tanh(x, h, z, r, W, U):
    return z * h + (1 - z) * (x @ W + (r * h) @ U)


def _no_keeping(x, h, z, r, W, U):
    return np.tanh(x @ W + (r * h) @ U)


def _reset_outside(x, h, z, r, W, U):
    return z * h + (1 - z) * np.tanh(r * (x @ W + h @ U))


def _one_step(rng, d_s, d_h, d_hidden, n):
    return (
        rng.normal(size=d_s),
        rng.normal(size=(n, d_h)),
        rng.normal(size=(d_s, d_hidden)),
        rng.normal(size=(d_h, d_hidden)),
        2 * rng.normal(size=d_hidden),
    )


def _cell(rng, d_x, d):
    gates = rng.uniform(0.1, 0.9, size=(2, d))
    return rng.normal(size=d_x), rng.normal(size=d), *gates, rng.normal(size=(d_x, d)), rng.normal(size=(d, d))


EXERCISES = [
    Exercise(
        id="05.1",
        title="One step of Bahdanau's attention",
        reference=_context,
        solution=_by_hand,
        cases=lambda rng: [_one_step(rng, 4, 6, 5, 7), _one_step(rng, 3, 5, 8, 4)],
        hints=(
            "One query s, and a score for each row of H. The states are keys and values.",
            "The scores are np.tanh(s @ W_q + H @ W_k) @ w, one for each row. Softmax, then the weighted mean.",
            "a = np.exp(scores); return a / a.sum() @ H.",
        ),
        misconceptions=[
            Misconception(
                "weights only",
                _weights,
                "These are the weights. The context is the mean of the states with these weights: weights @ H.",
            ),
            Misconception(
                "no softmax",
                lambda s, H, W_q, W_k, w: np.tanh(s @ W_q + H @ W_k) @ w @ H,
                "You took the scores for the weights. Weights are positive and sum to one: softmax first.",
            ),
            Misconception(
                "no tanh",
                _without_tanh,
                "The tanh is missing. Without it the query adds the same number to every score, and the softmax "
                "ignores it: nothing is asked.",
            ),
            Misconception(
                "largest only",
                _one_state,
                "You took the state with the largest weight. The context is the mean of all of them.",
            ),
            Misconception(
                "scaled",
                _scaled,
                "You divided the scores by a square root. That belongs to the dot product; the additive score has "
                "none.",
            ),
            Misconception(
                "keys as values",
                lambda s, H, W_q, W_k, w: _weights(s, H, W_q, W_k, w) @ (H @ W_k),
                "You averaged the projected keys. The values are the encoder's states H as they are.",
            ),
        ],
    ),
    Exercise(
        id="05.2",
        title="One step of a GRU",
        reference=_gru_step,
        cases=lambda rng: [_cell(rng, 3, 5), _cell(rng, 6, 4)],
        hints=(
            "First the proposal, then the mixture of it with the state before.",
            "The gate r is multiplied into h entry by entry, before U. The gate z says how much of h stays.",
            "np.tanh(x @ W + (r * h) @ U) is the proposal; z * h + (1 - z) * proposal.",
        ),
        misconceptions=[
            Misconception(
                "gates exchanged",
                _exchanged,
                "Your z lets in what it should keep. Here z = 1 leaves the state as it was: z * h + (1 - z) * "
                "proposal. (Papers differ on this; torch does as we do.)",
            ),
            Misconception(
                "reset after U",
                _gate_after,
                "You multiplied by r after U. This is what torch does, for speed, and another cell than the one asked "
                "for: here r * h comes first, as in the paper of 2014.",
            ),
            Misconception(
                "without r",
                _no_reset,
                "The gate r is missing: it says how much of the old state the proposal may see.",
            ),
            Misconception("no tanh", _no_tanh, "The proposal has no tanh, so that it can grow without bound."),
            Misconception(
                "proposal only",
                _no_keeping,
                "This is the proposal. The gate z then mixes it with the state before, and that is what lets a GRU "
                "keep something.",
            ),
            Misconception(
                "r on everything",
                _reset_outside,
                "Your r also closes the input. It belongs to the state alone: x @ W + (r * h) @ U.",
            ),
        ],
    ),
    Exercise(
        id="05.3",
        title="The depth of convolutions",
        reference=_depth,
        solution=lambda n, k: int(np.ceil(n / (k - 1))),
        cases=lambda rng: [(31, 3), (30, 4), (7, 8), (100, 6), (32, 6), (16, 5)],
        hints=(
            "How far back does one layer read? And two?",
            "L layers read L * (k - 1) places back.",
            "The smallest whole L with L * (k - 1) >= n: -(-n // (k - 1)).",
        ),
        misconceptions=[
            Misconception(
                "divided by k",
                lambda n, k: -(-n // k),
                "A layer of width k reads its own place and k - 1 before it, so it goes k - 1 back, not k.",
            ),
            Misconception(
                "rounded down",
                lambda n, k: n // (k - 1),
                "You rounded down, and the last layer is missing where k - 1 does not divide n.",
            ),
            Misconception(
                "one too many",
                lambda n, k: n // (k - 1) + 1,
                "This is one too many where k - 1 divides n. Round up instead.",
            ),
            Misconception(
                "positions, not steps",
                lambda n, k: -(-(n - 1) // (k - 1)),
                "You counted n positions, the first and the last included. The input is n places before the output.",
            ),
            Misconception(
                "centred",
                lambda n, k: -(-2 * n // (k - 1)),
                "This is for convolutions that read half of their width on either side. These read k - 1 to the left.",
            ),
            Misconception(
                "doubling",
                lambda n, k: int(np.ceil(np.log(n) / np.log(k))),
                "A logarithm is right where each layer skips k times as many places as the last. These skip none.",
            ),
        ],
    ),
    Exercise(
        id="05.4",
        title="Where attention becomes dearer",
        reference=_crossing,
        cases=lambda rng: [(64,), (128,), (33,), (7,)],
        hints=(
            "Write both counts: four matrices on x and four on h, for n rows; and the table's row of attention.",
            "8 n d² against 3 n d² + 2 n² d. Divide by n d.",
            "8 d < 3 d + 2 n, so n > 5 d / 2: the next whole number is 5 * d // 2 + 1.",
        ),
        misconceptions=[
            Misconception(
                "equal",
                lambda d: 5 * d / 2,
                "At n = 5 d / 2 both need the same. Asked is the first whole number at which attention needs more.",
            ),
            Misconception(
                "no projections",
                lambda d: 4 * d + 1,
                "You left out the three projections of attention, 3 n d².",
            ),
            Misconception(
                "only x",
                lambda d: d // 2 + 1,
                "You counted four matrices. There are four for x and four for h: 8 n d².",
            ),
            Misconception(
                "one product of n²",
                lambda d: 5 * d + 1,
                "Attention has two products with n² d multiplications: the scores, and the weighted mean.",
            ),
            Misconception(
                "plain cell",
                lambda d: 1,
                "With 2 n d², the plain cell's, attention is dearer from the first row on. An LSTM has four times as "
                "many matrices.",
            ),
        ],
    ),
    Exercise(
        id="05.5",
        title="Whole words",
        reference=_whole_words,
        cases=lambda rng: [(0.9, 20), (0.99, 10), (0.5, 3), (0.8, 7)],
        hints=(
            "A word is right if its first letter is right and its second and so on.",
            "Chances of independent things that must all happen are multiplied.",
            "p ** n. On attending[0] the true share is larger: mistakes come together.",
        ),
        misconceptions=[
            Misconception(
                "the same",
                lambda p, n: p,
                "This is the share of letters. A word needs all n of them.",
            ),
            Misconception(
                "errors added",
                lambda p, n: 1 - n * (1 - p),
                "You added the chances of errors, which counts words with two errors twice, and can fall below zero.",
            ),
            Misconception(
                "divided",
                lambda p, n: p / n,
                "Chances that must all come true are multiplied, not divided by their number.",
            ),
            Misconception(
                "at least one right",
                lambda p, n: 1 - (1 - p) ** n,
                "This is the chance that at least one letter is right. All of them must be.",
            ),
            Misconception(
                "some error",
                lambda p, n: 1 - p**n,
                "This is the share of words with a mistake in them.",
            ),
        ],
    ),
]
