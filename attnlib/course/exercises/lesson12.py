"""Exercises of lesson 12: training a translator."""

from __future__ import annotations

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception


def _target(right, n_tokens, smoothing):
    return (1 - smoothing) * np.eye(n_tokens)[right] + smoothing / n_tokens


def _others_only(right, n_tokens, smoothing):
    hot = np.eye(n_tokens)[right]
    return (1 - smoothing) * hot + smoothing / (n_tokens - 1) * (1 - hot)


def _not_added(right, n_tokens, smoothing):
    target = np.full(n_tokens, smoothing / n_tokens)
    target[right] = 1 - smoothing
    return target


def _entropy(q):
    return -(q * np.log(q)).sum()


def _floor(n_tokens, smoothing):
    q = smoothing / n_tokens + (1 - smoothing) * np.eye(n_tokens)[0]
    return -(q * np.log(q)).sum()


def _batches(lengths, batch_size):
    return [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]


def _whole(batches):
    return sum(len(batch) * batch.max() for batch in batches)


def _padding(lengths, batch_size):
    batches = [lengths[i : i + batch_size] for i in range(0, len(lengths), batch_size)]
    return 1 - lengths.sum() / sum(len(batch) * batch.max() for batch in batches)


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


def _aligned(rng):
    n_words, n_morphemes = 6, 8
    alignment = np.stack([rng.permutation(n_morphemes)[:n_words] for _ in range(5)])
    scores = rng.normal(size=(5, n_words, n_morphemes))
    scores += 6 * (np.arange(n_morphemes) == alignment[..., None]) * (rng.random((5, n_words, 1)) < 0.7)
    scores[0] += 9 * (np.arange(n_morphemes) == alignment[0, :, None])  # one sentence without a miss
    alignment[1, 2:], alignment[2, 4:] = -1, -1
    return masked_softmax(scores), alignment


EXERCISES = [
    Exercise(
        id="12.1",
        title="The smoothed target",
        reference=_target,
        cases=lambda rng: [(2, 6, 0.1), (0, 5, 0.3), (3, 9, 0.2)],
        hints=(
            "Two distributions are mixed: all on the right token, and the same on every token.",
            "Every token gets smoothing / n_tokens. The right one gets 1 - smoothing on top of that.",
            "(1 - smoothing) * np.eye(n_tokens)[right] + smoothing / n_tokens.",
        ),
        misconceptions=[
            Misconception(
                "others only",
                _others_only,
                "You spread the share over the other tokens. Here it goes to all of them, the right one too: it has "
                "1 - smoothing + smoothing / n_tokens.",
            ),
            Misconception(
                "not added",
                _not_added,
                "The right token has 1 - smoothing without its part of the share, so the sum is below 1.",
            ),
            Misconception(
                "nothing taken",
                lambda right, n_tokens, smoothing: np.eye(n_tokens)[right] + smoothing / n_tokens,
                "You gave every token its part and took nothing from the right one: the sum is 1 + smoothing.",
            ),
            Misconception(
                "exchanged",
                lambda right, n_tokens, smoothing: _target(right, n_tokens, 1 - smoothing),
                "The two shares are exchanged: 1 - smoothing stays with the right token.",
            ),
            Misconception(
                "one-hot",
                lambda right, n_tokens, smoothing: np.eye(n_tokens)[right],
                "This is the target without smoothing.",
            ),
            Misconception(
                "counted from one",
                lambda right, n_tokens, smoothing: np.roll(_target(right, n_tokens, smoothing), -1),
                "The large entry stands one place too early. Tokens are numbered from 0.",
            ),
        ],
    ),
    Exercise(
        id="12.2",
        title="The floor",
        reference=_floor,
        cases=lambda rng: [(34, 0.1), (6, 0.3), (11, 0.05)],
        hints=(
            "The best that a model can say is the target itself. What is the loss then?",
            "The entropy of the smoothed target: one token has much, n_tokens - 1 have smoothing / n_tokens each.",
            "-(q * np.log(q)).sum() for the target q of 12.1, whichever token is right.",
        ),
        misconceptions=[
            Misconception(
                "zero",
                lambda n_tokens, smoothing: 0.0,
                "That is the floor without smoothing. With it, even the target itself has a loss.",
            ),
            Misconception(
                "right token only",
                lambda n_tokens, smoothing: -np.log(1 - smoothing + smoothing / n_tokens),
                "This counts what the right token costs, as plain cross-entropy does. The smoothed loss asks the "
                "logarithm of every token, each with its weight in q.",
            ),
            Misconception(
                "bits",
                lambda n_tokens, smoothing: _floor(n_tokens, smoothing) / np.log(2),
                "This is in bits. The loss is in natural logarithms.",
            ),
            Misconception(
                "uniform",
                lambda n_tokens, smoothing: np.log(n_tokens),
                "This is the entropy when all tokens are equally likely: the loss of a model that knows nothing.",
            ),
            Misconception(
                "others only",
                lambda n_tokens, smoothing: _entropy(_others_only(0, n_tokens, smoothing)),
                "You spread the share over the other tokens. Here it goes to all of them, the right one too.",
            ),
            Misconception(
                "one of the others",
                lambda n_tokens, smoothing: _entropy(_target(0, n_tokens, smoothing)[:2]),
                "You counted one of the other tokens. There are n_tokens - 1.",
            ),
        ],
    ),
    Exercise(
        id="12.3",
        title="How much is padding",
        reference=_padding,
        cases=lambda rng: [(rng.integers(1, 12, size=n), size) for n, size in ((11, 3), (23, 5), (17, 4))],
        hints=(
            "A batch takes its number of sequences times its longest.",
            "Add up what all batches take, and compare it with the sum of the lengths.",
            "batches = [lengths[i : i + batch_size] ...]; 1 - lengths.sum() / sum(len(b) * b.max() for b in batches).",
        ),
        misconceptions=[
            Misconception(
                "one batch",
                lambda lengths, batch_size: _padding(lengths, len(lengths)),
                "You padded all to the longest of all. A batch is padded to its own longest.",
            ),
            Misconception(
                "mean of batches",
                _of_batches,
                "You took the mean of the shares of the batches, which do not all have as many tokens. Add up tokens "
                "first, then divide.",
            ),
            Misconception(
                "what is real",
                lambda lengths, batch_size: 1 - _padding(lengths, batch_size),
                "This is the share that is no padding.",
            ),
            Misconception(
                "per real token",
                lambda lengths, batch_size: _whole(_batches(lengths, batch_size)) / lengths.sum() - 1,
                "You divided by the real tokens. The share is of all tokens, padding included.",
            ),
            Misconception(
                "sorted",
                lambda lengths, batch_size: _padding(np.sort(lengths), batch_size),
                "You sorted first. That is what makes padding less, and here the order is given.",
            ),
            Misconception(
                "last batch left out",
                _dropped,
                "The last batch, which is smaller, is missing.",
            ),
        ],
    ),
    Exercise(
        id="12.4",
        title="Weights against the alignment",
        reference=_hits,
        cases=lambda rng: [_aligned(rng) for _ in range(3)],
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
                "This is the mean weight at the right morpheme. Asked is how often the largest weight is there.",
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
        ],
    ),
    Exercise(
        id="12.5",
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
                "You divided by the number of processes as well. The tokens of all are counted already.",
            ),
            Misconception(
                "few count more",
                lambda means, counts: (means / counts).sum() / (1 / counts).sum(),
                "You weighted by one over the count, so that few tokens count more. Weigh each mean by its count.",
            ),
        ],
    ),
]
