"""Exercises of lesson 06: a sentence that attends to itself."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import dot, scaled_dot


def _row(X, W_Q, W_K, W_V, i):
    return attention(X[i : i + 1] @ W_Q, X @ W_K, X @ W_V).out[0]


def _one_hot(ids, E):
    return np.eye(len(E))[ids]


def _between(W_Q, W_K):
    return W_Q @ W_K.T / np.sqrt(W_Q.shape[1])


def _columns(X_c, W_Qc, W_Kc, W_Vc):
    return attention((W_Qc @ X_c).T, (W_Kc @ X_c).T, (W_Vc @ X_c).T).out.T


def _rank():
    return min(10, 6, 3)


def _sentence(rng, n, d_model, d_k, d_v):
    return rng.normal(size=(n, d_model)), *(rng.normal(size=(d_model, d)) for d in (d_k, d_k, d_v))


def _transposed(rng):
    return tuple(x.T for x in _sentence(rng, 6, 5, 3, 2))


EXERCISES = [
    Exercise(
        id="06.1",
        title="One row of self-attention",
        reference=_row,
        cases=lambda rng: [(*_sentence(rng, 6, 5, 3, 2), i) for i in (0, 2, 5)],
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
                "You divided by d_k, the size of a query. Take its root.",
            ),
            Misconception(
                "keys from W_Q",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_Q, X @ W_V).out[0],
                "The keys are made with W_Q, like the query. They come from W_K.",
            ),
            Misconception(
                "bare values",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_Q, X @ W_K, X).out[0],
                "You averaged the rows of X. What is averaged are the values, X @ W_V.",
            ),
            Misconception(
                "swapped",
                lambda X, W_Q, W_K, W_V, i: attention(X[i : i + 1] @ W_K, X @ W_Q, X @ W_V).out[0],
                "Query and key are swapped: token i gave its key, and all tokens their queries. Token i asks, so it "
                "is X[i] @ W_Q that meets every row of X @ W_K.",
            ),
            Misconception(
                "all rows",
                lambda X, W_Q, W_K, W_V, i: attention(X @ W_Q, X @ W_K, X @ W_V).out,
                "You computed every row. Only that of token i is asked for.",
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
                "Your softmax ran over the queries. It runs over the keys, so that the weights of token i sum to one.",
            ),
        ],
    ),
    Exercise(
        id="06.2",
        title="The lookup as a product",
        reference=_one_hot,
        adapt=lambda one_hot: np.asarray(one_hot, dtype=float),
        cases=lambda rng: [(rng.permutation(6)[:4], rng.normal(size=(6, 3))), ([4, 1, 4], rng.normal(size=(5, 2)))],
        hints=(
            "One row for each token, one column for each word of the table.",
            "The row of token i has a 1 in column ids[i] and zeros elsewhere.",
            "np.eye(len(E))[ids].",
        ),
        misconceptions=[
            Misconception(
                "transposed",
                lambda ids, E: np.eye(len(E))[ids].T,
                "Your matrix has a column for each token. O @ E needs a row for each.",
            ),
            Misconception(
                "the embedding",
                lambda ids, E: np.asarray(E)[ids],
                "This is the embedding itself, E[ids]. The matrix that makes it by a product is asked for.",
            ),
            Misconception(
                "one off",
                lambda ids, E: np.eye(len(E))[np.asarray(ids) - 1],
                "Each 1 stands one column too far to the left. Row numbers begin at 0.",
            ),
            Misconception(
                "size of a row",
                lambda ids, E: np.eye(max(E.shape))[:, : E.shape[1]][ids],
                "You gave each row as many columns as E has features. It needs one for each word: len(E).",
            ),
            Misconception(
                "a bag",
                lambda ids, E: np.eye(len(E))[ids].sum(axis=0),
                "You added the rows up. That counts words and forgets their order; keep one row for each token.",
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
                "This is Mᵀ: it scores token j's question to token i where i's to j is meant. The queries' matrix "
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
                "You divided by d_k. The scale is its square root.",
            ),
            Misconception(
                "one matrix",
                lambda W_Q, W_K: W_Q @ W_Q.T / np.sqrt(W_Q.shape[1]),
                "W_K is not in it. With one matrix for both the scores would be symmetric.",
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
                "Your softmax runs along the rows of KᵀQ. There a column belongs to a query, so the columns "
                "must sum to one: axis 0.",
            ),
            Misconception(
                "queries first",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    W_Vc @ X_c @ masked_softmax((W_Qc @ X_c).T @ (W_Kc @ X_c) / np.sqrt(len(W_Qc)))
                ),
                "The weights QᵀK have a row for each query, and V_c @ A adds over rows: over queries. Transpose "
                "the weights, or begin with K_c.T @ Q_c.",
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
                "You divided by the root of the number of rows of X_c, d_model. It is the rows of Q_c that count.",
            ),
            Misconception(
                "not scaled",
                lambda X_c, W_Qc, W_Kc, W_Vc: (
                    attention((W_Qc @ X_c).T, (W_Kc @ X_c).T, (W_Vc @ X_c).T, score=dot).out.T
                ),
                "The scores are not divided by the root of the size of a query.",
            ),
        ],
    ),
    Exercise(
        id="06.5",
        title="The rank of the scores",
        reference=_rank,
        hints=(
            "Q is 10 × 3. What is its largest rank?",
            "The rank of a product is at most the smallest rank of its factors.",
            "QKᵀ is (10 × 3)(3 × 10).",
        ),
        misconceptions=[
            Misconception(
                "the words",
                lambda: 10,
                "10 is the size of the matrix. It is a product of a 10 × 3 and a 3 × 10 matrix, and no product has a "
                "larger rank than its factors.",
            ),
            Misconception(
                "the features",
                lambda: 6,
                "6 is what X allows. The queries have 3 numbers each, and all scores are made from them.",
            ),
            Misconception(
                "squared",
                lambda: 3 * 3,
                "Ranks do not multiply. The smaller of the two bounds the product, and both are 3.",
            ),
        ],
    ),
]
