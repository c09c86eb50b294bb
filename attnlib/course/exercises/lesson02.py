"""Exercises of lesson 02: queries, keys, and a distance that is learned."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from attnlib import NadarayaWatson, data
from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import gaussian


def _gaussian_weights(q, k, h):
    return masked_softmax(gaussian(q, k, bandwidth=h))


def _squares(q, k):
    return ((q[:, None, :] - k[None, :, :]) ** 2).sum(axis=-1)


def _temperature(h):
    return h**2


def _lift(q, k):
    return np.column_stack([q, np.ones(len(q))]), np.column_stack([k, -(k**2).sum(axis=1) / 2])


def _append(x, column):
    return np.column_stack([x, np.broadcast_to(column, len(x))])


def _weights_of(pair):
    """Any lift counts whose dot products give the right weights, whatever its numbers are."""
    q, k = pair
    return masked_softmax(np.asarray(q, dtype=float) @ np.asarray(k, dtype=float).T)


def _loss(x, y, W, mask=True):
    others = ~np.eye(len(x), dtype=bool)
    out = attention(x @ W, x @ W, y[:, None], score=gaussian, mask=others if mask else None).out
    return np.mean((out[:, 0] - y) ** 2)


def _loss_by_zeroing(x, y, W):
    weights = masked_softmax(gaussian(x @ W, x @ W)) * (1 - np.eye(len(x)))
    return np.mean((weights @ y - y) ** 2)


def _loss_sum(x, y, W):
    return len(y) * _loss(x, y, W)


BANDWIDTHS = (0.1, 0.2, 0.3, 0.5, 0.7)


def _halves():
    images, _ = data.digits()
    return images[:1400, :4].reshape(1400, 32), images[:1400, 4:].reshape(1400, 32)


@lru_cache
def _best_bandwidth(left_out=True):
    upper, lower = _halves()
    models = [NadarayaWatson(bandwidth=h).fit(upper, lower) for h in BANDWIDTHS]
    errors = [m.loo_error() if left_out else np.mean((m.predict(upper) - lower) ** 2) for m in models]
    return BANDWIDTHS[np.argmin(errors)]


def _least_error():
    images, _ = data.digits()
    upper, lower = images[:1400, :4].reshape(1400, 32), images[:1400, 4:].reshape(1400, 32)
    models = {h: NadarayaWatson(bandwidth=h).fit(upper, lower) for h in (0.1, 0.2, 0.3, 0.5, 0.7)}
    return min(models, key=lambda h: models[h].loo_error())


def _cases(rng, n=7, m=4, d=3):
    return rng.normal(size=(m, d)), rng.normal(size=(n, d))


def _for_loss(rng):
    x = rng.normal(size=(9, 3))
    return x, rng.normal(size=9), rng.normal(size=(3, 3)) / 2


EXERCISES = [
    Exercise(
        id="02.1",
        title="Gaussian weights as a softmax",
        reference=_gaussian_weights,
        cases=lambda rng: [(*_cases(rng), rng.uniform(0.7, 1.6)) for _ in range(3)],
        hints=(
            "First a table of squared distances, (m, n). Then scores. Then a softmax along each row.",
            "((q[:, None, :] - k[None, :, :]) ** 2).sum(axis=-1) is the table of squared distances.",
            "scores = -squares / (2 * h**2); e = np.exp(scores); the answer is e / e.sum(axis=1, keepdims=True).",
        ),
        misconceptions=[
            Misconception(
                "lost sign",
                lambda q, k, h: masked_softmax(_squares(q, k) / (2 * h**2)),
                "Your score grows with distance, so the farthest key gets the largest weight. It is minus the "
                "squared distance.",
            ),
            Misconception(
                "h not squared",
                lambda q, k, h: masked_softmax(-_squares(q, k) / (2 * h)),
                "You divided the squared distance by 2h. The bandwidth is squared with the distance: 2h².",
            ),
            Misconception(
                "dot product",
                lambda q, k, h: masked_softmax(q @ k.T / h**2),
                "That is a softmax of dot products. The key's own term is missing, and long keys win.",
            ),
            Misconception(
                "order of operations",
                lambda q, k, h: masked_softmax(-_squares(q, k) / 2 * h**2),
                "You multiplied by h². In Python, a / 2 * h**2 is (a / 2) * h**2; write a / (2 * h**2).",
            ),
            Misconception(
                "distance not squared",
                lambda q, k, h: masked_softmax(-np.sqrt(_squares(q, k)) / h),
                "You used the distance itself. That is a kernel too, the Laplacian one. The Gaussian has the "
                "square of the distance, over 2h².",
            ),
            Misconception(
                "wrong axis",
                lambda q, k, h: masked_softmax(gaussian(k, q, bandwidth=h)).T,
                "Your weights sum to 1 down each column. They should sum to 1 along each row: one row is one "
                "query's distribution over keys.",
            ),
        ],
    ),
    Exercise(
        id="02.2",
        title="Temperature and bandwidth",
        reference=_temperature,
        cases=lambda rng: [(h,) for h in rng.uniform(0.3, 3, size=4)],
        hints=(
            "Multiply out the squared distance and look at the term with q · k.",
            "The 2 of -2 q · k meets the 2 of 2h².",
            "The shared term is q · k / h².",
        ),
        misconceptions=[
            Misconception(
                "twice",
                lambda h: 2 * h**2,
                "You kept the 2 of 2h². Multiply the square out: its middle term is -2 q · k, and the two 2s cancel.",
            ),
            Misconception(
                "h",
                lambda h: h,
                "A temperature of h is a bandwidth of √h. The bandwidth stands under a square.",
            ),
            Misconception(
                "half",
                lambda h: h**2 / 2,
                "You halved it. The 2 of -2 q · k and the 2 of 2h² cancel, and h² is left.",
            ),
            Misconception(
                "inverse",
                lambda h: 1 / h**2,
                "That is what the dot products are multiplied by. The question asks what they are divided by.",
            ),
        ],
    ),
    Exercise(
        id="02.3",
        title="One more dimension",
        reference=_lift,
        adapt=_weights_of,
        cases=lambda rng: [_cases(rng) for _ in range(3)],
        hints=(
            "Which of the three terms of the opened square is missing from the dot product, and cannot be dropped?",
            "Append a number to each key that is a function of that key alone, and to each query a constant.",
            "np.column_stack([q, np.ones(len(q))]) and np.column_stack([k, -(k**2).sum(axis=1) / 2]).",
        ),
        misconceptions=[
            Misconception(
                "no half",
                lambda q, k: (_append(q, 1.0), _append(k, -(k**2).sum(axis=1))),
                "You appended -‖k‖². The half is missing: with bandwidth 1 the key's term is -‖k‖²/2.",
            ),
            Misconception(
                "plus",
                lambda q, k: (_append(q, 1.0), _append(k, (k**2).sum(axis=1) / 2)),
                "Your long keys gain by what they should lose. The key's term carries a minus sign.",
            ),
            Misconception(
                "query's term",
                lambda q, k: (_append(q, -(q**2).sum(axis=1) / 2), _append(k, 1.0)),
                "These are the weights of the bare dot product, so what you appended cancels: it is zero, or the same "
                "for all keys of a query, as the query's own term is. Append the key's: one number for each key.",
            ),
            Misconception(
                "made equal",
                lambda q, k: (q, k / np.linalg.norm(k, axis=1, keepdims=True)),
                "You made the keys equally long. That removes the difference by changing the keys, and the weights "
                "with them. Keep the keys and append a number.",
            ),
        ],
    ),
    Exercise(
        id="02.4",
        title="Leave one out, by a mask",
        reference=_loss,
        cases=lambda rng: [_for_loss(rng) for _ in range(3)],
        hints=(
            "Nobody may attend to itself. True means may attend.",
            "mask = ~np.eye(len(x), dtype=bool), and the values need two axes: y[:, None].",
            "out = attention(x @ W, x @ W, y[:, None], score=gaussian, mask=mask).out[:, 0], and the answer is "
            "np.mean((out - y) ** 2).",
        ),
        misconceptions=[
            Misconception(
                "no mask",
                partial(_loss, mask=False),
                "Each point attends to itself here, so a sharper and sharper kernel would learn to repeat the data. "
                "Mask the diagonal out.",
            ),
            Misconception(
                "mask inverted",
                lambda x, y, W: 0.0,
                "Your loss is zero: each point attends to itself and to nobody else. True means may attend, so the "
                "mask is the opposite of np.eye.",
            ),
            Misconception(
                "zeroed weights",
                _loss_by_zeroing,
                "You set the point's own weight to zero after the softmax. The others no longer sum to one. Mask "
                "before the softmax, with mask=.",
            ),
            Misconception(
                "root",
                lambda x, y, W: np.sqrt(_loss(x, y, W)),
                "You took the root. The mean squared error was asked for.",
            ),
            Misconception(
                "sum",
                _loss_sum,
                "You added the squared errors up. The mean was asked for.",
            ),
        ],
    ),
    Exercise(
        id="02.5",
        title="The bandwidth that completes digits",
        reference=_best_bandwidth,
        solution=_least_error,
        tolerance=(0, 1e-6),
        hints=(
            "Judge a bandwidth by images that are left out, as in lesson 01.",
            "NadarayaWatson takes the 32 pixels of the lower half as y, and has a method loo_error.",
            "min((0.1, 0.2, 0.3, 0.5, 0.7), key=lambda h: NadarayaWatson(bandwidth=h).fit(upper, lower)"
            ".loo_error()), with the first 1,400 rows of each.",
        ),
        misconceptions=[
            Misconception(
                "own data",
                partial(_best_bandwidth, left_out=False),
                "That is the best one when each digit may answer its own question. On images that are left out it "
                "is among the worst. Use loo_error, or a mask.",
            ),
            Misconception(
                "borrowed",
                lambda: 0.5,
                "That is the bandwidth that the lesson uses for whole images. Leave each upper half out of the "
                "others instead and compare all five.",
            ),
            Misconception(
                "smoothest",
                lambda: 0.7,
                "The widest one averages over so many digits that every answer looks like their mean. Compare "
                "loo_error for all five.",
            ),
        ],
    ),
]
