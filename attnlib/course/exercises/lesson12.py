"""Exercises of lesson 12: training a translator."""

from __future__ import annotations

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception


def _batches(lengths, batch_size):
    return [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]


def _whole(batches):
    return sum(len(batch) * batch.max() for batch in batches)


def _padding(lengths, batch_size):
    batches = [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]
    return 1 - lengths.sum() / sum(len(batch) * batch.max() for batch in batches)


def _full(lengths, batch_size):
    return 1 - lengths.sum() / sum(batch_size * batch.max() for batch in _batches(lengths, batch_size))


def _split(lengths, batch_size):
    batches = np.array_split(lengths, -(-len(lengths) // batch_size))
    return 1 - lengths.sum() / sum(len(batch) * batch.max() for batch in batches)


def _padded(lengths, batch_size):
    return sum((batch < batch.max()).sum() for batch in _batches(lengths, batch_size)) / len(lengths)


def _dropped(lengths, batch_size):
    return _padding(lengths[: len(lengths) // batch_size * batch_size], batch_size)


def _of_batches(lengths, batch_size):
    return np.mean([_padding(batch, batch_size) for batch in _batches(lengths, batch_size)])


def _is_hit(weights, alignment):
    return weights.argmax(axis=-1) == alignment


def _hits(weights, alignment):
    hits = weights.argmax(axis=-1) == alignment
    return hits[alignment >= 0].mean()


def _soft(weights, alignment):
    at = np.take_along_axis(weights, np.maximum(alignment, 0)[..., None], axis=-1)[..., 0]
    return at[alignment >= 0].mean()


def _by_sentence(weights, alignment):
    return np.mean([_hits(w, a) for w, a in zip(weights, alignment, strict=True)])


def _whole_sentences(weights, alignment):
    return (_is_hit(weights, alignment) | (alignment < 0)).all(axis=1).mean()


def _row_before(weights, alignment):
    return _hits(weights[:, :-1], alignment[:, 1:])


def _mean(means, counts):
    return (means * counts).sum() / counts.sum()


FAULTS = {  # what each of six translators gets wrong, and nothing else
    "zero": lambda n: n == 0,
    "one to ninety nine": lambda n: 0 < n < 100,
    "one hundred to nine hundred, with nothing after it": lambda n: 0 < n < 1000 and n % 100 == 0,
    "a thousand with nothing after it": lambda n: n >= 1000 and n % 1000 == 0,
    "a thousand with a single digit after it": lambda n: n >= 1000 and 0 < n % 1000 < 10,
    "one thousand and something": lambda n: 1000 < n < 2000,
}
MOST = 30


def _found(numbers):
    """Which of the faults a test set shows, 1 or 0 for each; or a sentence about why it is none."""
    if not isinstance(numbers, list | tuple | set | range | np.ndarray) or getattr(numbers, "ndim", 1) != 1:
        return "A list of numbers is asked for, such as [3, 40, 500]."
    for n in numbers:
        if isinstance(n, str):
            return f"{n!r} is a string. Give the numbers themselves, without quotation marks."
        if not (isinstance(n, int | float | np.number) and 0 <= n <= 999_999 and int(n) == n):
            return f"{n} is not a whole number from 0 to 999,999."
    if len(numbers) > MOST:
        return f"{len(numbers)} numbers came; at most {MOST} are allowed."
    return np.array([any(fault(int(n)) for n in numbers) for fault in FAULTS.values()], dtype=float)


def _enough(wanted, found):
    if np.array_equal(wanted, found):
        return True
    names = [name for name, yes in zip(FAULTS, found, strict=True) if yes]
    those = "the one that is" if len(names) == 1 else "those that are"
    seen = f"{those} wrong about {'; '.join(names)}" if names else "all of them pass your test"
    return (
        f"Your numbers find {len(names)} of the 6 faulty translators: {seen}. Which short, round or otherwise "
        "special numbers are missing from your list?"
    )


def _test_set():
    every_length = [7, 17, 85, 300, 842, 4821, 61_350, 987_654]
    nothing_follows = [0, 20, 100, 5000, 11_000, 800_000]
    gaps_and_ones = [1, 101, 1234, 5006, 200_001, 1001]
    return every_length + nothing_follows + gaps_and_ones


def _aligned(rng, n_words, n_morphemes):
    alignment = np.stack([rng.permutation(n_morphemes)[:n_words] for _ in range(5)])
    scores = rng.normal(size=(5, n_words, n_morphemes))
    scores += 6 * (np.arange(n_morphemes) == alignment[..., None]) * (rng.random((5, n_words, 1)) < 0.7)
    scores[0] += 9 * (np.arange(n_morphemes) == alignment[0, :, None])  # one sentence without a miss
    alignment[1, 2:], alignment[2, 4:] = -1, -1
    return masked_softmax(scores), alignment


EXERCISES = [
    Exercise(
        id="12.1",
        title="How much is padding",
        reference=_padding,
        cases=lambda rng: [(rng.integers(1, 12, size=n), size) for n, size in ((11, 3), (23, 5), (17, 4))],
        hints=(
            "Places in a batch: the number of its sequences times the length of its longest.",
            "Add up what all batches take, and compare it with the sum of the lengths.",
            "batches = [lengths[i : i + batch_size] ...]; 1 - lengths.sum() / sum(len(b) * b.max() for b in batches).",
        ),
        misconceptions=[
            Misconception(
                "one batch",
                lambda lengths, batch_size: _padding(lengths, len(lengths)),
                "You padded every sequence to the longest of all. A batch is padded to its own longest.",
            ),
            Misconception(
                "mean of batches",
                _of_batches,
                "You took the mean of the shares of the batches, which are not equally large. Add up tokens "
                "first, then divide.",
            ),
            Misconception(
                "what is real",
                lambda lengths, batch_size: 1 - _padding(lengths, batch_size),
                "This is the share that is not padding.",
            ),
            Misconception(
                "per real token",
                lambda lengths, batch_size: _whole(_batches(lengths, batch_size)) / lengths.sum() - 1,
                "You divided by the real tokens. The share is of all tokens, padding included.",
            ),
            Misconception(
                "sorted",
                lambda lengths, batch_size: _padding(np.sort(lengths), batch_size),
                "You sorted first. Sorting does reduce padding, but here the order is given.",
            ),
            Misconception(
                "sorted, longest first",
                lambda lengths, batch_size: _padding(np.sort(lengths)[::-1], batch_size),
                "You sorted first, the longest in front. Sorting does reduce padding, but here the order is given.",
            ),
            Misconception(
                "how many",
                lambda lengths, batch_size: _whole(_batches(lengths, batch_size)) - lengths.sum(),
                "This is how many places are padding. Divide by how many places the batches take.",
            ),
            Misconception(
                "last batch left out",
                _dropped,
                "The last batch, which is smaller, is missing.",
            ),
            Misconception(
                "last batch full",
                _full,
                "You counted the last batch as a full one. It has only the sequences that are left.",
            ),
            Misconception(
                "batches made even",
                _split,
                "Your batches are made as even as possible, as np.array_split does. Each has batch_size sequences, "
                "and the last has what is left.",
            ),
            Misconception(
                "per cent",
                lambda lengths, batch_size: 100 * _padding(lengths, batch_size),
                "This is the share in per cent. Give it from 0 to 1.",
            ),
            Misconception(
                "sequences",
                _padded,
                "This is the share of sequences that are padded. Count the places.",
            ),
        ],
    ),
    Exercise(
        id="12.2",
        title="Weights against the alignment",
        reference=_hits,
        cases=lambda rng: [_aligned(rng, *sizes) for sizes in ((6, 8), (7, 7), (5, 9))],
        hints=(
            "For each word: where is its largest weight?",
            "Compare it with alignment, and take the mean over the words that are there.",
            "(weights.argmax(-1) == alignment)[alignment >= 0].mean().",
        ),
        misconceptions=[
            Misconception(
                "padding counted",
                lambda weights, alignment: _is_hit(weights, alignment).mean(),
                "Places without a word count as misses. Leave them out of the mean.",
            ),
            Misconception(
                "soft",
                _soft,
                "This is the mean weight at the right morpheme. Count how often the largest weight is there.",
            ),
            Misconception(
                "by sentence",
                _by_sentence,
                "You took the mean of each sentence first, so a word of a short one counts more.",
            ),
            Misconception(
                "whole sentences",
                _whole_sentences,
                "This is the share of sentences in which every word hits. Count words.",
            ),
            Misconception(
                "row before",
                _row_before,
                "You compared word t with the row before it. Row t is the one that says word t, because what goes in "
                "is shifted already.",
            ),
            Misconception(
                "misses",
                lambda weights, alignment: 1 - _hits(weights, alignment),
                "This is the share of misses.",
            ),
            Misconception(
                "per cent",
                lambda weights, alignment: 100 * _hits(weights, alignment),
                "This is the share in per cent. Give it from 0 to 1.",
            ),
            Misconception(
                "numbered from 1",
                lambda weights, alignment: (weights.argmax(axis=-1) + 1 == alignment)[alignment >= 0].mean(),
                "You compared places counted from 1. argmax and alignment both count from 0.",
            ),
            Misconception(
                "place 0 left out",
                lambda weights, alignment: _is_hit(weights, alignment)[alignment > 0].mean(),
                "Words that translate the first morpheme are missing: 0 is a place too. Only -1 says that there is "
                "no word, so keep alignment >= 0.",
            ),
            Misconception(
                "wrong axis",
                lambda weights, alignment: (weights.argmax(axis=1) == alignment)[alignment >= 0].mean(),
                "You looked for the word with the largest weight at each morpheme. A row belongs to a word: look for "
                "the largest along the last axis.",
            ),
            Misconception(
                "how many",
                lambda weights, alignment: (_is_hit(weights, alignment) & (alignment >= 0)).sum(),
                "This is how many words hit. Divide by how many there are.",
            ),
        ],
    ),
    Exercise(
        id="12.3",
        title="The missing test set",
        reference=_test_set,
        adapt=_found,
        compare=_enough,
        hints=(
            "What was not in the test set of this lesson's first model? Short numbers, to begin with.",
            "Go through the lengths, from one digit to six. Then ask what can be missing in a number: the hundreds, "
            "the tens, everything after the thousand.",
            "Zero; a number below 100; a round hundred; a round thousand; a thousand with one digit after it; and "
            "a number between 1,000 and 2,000, where German says tausend after ein.",
        ),
        misconceptions=[
            Misconception(
                "drawn like the training set",
                lambda: np.random.default_rng(0).integers(100_000, 1_000_000, size=30).tolist(),
                "All six translators pass your test: it has none of the numbers that they get wrong. They pass most "
                "sets of thirty drawn uniformly: nearly all their numbers are long, and one in a hundred has nothing "
                "or a single digit after its thousand. Ask for those that such a draw hardly ever has.",
            ),
            Misconception(
                "only short ones",
                lambda: [*range(1, 20), 20, 30, 40, 50],
                "Of the six translators your numbers find one, the one that is wrong about one to ninety nine. The "
                "faults of the others are at other lengths, or where a number stops short, has a gap, or begins in a "
                "special way. (And there is one number below all of these.)",
            ),
            Misconception(
                "powers of ten",
                lambda: [10**i for i in range(6)],
                "Your numbers find three of the six, as powers of ten do: those that are wrong about short numbers, "
                "a hundred with nothing after it, and a thousand with nothing after it. A number may also have a gap "
                "in the middle, or a special beginning. And which is the smallest of all?",
            ),
        ],
    ),
    Exercise(
        id="12.4",
        title="A mean over several processes",
        reference=_mean,
        cases=lambda rng: [(rng.uniform(0.5, 4, size=n), rng.integers(2, 90, size=n)) for n in (2, 3, 5)],
        hints=(
            "Whose loss should count more, that of many tokens or that of few?",
            "Go back to sums: means * counts. How many terms do they have in all?",
            "(means * counts).sum() / counts.sum().",
        ),
        misconceptions=[
            Misconception(
                "mean of means",
                lambda means, counts: means.mean(),
                "This is the mean of the means: a token counts more where there are few. Add the sums and the counts, "
                "then divide.",
            ),
            Misconception(
                "sum of sums by processes",
                lambda means, counts: (means * counts).mean(),
                "You divided the sum by the number of processes. Divide it by the number of tokens.",
            ),
            Misconception(
                "means taken for sums",
                lambda means, counts: means.sum() / counts.sum(),
                "You added means as if they were sums. The sum of a process is its mean times its count.",
            ),
            Misconception(
                "divided twice",
                lambda means, counts: _mean(means, counts) / len(means),
                "You divided by the number of processes as well. counts.sum() is over all processes already.",
            ),
            Misconception(
                "few count more",
                lambda means, counts: (means / counts).sum() / (1 / counts).sum(),
                "You weighted by 1 / count: a process with few tokens counts more. Weigh each mean by its count.",
            ),
            Misconception(
                "sum of the means",
                lambda means, counts: means.sum(),
                "This is the sum of the means. Weigh each by its count, and divide by the sum of the counts.",
            ),
            Misconception(
                "the sum",
                lambda means, counts: (means * counts).sum(),
                "This is the sum over all tokens. Divide it by how many tokens there are.",
            ),
            Misconception(
                "divided by the means",
                lambda means, counts: (means * counts).sum() / means.sum(),
                "You divided by the sum of the means. Divide by the number of tokens, counts.sum().",
            ),
        ],
    ),
]
