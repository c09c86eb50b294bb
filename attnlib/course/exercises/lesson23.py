"""Exercises of lesson 23: a share of the work, a cut, a balance, who works in a ring, a line that is laid anew."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _share(n, d, d_ff):
    return 4 * n**2 * d / (8 * n * d**2 + 4 * n * d * d_ff + 4 * n**2 * d)


def _shared(between, projections=4, products=2):
    """A share of the work by other counts: of n² d between words, of projections, of products with d_ff."""

    def share(n, d, d_ff):
        among = between * n**2 * d
        return among / (among + projections * 2 * n * d**2 + products * 2 * n * d * d_ff)

    return share


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


def _kept_for_the_last(x, W1, b1, W2, b2, P):
    size = W1.shape[1] // P
    own = np.split(np.arange(W1.shape[1]), size * np.arange(1, P))
    parts = np.stack([np.maximum(x @ W1[:, units] + b1[units], 0) @ W2[units] for units in own])
    parts[0] += b2
    return parts


def _rest_lost(x, W1, b1, W2, b2, P):
    h = W1.shape[1] // P * P
    return _parts(x, W1[:, :h], b1[:h], W2[:h], b2, P)


def _linear(x, W1, b1, W2, b2, P):
    own = np.array_split(np.arange(W1.shape[1]), P)
    parts = np.stack([(x @ W1[:, units] + b1[units]) @ W2[units] for units in own])
    parts[0] += b2
    return parts


def _maximum_last(x, W1, b1, W2, b2, P):
    parts = np.maximum(_linear(x, W1, b1, W2, 0 * b2, P), 0)
    parts[0] += b2
    return parts


def _units(x, W1, b1, W2, b2, P):
    """What each process has of the hidden units before the maximum, its numbers of b1, its rows of W2."""
    own = np.array_split(np.arange(W1.shape[1]), P)
    return [(x @ W1[:, units], b1[units], W2[units]) for units in own]


def _first_bias_once(x, W1, b1, W2, b2, P):
    parts = _units(x, W1, b1, W2, b2, P)
    out = np.stack([np.maximum(z + (b if p == 0 else 0), 0) @ W for p, (z, b, W) in enumerate(parts)])
    out[0] += b2
    return out


def _bias_after_maximum(x, W1, b1, W2, b2, P):
    out = np.stack([(np.maximum(z, 0) + b) @ W for z, b, W in _units(x, W1, b1, W2, b2, P)])
    out[0] += b2
    return out


def _whole_shared_out(x, W1, b1, W2, b2, P):
    return np.stack([(np.maximum(x @ W1 + b1, 0) @ W2 + b2) / P] * P)


def _outputs_cut(x, W1, b1, W2, b2, P):
    whole = np.maximum(x @ W1 + b1, 0) @ W2 + b2
    out = np.zeros((P, *whole.shape))
    for p, columns in enumerate(np.array_split(np.arange(whole.shape[1]), P)):
        out[p][:, columns] = whole[:, columns]
    return out


def _words_cut(x, W1, b1, W2, b2, P):
    whole = np.maximum(x @ W1 + b1, 0) @ W2 + b2
    out = np.zeros((P, *whole.shape))
    for p, rows in enumerate(np.array_split(np.arange(len(whole)), P)):
        out[p][rows] = whole[rows]
    return out


def _from_the_last(x, W1, b1, W2, b2, P):
    parts = _parts(x, W1, b1, W2, 0 * b2, P)
    parts[-1] += b2
    return parts


def _balance(d, n_layers, n_weights, P):
    return n_weights / (4 * n_layers * d)


def _times(factor):
    return lambda d, n_layers, n_weights, P: factor(P) * _balance(d, n_layers, n_weights, P)


def _pairs(n, P):
    in_order, pieces = np.arange(n).reshape(P, -1), np.arange(n).reshape(2 * P, -1)
    from_both_ends = np.concatenate([pieces[:P], pieces[P:][::-1]], axis=1)
    return np.array([(in_order + 1).sum(1), (from_both_ends + 1).sum(1)])


def _without_itself(n, P):
    return _pairs(n, P) - n // P


def _unmasked(n, P):
    return np.full((2, P), n * (n // P))


def _in_stripes(n, P):
    return np.array([_pairs(n, P)[0], [(np.arange(p, n, P) + 1).sum() for p in range(P)]])


def _own_block(n, P):
    own = n // P
    return np.full((2, P), own * (own + 1) // 2)


def _each_alone(n, P):
    own = n // P
    return np.array([np.full(P, own * (own + 1) // 2), np.full(P, own // 2 * (own // 2 + 1))])


def _own_block_whole(n, P):
    own = n // P
    return np.array([own**2 * np.arange(1, P + 1), np.full(P, own**2 // 4 * (2 * P + 1))])


def _cut_in_pieces(other):
    """The pairs where process p has the pieces p and other(p, P)."""

    def pairs(n, P):
        pieces = np.arange(n).reshape(2 * P, -1)
        return np.array([_pairs(n, P)[0], [(pieces[[p, other(p, P)]] + 1).sum() for p in range(P)]])

    return pairs


def _side_by_side(n, P):
    return _pairs(n, P)[[0, 0]]


def _misses(sizes, losses):
    missed = []
    for k in range(2, len(sizes)):
        slope, height = np.polyfit(np.log(sizes[:k]), np.log(losses[:k]), 1)
        promised = np.exp(height + slope * np.log(sizes[k]))
        missed.append((promised - losses[k]) / losses[k])
    return np.array(missed)


def _same(x):
    return x


def _last_missed(known=slice(None, -1), of_size=np.log, of_loss=np.log, back=np.exp, order=1):
    def miss(sizes, losses):
        slope, height = np.polyfit(of_size(sizes[known]), of_loss(losses[known]), 1)[::order]
        return back(slope * of_size(sizes[-1]) + height) / losses[-1] - 1

    return miss


_last_miss = _last_missed()


def _missed(**options):
    miss = _last_missed(**options)
    return lambda sizes, losses: np.array([miss(sizes[:k], losses[:k]) for k in range(3, len(sizes) + 1)])


def _one_line(known):
    """One line for all points, laid through those ``known``."""

    def misses(sizes, losses):
        slope, height = np.polyfit(np.log(sizes[known]), np.log(losses[known]), 1)
        return (np.exp(slope * np.log(sizes) + height) / losses - 1)[2:]

    return misses


def _losses(rng, m, last):
    """Losses that bend upwards from a straight line, and the last of them times `last`."""
    sizes = np.sort(rng.uniform(1, 9, m)) * 10.0 ** np.arange(3, 3 + m)
    losses = 1.2 + 40 * sizes ** -rng.uniform(0.3, 0.5) + rng.uniform(0, 0.05, m)
    losses[-1] *= last
    return sizes, losses


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
                "half of it",
                _shared(between=2),
                "Compared with the work on each word, your work between words is half of what it should be. Did you "
                "count one of two products (there are the scores, and the weights times the values), halve both for a "
                "causal mask (there is none), or leave out their additions?",
            ),
            Misconception(
                "a quarter of it",
                _shared(between=1),
                "You counted n² d between words. There are two products, the scores and the weights times the values, "
                "and each takes 2 n² d: a multiplication and an addition.",
            ),
            Misconception(
                "additions for one part only",
                _shared(between=8),
                "Compared with the work between words, your work on each word is half of what it should be. Count "
                "a multiplication and an addition in both.",
            ),
            Misconception(
                "half of it above the line",
                lambda n, d, d_ff: _share(n, d, d_ff) / 2,
                "Half of the right answer. Above the line belongs 4 n² d, the scores and the weights times the "
                "values; below it the whole layer, once.",
            ),
            Misconception(
                "a triangle",
                lambda n, d, d_ff: _shared(between=2 * (n + 1) / n)(n, d, d_ff),
                "You counted n (n + 1) / 2 pairs, as under a causal mask. There is no mask: count n².",
            ),
            Misconception(
                "per cent",
                lambda n, d, d_ff: 100 * _share(n, d, d_ff),
                "That is in per cent. A share is between 0 and 1.",
            ),
            Misconception(
                "a ratio",
                lambda n, d, d_ff: n / (2 * d + d_ff),
                "You divided what is between words by the rest. A share is of the whole.",
            ),
            Misconception(
                "a ratio upside down",
                lambda n, d, d_ff: (2 * d + d_ff) / n,
                "You divided the rest by what is between words. The question is what share is between words, out of "
                "the whole.",
            ),
            Misconception(
                "the rest",
                lambda n, d, d_ff: 1 - _share(n, d, d_ff),
                "That is the share of what treats each word by itself. Return the other one.",
            ),
            Misconception(
                "one product of the feed-forward",
                _shared(between=4, products=1),
                "The feed-forward network has two products of 2 n d d_ff each, into the hidden units and out. You "
                "counted one, or left out the additions in both.",
            ),
            Misconception(
                "three projections",
                _shared(between=4, projections=3),
                "You counted three projections. There are four: W_Q, W_K, W_V and W_O.",
            ),
            Misconception(
                "d_ff squared",
                lambda n, d, d_ff: n * d / (2 * d**2 + d_ff**2 + n * d),
                "You have d_ff² in the feed-forward network. Its matrices are d by d_ff: 2 n d d_ff each.",
            ),
            Misconception(
                "the work itself",
                lambda n, d, d_ff: 4.0 * n**2 * d,
                "Those are the FLOPs between words. Divide by the FLOPs of the whole layer.",
            ),
            Misconception(
                "no feed-forward",
                lambda n, d, d_ff: n / (n + 2 * d),
                "That is the share of the attention sublayer's work. The layer has a feed-forward network, too.",
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
            for n, d, h, P in ((3, 4, 8, 2), (5, 6, 9, 3), (3, 5, 9, 4), (4, 5, 10, 5))
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
                "Every process adds b2, so the sum has it P times. Only process 0 should add it.",
            ),
            Misconception(
                "a part of the bias from each",
                lambda x, W1, b1, W2, b2, P: _parts(x, W1, b1, W2, 0 * b2, P) + b2 / P,
                "The sum is right: each process adds b2 / P. But process 0 should add b2, and nobody else.",
            ),
            Misconception(
                "the bias from the last",
                _from_the_last,
                "The sum is right. But process 0 should add b2, not the last one.",
            ),
            Misconception(
                "no last bias",
                lambda x, W1, b1, W2, b2, P: _parts(x, W1, b1, W2, 0 * b2, P),
                "Nobody adds b2.",
            ),
            Misconception(
                "no first bias",
                lambda x, W1, b1, W2, b2, P: _parts(x, W1, 0 * b1, W2, b2, P),
                "b1 is missing. Each process adds the numbers of b1 that belong to its hidden units.",
            ),
            Misconception(
                "no biases",
                lambda x, W1, b1, W2, b2, P: _parts(x, W1, 0 * b1, W2, 0 * b2, P),
                "Both biases are missing. Each process adds its share of b1, and process 0 adds b2.",
            ),
            Misconception(
                "no maximum",
                _linear,
                "The maximum is missing. Apply np.maximum to the hidden units, before W2.",
            ),
            Misconception(
                "the first bias once",
                _first_bias_once,
                "You add b1 in process 0 alone. Each process adds the numbers of its hidden units; what is added "
                "once is b2.",
            ),
            Misconception(
                "the first bias after the maximum",
                _bias_after_maximum,
                "You added b1 after the maximum. It belongs before it.",
            ),
            Misconception(
                "the whole, shared out",
                _whole_shared_out,
                "The sum is right. But every part of yours is the whole divided by P. Return what each process's own "
                "hidden units contribute, before the sum.",
            ),
            Misconception(
                "columns of the output",
                _outputs_cut,
                "The sum is right. But your parts are columns of the sum, as if W2 were cut by columns. Return what "
                "each process's own hidden units contribute: cut the rows of W2 that they meet.",
            ),
            Misconception(
                "rows of the text",
                _words_cut,
                "The sum is right. But your parts are rows of the sum, as if the text were cut. Return what each "
                "process's own hidden units contribute.",
            ),
            Misconception(
                "maximum last",
                _maximum_last,
                "You took the maximum after W2. It belongs before W2, to the hidden units.",
            ),
            Misconception(
                "maximum last, of the bias too",
                lambda *inputs: np.maximum(_linear(*inputs), 0),
                "You took the maximum last, after W2 and b2. It belongs before W2, to the hidden units.",
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
            Misconception(
                "the rest is lost",
                _rest_lost,
                "Where P does not divide h, you lose the last hidden units. np.array_split deals all of them out.",
            ),
            Misconception(
                "the rest to the last",
                _kept_for_the_last,
                "The sum is right. But where P does not divide h, your last process has all that is left over. Make "
                "the first shares longer by one, as np.array_split does.",
            ),
        ],
    ),
    Exercise(
        id="23.3",
        title="Which way sends less?",
        reference=_balance,
        cases=lambda rng: [(64, 2, 100_000, 4), (128, 3, 420_000, 2), (512, 12, 38_000_000, 8), (3072, 72, 8.3e9, 8)],
        hints=(
            "Write down both numbers of bytes. What do they have in common?",
            "Both are sums in a ring: 2 (P - 1) / P of what is summed. The gradients are summed once. The rows are "
            "summed 4 n_layers times, w * d numbers each time.",
            "n_weights = 4 * n_layers * w * d, so w = n_weights / (4 * n_layers * d).",
        ),
        misconceptions=[
            Misconception(
                "two of four",
                _times(lambda P: 2),
                "Twice the right answer. Did you count two sums a layer (there are four: one for each sublayer, and "
                "both again going back), give a ring's factor 2 to the gradients only (the rows are summed in a ring, "
                "too), or take more bytes for a gradient than for a number of a row?",
            ),
            Misconception(
                "two on the side of the rows",
                _times(lambda P: 1 / 2),
                "Half the right answer. A ring's factor 2 belongs to both ways: to the gradients, and to each of the "
                "four sums a layer.",
            ),
            Misconception(
                "one of four",
                _times(lambda P: 4),
                "Four times the right answer. Did you count one sum a layer (there are four), or two, with a ring's "
                "factor 2 for the gradients only? Or take bytes for the gradients and numbers for the rows?",
            ),
            Misconception(
                "bytes of rows",
                _times(lambda P: 1 / 4),
                "A quarter of the right answer. Are the gradients in numbers and the rows in bytes? Take the "
                "same for both.",
            ),
            Misconception(
                "one layer",
                lambda d, n_layers, n_weights, P: n_weights / (4 * d),
                "You counted the sums of one layer. The model has n_layers of them.",
            ),
            Misconception(
                "no width",
                lambda d, n_layers, n_weights, P: n_weights / (4 * n_layers),
                "That is how many numbers the rows have in all. Each word has d of them.",
            ),
            Misconception(
                "upside down",
                lambda d, n_layers, n_weights, P: 4 * n_layers * d / n_weights,
                "Turn your fraction round: more weights, more words.",
            ),
            Misconception(
                "gradients to everybody",
                _times(lambda P: P / 2),
                "An all-reduce does not send all gradients to all others. In a ring each sends 2 (P - 1) / P of them.",
            ),
            *(
                Misconception(
                    f"{name} is left in",
                    _times(factor),
                    f"{name} is left in your answer. Both ways send 2 (P - 1) / P of what is summed, so it cancels.",
                )
                for name, factor in {
                    "2 (P - 1) / P": lambda P: 2 * (P - 1) / P,
                    "P / (2 (P - 1))": lambda P: P / (2 * (P - 1)),
                    "(P - 1) / P": lambda P: (P - 1) / P,
                    "P / (P - 1)": lambda P: P / (P - 1),
                    "P": lambda P: P,
                    "1 / P": lambda P: 1 / P,
                }.items()
            ),
        ],
    ),
    Exercise(
        id="23.4",
        title="Refit, then look",
        reference=_misses,
        cases=lambda rng: [_losses(rng, m, last) for m, last in ((5, 1.0), (6, 0.6), (4, 1.0), (4, 0.6))],
        hints=(
            "A line is to say what the third loss will be. Which points may it be fitted to? And for the fourth?",
            "np.polyfit(np.log(sizes[:k]), np.log(losses[:k]), 1) gives slope and height of the line through the "
            "first k points. It is asked for the next one, sizes[k].",
            "for k in range(2, len(sizes)): slope, height = np.polyfit(...); promised = np.exp(height + slope * "
            "np.log(sizes[k])); then (promised - losses[k]) / losses[k].",
        ),
        misconceptions=[
            Misconception(
                "it knew the answer",
                _missed(known=slice(None)),
                "Your line was fitted to the very point that it is asked for. That point has to stay out of the fit.",
            ),
            Misconception(
                "the first two for all",
                _one_line(slice(0, 2)),
                "Your line is always fitted to the first two points. Fit a new one for each point, to all before it.",
            ),
            Misconception(
                "one line for all",
                _one_line(slice(None, -1)),
                "You fitted one line, to all but the largest. It knows the other points that it is asked for: fit a "
                "new one for each, to those before it.",
            ),
            Misconception(
                "one line through all",
                _one_line(slice(None)),
                "You fitted one line to all points. It knows those that it is asked for: fit a new one for each, "
                "to those before it.",
            ),
            Misconception(
                "the largest only",
                _last_miss,
                "That is right for the largest. Return a number for each point from the third on.",
            ),
            Misconception(
                "a straight line on plain paper",
                _missed(of_size=_same, of_loss=_same, back=_same),
                "Take logarithms of sizes and losses first: a power law is a straight line then.",
            ),
            Misconception(
                "sizes only",
                _missed(of_loss=_same, back=_same),
                "You took logarithms of the sizes only. Take them of the losses, too.",
            ),
            Misconception(
                "losses only",
                _missed(of_size=_same),
                "You took logarithms of the losses only. Take them of the sizes, too.",
            ),
            Misconception(
                "not taken back",
                _missed(back=_same),
                "You compared a logarithm with a loss. Go back with np.exp first.",
            ),
            Misconception(
                "two bases",
                _missed(of_size=np.log10, of_loss=np.log10),
                "You took logarithms with base 10 and went back with np.exp. Use one base: 10 ** ... or np.log.",
            ),
            Misconception(
                "the promises",
                lambda sizes, losses: (1 + _misses(sizes, losses)) * losses[2:],
                "These are the losses that were promised. Return (promised − found) / found.",
            ),
            Misconception(
                "height and slope exchanged",
                _missed(order=-1),
                "You took the slope for the height. np.polyfit gives the slope first.",
            ),
            Misconception(
                "the last two",
                _missed(known=slice(-3, -1)),
                "Your lines are fitted to the two points before the one that is asked for. Fit each to all before it.",
            ),
            Misconception(
                "the other way round",
                lambda sizes, losses: -_misses(sizes, losses),
                "The sign is reversed: a line that promises more loss than was found misses by a positive share.",
            ),
            Misconception(
                "no sign",
                lambda sizes, losses: abs(_misses(sizes, losses)),
                "Keep the sign: where the line promised too little loss, the share is negative.",
            ),
            Misconception(
                "of the promised",
                lambda sizes, losses: _misses(sizes, losses) / (1 + _misses(sizes, losses)),
                "That is a share of the loss that was promised. Divide by the one that was found.",
            ),
            Misconception(
                "a ratio",
                lambda sizes, losses: 1 + _misses(sizes, losses),
                "You divided the promised loss by the one that was found. Subtract 1, and you have what it missed by.",
            ),
            Misconception(
                "in nats",
                lambda sizes, losses: _misses(sizes, losses) * losses[2:],
                "That is the difference. Divide it by the loss that was found.",
            ),
            Misconception(
                "in nats, the other way round",
                lambda sizes, losses: -_misses(sizes, losses) * losses[2:],
                "That is found minus promised, in nats. Return (promised − found) / found.",
            ),
            Misconception(
                "logarithms",
                lambda sizes, losses: np.log1p(_misses(sizes, losses)),
                "That is the difference of the logarithms. Go back with np.exp before you compare.",
            ),
        ],
    ),
    Exercise(
        id="23.5",
        title="Who works?",
        reference=_pairs,
        adapt=lambda pairs: list(pairs) if isinstance(pairs, tuple) else pairs,  # two arrays are the two rows
        cases=lambda rng: [(8, 2), (24, 3), (64, 4), (40, 5)],
        hints=(
            "A query at place i, counted from 0, attends to i + 1 keys. Which places does process p have?",
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
                "You counted pairs among a process's own places. In a ring it meets the keys of those before it, too.",
            ),
            Misconception(
                "each piece alone",
                _each_alone,
                "You counted pairs within each piece. In a ring a piece meets the keys of those before it, too.",
            ),
            Misconception(
                "its own block whole",
                _own_block_whole,
                "The mask holds within a process's own pieces, too: there a query meets its own key and those before "
                "it, not all.",
            ),
            Misconception(
                "the pieces p and p + P",
                _cut_in_pieces(lambda p, P: p + P),
                "Your process p has the pieces p and p + P: later processes still have more in both. The second "
                "piece is 2 P - 1 - p.",
            ),
            Misconception(
                "the pieces 2 p and 2 p + 1",
                lambda n, P: np.array([_pairs(n, P)[0], (np.arange(n).reshape(2 * P, -1)[::2] + 1).sum(1)]),
                "In the second cut you counted one piece of each process. It has two: p and 2 P - 1 - p.",
            ),
            Misconception(
                "half of all pairs",
                lambda n, P: np.array([_pairs(n, P)[0], np.full(P, n**2 // 2 // P)]),
                "You shared out n² / 2 pairs. A query may attend to its own place, too: there are n (n + 1) / 2.",
            ),
            Misconception(
                "neighbours",
                _side_by_side,
                "Your two rows are the same. In the second cut process p has the pieces p and 2 P - 1 - p of 2 P, "
                "one from the beginning and one as far from the end.",
            ),
            Misconception(
                "swapped",
                lambda n, P: _pairs(n, P)[::-1],
                "Both rows are right, but in the wrong order: first the P pieces in order, then the other cut.",
            ),
            Misconception(
                "keys ahead",
                lambda n, P: np.array([_pairs(n, P)[0][::-1], _pairs(n, P)[1]]),
                "In order, your first process has the most pairs. A query meets the keys before it, not those after "
                "it.",
            ),
        ],
    ),
]
