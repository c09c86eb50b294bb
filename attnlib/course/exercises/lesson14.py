"""Exercises of lesson 14: scores, beams, what to draw from, and what a cache saves."""

from __future__ import annotations

from math import ceil, floor, log

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _score(log_p, n, alpha):
    return log_p / ((5 + n) / 6) ** alpha


def _pairs(ranking, width, n_words):
    best = np.argsort(-ranking, axis=None)[:width]
    return np.stack([best // n_words, best % n_words], axis=1)


def _step(scores, log_p):
    width, n_words = log_p.shape
    best = np.argsort(-(scores[:, None] + log_p), axis=None)[:width]
    return np.stack([best // n_words, best % n_words], axis=1)


def _each_its_own(scores, log_p):
    words = log_p.argmax(axis=1)
    order = np.argsort(-(scores + log_p.max(axis=1)))
    return np.stack([order, words[order]], axis=1)


def _kept(p, top_p, *, stays):
    order = np.argsort(-p)
    upto = np.cumsum(p[order])
    kept = np.zeros(len(p))
    chosen = order[stays(upto, p[order], top_p)]
    kept[chosen] = p[chosen]
    return kept


def _nucleus(p, top_p):
    order = np.argsort(-p)
    stays = order[np.cumsum(p[order]) - p[order] < top_p]
    kept = np.zeros(len(p))
    kept[stays] = p[stays]
    return kept / kept.sum()


def _one_too_many(p, top_p):
    kept = _kept(p, top_p, stays=lambda upto, q, top: upto - q <= top)
    return kept / kept.sum()


def _stops_short(p, top_p):
    kept = _kept(p, top_p, stays=lambda upto, q, top: (upto <= top) | (np.arange(len(q)) == 0))
    return kept / kept.sum()


def _unsorted(p, top_p):
    kept = np.where(np.cumsum(p) - p < top_p, p, 0.0)
    return kept / kept.sum()


def _in_rank_order(p, top_p):
    return np.sort(_nucleus(p, top_p))[::-1]


def _above(p, top_p):
    kept = np.where(p >= p.max() * top_p, p, 0.0)
    return kept / kept.sum()


def _tempered(p, temperature):
    powers = p ** (1 / temperature)
    return powers / powers.sum()


def _share(x):
    return x / x.sum()


def _positions(n_prompt, n_new):
    return sum(1 + n_prompt + i for i in range(n_new))


def _length(p_right, p_end):
    return int(np.log(p_end) / np.log(p_right))


EXERCISES = [
    Exercise(
        id="14.1",
        title="The score of a sentence",
        reference=_score,
        cases=lambda rng: [(-3.2, 7, 0.6), (-11.5, 16, 1.0), (-0.9, 2, 0.3)],
        hints=(
            "A log-probability divided by something that grows with the length.",
            "The divisor is ((5 + n) / 6) to the power alpha.",
            "log_p / ((5 + n) / 6) ** alpha.",
        ),
        misconceptions=[
            Misconception(
                "multiplied",
                lambda log_p, n, alpha: log_p * ((5 + n) / 6) ** alpha,
                "You multiplied. Log-probabilities are negative, so that makes long sentences worse still; divide.",
            ),
            Misconception(
                "power of the length",
                lambda log_p, n, alpha: log_p / n**alpha,
                "You divided by n to the power alpha, which is used too, and is another penalty. This one has "
                "(5 + n) / 6, which makes less of the difference between very short sentences.",
            ),
            Misconception(
                "alpha as a factor",
                lambda log_p, n, alpha: log_p / (alpha * (5 + n) / 6),
                "You multiplied by alpha. It is a power: at alpha = 0 the divisor must be one, whatever the length.",
            ),
            Misconception(
                "the mean",
                lambda log_p, n, alpha: log_p / n,
                "This is the mean over words. Alpha says how much of that is wanted.",
            ),
            Misconception(
                "no power",
                lambda log_p, n, alpha: log_p / ((5 + n) / 6),
                "You left alpha out. It is the power of the divisor.",
            ),
            Misconception(
                "the end twice",
                lambda log_p, n, alpha: log_p / ((6 + n) / 6) ** alpha,
                "Your sentence is one token longer: n counts the end already.",
            ),
            Misconception(
                "without the end",
                lambda log_p, n, alpha: log_p / ((4 + n) / 6) ** alpha,
                "Your sentence is one token shorter: the end is counted, and n counts it.",
            ),
            Misconception(
                "power of the score",
                lambda log_p, n, alpha: -((-log_p / ((5 + n) / 6)) ** alpha),
                "You raised the whole fraction to the power alpha. Only the divisor is.",
            ),
            Misconception(
                "exponential",
                lambda log_p, n, alpha: float(np.exp(log_p)) / ((5 + n) / 6) ** alpha,
                "You divided the probability. The score divides its logarithm.",
            ),
        ],
    ),
    Exercise(
        id="14.2",
        title="One step of beam search",
        reference=_step,
        cases=lambda rng: [
            (np.log(rng.dirichlet(np.ones(w))), np.log(rng.dirichlet(0.6 * np.ones(n), size=w)))
            for w, n in ((3, 5), (4, 7), (2, 6), (5, 4))
        ],
        hints=(
            "Every beam with every word is a candidate: width * n_words of them, all in one ranking.",
            "A continuation's log-probability is its beam's plus its word's: scores[:, None] + log_p.",
            "Rank the flat array; a flat place is beam * n_words + word, so // and % take it apart.",
        ),
        misconceptions=[
            Misconception(
                "each beam its best",
                _each_its_own,
                "You kept the best word of each beam. All continuations compete in one ranking: a good beam may keep "
                "several, a bad one none.",
            ),
            Misconception(
                "each beam its best, unranked",
                lambda scores, log_p: np.stack([np.arange(len(log_p)), log_p.argmax(axis=1)], axis=1),
                "You went through the beams and took the best word of each. All continuations compete in one ranking: "
                "a good beam may keep several, a bad one none.",
            ),
            Misconception(
                "flat places",
                lambda scores, log_p: np.argsort(-(scores[:, None] + log_p), axis=None)[: len(scores)],
                "These are places in the flat array. Take each apart into (beam, word), with // and %.",
            ),
            Misconception(
                "a probability added",
                lambda scores, log_p: _pairs(scores[:, None] + np.exp(log_p), *log_p.shape),
                "You added a probability to a log-probability. `log_p` holds logarithms: add them as they are.",
            ),
            Misconception(
                "the last word alone",
                lambda scores, log_p: _pairs(log_p, *log_p.shape),
                "You ranked by the last word alone, and forgot how likely the beams are. Add their scores.",
            ),
            Misconception(
                "multiplied",
                lambda scores, log_p: _pairs(-np.abs(scores[:, None] * log_p), *log_p.shape),
                "You multiplied log-probabilities. Probabilities are multiplied, their logarithms added.",
            ),
            Misconception(
                "the worst",
                lambda scores, log_p: _pairs(-(scores[:, None] + log_p), *log_p.shape),
                "You kept the least likely. argsort ranks upwards: take it of the negative, or from the end.",
            ),
            Misconception(
                "word before beam",
                lambda scores, log_p: _step(scores, log_p)[:, ::-1],
                "Your pairs are (word, beam). The beam comes first.",
            ),
            Misconception(
                "best last",
                lambda scores, log_p: _step(scores, log_p)[::-1],
                "The right continuations, with the best one last. It comes first.",
            ),
        ],
    ),
    Exercise(
        id="14.3",
        title="Top-p",
        reference=_nucleus,
        cases=lambda rng: [
            *((rng.dirichlet(np.ones(n)), top) for n, top in ((6, 0.7), (9, 0.5), (5, 0.85), (12, 0.3))),
            (np.array([0.25, 0.5, 0.125, 0.125]), 0.5),  # the best alone has just that much
        ],
        hints=(
            "Rank the words. How much have those before a word, together?",
            "A word stays while what came before it, cumsum - p in the ranked order, is below top_p.",
            "order = np.argsort(-p); stays = np.cumsum(p[order]) - p[order] < top_p; then put back, and divide.",
        ),
        misconceptions=[
            Misconception(
                "stops short",
                _stops_short,
                "You dropped the word that crosses top_p. Those that stay must have at least top_p together, so it "
                "stays too.",
            ),
            Misconception(
                "one too many",
                _one_too_many,
                "You kept a word although those before it had top_p already. At least top_p: so that much will do.",
            ),
            Misconception(
                "does not sum to one",
                lambda p, top_p: _kept(p, top_p, stays=lambda upto, q, top: upto - q < top),
                "The right words, and their probabilities sum to less than one. Divide by what is left.",
            ),
            Misconception(
                "not ranked",
                _unsorted,
                "You went through the words in the order they stand in. Begin with the likeliest.",
            ),
            Misconception(
                "in ranked order",
                _in_rank_order,
                "The right numbers in ranked order. Each word wants its own back: put them where order says.",
            ),
            Misconception(
                "a share of the best",
                _above,
                "You kept what has at least top_p of the best word's probability. That is another rule (min-p); here "
                "the probabilities are added up until they reach top_p.",
            ),
            Misconception(
                "each above top_p",
                lambda p, top_p: _share(np.where(p >= min(top_p, p.max()), p, 0.0)),
                "You asked each word for top_p by itself. It is what they have together.",
            ),
        ],
    ),
    Exercise(
        id="14.4",
        title="Temperature without logits",
        reference=_tempered,
        cases=lambda rng: [(rng.dirichlet(np.ones(n)), t) for n, t in ((5, 0.5), (7, 2.0), (4, 1.7))],
        hints=(
            "Probabilities are as good as logits: log(p) has p as its softmax.",
            "softmax(log(p) / temperature): what is exp(log(p) / temperature)?",
            "p ** (1 / temperature), divided by its sum.",
        ),
        misconceptions=[
            Misconception(
                "the wrong way round",
                lambda p, temperature: _share(p**temperature),
                "The power is 1 / temperature. Yours makes a high temperature sharper.",
            ),
            Misconception(
                "softmax of probabilities",
                lambda p, temperature: _share(np.exp(p / temperature)),
                "You took the softmax of the probabilities, as if they were logits, so they were exponentiated twice. "
                "Take their logarithm first.",
            ),
            Misconception(
                "does not sum to one",
                lambda p, temperature: p ** (1 / temperature),
                "The powers do not sum to one. Divide by their sum.",
            ),
            Misconception(
                "divided",
                lambda p, temperature: p / temperature,
                "You divided the probabilities. It is the logits that are divided.",
            ),
            Misconception(
                "unchanged",
                lambda p, temperature: _share(p / temperature),
                "Dividing all by the temperature and then by their sum changes nothing: the temperature cancels.",
            ),
        ],
    ),
    Exercise(
        id="14.5",
        title="What is computed without a cache",
        reference=_positions,
        cases=lambda rng: [(0, 5), (3, 4), (10, 20), (7, 1)],
        hints=(
            "To write the first new token the decoder reads the start and the prompt.",
            "That is 1 + n_prompt positions, and one more each time.",
            "The sum of 1 + n_prompt + i for i from 0 to n_new - 1.",
        ),
        misconceptions=[
            Misconception(
                "with a cache",
                lambda n_prompt, n_new: n_prompt + n_new,
                "That is with a cache, where each position is computed once. Without one all are computed again for "
                "each token.",
            ),
            Misconception(
                "with a cache, and one more",
                lambda n_prompt, n_new: 1 + n_prompt + n_new,
                "That counts each position once. Without a cache all are computed again for each token.",
            ),
            Misconception(
                "does not grow",
                lambda n_prompt, n_new: n_new * (1 + n_prompt),
                "You read the start and the prompt for each token. What was written since is read again as well.",
            ),
            Misconception(
                "without the prompt",
                lambda n_prompt, n_new: n_new * (n_new + 1) // 2,
                "The prompt is missing: it is read again for each token, before all that is new.",
            ),
            Misconception(
                "without the start",
                lambda n_prompt, n_new: sum(n_prompt + i for i in range(n_new)),
                "The start is missing: it is read each time.",
            ),
            Misconception(
                "the last token too",
                lambda n_prompt, n_new: _positions(n_prompt, n_new + 1),
                "You read once more after the last token. Nothing is asked after it.",
            ),
            Misconception(
                "all at full length",
                lambda n_prompt, n_new: n_new * (n_prompt + n_new),
                "You counted the full length each time. The text grows: the first token is written after 1 + n_prompt "
                "positions.",
            ),
            Misconception(
                "prompt once",
                lambda n_prompt, n_new: n_prompt + n_new * (n_new + 1) // 2,
                "You counted the prompt once. Without a cache it is read again for each token.",
            ),
            Misconception(
                "the prompt word by word",
                lambda n_prompt, n_new: (n_prompt + n_new) * (n_prompt + n_new + 1) // 2,
                "You counted the prompt as if it were written word by word. It is read at once.",
            ),
            Misconception(
                "pairs",
                lambda n_prompt, n_new: sum((1 + n_prompt + i) ** 2 for i in range(n_new)),
                "You counted pairs of positions, which are the weights. Count the positions.",
            ),
        ],
    ),
    Exercise(
        id="14.6",
        title="Why the short is likelier",
        reference=_length,
        cases=lambda rng: [(0.8, 0.001), (0.6, 0.01), (0.9, 0.0009), (0.35, 0.02), (0.5, 0.25)],
        hints=(
            "A sentence of n words has n + 1 factors, the end being the last.",
            "Nothing is likelier when p_right ** (n + 1) < p_end. Take logarithms; which way does the sign turn?",
            "n + 1 must exceed log(p_end) / log(p_right), so the smallest n is its floor.",
        ),
        misconceptions=[
            Misconception(
                "without the end",
                lambda p_right, p_end: floor(log(p_end) / log(p_right)) + 1,
                "You counted n factors. The sentence has an end as well, so there are n + 1.",
            ),
            Misconception(
                "not rounded",
                lambda p_right, p_end: log(p_end) / log(p_right) - 1,
                "This is where both are equally likely. Words come in whole numbers: take the next one above.",
            ),
            Misconception(
                "not rounded, with the end",
                lambda p_right, p_end: log(p_end) / log(p_right),
                "This is n + 1 where both are equally likely, the end counted and nothing rounded. Which whole n is "
                "the first beyond it?",
            ),
            Misconception(
                "equally likely",
                lambda p_right, p_end: ceil(log(p_end) / log(p_right)) - 1,
                "At this length both may be equally likely, and nothing is not likelier yet: try p_right = 0.5 and "
                "p_end = 0.25.",
            ),
            Misconception(
                "rounded down",
                lambda p_right, p_end: ceil(log(p_end) / log(p_right)) - 2,
                "One too short: at this length the sentence is still likelier than nothing.",
            ),
            Misconception(
                "the wrong way round",
                lambda p_right, p_end: log(p_right) / log(p_end),
                "You divided the wrong way round: n + 1 times log(p_right) is to fall below log(p_end).",
            ),
            Misconception(
                "a fraction of probabilities",
                lambda p_right, p_end: p_right / p_end,
                "You divided the probabilities. The factors multiply, so it is their logarithms that are divided.",
            ),
        ],
    ),
]
