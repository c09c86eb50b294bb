"""Exercises of lesson 03: scores, their size, and what the softmax does with them."""

from __future__ import annotations

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import additive, dot, scaled_dot


def _jacobian(s):
    alpha = masked_softmax(s)
    return np.diag(alpha) - np.outer(alpha, alpha)


def _overflowing(s):
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = np.exp(s) / np.exp(s).sum()
        return np.diag(alpha) - np.outer(alpha, alpha)


def _entropy(A):
    return -np.sum(A * np.log(np.where(A > 0, A, 1)), axis=-1)


def _without_care(A):
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.sum(A * np.log(A), axis=-1)


def _own_score():
    q = np.random.default_rng(0).normal(size=(100_000, 64))
    return np.mean((q * q).sum(axis=1) / np.sqrt(64))


def _scores(rng, n, far=0.0):
    return (rng.normal(size=n) + far,)


def _root(d, a, b):
    return np.sqrt(d) * a * b


def _matrices(rng):
    # no two of 6, 8, 10, each with or without one less, have the same root, and none the root 2
    return rng.normal(size=(6, 10)), rng.normal(size=(8, 10))


def _additive(q, k, w_q, w_k, w):
    hidden = np.tanh((q @ w_q)[:, None] + k @ w_k)
    return hidden @ w


def _for_additive(rng):
    return (
        rng.normal(size=(4, 3)),
        rng.normal(size=(5, 2)),
        rng.normal(size=(3, 6)),
        rng.normal(size=(2, 6)),
        rng.normal(size=6),
    )


def _weights_with_zeros(rng):
    mask = rng.uniform(size=(5, 6)) < 0.6
    mask[:, 0] = True
    return masked_softmax(2 * rng.normal(size=(5, 6)), mask)


def _hidden(Q, K, w_q, w_k):
    return (Q @ w_q)[:, None, :] + (K @ w_k)[None, :, :]


EXERCISES = [
    Exercise(
        id="03.1",
        title="Scaled scores",
        reference=scaled_dot,
        solution=lambda q, k: q @ k.T / np.sqrt(q.shape[-1]),
        cases=lambda rng: [_matrices(rng) for _ in range(3)],
        hints=(
            "One number for each query and key: the answer has shape (m, n).",
            "A sum over the last axis of both is a product with a transpose, Q @ K.T.",
            "Q @ K.T / np.sqrt(Q.shape[1]).",
        ),
        misconceptions=[
            Misconception(
                "not scaled",
                dot,
                "These are the bare dot products. Divide by √d, the root of the number of columns, or their "
                "variance grows with d.",
            ),
            Misconception(
                "divided by d",
                lambda Q, K: dot(Q, K) / Q.shape[1],
                "You divided by d. The standard deviation of the dot product is √d: dividing by √d brings it to one.",
            ),
            Misconception(
                "the lesson's four",
                lambda Q, K: dot(Q, K) / np.sqrt(4),
                "You divided by 2, the root of d = 4 in the lesson's small example. Here d is different: Q.shape[1].",
            ),
            Misconception(
                "transposed",
                lambda Q, K: scaled_dot(K, Q),
                "Your matrix is transposed: a row for each key. It should have a row for each query, Q @ K.T.",
            ),
            Misconception(
                "number of keys",
                lambda Q, K: dot(Q, K) / np.sqrt(len(K)),
                "You divided by the root of the number of keys. The variance of a dot product is its number of "
                "terms, the dimension: Q.shape[1].",
            ),
            Misconception(
                "number of queries",
                lambda Q, K: dot(Q, K) / np.sqrt(len(Q)),
                "You divided by the root of the number of queries. Take the root of d, the number of columns: "
                "Q.shape[1].",
            ),
            Misconception(
                "softmax",
                lambda Q, K: masked_softmax(scaled_dot(Q, K)),
                "These are the weights. The scores come before the softmax.",
            ),
            Misconception(
                "exponentials",
                lambda Q, K: np.exp(scaled_dot(Q, K)),
                "You took the exponentials of the scores. The softmax does that; the scores come before it.",
            ),
            Misconception(
                "cosine",
                lambda Q, K: dot(Q, K) / np.linalg.norm(Q, axis=1)[:, None] / np.linalg.norm(K, axis=1)[None, :],
                "You divided by the lengths of the vectors, which gives cosines. They never exceed one, so among "
                "many keys the softmax can never be sharp. Divide by √d only.",
            ),
        ],
    ),
    Exercise(
        id="03.2",
        title="The additive score",
        reference=additive,
        solution=_additive,
        cases=lambda rng: [_for_additive(rng) for _ in range(3)],
        hints=(
            "Every pair of query and key has its own hidden layer: an array of shape (m, n, hidden).",
            "(Q @ w_q)[:, None, :] + (K @ w_k)[None, :, :] is that layer before the tanh.",
            "np.tanh(the layer of hint 2) @ w.",
        ),
        misconceptions=[
            Misconception(
                "no tanh",
                lambda Q, K, w_q, w_k, w: _hidden(Q, K, w_q, w_k) @ w,
                "Without the tanh the score is a sum of one part from the query and one from the key. The "
                "query's part cancels in the softmax, and all queries get the same weights.",
            ),
            Misconception(
                "tanh last",
                lambda Q, K, w_q, w_k, w: np.tanh(_hidden(Q, K, w_q, w_k) @ w),
                "You took tanh of the score. It belongs to the hidden layer: first tanh, then the product with w.",
            ),
            Misconception(
                "tanh apart",
                lambda Q, K, w_q, w_k, w: (np.tanh(Q @ w_q)[:, None, :] + np.tanh(K @ w_k)[None, :, :]) @ w,
                "You took tanh of the query's and the key's part before adding them, so they never meet inside "
                "it. Add first.",
            ),
            Misconception(
                "no w",
                lambda Q, K, w_q, w_k, w: np.tanh(_hidden(Q, K, w_q, w_k)).sum(axis=-1),
                "You added the hidden units up. They are weighted with w first: tanh(…) @ w.",
            ),
            Misconception(
                "product",
                lambda Q, K, w_q, w_k, w: np.tanh((Q @ w_q)[:, None, :] * (K @ w_k)[None, :, :]) @ w,
                "You multiplied the two parts. The additive score adds them.",
            ),
        ],
    ),
    Exercise(
        id="03.3",
        title="The Jacobian of the softmax",
        reference=_jacobian,
        cases=lambda rng: [*(_scores(rng, n) for n in (3, 5, 6)), _scores(rng, 4, far=800.0)],
        hints=(
            "First the weights alpha. The answer is a square matrix that needs nothing else.",
            "On the diagonal alpha_i (1 - alpha_i), elsewhere -alpha_i alpha_j.",
            "np.diag(alpha) - np.outer(alpha, alpha). Before the exponential, subtract the largest score.",
        ),
        misconceptions=[
            Misconception(
                "a number subtracted",
                lambda s: np.diag(masked_softmax(s)) - masked_softmax(s) @ masked_softmax(s),
                "You subtracted one number, the sum of the squares: for arrays with one axis, alpha.T @ alpha is an "
                "inner product. The matrix of all products alpha_i alpha_j is np.outer(alpha, alpha).",
            ),
            Misconception(
                "entry by entry",
                lambda s: np.diag(masked_softmax(s)) - masked_softmax(s) ** 2,
                "You multiplied alpha by itself entry by entry and subtracted that from every row. All products "
                "alpha_i alpha_j are wanted, a matrix: np.outer(alpha, alpha).",
            ),
            Misconception(
                "identity",
                lambda s: np.eye(len(s)) - np.outer(masked_softmax(s), masked_softmax(s)),
                "Your diagonal is 1 - alpha_i². It should be alpha_i - alpha_i²: np.diag(alpha) for np.eye.",
            ),
            Misconception(
                "overflow",
                _overflowing,
                "Right for small scores. At scores around 800 the exponential is infinite, and infinity over infinity "
                "is NaN. Subtract the largest score first; it cancels in the fraction.",
            ),
            Misconception(
                "diagonal only",
                lambda s: np.diag(masked_softmax(s) * (1 - masked_softmax(s))),
                "Your matrix is diagonal, as if the weights were independent sigmoids. Raising one score lowers "
                "every other weight: the entries off the diagonal are -alpha_i alpha_j.",
            ),
            Misconception(
                "sign",
                lambda s: -_jacobian(s),
                "The signs are reversed. Raising a score raises its own weight, so the diagonal is positive.",
            ),
            Misconception(
                "plus",
                lambda s: np.diag(masked_softmax(s)) + np.outer(masked_softmax(s), masked_softmax(s)),
                "You added the outer product. Raising one score lowers the other weights, so off the diagonal the "
                "entries are negative: subtract it.",
            ),
            Misconception(
                "no outer product",
                lambda s: np.diag(masked_softmax(s)),
                "That is diag(alpha), the derivative with the denominator held fixed. It moves too: subtract "
                "np.outer(alpha, alpha).",
            ),
            Misconception(
                "outer product only",
                lambda s: -np.outer(masked_softmax(s), masked_softmax(s)),
                "Off the diagonal that is right. Raising a score raises its own weight: add np.diag(alpha).",
            ),
            Misconception(
                "diagonal twice",
                lambda s: _jacobian(s) - np.diag(masked_softmax(s) ** 2),
                "On the diagonal you subtract alpha_i² twice: np.outer(alpha, alpha) has it too. Begin with "
                "np.diag(alpha).",
            ),
            Misconception(
                "no softmax",
                lambda s: np.diag(s) - np.outer(s, s),
                "You put the scores where the weights belong. First alpha, the softmax of s.",
            ),
            Misconception(
                "of the logarithm",
                lambda s: np.eye(len(s)) - masked_softmax(s),
                "That is the derivative of log alpha. Each row i has to be multiplied by alpha_i.",
            ),
        ],
    ),
    Exercise(
        id="03.4",
        title="Entropy of the weights",
        reference=_entropy,
        cases=lambda rng: [(_weights_with_zeros(rng),) for _ in range(3)],
        hints=(
            "Minus the sum over each row of weight times logarithm of weight. What is 0 log 0?",
            "x log x goes to 0 as x goes to 0, so zero weights contribute nothing. np.log(0) does not know that.",
            "-np.sum(A * np.log(np.where(A > 0, A, 1)), axis=-1).",
        ),
        misconceptions=[
            Misconception(
                "bits",
                lambda A: _entropy(A) / np.log(2),
                "You used the logarithm to base 2, which counts in bits. Nats are asked for: np.log.",
            ),
            Misconception(
                "base 10",
                lambda A: _entropy(A) / np.log(10),
                "You used the logarithm to base 10. Nats are asked for: np.log.",
            ),
            Misconception(
                "sign",
                lambda A: -_entropy(A),
                "The logarithm of a weight is negative, so without the minus sign the entropy is too.",
            ),
            Misconception(
                "all rows",
                lambda A: np.sum(_entropy(A)),
                "You summed over the whole matrix. Each row is a distribution of its own: axis=-1.",
            ),
            Misconception(
                "mean entropy",
                lambda A: np.mean(_entropy(A)),
                "That is one number, the mean entropy of the rows. One for each row was asked for.",
            ),
            Misconception(
                "columns",
                lambda A: -np.sum(A * np.log(np.where(A > 0, A, 1)), axis=0),
                "You summed down the columns. One row is one query's distribution: axis=-1.",
            ),
            Misconception(
                "number of keys",
                lambda A: np.exp(_entropy(A)),
                "That is the exponential of the entropy, the number of keys that share the weight. The entropy "
                "itself was asked for.",
            ),
            Misconception(
                "mean of logarithms",
                lambda A: -np.mean(A * np.log(np.where(A > 0, A, 1)), axis=-1),
                "You took the mean over the keys. Entropy is the sum: the weights already do the averaging.",
            ),
            Misconception(
                "zero times infinity",
                _without_care,
                "Right where all weights are positive. np.log(0) is minus infinity, and 0 times that is NaN; a weight "
                "of zero contributes nothing, so give the logarithm a 1 there.",
            ),
        ],
    ),
    Exercise(
        id="03.5",
        title="A query that is its own key",
        reference=_own_score,
        tolerance=(0.02, 0.1),  # who measures it draws a sample
        hints=(
            "Draw many vectors of 64 numbers and compute the score of each with itself.",
            "Each of the 64 terms is a square, and the mean of a square is the variance, 1. Nothing cancels.",
            "The dot product is 64 on average. Divide it by √64.",
        ),
        misconceptions=[
            Misconception(
                "zero",
                lambda: 0.0,
                "About 0 is the mean for a key that is independent of the query. Here every term is a square, "
                "and squares do not cancel.",
            ),
            Misconception(
                "one",
                lambda: 1.0,
                "About 1 is the variance of scaled scores of independent vectors, or the mean if you divide by 64. "
                "A query and itself are as dependent as can be: add 64 squares, and divide by √64.",
            ),
            Misconception(
                "not divided",
                lambda: 64.0,
                "About 64 is q · q before it is divided by √64.",
            ),
        ],
    ),
    Exercise(
        id="03.6",
        title="Entries that are not of variance one",
        reference=_root,
        cases=lambda rng: [(int(d), *rng.uniform(0.3, 3, size=2)) for d in (5, 16, 70)],
        hints=(
            "What is the variance of one product q_c k_c, if the two are independent with mean zero?",
            "It is a² b². Variances of independent terms add.",
            "The variance is d a² b², and its root is asked for.",
        ),
        misconceptions=[
            Misconception(
                "only d",
                lambda d, a, b: np.sqrt(d),
                "That is right when a = b = 1. A query twice as long makes every score twice as large: a and b "
                "come in as factors.",
            ),
            Misconception(
                "without b",
                lambda d, a, b: np.sqrt(d) * a,
                "The keys are missing. Keys twice as long make every score twice as large: b is a factor too.",
            ),
            Misconception(
                "without a",
                lambda d, a, b: np.sqrt(d) * b,
                "The queries are missing. A query twice as long makes every score twice as large: a is a factor too.",
            ),
            Misconception(
                "a and b turned round",
                lambda d, a, b: np.sqrt(d) / (a * b),
                "You divided by a and b. Longer vectors have larger dot products, which need a larger divisor: "
                "multiply a and b.",
            ),
            Misconception(
                "variance",
                lambda d, a, b: d * a**2 * b**2,
                "That is the variance. Divide by the standard deviation, its root.",
            ),
            Misconception(
                "variances of entries added",
                lambda d, a, b: np.sqrt(d * (a**2 + b**2)),
                "You added the variances of the two factors, which is right for a sum q + k. For a product of "
                "independent numbers with mean zero they multiply.",
            ),
            Misconception(
                "root of everything",
                lambda d, a, b: np.sqrt(d * a * b),
                "You took the root of d a b. The variance is d a² b², so a and b come out of the root whole.",
            ),
            Misconception(
                "one product",
                lambda d, a, b: a * b,
                "That is the standard deviation of one product. The dot product adds d of them, and variances add.",
            ),
            Misconception(
                "reciprocal",
                lambda d, a, b: 1 / (np.sqrt(d) * a * b),
                "That is what the dot products are multiplied by. The question asks what they are divided by.",
            ),
            Misconception(
                "no root of d",
                lambda d, a, b: d * a * b,
                "The standard deviation of a sum of d independent terms grows with √d, not with d.",
            ),
            Misconception(
                "root of d only",
                lambda d, a, b: np.sqrt(d) * a**2 * b**2,
                "You took the root of d and left a² b² as they are. The root is taken of the whole variance, d a² b².",
            ),
            Misconception(
                "sum",
                lambda d, a, b: np.sqrt(d) * (a + b),
                "You added a and b. A query twice as long makes every score twice as large, so a and b are factors.",
            ),
        ],
    ),
]
