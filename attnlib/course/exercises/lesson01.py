"""Exercises of lesson 01: kernel regression by hand."""

from __future__ import annotations

from functools import cache

import numpy as np

from attnlib import NadarayaWatson, data
from attnlib.course.exercises.exercise import Exercise, Misconception


def _weights(x, data, h):
    values = np.exp(-(((x - data) / h) ** 2) / 2)
    return values / values.sum()


def _regression(queries, x, y, h):
    values = np.exp(-(((queries[:, None] - x[None, :]) / h) ** 2) / 2)
    return values / values.sum(axis=1, keepdims=True) @ y


def _loo_error(W, y):
    return np.sqrt(np.mean(((y - W @ y) / (1 - np.diag(W))) ** 2))


def _local_line(x0, x, y, h):
    root = np.sqrt(np.exp(-(((x - x0) / h) ** 2) / 2))
    columns = np.stack([np.ones_like(x), x - x0], axis=1)
    (a, _), *_ = np.linalg.lstsq(columns * root[:, None], y * root)
    return a


def _widest_maker():
    income, food = data.engel()
    bandwidths = {}
    for i in range(200, len(income)):  # a loop over all 235 ends at the same one, after seven times as long
        others = np.arange(len(income)) != i
        bandwidths[i] = NadarayaWatson(bandwidth="loo").fit(income[others, None], food[others]).bandwidth_[0]
    return income[min(bandwidths, key=bandwidths.get)]


def _weighted_median(weights, y):
    order = np.argsort(y)
    half = np.cumsum(weights[order]) >= 0.5
    return y[order][np.argmax(half)]


def _weights_and_targets(rng):
    n = 9
    weights = rng.dirichlet(np.full(n, 0.7))
    return weights, rng.normal(size=n).round(2)


def _tied(rng):
    y = rng.permutation([1.0, 1.0, 1.0, 2.0, 5.0, 40.0])
    return np.where(y == 1.0, 0.1, np.where(y == 2.0, 0.2, 0.25)), y


def _questions(rng, n=12, m=5):
    x = rng.uniform(0, 4, n)
    return rng.uniform(0, 4, m), x, np.sin(x) + rng.normal(size=n)


def _one_question(rng):
    queries, x, _ = _questions(rng)
    return queries[0], x, rng.uniform(0.5, 0.9)


def _many_questions(rng):
    return *_questions(rng), rng.uniform(0.5, 0.9)


def _far_questions(rng):
    """Both farther from all points than most, though not so far that their kernel values are zeros."""
    return np.array([0.0, 9.0]), np.array([3.0, 4.0, 6.5]), rng.normal(size=3) + 4, 0.6


def _smoother(rng):
    _, x, y = _questions(rng)
    values = np.exp(-(((x[:, None] - x) / 0.5) ** 2) / 2)
    return values / values.sum(axis=1, keepdims=True), y


def _a_place(rng):
    queries, x, y = _questions(rng)
    return queries[0], x, y, rng.uniform(0.5, 0.9)


def _normalised(values):
    return values / values.sum()


def _rows_of(values):
    return values / values.sum(axis=1, keepdims=True)


def _line_with_weights(x0, x, y, root, origin):
    columns = np.stack([np.ones_like(x), x - origin], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns * root[:, None], y * root)
    return a, b


def _local_line_of(x0, x, y, root):
    columns = np.stack([np.ones_like(x), x - x0], axis=1)
    return np.linalg.lstsq(columns * root[:, None], y)[0][0]


def _kernel_value(distance, h):
    return np.exp(-((distance / h) ** 2) / 2)


EXERCISES = [
    Exercise(
        id="01.1",
        title="Gaussian weights for one question",
        reference=_weights,
        cases=lambda rng: [_one_question(rng) for _ in range(3)],
        hints=(
            "First every point's kernel value, as an array. Only then divide, so that the weights sum to one.",
            "The kernel value falls with distance: exp of minus u squared over two, where u = (x - data) / h.",
            "values = np.exp(-((x - data) / h) ** 2 / 2), and the answer is values / values.sum().",
        ),
        misconceptions=[
            Misconception(
                "lost sign",
                lambda x, data, h: _normalised(np.exp(((x - data) / h) ** 2 / 2)),
                "Your weights grow with distance: the farthest point counts most. The minus sign in "
                "front of the square is missing.",
            ),
            Misconception(
                "not normalised",
                lambda x, data, h: _kernel_value(x - data, h),
                "These kernel values are right. Weights sum to one: divide by the sum of all kernel values.",
            ),
            Misconception(
                "no bandwidth",
                lambda x, data, h: _normalised(np.exp(-((x - data) ** 2) / 2)),
                "Your weights do not change with h. Distance is counted in bandwidths: divide it by h before you "
                "square it.",
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
                "You divided the squared distance by 2h. Distance is divided by h before it is squared: the divisor "
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
            Misconception(
                "largest is one",
                lambda x, data, h: _weights(x, data, h) / _weights(x, data, h).max(),
                "Your largest weight is 1. Weights sum to one: divide by the sum of all kernel values.",
            ),
            Misconception(
                "density",
                lambda x, data, h: _kernel_value(x - data, h) / (h * np.sqrt(2 * np.pi)),
                "That is the height of the normal curve, whose area is one. Here the weights sum to one: divide "
                "the heights by their sum.",
            ),
        ],
    ),
    Exercise(
        id="01.2",
        title="Many questions at once",
        reference=_regression,
        cases=lambda rng: [*(_many_questions(rng) for _ in range(3)), _far_questions(rng)],
        hints=(
            "Make the whole table of distances first: one row for each question, one column for each point.",
            "queries[:, None] - x[None, :] has shape (m, n). Each row of weights must sum to one.",
            "values / values.sum(axis=1, keepdims=True) are the weights W, and the answer is W @ y.",
        ),
        misconceptions=[
            Misconception(
                "wrong axis",
                lambda queries, x, y, h: (lambda s: s / s.sum(axis=0))(_kernel_value(queries[:, None] - x, h)) @ y,
                "For each point your weights sum to 1 over the questions. For each question they should sum to 1 over "
                "the points.",
            ),
            Misconception(
                "sum over everything",
                lambda queries, x, y, h: _normalised(_kernel_value(queries[:, None] - x, h)) @ y,
                "You divided by the sum of the whole table, so all questions share one unit of weight. Each "
                "question needs its own sum, over the points (axis=1 and keepdims=True where a row is a question).",
            ),
            Misconception(
                "not normalised",
                lambda queries, x, y, h: _kernel_value(queries[:, None] - x, h) @ y,
                "You used the kernel values as weights. They do not sum to one: divide those of each question by "
                "their sum over the points.",
            ),
            Misconception(
                "no bandwidth",
                lambda queries, x, y, h: _regression(queries, x, y, 1.0),
                "Your predictions do not change with h. Distance is counted in bandwidths: divide it by h before you "
                "square it.",
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
                "a little more",
                lambda queries, x, y, h: (lambda K: K @ y / (K.sum(axis=1) + 1e-6))(
                    _kernel_value(queries[:, None] - x, h)
                ),
                "You added a small number to each sum. Far from all points the sum is as small as that, and the "
                "prediction is drawn to 0: divide by the sum as it is.",
            ),
            Misconception(
                "mean of kernel values",
                lambda queries, x, y, h: _kernel_value(queries[:, None] - x, h) @ y / len(x),
                "You divided by the number of points. Kernel values do not sum to that number; divide those of each "
                "question by their own sum, or the prediction shrinks where data are sparse.",
            ),
            Misconception(
                "lost sign",
                lambda queries, x, y, h: _rows_of(np.exp(((queries[:, None] - x) / h) ** 2 / 2)) @ y,
                "Your weights grow with distance: the farthest point counts most. The minus sign in "
                "front of the square is missing.",
            ),
            Misconception(
                "order of operations",
                lambda queries, x, y, h: _regression(queries, x, y, 1 / h),
                "You multiplied by h². In Python, a / 2 * h**2 is (a / 2) * h**2; divide the distance by h, then "
                "square it.",
            ),
            Misconception(
                "distance not squared",
                lambda queries, x, y, h: _rows_of(np.exp(-np.abs(queries[:, None] - x) / h)) @ y,
                "You used the distance itself. That is a kernel too, with a sharp peak. The Gaussian has the "
                "square: -u²/2.",
            ),
        ],
    ),
    Exercise(
        id="01.3",
        title="Who widens the bandwidth",
        reference=cache(_widest_maker),
        solution=_widest_maker,
        tolerance=(0, 1.0),
        seconds=60,
        hints=(
            'Fit once for each household that could be left out, with bandwidth="loo", and look at bandwidth_.',
            "The lesson leaves some out by a mask: np.arange(len(income)) != i. The rich are the ones to try first.",
            'Collect NadarayaWatson(bandwidth="loo").fit(income[others, None], food[others]).bandwidth_[0] for all i, '
            "and take the income at the smallest.",
        ),
        misconceptions=[
            Misconception(
                "the richest",
                lambda: data.engel()[0][-1],
                "That is the richest. Nobody is within 2,000 francs of it, so it has no say in the choice: without it "
                "h stays at 134 francs. Try its poorer neighbours.",
            ),
            Misconception(
                "the second richest",
                lambda: data.engel()[0][-2],
                "Without the second richest, h falls to 78 francs, as without the two richest. Another household "
                "does a little more.",
            ),
            Misconception(
                "the bandwidth",
                lambda: 74.8,
                "That is the bandwidth. Whose absence brings it about? Give that household's income.",
            ),
            Misconception(
                "its place",
                lambda: 231.0,
                "That looks like a place in the list. Give the household's income.",
            ),
            Misconception(
                "the third richest",
                lambda: data.engel()[0][-3],
                "Without that one, h falls to 89 francs. Another household does more.",
            ),
        ],
    ),
    Exercise(
        id="01.4",
        title="Leave-one-out error in closed form",
        reference=_loo_error,
        cases=lambda rng: [_smoother(rng) for _ in range(3)],
        hints=(
            "Start from the ordinary errors, y - W @ y. They are too small, because each point helped itself.",
            "In the prediction at point i, its own value has the weight W[i, i].",
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
                "cross-validation, exact where all W[i, i] are equal. The exact answer here uses each point's own "
                "W[i, i].",
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
                "You divided the squares by 1 - W[i, i], or the errors by its root. Divide the error by 1 - W[i, i], "
                "and then square it.",
            ),
            Misconception(
                "own weight",
                lambda W, y: np.sqrt(np.mean(((y - W @ y) / np.diag(W)) ** 2)),
                "You divided by W[i, i], the weight of the point itself. Divide by the weight of all the others, "
                "1 - W[i, i].",
            ),
            Misconception(
                "multiplied",
                lambda W, y: np.sqrt(np.mean(((y - W @ y) * (1 - np.diag(W))) ** 2)),
                "You multiplied by 1 - W[i, i]. A point that helped itself has too small an error, so it must grow: "
                "divide.",
            ),
            Misconception(
                "zeroed diagonal",
                lambda W, y: np.sqrt(np.mean((y - (W - np.diag(np.diag(W))) @ y) ** 2)),
                "You took each point's own weight away, but the weights of the others no longer sum to one. "
                "They have to be divided by 1 - W[i, i].",
            ),
            Misconception(
                "standard deviation",
                lambda W, y: np.std((y - W @ y) / (1 - np.diag(W))),
                "np.std subtracts the mean of the errors first. The root of the mean of their squares is asked for.",
            ),
            Misconception(
                "the whole matrix",
                lambda W, y: np.sqrt(np.mean(((y - W @ y) / (1 - W)) ** 2)),
                "You divided by the whole matrix 1 - W, which makes a table of n by n errors. Each point has one "
                "divisor, its own: 1 - np.diag(W).",
            ),
            Misconception(
                "parentheses",
                lambda W, y: np.sqrt(np.mean((y - W @ y / (1 - np.diag(W))) ** 2)),
                "You divided the prediction only. The whole error is divided by 1 - W[i, i]: put y - W @ y in "
                "parentheses.",
            ),
        ],
    ),
    Exercise(
        id="01.5",
        title="A weighted median",
        reference=_weighted_median,
        cases=lambda rng: [*(_weights_and_targets(rng) for _ in range(10)), _tied(rng)],
        hints=(
            "Sort the targets, and carry the weights along.",
            "order = np.argsort(y). Then add the weights up in that order: np.cumsum(weights[order]).",
            "The answer is y[order] at the first place where the running sum reaches one half.",
        ),
        misconceptions=[
            Misconception(
                "mean",
                lambda weights, y: weights @ y,
                "That is the weighted mean. The median is one of the targets: the one at which the running sum of "
                "weights, in order of y, reaches one half.",
            ),
            Misconception(
                "median without weights",
                lambda weights, y: np.median(y),
                "That is the median of the targets, each counted once. Let each count by its weight.",
            ),
            Misconception(
                "not sorted",
                lambda weights, y: y[np.searchsorted(np.cumsum(weights), 0.5 - 1e-12)],
                "You added the weights up in the order in which they came. Sort by y first.",
            ),
            Misconception(
                "weights not carried along",
                lambda weights, y: np.sort(y)[np.searchsorted(np.cumsum(weights), 0.5 - 1e-12)],
                "You sorted the targets and left the weights as they were, so most targets have somebody else's "
                "weight. Sort both with one np.argsort(y).",
            ),
            Misconception(
                "sorted by weight",
                lambda weights, y: y[np.argsort(weights)][np.searchsorted(np.cumsum(np.sort(weights)), 0.5 - 1e-12)],
                "You sorted by weight. A median goes through the targets in order of size: np.argsort(y).",
            ),
            Misconception(
                "heaviest",
                lambda weights, y: y[np.argmax(weights)],
                "That is the target with the largest weight. Half of the weight may lie elsewhere.",
            ),
            Misconception(
                "position",
                lambda weights, y: np.argmax(np.cumsum(weights[np.argsort(y)]) >= 0.5),
                "That is a place in the sorted list. Return the target at that place of y[order].",
            ),
            Misconception(
                "its place, in y as it came",
                lambda weights, y: y[np.argmax(np.cumsum(weights[np.argsort(y)]) >= 0.5)],
                "You found the place in the sorted list, and then looked it up in y as it came. Look it up in the "
                "sorted one: y[order].",
            ),
            Misconception(
                "one too early",
                lambda weights, y: y[np.argsort(y)][np.argmax(np.cumsum(weights[np.argsort(y)]) >= 0.5) - 1],
                "You stopped one target too early: up to yours the weights do not yet reach one half.",
            ),
            Misconception(
                "more than half",
                lambda weights, y: y[np.argsort(y)][np.argmax(np.cumsum(weights[np.argsort(y)]) > 0.5 + 1e-12)],
                "Right unless a running sum is exactly one half. There you went on to the next target, or you started "
                "from the largest. From the smallest up, take the first target whose sum is at least one half.",
            ),
        ],
    ),
    Exercise(
        id="01.6",
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
                "This is the local mean: the slope does not enter. Add the column x - x0, return the height at x0, "
                "and at the edges the prediction leans inwards less.",
            ),
            Misconception(
                "weights twice",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, _kernel_value(x - x0, h), x0)[0],
                "Your bell is too narrow by a factor of √2. Either the 2 in exp(-u²/2) is missing, or you multiplied "
                "the rows by the weights, which least squares then squares: multiply by their square root.",
            ),
            Misconception(
                "only x multiplied",
                lambda x0, x, y, h: _local_line_of(x0, x, y, np.sqrt(_kernel_value(x - x0, h))),
                "You multiplied the columns by the root of the weights and left y as it was. Multiply both: "
                "lstsq(A * r[:, None], y * r).",
            ),
            Misconception(
                "intercept at zero",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.sqrt(_kernel_value(x - x0, h)), 0)[0],
                "The line is right, but you read it off at x = 0. Its value at x0 is a + b * x0, or the "
                "intercept when positions are counted from x0.",
            ),
            Misconception(
                "slope",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.sqrt(_kernel_value(x - x0, h)), x0)[1],
                "That is the slope, b. The value of the line at x0 is its intercept, a.",
            ),
            Misconception(
                "no weights",
                lambda x0, x, y, h: _line_with_weights(x0, x, y, np.ones_like(x), x0)[0],
                "This is one straight line for all the data. Weight the points by the kernel, so that the line "
                "is fitted around x0.",
            ),
            Misconception(
                "line from x0, read at x0",
                lambda x0, x, y, h: np.dot(
                    _line_with_weights(x0, x, y, np.sqrt(_kernel_value(x - x0, h)), x0), [1, x0]
                ),
                "You counted positions from x0 and then put x0 in, which reads the line at 2 x0. Counted from x0, "
                "x0 itself is at 0, and there the line has its intercept: return that.",
            ),
            Misconception(
                "no bandwidth",
                lambda x0, x, y, h: _local_line(x0, x, y, 1.0),
                "Your line does not change with h. Distance is counted in bandwidths: divide it by h before you "
                "square it.",
            ),
        ],
    ),
]
