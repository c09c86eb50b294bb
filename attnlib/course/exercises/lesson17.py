"""Exercises of lesson 17: the loss of gaps, what is shown, both sides, a row for a text, and where a head points."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _gap_loss(log_p, tokens, chosen):
    own = np.take_along_axis(log_p, tokens[..., None], axis=-1)[..., 0]
    return -own[chosen].mean()


def _own(log_p, tokens):
    return -np.take_along_axis(log_p, tokens[..., None], axis=-1)[..., 0]


def _row_by_row(log_p, tokens, chosen):
    own = _own(log_p, tokens)
    return np.mean([row[which].mean() for row, which in zip(own, chosen, strict=True)])


def _shown(tokens, chosen, lot, another, mask):
    shown = np.where(chosen & (lot < 0.8), mask, tokens)
    return np.where(chosen & (lot >= 0.8) & (lot < 0.9), another, shown)


def _missing(moves, left, right):
    p = moves[left] * moves[:, right]
    return p / p.sum()


def _text_row(rows, real):
    return (rows * real[..., None]).sum(axis=1) / real.sum(axis=1, keepdims=True)


def _share(weights, queries, keys, right):
    best = weights[np.ix_(queries, keys)].argmax(axis=1)
    return right[np.arange(len(queries)), best].mean()


def _any_key(weights, queries, keys, right):
    best = weights[queries].argmax(axis=1)
    return np.mean([b in keys and right[i, list(keys).index(b)] for i, b in enumerate(best)])


def _by_position(weights, queries, keys, right):
    best = keys[weights[np.ix_(queries, keys)].argmax(axis=1)]
    return right[np.arange(len(queries)), np.minimum(best, right.shape[1] - 1)].mean()


def _from_keys(weights, queries, keys, right):
    best = weights[np.ix_(keys, queries)].argmax(axis=0)
    return right[np.arange(len(queries)), best].mean()


def _mass(weights, queries, keys, right):
    return (weights[np.ix_(queries, keys)] * right).sum(axis=1).mean()


def _first_rows(weights, queries, keys, right):
    best = weights[: len(queries)][:, keys].argmax(axis=1)
    return right[np.arange(len(queries)), best].mean()


def _solve_share(weights, queries, keys, right):
    seen = weights[queries][:, keys]  # (n_queries, n_keys)
    best = seen.argmax(axis=1)
    return right[np.arange(len(queries)), best].mean()


def _solve_gap_loss(log_p, tokens, chosen):
    i, t = np.nonzero(chosen)
    return -log_p[i, t, tokens[i, t]].mean()


def _gap_case(rng, shape, size, share):
    logits = 2 * rng.normal(size=(*shape, size))
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    chosen = rng.random(shape) < share
    chosen[:, 0] = True
    chosen[0, 1:3] = True
    return log_p, rng.integers(size, size=shape), chosen


def _shown_case(rng, shape, mask):
    lot = rng.permutation(np.r_[0.8, 0.9, np.linspace(0.02, 0.98, shape[0] * shape[1] - 2)]).reshape(shape)
    chosen = (rng.random(shape) < 0.6) | np.isin(lot, (0.8, 0.9))
    return rng.integers(3, 20, shape), chosen, lot, rng.integers(20, 40, shape), mask


def _moves(rng, n):
    moves = rng.uniform(0.05, 1, (n, n)) ** 2
    return moves / moves.sum(axis=1, keepdims=True)


def _share_case(rng, n, n_q, n_k):
    weights = rng.dirichlet(np.full(n, 0.3), size=n)
    places = rng.permutation(n)
    queries, keys = np.sort(places[:n_q]), np.sort(places[n_q : n_q + n_k])
    right = rng.random((n_q, n_k)) < 0.35
    return weights, queries, keys, right


EXERCISES = [
    Exercise(
        id="17.1",
        title="The loss of the gaps",
        reference=_gap_loss,
        cases=lambda rng: [_gap_case(rng, shape, 6, 0.3) for shape in ((3, 7), (2, 9), (4, 5))],
        hints=(
            "First pick, at every position, the log-probability of the token that stood there.",
            "np.take_along_axis(log_p, tokens[..., None], axis=-1)[..., 0] has the shape of tokens, and of chosen.",
            "The result is minus the mean of that where chosen is True.",
        ),
        misconceptions=[
            Misconception(
                "all positions",
                lambda log_p, tokens, chosen: _own(log_p, tokens).mean(),
                "This is the mean over all positions. Most of them are shown as they are, and repeating what is shown "
                "is easy: only the chosen ones count.",
            ),
            Misconception(
                "zero elsewhere",
                lambda log_p, tokens, chosen: (_own(log_p, tokens) * chosen).mean(),
                "You divided by all positions. Divide by the chosen ones.",
            ),
            Misconception(
                "a sum",
                lambda log_p, tokens, chosen: _own(log_p, tokens)[chosen].sum(),
                "You returned the sum. Divide it by the number of chosen positions.",
            ),
            Misconception(
                "row by row",
                _row_by_row,
                "You took the mean of each text's mean. A gap in a text with few gaps then counts more: take one mean "
                "over all gaps.",
            ),
            Misconception(
                "the sign",
                lambda log_p, tokens, chosen: -_gap_loss(log_p, tokens, chosen),
                "The right size and the wrong sign: a loss is the negative of the log-probability.",
            ),
            Misconception(
                "the others",
                lambda log_p, tokens, chosen: _own(log_p, tokens)[~chosen].mean(),
                "This is the loss of the positions that were not chosen.",
            ),
            Misconception(
                "shifted",
                lambda log_p, tokens, chosen: _own(log_p, np.roll(tokens, -1, axis=1))[chosen].mean(),
                "You compared with the next token, as a GPT does. Here position t is asked for the token at t itself.",
            ),
            Misconception(
                "all words",
                lambda log_p, tokens, chosen: -log_p[chosen].mean(),
                "You averaged over all words of the vocabulary. At each gap only the word that stood there counts.",
            ),
            Misconception(
                "the likeliest",
                lambda log_p, tokens, chosen: -log_p.max(axis=-1)[chosen].mean(),
                "You took the log-probability of the likeliest word. Take that of the word that stood there.",
            ),
            Misconception(
                "bits",
                lambda log_p, tokens, chosen: _gap_loss(log_p, tokens, chosen) / np.log(2),
                "These are bits. A loss is in nats, as log_p is: no division by ln 2.",
            ),
            Misconception(
                "divided by the batch",
                lambda log_p, tokens, chosen: _own(log_p, tokens)[chosen].sum() / len(tokens),
                "You divided by the number of texts. Divide by the number of chosen positions.",
            ),
            Misconception(
                "every gap with every token",
                lambda log_p, tokens, chosen: -log_p[chosen][:, tokens[chosen]].mean(),
                "You paired every gap with every gap's token. Give the rows, too: np.arange(n) for n gaps.",
            ),
        ],
        solution=_solve_gap_loss,
    ),
    Exercise(
        id="17.2",
        title="What is shown",
        reference=_shown,
        cases=lambda rng: [_shown_case(rng, shape, mask) for shape, mask in (((4, 8), 2), ((3, 11), 40))],
        hints=(
            "np.where(condition, a, b) takes a where the condition is True, b elsewhere.",
            "Begin with np.where(chosen & (lot < 0.8), mask, tokens).",
            "Then put another where chosen & (lot >= 0.8) & (lot < 0.9).",
        ),
        misconceptions=[
            Misconception(
                "always the mask",
                lambda tokens, chosen, lot, another, mask: np.where(chosen, mask, tokens),
                "Every chosen position shows the mask. Of ten, one shows another token and one its own.",
            ),
            Misconception(
                "never its own",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen, np.where(lot < 0.8, mask, another), tokens
                ),
                "Every chosen position is changed. From 0.9 on it shows its own token.",
            ),
            Misconception(
                "everywhere",
                lambda tokens, chosen, lot, another, mask: np.where(
                    lot < 0.8, mask, np.where(lot < 0.9, another, tokens)
                ),
                "You changed positions that were not chosen. They should keep their own tokens.",
            ),
            Misconception(
                "the others",
                lambda tokens, chosen, lot, another, mask: _shown(tokens, ~chosen, lot, another, mask),
                "You changed the positions that were not chosen, and left those that were.",
            ),
            Misconception(
                "exchanged",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot < 0.8), mask, np.where(chosen & (lot >= 0.9), another, tokens)
                ),
                "Between 0.8 and 0.9 another token is shown, from 0.9 on the position's own. You exchanged the two.",
            ),
            Misconception(
                "upside down",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot >= 0.2), mask, np.where(chosen & (lot >= 0.1), another, tokens)
                ),
                "The shares are right, but you exchanged the ends of the scale: the mask is where lot is below 0.8.",
            ),
            Misconception(
                "others everywhere",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot < 0.8), mask, np.where((lot >= 0.8) & (lot < 0.9), another, tokens)
                ),
                "You put another token at positions that were not chosen. Both conditions need chosen.",
            ),
            Misconception(
                "never another",
                lambda tokens, chosen, lot, another, mask: np.where(chosen & (lot < 0.8), mask, tokens),
                "The masks are right. Between 0.8 and 0.9 a chosen position shows another token.",
            ),
            Misconception(
                "the mask up to 0.9",
                lambda tokens, chosen, lot, another, mask: np.where(chosen & (lot < 0.9), mask, tokens),
                "The mask ends at 0.8. From there to 0.9 another token is shown.",
            ),
            Misconception(
                "overwritten",
                lambda tokens, chosen, lot, another, mask: np.where(chosen & (lot < 0.9), another, tokens),
                "No mask is left. Numbers below 0.8 are below 0.9 as well: another token is for those from 0.8 on.",
            ),
            Misconception(
                "0.8 still masked",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot <= 0.8), mask, np.where(chosen & (lot < 0.9), another, tokens)
                ),
                "At exactly 0.8 the mask is no longer shown: it is for lots below 0.8.",
            ),
            Misconception(
                "0.9 still another",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot < 0.8), mask, np.where(chosen & (lot >= 0.8) & (lot <= 0.9), another, tokens)
                ),
                "At exactly 0.9 the token itself is shown: another is for lots below 0.9.",
            ),
            Misconception(
                "masks everywhere",
                lambda tokens, chosen, lot, another, mask: np.where(
                    lot < 0.8, mask, np.where(chosen & (lot >= 0.8) & (lot < 0.9), another, tokens)
                ),
                "You put the mask at positions that were not chosen. Both conditions need chosen.",
            ),
            Misconception(
                "a tenth, a tenth, eight tenths",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot < 0.1), another, np.where(chosen & (lot >= 0.2), mask, tokens)
                ),
                "The shares are right, the ends of the scale are not: the mask is where lot is below 0.8.",
            ),
            Misconception(
                "mask and another exchanged",
                lambda tokens, chosen, lot, another, mask: np.where(
                    chosen & (lot < 0.8), another, np.where(chosen & (lot < 0.9), mask, tokens)
                ),
                "You exchanged two: the mask is shown below 0.8, another token from there to 0.9.",
            ),
        ],
    ),
    Exercise(
        id="17.3",
        title="Both sides, exactly",
        reference=_missing,
        cases=lambda rng: [(_moves(rng, n), a, b) for n, a, b in ((4, 0, 2), (5, 3, 1), (3, 2, 2))],
        hints=(
            "How probable is it that w follows left, and that right then follows w?",
            "The two are multiplied: moves[left, w] * moves[w, right], for every w.",
            "p = moves[left] * moves[:, right]; and the result must sum to one.",
        ),
        misconceptions=[
            Misconception(
                "left alone",
                lambda moves, left, right: moves[left],
                "This is what follows left, as a reader from left to right knows it. right says something, too.",
            ),
            Misconception(
                "right alone",
                lambda moves, left, right: moves[:, right] / moves[:, right].sum(),
                "This knows what comes after the gap and not what stands before it.",
            ),
            Misconception(
                "not normalised",
                lambda moves, left, right: moves[left] * moves[:, right],
                "The right proportions, but they do not sum to one. Divide by their sum.",
            ),
            Misconception(
                "a mean",
                lambda moves, left, right: (moves[left] + moves[:, right] / moves[:, right].sum()) / 2,
                "You took the mean of what both sides say. Both must happen: multiply, then divide by the sum.",
            ),
            Misconception(
                "two rows",
                lambda moves, left, right: moves[left] * moves[right] / (moves[left] * moves[right]).sum(),
                "moves[right] is what follows right. What leads to right is the column moves[:, right].",
            ),
            Misconception(
                "two columns",
                lambda moves, left, right: moves[:, left] * moves[:, right] / (moves[:, left] * moves[:, right]).sum(),
                "moves[:, left] is what leads to left. What follows left is the row moves[left].",
            ),
            Misconception(
                "backwards",
                lambda moves, left, right: moves[:, left] * moves[right] / (moves[:, left] * moves[right]).sum(),
                "You read the table backwards: moves[a, b] is for b after a.",
            ),
            Misconception(
                "softmax",
                lambda moves, left, right: (
                    np.exp(moves[left] * moves[:, right]) / np.exp(moves[left] * moves[:, right]).sum()
                ),
                "These are probabilities already, not scores. To make them sum to one, divide by their sum.",
            ),
            Misconception(
                "divided by the largest",
                lambda moves, left, right: moves[left] * moves[:, right] / (moves[left] * moves[:, right]).max(),
                "You divided by the largest. A distribution sums to one: divide by the sum.",
            ),
            Misconception(
                "divided by the pair",
                lambda moves, left, right: moves[left] * moves[:, right] / moves[left, right],
                "You divided by how often right follows left directly. There is a word between them: divide by the "
                "sum over all words that it may be.",
            ),
            Misconception(
                "two steps from left",
                lambda moves, left, right: moves[left] @ moves,
                "This is what stands two places after left. right is known: ask for the word between.",
            ),
            Misconception(
                "added",
                lambda moves, left, right: (moves[left] + moves[:, right]) / (moves[left] + moves[:, right]).sum(),
                "You added what both sides say. Both must happen: multiply.",
            ),
            Misconception(
                "right alone, as it is",
                lambda moves, left, right: moves[:, right],
                "This is how often each word leads to right. left says something, too.",
            ),
        ],
    ),
    Exercise(
        id="17.4",
        title="One row for a text",
        reference=_text_row,
        cases=lambda rng: [
            (rng.normal(size=(len(lengths), n, 4)) + 1, np.arange(n) < np.array(lengths)[:, None])
            for lengths, n in (((3, 4, 1, 2), 4), ((2, 4), 5))
        ],
        hints=(
            "What stands in the rows of the padding must have no effect: neither on the sum nor on the count.",
            "rows * real[..., None] is zero where a text was padded.",
            "Sum that over axis 1, and divide by real.sum(axis=1, keepdims=True).",
        ),
        misconceptions=[
            Misconception(
                "padding too",
                lambda rows, real: rows.mean(axis=1),
                "You averaged the padding as well. A text's row would then depend on how far its batch is padded.",
            ),
            Misconception(
                "divided by n",
                lambda rows, real: (rows * real[..., None]).mean(axis=1),
                "You left the padding out of the sum, but you still count it. Divide by the number of real rows.",
            ),
            Misconception(
                "padding summed",
                lambda rows, real: rows.sum(axis=1) / real.sum(axis=1, keepdims=True),
                "You divided by the number of real rows, but added up all. Set those of the padding to zero first.",
            ),
            Misconception(
                "a sum",
                lambda rows, real: (rows * real[..., None]).sum(axis=1),
                "This is the sum. Divide it by the number of real rows of each text.",
            ),
            Misconception(
                "the first row",
                lambda rows, real: rows[:, 0],
                "This is the first row, as BERT's second output reads it. Here the mean is asked for.",
            ),
            Misconception(
                "one mean for all",
                lambda rows, real: np.broadcast_to(rows[real].mean(axis=0), (len(rows), rows.shape[-1])),
                "You took one mean over all texts. (rows[real] forgets which text a row belongs to.)",
            ),
            Misconception(
                "the padding's mean",
                lambda rows, real: (rows * ~real[..., None]).sum(axis=1) / np.maximum(1, (~real).sum(axis=1))[:, None],
                "This is the mean of the padding. real is True where a row belongs to the text.",
            ),
            Misconception(
                "largest",
                lambda rows, real: np.where(real[..., None], rows, -np.inf).max(axis=1),
                "You took the largest number of each column. Here the mean is asked for.",
            ),
            Misconception(
                "keepdims forgotten",
                lambda rows, real: (rows * real[..., None]).sum(axis=1) / real.sum(axis=1),
                "real.sum(axis=1) has one axis, (batch,), and NumPy lines it up with the last axis of (batch, d). "
                "Keep an axis for d: real.sum(axis=1, keepdims=True).",
            ),
            Misconception(
                "no axis for d",
                lambda rows, real: (rows * real).sum(axis=1) / real.sum(axis=1, keepdims=True),
                "real is (batch, n), and NumPy lines it up with the last two axes of (batch, n, d). Give it an axis "
                "for d: real[..., None].",
            ),
            Misconception(
                "all real rows",
                lambda rows, real: (rows * real[..., None]).sum(axis=1) / real.sum(),
                "You divided by the real rows of all texts together. Each text has a number of its own: "
                "real.sum(axis=1, keepdims=True).",
            ),
        ],
    ),
    Exercise(
        id="17.5",
        title="Does a head point at the right key?",
        reference=_share,
        cases=lambda rng: [_share_case(rng, n, q, k) for n, q, k in ((30, 11, 13), (24, 9, 12), (26, 12, 10))],
        hints=(
            "Cut the table down to the rows that ask and the columns that may be pointed at.",
            "weights[queries][:, keys] has a row for each query, a column for each key. Where is each row's largest?",
            "best = that.argmax(axis=1); then the mean of right[np.arange(len(queries)), best].",
        ),
        misconceptions=[
            Misconception(
                "among all",
                _any_key,
                "You looked for the largest weight among all positions. Look among the keys only.",
            ),
            Misconception(
                "positions and numbers",
                _by_position,
                "argmax among the keys gives a number from 0 to len(keys) - 1, a column of right. You turned it into "
                "a position in the text.",
            ),
            Misconception(
                "from the keys",
                _from_keys,
                "You read the weights from the keys to the queries. Rows ask: weights[query, key].",
            ),
            Misconception(
                "weight instead of share",
                _mass,
                "This is how much weight lies on right keys. Count how often the largest weight does.",
            ),
            Misconception(
                "the first rows",
                _first_rows,
                "You took the first rows of the weights. The queries are the positions in `queries`.",
            ),
            Misconception(
                "the wrong ones",
                lambda weights, queries, keys, right: 1 - _share(weights, queries, keys, right),
                "This is the share of queries that point to a wrong key.",
            ),
            Misconception(
                "divided by the keys",
                lambda weights, queries, keys, right: _share(weights, queries, keys, right) * len(queries) / len(keys),
                "You divided by the number of keys. Divide by the number of queries.",
            ),
            Misconception(
                "the largest weights",
                lambda weights, queries, keys, right: weights[np.ix_(queries, keys)].max(axis=1).mean(),
                "This is the mean of the largest weights. Ask where they lie: argmax, and whether that key is right.",
            ),
            Misconception(
                "a count",
                lambda *case: _share(*case) * len(case[1]),
                "This is how many are right. Divide by the number of queries.",
            ),
            Misconception(
                "by column",
                lambda weights, queries, keys, right: right[
                    weights[np.ix_(queries, keys)].argmax(axis=0), np.arange(len(keys))
                ].mean(),
                "You asked each key for its largest query. Each query has one largest key: argmax(axis=1).",
            ),
            Misconception(
                "per cent",
                lambda *case: 100 * _share(*case),
                "This is in per cent. Return a share, from 0 to 1.",
            ),
            Misconception(
                "weight among the keys",
                lambda weights, queries, keys, right: (
                    (weights[np.ix_(queries, keys)] * right).sum(axis=1) / weights[np.ix_(queries, keys)].sum(axis=1)
                ).mean(),
                "This is how much of the keys' weight lies on right ones. Count how often the largest does.",
            ),
            Misconception(
                "every query with every best",
                lambda weights, queries, keys, right: right[:, weights[np.ix_(queries, keys)].argmax(axis=1)].mean(),
                "You paired every query with every query's largest key. Give the rows, too: np.arange(len(queries)).",
            ),
        ],
        solution=_solve_share,
    ),
]
