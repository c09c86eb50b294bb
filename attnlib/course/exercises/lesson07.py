"""Exercises of lesson 07: heads, and how they are cut and joined."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.nn.heads import merge_heads, split_heads
from attnlib.scores import dot


def _sum(heads, W_O):
    return sum(head @ part for head, part in zip(heads, np.split(W_O, len(heads)), strict=True))


def _bend(d):
    return np.concatenate([-2 * np.eye(d), np.eye(d), np.eye(d)])


def _smallest_error(a):
    b = 1 - a
    return 2 - (a - b) ** 2 / (a**2 + b**2)


def _layer(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(attention(q, k, v).out) @ W_O


def _error(a, w):
    return (1 - a * w) ** 2 + (1 + (1 - a) * w) ** 2


def _at_d_model(X, W_Q, W_K, W_V, W_O, n_heads):
    return _layer(X, W_Q / np.sqrt(n_heads), W_K, W_V, W_O, n_heads)


def _interleaved(X, W_Q, W_K, W_V, W_O, n_heads):
    order = np.arange(len(W_Q)).reshape(-1, n_heads).T.ravel()
    out = _layer(X, W_Q[:, order], W_K[:, order], W_V[:, order], np.eye(len(W_O)), n_heads)
    return out[:, np.argsort(order)] @ W_O


def _grouped(X, W_Q, W_K, W_V, W_O, n_heads):
    head = np.arange(len(W_Q)) // (len(W_Q) // n_heads)
    own = head[:, None] == head  # the blocks in which row and column belong to one head
    return _layer(X, W_Q * own, W_K * own, W_V * own, W_O, n_heads)


def _straight(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = ((X @ W).reshape(n_heads, len(X), -1) for W in (W_Q, W_K, W_V))
    return attention(q, k, v).out.reshape(X.shape) @ W_O


def _not_merged(X, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V))
    return attention(q, k, v).out.reshape(X.shape) @ W_O


EXERCISES = [
    Exercise(
        id="07.1",
        title="Splitting heads",
        reference=split_heads,
        solution=lambda x, n_heads: x.reshape(len(x), n_heads, -1).swapaxes(0, 1),
        cases=lambda rng: [(rng.normal(size=(5, 12)), 3), (rng.normal(size=(7, 10)), 2)],
        hints=(
            "A head takes a piece of every row, not some of the rows.",
            "Cut the last axis first: x.reshape(n, n_heads, d_head).",
            "x.reshape(len(x), n_heads, -1).swapaxes(0, 1).",
        ),
        misconceptions=[
            Misconception(
                "reshaped at once",
                lambda x, n_heads: x.reshape(n_heads, len(x), -1),
                "The shape is right and the rows are mixed up: your first head takes the numbers of x row after row. "
                "Cut each row, (n, n_heads, d_head), and then exchange the first two axes.",
            ),
            Misconception(
                "not exchanged",
                lambda x, n_heads: x.reshape(len(x), n_heads, -1),
                "The cut is right, but the heads come second. Exchange the first two axes, so that each head is a "
                "matrix of its own.",
            ),
            Misconception(
                "interleaved",
                lambda x, n_heads: x.reshape(len(x), -1, n_heads).transpose(2, 0, 1),
                "Your head takes every n_heads-th number of a row. Heads are consecutive pieces: the first d_head "
                "numbers are the first head.",
            ),
            Misconception(
                "pieces of n_heads",
                lambda x, n_heads: x.reshape(len(x), -1, n_heads).swapaxes(0, 1),
                "You cut each row into pieces of n_heads numbers. Cut it into n_heads pieces.",
            ),
            Misconception(
                "copied",
                lambda x, n_heads: np.stack([x] * n_heads),
                "Every head got the whole row. The heads share it out: d_head = d_model / n_heads numbers each.",
            ),
            Misconception(
                "transposed",
                lambda x, n_heads: x.reshape(len(x), n_heads, -1).transpose(1, 2, 0),
                "Within a head a token is a row: (n, d_head). Yours is (d_head, n).",
            ),
        ],
    ),
    Exercise(
        id="07.2",
        title="Concatenation is a sum",
        reference=_sum,
        cases=lambda rng: [
            (rng.normal(size=(3, 5, 4)), rng.normal(size=(12, 7))),
            (rng.normal(size=(2, 4, 3)), rng.normal(size=(6, 5))),
        ],
        hints=(
            "Head h meets rows h * d_head to (h + 1) * d_head of W_O.",
            "np.split(W_O, n_heads) cuts it into these parts.",
            "sum(head @ part for head, part in zip(heads, np.split(W_O, len(heads)))).",
        ),
        misconceptions=[
            Misconception(
                "mean",
                lambda heads, W_O: _sum(heads, W_O) / len(heads),
                "You took the mean over heads. Concatenation and W_O add them up.",
            ),
            Misconception(
                "summed first",
                lambda heads, W_O: heads.sum(axis=0) @ W_O[: heads.shape[2]],
                "All your heads meet the first part of W_O, so none can have a sign of its own. Each head has its own "
                "part.",
            ),
            Misconception(
                "reversed",
                lambda heads, W_O: _sum(heads[::-1], W_O),
                "Your heads meet the parts of W_O in reverse order. The first head meets the first d_head rows.",
            ),
            Misconception(
                "every other row",
                lambda heads, W_O: sum(head @ W_O[h :: len(heads)] for h, head in enumerate(heads)),
                "You gave each head every n_heads-th row of W_O. Its rows are consecutive: the first d_head belong to "
                "the first head.",
            ),
            Misconception(
                "reshaped",
                lambda heads, W_O: heads.reshape(heads.shape[1], -1) @ W_O,
                "Reshaping (n_heads, n, d_head) to (n, …) mixes the rows. Exchange heads and positions first, or add "
                "up head @ part.",
            ),
        ],
    ),
    Exercise(
        id="07.3",
        title="Three averages, one answer",
        reference=_bend,
        adapt=lambda W_O: np.asarray(W_O, dtype=float),
        cases=lambda rng: [(4,), (2,)],
        hints=(
            "The heads stand side by side: a row of 3 d numbers meets a matrix of 3 d rows.",
            "Each head has a d × d part of W_O. A head that should come through three times as large has 3 I.",
            "np.concatenate([-2 * np.eye(d), np.eye(d), np.eye(d)]).",
        ),
        misconceptions=[
            Misconception(
                "side by side",
                lambda d: _bend(d).T,
                "Your parts stand side by side, (d, 3 d). A row of 3 d numbers stands on the left of W_O, so "
                "the parts stand one below the other: (3 d, d).",
            ),
            Misconception(
                "own report last",
                lambda d: np.concatenate([np.eye(d), np.eye(d), -2 * np.eye(d)]),
                "The parts are right, but in the wrong order. The first head is the station's own report.",
            ),
            Misconception(
                "own report second",
                lambda d: np.concatenate([np.eye(d), -2 * np.eye(d), np.eye(d)]),
                "The parts are right, but in the wrong order. The first head is the station's own report, the second "
                "the left neighbour's.",
            ),
            Misconception(
                "signs",
                lambda d: -_bend(d),
                "All signs are the other way round: the station's own report comes with -2.",
            ),
            Misconception(
                "once",
                lambda d: np.concatenate([-np.eye(d), np.eye(d), np.eye(d)]),
                "The station's own report should count twice.",
            ),
            Misconception(
                "mean",
                lambda d: _bend(d) / 3,
                "You took a mean of the heads. Concatenation and W_O add them up.",
            ),
            Misconception(
                "ones",
                lambda d: np.repeat([-2.0, 1.0, 1.0], d)[:, None] * np.ones((1, d)),
                "A part full of ones adds all numbers of a report. To let each through by itself, take the identity.",
            ),
            Misconception(
                "slope",
                lambda d: np.concatenate([np.zeros((d, d)), np.eye(d), -np.eye(d)]),
                "That is left minus right, as in the lesson. Here it is left + right − 2 × own.",
            ),
            Misconception(
                "interleaved",
                lambda d: np.kron(np.eye(d), [[-2.0], [1.0], [1.0]]),
                "You took turns: own, left, right, own, left, right. The heads are consecutive pieces, all of the "
                "first head's numbers first.",
            ),
            Misconception(
                "all added",
                lambda d: np.concatenate([2 * np.eye(d), np.eye(d), np.eye(d)]),
                "The station's own report has the wrong sign: it is subtracted, twice.",
            ),
        ],
    ),
    Exercise(
        id="07.4",
        title="The wall of one head",
        reference=_smallest_error,
        adapt=lambda error: float(error) if isinstance(error, int) else error,
        tolerance=(1e-4, 1e-4),  # as near as a search for w in steps of 0.01 comes
        cases=lambda rng: [(float(a),) for a in (0.9, 0.7, 0.2, 1.0)],
        hints=(
            "With x and z for the two reports, the answer is w (a x + (1 - a) z), and x - z is wanted.",
            "The error is (1 - a w)² + (1 + (1 - a) w)². Differentiate with respect to w.",
            "With b = 1 - a: w = (a - b) / (a² + b²), and the error there is 2 - (a - b)² / (a² + b²).",
        ),
        misconceptions=[
            Misconception(
                "w is one",
                lambda a: _error(a, 1.0),
                "This is the error at w = 1. Choose w: set the derivative with respect to w to zero.",
            ),
            Misconception(
                "the bound",
                lambda a: 1.0,
                "1 is the bound over all weights. Here the error is larger, unless a is 0 or 1: only a head with all "
                "its weight on one neighbour reaches 1.",
            ),
            Misconception(
                "the best w",
                lambda a: (2 * a - 1) / (a**2 + (1 - a) ** 2),
                "This is the best w. Put it into the error.",
            ),
            Misconception(
                "halved",
                lambda a: _smallest_error(a) / 2,
                "You halved the error. There is one number to get right, and its error has two parts that add up.",
            ),
            Misconception(
                "not divided",
                lambda a: 2 - (2 * a - 1) ** 2,
                "Divide by a² + b²: the best w is (a - b) / (a² + b²).",
            ),
            Misconception(
                "wrong sign",
                lambda a: 2 - 1 / (a**2 + (1 - a) ** 2),
                "This is for the sum of the neighbours, where a + (1 - a) = 1. For the difference one sign is minus: "
                "a - (1 - a). (If yours is (a - b)² / (a² + b²): the best w lowers the error by that. Subtract it "
                "from 2.)",
            ),
            Misconception(
                "never answers",
                lambda a: 2.0,
                "2 is the error of w = 0. A head that leans to one side can do better.",
            ),
        ],
    ),
    Exercise(
        id="07.5",
        title="A whole layer",
        reference=_layer,
        cases=lambda rng: [
            (rng.normal(size=(n, d)), *(rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(4)), h)
            for n, d, h in ((5, 12, 3), (6, 8, 4))
        ],
        hints=(
            "Project, split, attend, merge, project: five steps.",
            "attention takes (n_heads, n, d_head), and its scale is then that of a single head.",
            "q, k, v = (split(X @ W) for W in …); attention(q, k, v).out back to (n, d_model); @ W_O.",
        ),
        misconceptions=[
            Misconception(
                "one head",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: attention(X @ W_Q, X @ W_K, X @ W_V).out @ W_O,
                "This is one wide head. Split queries, keys and values first.",
            ),
            Misconception(
                "scale of d_model",
                _at_d_model,
                "Your scores are divided by the root of d_model. The vectors that meet have d_head numbers.",
            ),
            Misconception(
                "not scaled",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: (
                    merge_heads(attention(*(split_heads(X @ W, n_heads) for W in (W_Q, W_K, W_V)), score=dot).out)
                    @ W_O
                ),
                "The scores are not divided by the root of d_head.",
            ),
            Misconception(
                "without W_O",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q, W_K, W_V, np.eye(len(W_O)), n_heads),
                "The heads are joined but not mixed: the last product with W_O is missing.",
            ),
            Misconception(
                "W_O transposed",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q, W_K, W_V, W_O.T, n_heads),
                "W_O is transposed, and the others are not. Here it is heads @ W_O.",
            ),
            Misconception(
                "residual added",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: X + _layer(X, W_Q, W_K, W_V, W_O, n_heads),
                "You added X, as a whole block does (lesson 10). Only the attention layer is asked for.",
            ),
            Misconception(
                "reshaped at once",
                _straight,
                "A reshape to (n_heads, n, d_head) mixes the rows. Cut the last axis, then exchange the axes.",
            ),
            Misconception(
                "merged at once",
                _not_merged,
                "The heads are joined by a reshape alone, which mixes rows. Exchange heads and positions back first.",
            ),
            Misconception(
                "scaled twice",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(
                    X, W_Q / np.sqrt(len(W_Q) // n_heads), W_K, W_V, W_O, n_heads
                ),
                "The scores are divided by d_head, or by its root twice. attention divides by the root itself.",
            ),
            Misconception(
                "swapped",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_K, W_Q, W_V, W_O, n_heads),
                "Queries and keys have changed places: by their matrices, in K Qᵀ, or by a softmax down the columns. "
                "W_Q makes the queries, and each has a row of Q Kᵀ.",
            ),
            Misconception(
                "keys from W_Q",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q, W_Q, W_V, W_O, n_heads),
                "The keys are made with W_Q, like the queries. They come from W_K.",
            ),
            Misconception(
                "keys as values",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q, W_K, W_K, W_O, n_heads),
                "You averaged the keys. Average the values, X @ W_V.",
            ),
            Misconception(
                "matrices transposed",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q.T, W_K.T, W_V.T, W_O, n_heads),
                "You transposed the projections, as torch's Linear stores them. Here it is X @ W.",
            ),
            Misconception(
                "all transposed",
                lambda X, W_Q, W_K, W_V, W_O, n_heads: _layer(X, W_Q.T, W_K.T, W_V.T, W_O.T, n_heads),
                "You transposed all four matrices, as torch's Linear stores them. Here it is X @ W.",
            ),
            Misconception(
                "pieces of X",
                _grouped,
                "Each of your heads reads its own piece of the rows of X, as in a grouped linear layer. A head reads "
                "whole rows: project first, X @ W_Q, and cut what comes out.",
            ),
            Misconception(
                "interleaved",
                _interleaved,
                "Your heads take every n_heads-th column. A head is a consecutive piece of d_head columns.",
            ),
        ],
    ),
]
