"""Exercises of lesson 23: a share of the work, a cut, a balance, who works in a ring, a line that is laid anew."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _share(n, d, d_ff):
    return 4 * n**2 * d / (8 * n * d**2 + 4 * n * d * d_ff + 4 * n**2 * d)


def _parts(x, W1, b1, W2, b2, P):
    own = np.array_split(np.arange(W1.shape[1]), P)
    parts = np.stack([np.maximum(x @ W1[:, units] + b1[units], 0) @ W2[units] for units in own])
    parts[0] += b2
    return parts


def _each_with_the_last_bias(x, W1, b1, W2, b2, P):
    return _parts(x, W1, b1, W2, 0 * b2, P) + b2


def _cut_by_rows(x, W1, b1, W2, b2, P):
    shares = np.array_split(np.arange(W1.shape[0]), P)
    parts = np.stack([np.maximum(x[:, own] @ W1[own] + b1, 0) @ W2 for own in shares])
    parts[0] += b2
    return parts


def _striped(x, W1, b1, W2, b2, P):
    parts = np.stack([np.maximum(x @ W1[:, p::P] + b1[p::P], 0) @ W2[p::P] for p in range(P)])
    parts[0] += b2
    return parts


def _balance(d, n_layers, n_weights, P):
    return n_weights / (4 * n_layers * d)


def _pairs(n, P):
    in_order, pieces = np.arange(n).reshape(P, -1), np.arange(n).reshape(2 * P, -1)
    from_both_ends = np.concatenate([pieces[:P], pieces[P:][::-1]], axis=1)
    return (in_order + 1).sum(1), (from_both_ends + 1).sum(1)


def _without_itself(n, P):
    return tuple(pairs - n // P for pairs in _pairs(n, P))


def _unmasked(n, P):
    return tuple(np.full(P, n * (n // P)) for _ in range(2))


def _in_stripes(n, P):
    return _pairs(n, P)[0], np.array([(np.arange(p, n, P) + 1).sum() for p in range(P)])


def _own_block(n, P):
    own = n // P
    pairs = np.full(P, own * (own + 1) // 2)
    return pairs, pairs


def _miss(sizes, losses, known=slice(None, -1), change=np.log, back=np.exp):
    slope, height = np.polyfit(change(sizes[known]), change(losses[known]), 1)
    return back(slope * change(sizes[-1]) + height) / losses[-1] - 1


def _losses(rng, m):
    sizes = np.sort(rng.uniform(1, 9, m)) * 10.0 ** np.arange(3, 3 + m)
    return sizes, 1.2 + 40 * sizes ** -rng.uniform(0.3, 0.5) + rng.uniform(0, 0.05, m)


EXERCISES = [
    Exercise(
        id="23.1",
        title="What is between words?",
        reference=_share,
        cases=lambda rng: [(512, 64, 256), (100, 32, 128), (2048, 512, 1024), (7, 8, 3), (4096, 64, 64)],
        hints=(
            "Two products are between words. What are their shapes?",
            "Q K^T and the weights times V take 2 n² d each. The four projections take 2 n d² each, the two products "
            "of the feed-forward network 2 n d d_ff each.",
            "between = 4 * n**2 * d; between / (between + 8 * n * d**2 + 4 * n * d * d_ff).",
        ),
        misconceptions=[
            Misconception(
                "the usual feed-forward",
                lambda n, d, d_ff: n / (n + 6 * d),
                "That is right where d_ff is 4 d. Here it may be anything.",
            ),
            Misconception(
                "scores only",
                lambda n, d, d_ff: 2 * n**2 * d / (8 * n * d**2 + 4 * n * d * d_ff + 2 * n**2 * d),
                "You counted the scores. The weights times the values are a product between words, too.",
            ),
            Misconception(
                "no feed-forward",
                lambda n, d, d_ff: n / (n + 2 * d),
                "That is the share of the attention sublayer. The layer has a feed-forward network, too.",
            ),
            Misconception(
                "no projections",
                lambda n, d, d_ff: n / (n + d_ff),
                "The four projections are missing: 8 n d² in all.",
            ),
            Misconception(
                "projections are attention",
                lambda n, d, d_ff: (4 * n**2 * d + 8 * n * d**2) / (8 * n * d**2 + 4 * n * d * d_ff + 4 * n**2 * d),
                "The projections belong to attention's sublayer, but they treat each word by itself.",
            ),
        ],
    ),
    Exercise(
        id="23.2",
        title="Cut a network",
        reference=_parts,
        cases=lambda rng: [
            (
                rng.normal(size=(n, d)),
                rng.normal(size=(d, h)),
                rng.normal(size=h),
                rng.normal(size=(h, d)),
                rng.normal(size=d),
                P,
            )
            for n, d, h, P in ((3, 4, 8, 2), (5, 6, 9, 3), (2, 8, 16, 4), (4, 5, 10, 5))
        ],
        hints=(
            "np.maximum treats each hidden unit by itself. Along which axis of W1 do the hidden units lie?",
            "A process has columns of W1, the numbers of b1 that belong to them, and the rows of W2 that they meet. "
            "How often may b2 be in the sum?",
            "own = np.array_split(np.arange(W1.shape[1]), P); parts = np.stack([np.maximum(x @ W1[:, u] + b1[u], 0) @ "
            "W2[u] for u in own]); then add b2 to parts[0].",
        ),
        misconceptions=[
            Misconception(
                "a bias from each",
                _each_with_the_last_bias,
                "Every process adds b2, and in the sum it stands P times. Process 0 alone should.",
            ),
            Misconception(
                "no last bias",
                lambda x, W1, b1, W2, b2, P: _parts(x, W1, b1, W2, 0 * b2, P),
                "Nobody adds b2.",
            ),
            Misconception(
                "cut before the maximum",
                _cut_by_rows,
                "You cut W1 by its rows. Then each process has a part of every hidden unit's sum, and the maximum of "
                "a part is not a part of the maximum. Cut the columns.",
            ),
            Misconception(
                "every P-th",
                _striped,
                "The sum is right. But process p should have the p-th contiguous share of the hidden units, not every "
                "P-th of them.",
            ),
        ],
    ),
    Exercise(
        id="23.3",
        title="Which way is cheaper?",
        reference=_balance,
        cases=lambda rng: [(64, 2, 100_000, 4), (128, 3, 420_000, 2), (512, 12, 38_000_000, 8), (3072, 72, 8.3e9, 8)],
        hints=(
            "Write down both numbers of bytes. What do they have in common?",
            "Both are sums in a ring: 2 (P - 1) / P of what is summed. Once the gradients are, and 4 n_layers times "
            "the rows, which are words * d numbers.",
            "n_weights = 4 * n_layers * words * d, so words = n_weights / (4 * n_layers * d).",
        ),
        misconceptions=[
            Misconception(
                "forward only",
                lambda d, n_layers, n_weights, P: n_weights / (2 * n_layers * d),
                "You counted two sums a layer. There are four: one for each sublayer, and both again going back.",
            ),
            Misconception(
                "one layer",
                lambda d, n_layers, n_weights, P: n_weights / (4 * d),
                "You counted the sums of one layer. The model has n_layers of them.",
            ),
            Misconception(
                "a factor of the processes",
                lambda d, n_layers, n_weights, P: n_weights * 2 * (P - 1) / P / (4 * n_layers * d),
                "2 (P - 1) / P is a factor of both ways, and falls out.",
            ),
            Misconception(
                "gradients to everybody",
                lambda d, n_layers, n_weights, P: n_weights * P / 2 / (4 * n_layers * d),
                "An all-reduce does not send all gradients to all others. In a ring each sends 2 (P - 1) / P of them.",
            ),
            Misconception(
                "bytes against numbers",
                lambda d, n_layers, n_weights, P: 4 * n_weights / (4 * n_layers * d),
                "You took bytes on one side and numbers on the other. Both are numbers of four bytes.",
            ),
        ],
    ),
    Exercise(
        id="23.4",
        title="Who works?",
        reference=_pairs,
        cases=lambda rng: [(8, 2), (24, 3), (64, 4), (40, 5)],
        hints=(
            "A query at place i, counted from 0, attends to i + 1 keys. Which places has process p?",
            "In order, process p has the places from p * n / P on, n / P of them. In the other cut it has a piece "
            "from the beginning and one as far from the end.",
            "rows = np.arange(n).reshape(2 * P, -1); own = np.concatenate([rows[p], rows[2 * P - 1 - p]]); the pairs "
            "are (own + 1).sum().",
        ),
        misconceptions=[
            Misconception(
                "without itself",
                _without_itself,
                "A query may attend to its own place: n / P pairs more for each process.",
            ),
            Misconception(
                "no mask",
                _unmasked,
                "That is every pair. The mask is causal: a query at place i has i + 1 keys.",
            ),
            Misconception(
                "dealt out one by one",
                _in_stripes,
                "You dealt the places out like cards, which is a good cut too. Here the text has 2 P pieces, and "
                "process p has the pieces p and 2 P - 1 - p.",
            ),
            Misconception(
                "its own keys only",
                _own_block,
                "You counted pairs within a process's own piece. In a ring it meets the keys of those before it, too.",
            ),
        ],
    ),
    Exercise(
        id="23.5",
        title="Refit, then look",
        reference=_miss,
        cases=lambda rng: [_losses(rng, m) for m in (4, 5, 6, 4)],
        hints=(
            "Which points may the line know?",
            "np.polyfit(np.log(sizes[:-1]), np.log(losses[:-1]), 1) gives the slope and the height of the line.",
            "slope, height = np.polyfit(...); promised = np.exp(height + slope * np.log(sizes[-1])); then "
            "promised / losses[-1] - 1.",
        ),
        misconceptions=[
            Misconception(
                "it knew the answer",
                lambda sizes, losses: _miss(sizes, losses, known=slice(None)),
                "The largest point was among those that the line was laid through. What is left out is left out "
                "of the fit, too.",
            ),
            Misconception(
                "a straight line on plain paper",
                lambda sizes, losses: _miss(sizes, losses, change=lambda x: x, back=lambda x: x),
                "Take logarithms of sizes and losses first: a power law is straight on such paper.",
            ),
            Misconception(
                "the other way round",
                lambda sizes, losses: -_miss(sizes, losses),
                "The sign: a line that promises more loss than was found misses by a positive share.",
            ),
            Misconception(
                "in nats",
                lambda sizes, losses: _miss(sizes, losses) * losses[-1],
                "That is the difference. Asked for is its share of the loss that was found.",
            ),
            Misconception(
                "logarithms",
                lambda sizes, losses: np.log1p(_miss(sizes, losses)),
                "That is the difference of the logarithms. Go back with np.exp before you compare.",
            ),
        ],
    ),
]
