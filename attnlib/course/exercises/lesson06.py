"""Exercises of lesson 06: a sentence that attends to itself."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import dot, scaled_dot


def _row(X, W_Q, W_K, W_V, i):
    return attention(X[i : i + 1] @ W_Q, X @ W_K, X @ W_V).out[0]


def _agreement(strength):
    size = np.sqrt(strength * np.sqrt(2))
    W_Q = size * np.array([[0, 0], [0, 0], [1, 0], [0, 1]])
    W_K = size * np.array([[1, 0], [0, 1], [0, 0], [0, 0]])
    return W_Q, W_K


_FEATURES = ("a singular noun", "a plural noun", "a singular verb", "a plural verb")


def _same_scores(expected, got):
    """What counts of two matrices is the scaled score of each pair of features."""
    if getattr(got, "ndim", 0) == 3:
        got = tuple(got)  # two matrices in one array
    if not isinstance(got, tuple | list) or len(got) != 2:
        return "Return two matrices, W_Q and W_K."
    W_Q, W_K = (np.asarray(matrix, dtype=float) for matrix in got)
    for name, matrix in (("W_Q", W_Q), ("W_K", W_K)):
        if matrix.ndim != 2 or len(matrix) != 4:
            return f"{name} has the shape {matrix.shape}. It needs a row for each of the four features: (4, d_k)."
    if W_Q.shape[1] != W_K.shape[1]:
        return (
            f"Your queries have {W_Q.shape[1]} numbers and your keys {W_K.shape[1]}. "
            "They meet in a dot product, so give both the same number of columns."
        )
    wanted, came = _between(*expected), _between(W_Q, W_K)
    wrong = ~np.isclose(came, wanted, rtol=1e-5, atol=1e-6)
    if not wrong.any():
        return True
    i, j = np.argwhere(wrong)[0]
    return (
        f"{_FEATURES[i].capitalize()} that asks {_FEATURES[j]} has the score {came[i, j]:.7g}, not {wanted[i, j]:.7g}."
    )


def _between(W_Q, W_K):
    return W_Q @ W_K.T / np.sqrt(W_Q.shape[1])


def _columns(X_c, W_Qc, W_Kc, W_Vc):
    return attention((W_Qc @ X_c).T, (W_Kc @ X_c).T, (W_Vc @ X_c).T).out.T


def _sentence(rng, n, d_model, d_k, d_v):
    return rng.normal(size=(n, d_model)), *(rng.normal(size=(d_model, d)) for d in (d_k, d_k, d_v))


def _transposed(rng):
    return tuple(x.T for x in _sentence(rng, 6, 5, 3, 2))


EXERCISES = [
    Exercise(
        id="06.1",
        title="One row of self-attention",
        reference=_row,
        cases=lambda rng: [(*_sentence(rng, 6, 5, 3, 7), i) for i in (0, 2, 5)],
        hints=(
            "One query, all keys, all values: only the query has an index.",
            "q = X[i] @ W_Q; K = X @ W_K; V = X @ W_V. The scores are K @ q / √d_k, one for each token.",
            "w = np.exp(K @ q / np.sqrt(len(q))); return w / w.sum() @ V.",
        ),
        misconceptions=[
            Misconception(
                "not scaled",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_K, X @ W_V, score=dot).out[0],
                "The scores are not divided by √d_k, the root of the size of a query.",
            ),
            Misconception(
                "scaled by d_model",
                lambda X, W_Q, W_K, W_V, i: masked_softmax(X @ W_K @ (X[i] @ W_Q) / np.sqrt(X.shape[1])) @ X @ W_V,
                "You divided by the root of d_model, the size of a row of X. The vectors that meet in the dot product "
                "are q and k: take the root of their size.",
            ),
            Misconception(
                "divided by d_k",
                lambda X, W_Q, W_K, W_V, i: masked_softmax(X @ W_K @ (X[i] @ W_Q) / W_Q.shape[1]) @ X @ W_V,
                "Your scores are divided by d_k, the size of a query. Divide by its root, once (attention does it for "
                "you).",
            ),
            Misconception(
                "keys from W_Q",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_Q, X @ W_V).out[0],
                "The keys are made with W_Q, like the query. They come from W_K.",
            ),
            Misconception(
                "bare values",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_K, X).out[0],
                "You averaged the rows of X. Average the values, X @ W_V.",
            ),
            Misconception(
                "swapped",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_K, X @ W_Q, X @ W_V).out[0],
                "Token i gave its key, and all tokens their queries. Token i asks, so it "
                "is X[i] @ W_Q that meets every row of X @ W_K.",
            ),
            Misconception(
                "all rows",
                lambda X, W_Q, W_K, W_V, i: attention(X @ W_Q, X @ W_K, X @ W_V).out,
                "You computed every row. Only the row of token i is asked for.",
            ),
            Misconception(
                "weights",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_K, X @ W_V).weights[0],
                "These are the weights. The output is their product with the values.",
            ),
            Misconception(
                "no softmax",
                lambda X, W_Q, W_K, W_V, i: scaled_dot(X[i : i + 1] @ W_Q, X @ W_K)[0] @ (X @ W_V),
                "You used the scores as weights. They need the softmax first, to be positive and to sum to one.",
            ),
            Misconception(
                "columns",
                lambda X, W_Q, W_K, W_V, i: masked_softmax(scaled_dot(X @ W_Q, X @ W_K).T).T[i] @ (X @ W_V),
                "Your softmax ran over the queries. It should run over the keys: the weights of token i sum to one.",
            ),
            Misconception(
                "a column of weights",
                lambda X, W_Q, W_K, W_V, i: attention(X @ W_Q, X @ W_K, X @ W_V).weights[:, i] @ (X @ W_V),
                "You took what each token gives to token i. Take what token i gives to each: weights that sum to one.",
            ),
            Misconception(
                "scaled by n",
                lambda X, W_Q, W_K, W_V, i: masked_softmax(X @ W_K @ (X[i] @ W_Q) / np.sqrt(len(X))) @ X @ W_V,
                "You divided by the root of the number of tokens. Take the size of a query, W_Q.shape[1].",
            ),
            Misconception(
                "scaled by d_v",
                lambda X, W_Q, W_K, W_V, i: masked_softmax(X @ W_K @ (X[i] @ W_Q) / np.sqrt(W_V.shape[1])) @ X @ W_V,
                "You divided by the root of the size of a value. In the score a query meets a key: take their size.",
            ),
            Misconception(
                "not divided",
                lambda X, W_Q, W_K, W_V, i: np.exp(scaled_dot(X[i : i + 1] @ W_Q, X @ W_K)[0]) @ (X @ W_V),
                "The exponentials are not divided by their sum, so the weights do not sum to one.",
            ),
            Misconception(
                "before it only",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X[: i + 1] @ W_K, X[: i + 1] @ W_V).out[0],
                "Token i sees only itself and what stands before it. Here it attends to all tokens.",
            ),
        ],
    ),
    Exercise(
        id="06.2",
        title="Each verb finds its subject",
        reference=_agreement,
        compare=_same_scores,
        cases=lambda rng: [(2.0,), (5.0,)],
        hints=(
            "Two numbers are enough for a query: how much it asks for a singular noun, and how much for a plural one. "
            "Two for a key: how much it is one or the other.",
            "Only verbs ask, so only the last two rows of W_Q are not zero. Only nouns answer: the first two of W_K.",
            "W_Q = a [[0, 0], [0, 0], [1, 0], [0, 1]] and W_K = a [[1, 0], [0, 1], [0, 0], [0, 0]]; "
            "then a² / √2 = strength.",
        ),
        misconceptions=[
            Misconception(
                "nouns ask",
                lambda strength: _agreement(strength)[::-1],
                "Your W_Q lets each noun look for its verb. Verbs ask, so W_Q has its numbers in the rows of verbs.",
            ),
            Misconception(
                "not scaled",
                lambda strength: tuple(w / 2**0.25 for w in _agreement(strength)),
                "Each verb finds its subject, but the score is divided by √d_k before it counts: make the product "
                "√d_k times strength.",
            ),
            Misconception(
                "strength twice",
                lambda strength: tuple(w * strength**0.5 for w in _agreement(strength)),
                "Each verb finds its subject, but the score has the square of strength. If strength is in both "
                "matrices, put it into one, or its root into both.",
            ),
            Misconception(
                "no number",
                lambda strength: (
                    strength * np.array([[0.0], [0.0], [1.0], [1.0]]),
                    np.array([[1.0], [1.0], [0.0], [0.0]]),
                ),
                "Each verb asks for any noun. In the sentence with dogs and a cat, both answer. A query needs one "
                "number for singular and one for plural.",
            ),
            Misconception(
                "one column of plus and minus",
                lambda strength: (
                    strength * np.array([[0.0], [0.0], [1.0], [-1.0]]),
                    np.array([[1.0], [-1.0], [0.0], [0.0]]),
                ),
                "The right noun is found, but the wrong one has the score -strength, which should be 0. Take one "
                "number for singular and one for plural, and no minus sign.",
            ),
            Misconception(
                "disagreement",
                lambda strength: (_agreement(strength)[0][:, ::-1], _agreement(strength)[1]),
                "Your singular verbs find plural nouns, and your plural verbs singular ones.",
            ),
            Misconception(
                "verbs find themselves",
                lambda strength: (_agreement(strength)[0], _agreement(strength)[0]),
                "Your verbs find verbs, themselves among them: W_K has its numbers in the rows of verbs. Keys are "
                "what nouns offer.",
            ),
            Misconception(
                "everybody asks",
                lambda strength: (2**0.25 * np.sqrt(strength) * np.tile(np.eye(2), (2, 1)),) * 2,
                "Everybody asks and everybody answers: nouns find nouns, and verbs find verbs. Take the rows "
                "of nouns out of W_Q and those of verbs out of W_K.",
            ),
        ],
    ),
    Exercise(
        id="06.3",
        title="The matrix between two words",
        reference=_between,
        cases=lambda rng: [(rng.normal(size=(5, 3)), rng.normal(size=(5, 3))) for _ in range(3)],
        hints=(
            "Write Q = X W_Q and K = X W_K into Q Kᵀ, and take what stands between X and Xᵀ.",
            "(X W_K)ᵀ is W_Kᵀ Xᵀ. The scale is the root of the number of columns of W_Q.",
            "W_Q @ W_K.T / np.sqrt(W_Q.shape[1]).",
        ),
        misconceptions=[
            Misconception(
                "not scaled",
                lambda W_Q, W_K: W_Q @ W_K.T,
                "The scale is missing: divide by the root of the size of a query, W_Q.shape[1].",
            ),
            Misconception(
                "transposed",
                lambda W_Q, W_K: W_K @ W_Q.T / np.sqrt(W_Q.shape[1]),
                "This is Mᵀ: with it, place (i, j) holds what j asks i, not what i asks j. The queries' matrix "
                "comes first.",
            ),
            Misconception(
                "inner",
                lambda W_Q, W_K: W_Q.T @ W_K / np.sqrt(W_Q.shape[1]),
                "W_Qᵀ W_K is (d_k, d_k) and cannot stand between X and Xᵀ. You need (d_model, d_model): W_Q W_Kᵀ.",
            ),
            Misconception(
                "scaled by d_model",
                lambda W_Q, W_K: W_Q @ W_K.T / np.sqrt(len(W_Q)),
                "You divided by the root of d_model, the number of rows. It is the size of a query that counts: "
                "the number of columns.",
            ),
            Misconception(
                "divided by d_k",
                lambda W_Q, W_K: W_Q @ W_K.T / W_Q.shape[1],
                "Your scores are divided by d_k. Divide by its root, once.",
            ),
            Misconception(
                "one matrix",
                lambda W_Q, W_K: W_Q @ W_Q.T / np.sqrt(W_Q.shape[1]),
                "W_K is missing. With one matrix for both the scores would be symmetric.",
            ),
        ],
    ),
    Exercise(
        id="06.4",
        title="The column convention",
        reference=_columns,
        cases=lambda rng: [_transposed(rng) for _ in range(3)],
        hints=(
            "Queries, keys and values are columns now: Q_c = W_Qc @ X_c, and so on.",
            "K_c.T @ Q_c has a row for each key and a column for each query, so the softmax runs down the columns.",
            "A_c = softmax of K_c.T @ Q_c / √(rows of Q_c), over axis 0. The output is V_c @ A_c.",
        ),
        misconceptions=[
            Misconception(
                "softmax along rows",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    W_Vc @ X_c @ masked_softmax((W_Kc @ X_c).T @ (W_Qc @ X_c) / np.sqrt(len(W_Qc)))
                ),
                "Your softmax runs over the queries. It should run over the keys: axis 0 of K_c.T @ Q_c, axis 1 of "
                "Q_c.T @ K_c.",
            ),
            Misconception(
                "queries first",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    W_Vc @ X_c @ masked_softmax((W_Qc @ X_c).T @ (W_Kc @ X_c) / np.sqrt(len(W_Qc)))
                ),
                "V_c @ A adds over the rows of A, and in yours a row belongs to a query. Transpose it (if you have "
                "transposed it already, do not): each column should sum to one.",
            ),
            Misconception(
                "rows",
                lambda X_c, W_Qc, W_Kc, W_Vc: _columns(X_c, W_Qc, W_Kc, W_Vc).T,
                "The numbers are right, with a token in each row. Return a token in each column.",
            ),
            Misconception(
                "scaled by columns",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    attention((W_Qc @ X_c).T * np.sqrt(len(W_Qc) / X_c.shape[1]), (W_Kc @ X_c).T, (W_Vc @ X_c).T).out.T
                ),
                "You divided by the root of the number of columns, which are the tokens here. The size of a query is "
                "the number of rows of Q_c.",
            ),
            Misconception(
                "scaled by d_model",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    attention((W_Qc @ X_c).T * np.sqrt(len(W_Qc) / len(X_c)), (W_Kc @ X_c).T, (W_Vc @ X_c).T).out.T
                ),
                "You divided by the root of the number of rows of X_c, d_model. Take the number of rows of Q_c.",
            ),
            Misconception(
                "not scaled",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    attention((W_Qc @ X_c).T, (W_Kc @ X_c).T, (W_Vc @ X_c).T, score=dot).out.T
                ),
                "The scores are not divided by the root of the size of a query.",
            ),
            Misconception(
                "swapped",
                lambda X_c, W_Qc, W_Kc, W_Vc: _columns(X_c, W_Kc, W_Qc, W_Vc),
                "Queries and keys are swapped: in the matrices, or because softmax and sum both run over the "
                "queries. In K_c.T @ Q_c a column belongs to a query, and the softmax runs down it.",
            ),
            Misconception(
                "no softmax",
                lambda X_c, W_Qc, W_Kc, W_Vc: W_Vc @ X_c @ ((W_Kc @ X_c).T @ (W_Qc @ X_c)) / np.sqrt(len(W_Qc)),
                "You used the scores as weights. They need the softmax first, down each column.",
            ),
            Misconception(
                "divided by d_k",
                lambda X_c, W_Qc, W_Kc, W_Vc: _columns(X_c, W_Qc / np.sqrt(len(W_Qc)), W_Kc, W_Vc),
                "Your scores are divided by d_k, the number of rows of Q_c. Divide by its root, once (attention does "
                "it for you).",
            ),
        ],
    ),
]
