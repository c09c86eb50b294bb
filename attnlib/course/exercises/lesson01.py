"""Exercises of lesson 01: kernel regression by hand."""

from __future__ import annotations

import numpy as np

from attnlib import data
from attnlib.course.exercises.exercise import Exercise, Misconception


def _weights(x, data, h):
    say = np.exp(-(((x - data) / h) ** 2) / 2)
    return say / say.sum()


def _regression(queries, x, y, h):
    say = np.exp(-(((queries[:, None] - x[None, :]) / h) ** 2) / 2)
    return say / say.sum(axis=1, keepdims=True) @ y


def _loo_error(W, y):
    return np.sqrt(np.mean(((y - W @ y) / (1 - np.diag(W))) ** 2))


def _local_line(x0, x, y, h):
    root = np.sqrt(np.exp(-(((x - x0) / h) ** 2) / 2))
    columns = np.stack([np.ones_like(x), x - x0], axis=1)
    (a, _), *_ = np.linalg.lstsq(columns * root[:, None], y * root)
    return a


def _box_reach():
    income, _ = data.engel()
    distance = np.abs(income[:, None] - income)
    np.fill_diagonal(distance, np.inf)
    return distance.min(axis=1).max()


def _nearest_distances(income):
    distance = np.abs(income[:, None] - income)
    np.fill_diagonal(distance, np.inf)
    return distance.min(axis=1)


def _questions(rng, n=12, m=5):
    x = rng.uniform(0, 4, n)
    return rng.uniform(0, 4, m), x, np.sin(x) + rng.normal(size=n)


def _one_question(rng):
    queries, x, _ = _questions(rng)
    return queries[0], x, rng.uniform(0.5, 0.9)


def _many_questions(rng):
    return *_questions(rng), rng.uniform(0.5, 0.9)


def _smoother(rng):
    _, x, y = _questions(rng)
    say = np.exp(-(((x[:, None] - x) / 0.5) ** 2) / 2)
    return say / say.sum(axis=1, keepdims=True), y


def _a_place(rng):
    queries, x, y = _questions(rng)
    return queries[0], x, y, rng.uniform(0.5, 0.9)


def _normalised(say):
    return say / say.sum()


def _line_with_weights(x0, x, y, root, origin):
    columns = np.stack([np.ones_like(x), x - origin], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns * root[:, None], y * root)
    return a, b


def _say(distance, h):
    return np.exp(-((distance / h) ** 2) / 2)


EXERCISES = [
    Exercise(
        id="01.1",
        title="Gaussian weights for one question",
        reference=_weights,
        cases=lambda rng: [_one_question(rng) for _ in range(3)],
        hints=(
            "First every point's say, as an array. Only then divide, so that the weights sum to one.",
            "The say falls with distance: exp of minus u squared over two, where u = (x - data) / h.",
            "say = np.exp(-((x - data) / h) ** 2 / 2), and the answer is say / say.sum().",
        ),
        misconceptions=[
            Misconception(
                "lost sign",
                lambda x, data, h: _normalised(np.exp(((x - data) / h) ** 2 / 2)),
                "Your weights grow with distance: the farthest point has the most to say. The minus sign in "
                "front of the square is missing.",
            ),
            Misconception(
                "not normalised",
                lambda x, data, h: _say(x - data, h),
                "These are the says, and they are right. Weights sum to one: divide by the sum of all the says.",
            ),
            Misconception(
                "no two",
                lambda x, data, h: _normalised(np.exp(-(((x - data) / h) ** 2))),
                "Your bell is too narrow by a factor of √2. The exponent is -u²/2, and the 2 is missing; "
                "without it h is not the standard deviation of the bell.",
            ),
            Misconception(
                "h not squared",
                lambda x, data, h: _normalised(np.exp(-((x - data) ** 2) / (2 * h))),
                "You divided the squared distance by 2h. Distance is divided by h before it is squared, so it "
                "is 2h²; otherwise the units do not cancel.",
            ),
            Misconception(
                "order of operations",
                lambda x, data, h: _normalised(np.exp(-((x - data) ** 2) / 2 * h**2)),
                "You multiplied by h². In Python, a / 2 * h**2 is (a / 2) * h**2; write ((x - data) / h) ** 2 / 2.",
            ),
            Misconception(
                "distance not squared",
                lambda x, data, h: _normalised(np.exp(-np.abs(x - data) / h)),
                "You used the distance itself. That is a kernel too, with a sharp peak. The Gaussian has the "
                "square: -u²/2.",
            ),
        ],
    ),
    Exercise(
        id="01.2",
        title="Many questions at once",
        reference=_regression,
        cases=lambda rng: [_many_questions(rng) for _ in range(3)],
        hints=(
            "Make the whole table of distances first: one row for each question, one column for each point.",
            "queries[:, None] - x[None, :] has shape (m, n). Each row of weights must sum to one.",
            "say / say.sum(axis=1, keepdims=True) are the weights W, and the answer is W @ y.",
        ),
        misconceptions=[
            Misconception(
                "wrong axis",
                lambda queries, x, y, h: (lambda s: s / s.sum(axis=0))(_say(queries[:, None] - x, h)) @ y,
                "Your weights sum to 1 down each column. They should sum to 1 along each row: one row is one "
                "question's distribution over the data.",
            ),
            Misconception(
                "sum over everything",
                lambda queries, x, y, h: _normalised(_say(queries[:, None] - x, h)) @ y,
                "You divided by the sum of the whole table, so all questions share one unit of weight. Each "
                "row needs its own sum: axis=1, keepdims=True.",
            ),
            Misconception(
                "not normalised",
                lambda queries, x, y, h: _say(queries[:, None] - x, h) @ y,
                "You used the says as weights. They do not sum to one: divide each row by its sum.",
            ),
            Misconception(
                "no two",
                lambda queries, x, y, h: _regression(queries, x, y, h / np.sqrt(2)),
                "Your bell is too narrow by a factor of √2: the exponent is -u²/2, and the 2 is missing.",
            ),
            Misconception(
                "h not squared",
                lambda queries, x, y, h: _regression(queries, x, y, np.sqrt(h)),
                "You divided the squared distance by 2h. The bandwidth is squared with the distance: 2h².",
            ),
            Misconception(
                "mean of says",
                lambda queries, x, y, h: _say(queries[:, None] - x, h) @ y / len(x),
                "You divided by the number of points. The says do not sum to that number; divide each row by "
                "its own sum, or the prediction shrinks where data are sparse.",
            ),
        ],
    ),
    Exercise(
        id="01.3",
        title="Leave-one-out error in closed form",
        reference=_loo_error,
        cases=lambda rng: [_smoother(rng) for _ in range(3)],
        hints=(
            "Start from the ordinary errors, y - W @ y. They are too small, because each point helped itself.",
            "The part of its prediction that point i supplied itself is W[i, i].",
            "Divide each error by 1 - np.diag(W), then take the root of the mean of the squares.",
        ),
        misconceptions=[
            Misconception(
                "training error",
                lambda W, y: np.sqrt(np.mean((y - W @ y) ** 2)),
                "This is the error on the data themselves: every point still votes for its own value. Divide "
                "each error by 1 - W[i, i] before squaring.",
            ),
            Misconception(
                "mean square",
                lambda W, y: np.mean(((y - W @ y) / (1 - np.diag(W))) ** 2),
                "You have the mean square. Its root is missing, which brings it back to the units of y.",
            ),
            Misconception(
                "mean of the diagonal",
                lambda W, y: np.sqrt(np.mean((y - W @ y) ** 2)) / (1 - np.trace(W) / len(y)),
                "You divided all errors by one number, one minus the mean of the diagonal. That is generalised "
                "cross-validation, a good approximation. The exact answer uses each point's own W[i, i].",
            ),
            Misconception(
                "mean absolute",
                lambda W, y: np.mean(np.abs((y - W @ y) / (1 - np.diag(W)))),
                "That is the mean of the absolute errors, an honest measure. The root mean square was asked for.",
            ),
            Misconception(
                "sum",
                lambda W, y: np.sqrt(len(y)) * _loo_error(W, y),
                "You took the root of the sum of squares. Take the mean before the root.",
            ),
            Misconception(
                "divided the squares",
                lambda W, y: np.sqrt(np.mean((y - W @ y) ** 2 / (1 - np.diag(W)))),
                "You squared first and divided then. The error itself is divided by 1 - W[i, i], before squaring.",
            ),
            Misconception(
                "zeroed diagonal",
                lambda W, y: np.sqrt(np.mean((y - (W - np.diag(np.diag(W))) @ y) ** 2)),
                "You took each point's own weight away, but the weights of the others no longer sum to one. "
                "They have to be divided by 1 - W[i, i].",
            ),
        ],
    ),
    Exercise(
        id="01.4",
        title="A local line",
        reference=_local_line,
        cases=lambda rng: [_a_place(rng) for _ in range(3)],
        hints=(
            "Measure positions from x0: then the line's value at x0 is its intercept.",
            "Weighted least squares is ordinary least squares after multiplying every row, and y, by the "
            "square root of its weight.",
            "A = np.stack([np.ones_like(x), x - x0], axis=1), r = np.sqrt(weight); the answer is "
            "np.linalg.lstsq(A * r[:, None], y * r)[0][0].",
        ),
        misconceptions=[
            Misconception(
                "local mean",
                lambda x0, x, y, h: _weights(x0, x, h) @ y,
                "This is the local mean, a fit without the slope. Add the column x - x0, and at the edges the "
                "prediction stops leaning inwards.",
            ),
            Misconception(
                "weights twice",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, _say(x - x0, h), x0)[0],
                "Your bell is too narrow by a factor of √2. Either the 2 in exp(-u²/2) is missing, or you multiplied "
                "the rows by the weights, which least squares then squares: multiply by their square root.",
            ),
            Misconception(
                "intercept at zero",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.sqrt(_say(x - x0, h)), 0)[0],
                "The line is right, but you read it off at x = 0. Its value at x0 is a + b * x0, or the "
                "intercept when positions are counted from x0.",
            ),
            Misconception(
                "slope",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.sqrt(_say(x - x0, h)), x0)[1],
                "That is the slope, b. The value of the line at x0 is its intercept, a.",
            ),
            Misconception(
                "no weights",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.ones_like(x), x0)[0],
                "This is one straight line for all the data. Weight the points by the kernel, so that the line "
                "is fitted around x0.",
            ),
        ],
    ),
    Exercise(
        id="01.5",
        title="How far the box must reach",
        reference=_box_reach,
        tolerance=(0, 0.06),
        hints=(
            "For each household find the distance to the nearest other one.",
            "The bandwidth must be enough for the loneliest household.",
            "Fill the diagonal of abs(income[:, None] - income) with np.inf, take the minimum of each row, "
            "and then the largest of those.",
        ),
        misconceptions=[
            Misconception(
                "itself",
                lambda: 0.0,
                "Zero is enough only if each household counts itself as a neighbour. Leave the diagonal out.",
            ),
            Misconception(
                "typical household",
                lambda: np.median(_nearest_distances(data.engel()[0])),
                "That is enough for half of the households. It has to be enough for all 235: take the largest "
                "of the nearest distances, not the median.",
            ),
            Misconception(
                "average household",
                lambda: np.mean(_nearest_distances(data.engel()[0])),
                "That is the mean distance to the nearest household. The loneliest one has farther to go: take "
                "the largest.",
            ),
            Misconception(
                "both sides",
                lambda: np.ptp(data.engel()[0]),
                "That is the distance between the poorest and the richest, enough for everyone to reach "
                "everyone. One neighbour each is all that is asked.",
            ),
        ],
    ),
]
