"""Exercises of lesson 05: reading step by step, looking back, and what each costs."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _verdict(weights, by_letter, by_counting):
    apart = by_letter != by_counting
    place = weights.argmax(-1)
    return np.array([(place == guess)[apart].mean() for guess in (by_letter, by_counting)])


def _gru_step(x, h, z, r, W, U):
    return z * h + (1 - z) * np.tanh(x @ W + (r * h) @ U)


def _depth(n, k):
    return -(-n // (k - 1))


def _crossing(d):
    return 5 * d // 2 + 1


def _whole_words(p, n):
    return p**n


def _all_words(weights, by_letter, by_counting):
    place = weights.argmax(-1)
    return np.array([(place == guess).mean() for guess in (by_letter, by_counting)])


def _shares_of_all(weights, by_letter, by_counting):
    return _verdict(weights, by_letter, by_counting) * (by_letter != by_counting).mean()


def _only_alike(weights, by_letter, by_counting):
    alike, place = by_letter == by_counting, weights.argmax(-1)
    return np.array([(place == guess)[alike].mean() for guess in (by_letter, by_counting)])


def _mean_weight(weights, by_letter, by_counting):
    apart = np.flatnonzero(by_letter != by_counting)
    return np.array([weights[apart, guess[apart]].mean() for guess in (by_letter, by_counting)])


def _or_the_other(weights, by_letter, by_counting):
    share = _verdict(weights, by_letter, by_counting)[0]
    return np.array([share, 1 - share])


def _words_apart(rng, words, n):
    """Weights of one step, by letter and by counting: in some words both name the same place."""
    weights = rng.dirichlet(np.full(n, 0.7), size=words)
    largest = weights.argmax(-1)
    by_letter, by_counting = rng.integers(0, n, size=(2, words))
    kind = np.arange(words) % 7  # 0, 1, 2: by letter; 3: by counting; 4: both; 5: by chance; 6: both, and wrong
    by_letter = np.where(np.isin(kind, (0, 1, 2, 4)), largest, by_letter)
    by_counting = np.where(np.isin(kind, (3, 4)), largest, by_counting)
    by_letter, by_counting = (np.where(kind == 6, (largest + 1) % n, place) for place in (by_letter, by_counting))
    return weights, by_letter, by_counting


def _cell(rng, d_x, d):
    gates = rng.uniform(0.1, 0.9, size=(2, d))
    return rng.normal(size=d_x), rng.normal(size=d), *gates, rng.normal(size=(d_x, d)), rng.normal(size=(d, d))


EXERCISES = [
    Exercise(
        id="05.1",
        title="Two explanations, one experiment",
        reference=_verdict,
        cases=lambda rng: [_words_apart(rng, 31, 7), _words_apart(rng, 44, 5), _words_apart(rng, 13, 9)],
        hints=(
            "A word in which both explanations name the same place decides nothing. Which words are left?",
            "apart = by_letter != by_counting; each word's largest weight is at weights.argmax(-1).",
            "np.array([(place == guess)[apart].mean() for guess in (by_letter, by_counting)])",
        ),
        misconceptions=[
            Misconception(
                "all words",
                _all_words,
                "You counted all words. Where both explanations name the same place, a hit speaks for neither: leave "
                "these words out.",
            ),
            Misconception(
                "divided by all words",
                _shares_of_all,
                "Where both agree you left out the hits, not the words: divide by the number of words in which the "
                "places differ.",
            ),
            Misconception(
                "only where they agree",
                _only_alike,
                "You kept the words in which both name the same place. These cannot decide.",
            ),
            Misconception(
                "mean weight",
                _mean_weight,
                "This is the mean weight at the place that each names. Count how often the largest weight is there.",
            ),
            Misconception(
                "or else the other",
                _or_the_other,
                "You took a miss of the first as a hit of the second. Both can be wrong, with the weight elsewhere, "
                "so count each by itself.",
            ),
            Misconception(
                "exchanged",
                lambda *args: _verdict(*args)[::-1],
                "The order is by letter, then by counting; yours is the other way round.",
            ),
            Misconception(
                "hits among the hits",
                lambda *args: _verdict(*args) / _verdict(*args).sum(),
                "Your two shares sum to one. Words in which neither explanation is right count too: divide by the "
                "number of words in which the places differ.",
            ),
            Misconception(
                "counted",
                lambda weights, *places: (
                    (_verdict(weights, *places) * (places[0] != places[1]).sum()).round().astype(int)
                ),
                "These are numbers of words. Shares are asked for: divide by the number of words in which the places "
                "differ.",
            ),
        ],
    ),
    Exercise(
        id="05.2",
        title="Whole words",
        reference=_whole_words,
        cases=lambda rng: [(0.9, 20), (0.99, 10), (0.5, 3), (0.8, 7)],
        hints=(
            "A word is right if its first letter is right and its second and so on.",
            "Chances of independent things that must all happen are multiplied.",
            "p ** n. On attending[0] the true share is larger: mistakes come together.",
        ),
        misconceptions=[
            Misconception(
                "the same",
                lambda p, n: p,
                "This is the share of letters. A word needs all n of them.",
            ),
            Misconception(
                "errors added",
                lambda p, n: 1 - n * (1 - p),
                "You added the chances of errors. Words with two errors count twice, and the share may fall below 0.",
            ),
            Misconception(
                "divided",
                lambda p, n: p / n,
                "Chances of things that must all happen are multiplied, not divided by their number.",
            ),
            Misconception(
                "at least one right",
                lambda p, n: 1 - (1 - p) ** n,
                "This is the chance that at least one letter is right. All of them must be.",
            ),
            Misconception(
                "some error",
                lambda p, n: 1 - p**n,
                "This is the share of words with a mistake in them.",
            ),
            Misconception(
                "all wrong",
                lambda p, n: (1 - p) ** n,
                "This is the chance that every letter is wrong. Every one must be right.",
            ),
            Misconception(
                "one letter short",
                lambda p, n: p ** (n - 1),
                "One letter is missing: a word of n letters needs n of them right, the first as well.",
            ),
            Misconception(
                "times n",
                lambda p, n: p * n,
                "p * n is how many letters are right on average. The question is how likely it is that all are.",
            ),
        ],
    ),
    Exercise(
        id="05.3",
        title="One step of a GRU",
        reference=_gru_step,
        cases=lambda rng: [_cell(rng, 3, 5), _cell(rng, 6, 4)],
        hints=(
            "First the proposal, then the mixture of it with the state before.",
            "The gate r is multiplied into h entry by entry, before U. The gate z says how much of h stays.",
            "np.tanh(x @ W + (r * h) @ U) is the proposal; z * h + (1 - z) * proposal.",
        ),
        misconceptions=[
            Misconception(
                "gates exchanged",
                lambda x, h, z, r, W, U: (1 - z) * h + z * np.tanh(x @ W + (r * h) @ U),
                "Your z lets the proposal in. Here z keeps: z = 1 leaves the state as it was, z * h + (1 - z) * "
                "proposal. (Papers differ on this; torch does as we do.)",
            ),
            Misconception(
                "reset after U",
                lambda x, h, z, r, W, U: z * h + (1 - z) * np.tanh(x @ W + r * (h @ U)),
                "You multiplied by r after U, as torch does for speed. That is a different cell from the one asked "
                "for: here r * h comes first, as in the paper published in 2014.",
            ),
            Misconception(
                "without r",
                lambda x, h, z, r, W, U: z * h + (1 - z) * np.tanh(x @ W + h @ U),
                "The gate r is missing: it says how much of the old state the proposal may see.",
            ),
            Misconception(
                "no tanh",
                lambda x, h, z, r, W, U: z * h + (1 - z) * (x @ W + (r * h) @ U),
                "The proposal has no tanh, so it can grow without bound.",
            ),
            Misconception(
                "proposal only",
                lambda x, h, z, r, W, U: np.tanh(x @ W + (r * h) @ U),
                "This is the proposal. The gate z then mixes it with the state before, and that is what lets a GRU "
                "leave its state alone.",
            ),
            Misconception(
                "r on everything",
                lambda x, h, z, r, W, U: z * h + (1 - z) * np.tanh(r * (x @ W + h @ U)),
                "Your r also closes the input. It belongs to the state alone: x @ W + (r * h) @ U.",
            ),
            Misconception(
                "the gates in each other's place",
                lambda x, h, z, r, W, U: r * h + (1 - r) * np.tanh(x @ W + (z * h) @ U),
                "You swapped z and r: r belongs inside the tanh, and z mixes the proposal with the state before.",
            ),
            Misconception(
                "r closes what it opens",
                lambda x, h, z, r, W, U: z * h + (1 - z) * np.tanh(x @ W + ((1 - r) * h) @ U),
                "Your r hides what it should show. r = 1 lets the proposal see all of the old state: r * h.",
            ),
            Misconception(
                "added",
                lambda x, h, z, r, W, U: z * h + np.tanh(x @ W + (r * h) @ U),
                "You added the whole proposal. It comes in with the share that the old state leaves, 1 - z.",
            ),
            Misconception(
                "U transposed",
                lambda x, h, z, r, W, U: z * h + (1 - z) * np.tanh(x @ W + U @ (r * h)),
                "A row stands on the left of its matrix: (r * h) @ U. Yours is U @ (r * h), or uses U transposed.",
            ),
            Misconception(
                "sigmoid",
                lambda x, h, z, r, W, U: z * h + (1 - z) / (1 + np.exp(-(x @ W + (r * h) @ U))),
                "You put the proposal through a sigmoid, which is for gates. The proposal has a tanh.",
            ),
        ],
    ),
    Exercise(
        id="05.4",
        title="The depth of convolutions",
        reference=_depth,
        solution=lambda n, k: int(np.ceil(n / (k - 1))),
        cases=lambda rng: [(31, 3), (30, 4), (7, 8), (100, 6), (32, 6), (16, 5)],
        hints=(
            "How far back does one layer read? And two?",
            "L layers read L * (k - 1) places back.",
            "The smallest whole L with L * (k - 1) >= n: -(-n // (k - 1)).",
        ),
        misconceptions=[
            Misconception(
                "divided by k",
                lambda n, k: -(-n // k),
                "A layer of width k reads its own place and k - 1 before it, so it goes k - 1 back, not k.",
            ),
            Misconception(
                "rounded down",
                lambda n, k: n // (k - 1),
                "You rounded down, and the last layer is missing where k - 1 does not divide n.",
            ),
            Misconception(
                "one too many",
                lambda n, k: n // (k - 1) + 1,
                "This is one too many where k - 1 divides n: L * (k - 1) >= n is enough.",
            ),
            Misconception(
                "positions, not steps",
                lambda n, k: -(-(n - 1) // (k - 1)),
                "You counted n positions, the first and the last included. The input is n places before the output.",
            ),
            Misconception(
                "centred",
                lambda n, k: -(-2 * n // (k - 1)),
                "This is for convolutions that read half of their width on either side. Ours read k - 1 to the left.",
            ),
            Misconception(
                "doubling",
                lambda n, k: int(np.ceil(np.log(n) / np.log(k))),
                "A logarithm is right where each layer's steps are k times as long as those of the one before. Ours "
                "are all of one place.",
            ),
            Misconception(
                "not rounded",
                lambda n, k: n / (k - 1),
                "Half a layer does not exist: round up to a whole number.",
            ),
        ],
    ),
    Exercise(
        id="05.5",
        title="Where attention becomes dearer",
        reference=_crossing,
        cases=lambda rng: [(64,), (128,), (33,), (7,)],
        hints=(
            "Write both counts: four matrices on x and four on h, for n rows; and attention's row in the table.",
            "8 n d² against 3 n d² + 2 n² d. Divide by n d.",
            "8 d < 3 d + 2 n, so n > 5 d / 2: the next whole number is 5 * d // 2 + 1.",
        ),
        misconceptions=[
            Misconception(
                "equal",
                lambda d: 5 * d / 2,
                "At n = 5 d / 2 both need the same. Return the first whole number at which attention needs more.",
            ),
            Misconception(
                "rounded down",
                lambda d: int(2.5 * d),
                "With 5 d / 2 rows or fewer attention needs no more than an LSTM. Return the next whole number.",
            ),
            Misconception(
                "rounded up",
                lambda d: -(-5 * d // 2),
                "Rounding up is not enough where 5 d / 2 is whole: both need the same, and it takes one row more.",
            ),
            Misconception(
                "no projections",
                lambda d: 4 * d + 1,
                "4 d + 1 is what comes without the three projections of attention, 3 n d².",
            ),
            Misconception(
                "only x",
                lambda d: d // 2 + 1,
                "You counted four matrices. There are four for x and four for h: 8 n d².",
            ),
            Misconception(
                "one product of n²",
                lambda d: 5 * d + 1,
                "Attention has two products with n² d multiplications: the scores, and the weighted mean.",
            ),
            Misconception(
                "plain cell",
                lambda d: 1,
                "With 2 n d², the plain cell's, attention is dearer from the first row on. An LSTM has four times as "
                "many matrices.",
            ),
            Misconception(
                "two projections",
                lambda d: 3 * d + 1,
                "You counted two projections. Queries, keys and values are three products: 3 n d².",
            ),
        ],
    ),
]
