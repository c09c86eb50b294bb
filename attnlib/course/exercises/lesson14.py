"""Exercises of lesson 14: a step of beam search, what to draw from, why the short is likelier, when width pays."""

from __future__ import annotations

from math import ceil, floor, log

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception


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


def _kept(p, top_p, *, stays, ranked=lambda p: np.argsort(-p)):
    order = ranked(p)
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


def _least_likely(p, top_p):
    return _share(_kept(p, top_p, stays=lambda upto, q, top: upto - q < top, ranked=np.argsort))


def _in_rank_order(p, top_p):
    return np.sort(_nucleus(p, top_p))[::-1]


def _above(p, top_p):
    kept = np.where(p >= p.max() * top_p, p, 0.0)
    return kept / kept.sum()


def _share(x):
    return x / x.sum()


def _length(p_right, p_end):
    n = 0
    while p_right ** (n + 1) >= p_end:
        n += 1
    return n


def _table():
    return {
        (): {"a": 0.5, "b": 0.3, "c": 0.2},
        ("a",): {"a": 0.34, "b": 0.33, "c": 0.33},  # the likeliest beginning, and three ways to go on
        ("b",): {"a": 0.6, "b": 0.4},
        ("c",): {"a": 1.0},  # the least likely beginning settles the matter
    }


def _best(table, width):
    """The probability of the sentence that a search of this width finds; None where one has over four words."""
    alive, over = [((), 1.0)], []
    for _ in range(5):
        new = [((*text, w), p * q) for text, p in alive for w, q in table.get(text, {".": 1.0}).items()]
        new = sorted(new, key=lambda pair: -pair[1])[: width - len(over)]
        over += [pair for pair in new if pair[0][-1] == "."]
        alive = [pair for pair in new if pair[0][-1] != "."]
    return None if alive else max(p for _, p in over)


def _widths(table):
    """Whether 2 finds a likelier sentence than 1, and 3 than 2: 1 or 0 each. Or what is wrong with it."""
    if not isinstance(table, dict) or not all(isinstance(after, dict) for after in table.values()):
        return "Return a dictionary {text: {word: probability}}, like HUNGRY."
    if () not in table or not all(isinstance(text, tuple) for text in table):
        return "The keys must be tuples of words, and () for the beginning must be one of them."
    for text, after in table.items():
        if not after or not all(isinstance(p, int | float) and p >= 0 for p in after.values()):
            return f"After {text} words with probabilities must follow, none below 0. A text that ends is left out."
        if abs(sum(after.values()) - 1) > 6e-4:
            return f"Probabilities must sum to one; after {text} they sum to {sum(after.values()):.3f}."
    words = {word for after in table.values() for word in after} - {"."}
    if len(words) > 3:
        return f"At most three words are allowed; {len(words)} came."
    one, two, three = (_best(table, width) for width in (1, 2, 3))
    if None in (one, two, three):
        return "A sentence has more than four words; at most four are allowed."
    return np.array([two > one + 1e-9, three > two + 1e-9], dtype=float)


def _wider_is_better(wanted, came):
    return bool(np.array_equal(wanted, came))


EXERCISES = [
    Exercise(
        id="14.1",
        title="One step of beam search",
        reference=_step,
        cases=lambda rng: [
            *(
                (np.log(rng.dirichlet(np.ones(w))), np.log(rng.dirichlet(0.6 * np.ones(n), size=w)))
                for w, n in ((3, 5), (4, 7), (2, 6), (5, 4), (6, 9))
            ),
            (np.log([0.34, 0.33, 0.33]), np.log(rng.dirichlet(np.ones(8), size=3))),  # beams nearly level
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
                "probabilities added",
                lambda scores, log_p: _pairs(np.exp(scores)[:, None] + np.exp(log_p), *log_p.shape),
                "You added probabilities. A beam and its next word happen together: probabilities are multiplied, and "
                "their logarithms added.",
            ),
            Misconception(
                "multiplied",
                lambda scores, log_p: _pairs(scores[:, None] * log_p, *log_p.shape),
                "You multiplied log-probabilities. Two negative numbers give a positive one, so unlikely ones came "
                "first. Probabilities are multiplied, their logarithms added.",
            ),
            Misconception(
                "multiplied, the smallest first",
                lambda scores, log_p: _pairs(-np.abs(scores[:, None] * log_p), *log_p.shape),
                "You multiplied log-probabilities. Probabilities are multiplied, their logarithms added.",
            ),
            Misconception(
                "the worst",
                lambda scores, log_p: _pairs(-(scores[:, None] + log_p), *log_p.shape),
                "You kept the least likely. argsort ranks upwards: sort the negative, or read it from the end.",
            ),
            Misconception(
                "word before beam",
                lambda scores, log_p: _step(scores, log_p)[:, ::-1],
                "Your pairs are (word, beam). The beam comes first.",
            ),
            Misconception(
                "best last",
                lambda scores, log_p: _step(scores, log_p)[::-1],
                "The right continuations, but with the best one last. Put it first.",
            ),
        ],
    ),
    Exercise(
        id="14.2",
        title="Top-p",
        reference=_nucleus,
        cases=lambda rng: [
            *((rng.dirichlet(np.ones(n)), top) for n, top in ((6, 0.7), (9, 0.5), (5, 0.85), (12, 0.3))),
            (np.array([0.25, 0.5, 0.125, 0.125]), 0.5),  # the best alone has just that much
            (np.array([0.35, 0.25, 0.4]), 0.3),  # two have as much, and the best is enough
        ],
        hints=(
            "Rank the words. How much probability do those before a word have, together?",
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
                "You kept one word too many: those before it had top_p already, and that is enough.",
            ),
            Misconception(
                "does not sum to one",
                lambda p, top_p: _kept(p, top_p, stays=lambda upto, q, top: upto - q < top),
                "The right words, but their probabilities sum to less than one. Divide them by their sum.",
            ),
            Misconception(
                "not ranked",
                _unsorted,
                "You went through the words in the order they stand in. Begin with the likeliest.",
            ),
            Misconception(
                "in ranked order",
                _in_rank_order,
                "The right numbers, but in ranked order. Put each back where its word stands in p.",
            ),
            Misconception(
                "a share of the best",
                _above,
                "You kept what has at least top_p of the best word's probability. That is another rule (min-p); here "
                "the probabilities are added up until they reach top_p.",
            ),
            Misconception(
                "equal shares",
                lambda p, top_p: _share(np.where(_nucleus(p, top_p) > 0, 1.0, 0.0)),
                "The right words, all with the same probability. Keep their own, divided by the sum of what is kept.",
            ),
            Misconception(
                "a softmax of probabilities",
                lambda p, top_p: masked_softmax(np.where(_nucleus(p, top_p) > 0, p, -np.inf)),
                "You put what is left through a softmax. These are probabilities already: divide them by their sum.",
            ),
            Misconception(
                "the least likely",
                _least_likely,
                "You began with the least likely. argsort ranks upwards: sort the negative, or read it from the end.",
            ),
            Misconception(
                "each above top_p",
                lambda p, top_p: _share(np.where(p >= min(top_p, p.max()), p, 0.0)),
                "You asked for words that reach top_p alone. The words that stay need to reach it together.",
            ),
        ],
    ),
    Exercise(
        id="14.3",
        title="Why the short is likelier",
        reference=_length,
        cases=lambda rng: [(0.8, 0.001), (0.6, 0.01), (0.9, 0.0009), (0.35, 0.02), (0.5, 0.25)],
        hints=(
            "A sentence of n words has n + 1 factors, the end being the last.",
            "The empty sentence wins when p_right ** (n + 1) < p_end. Take logarithms; which way does the < turn?",
            "n + 1 must exceed log(p_end) / log(p_right), so the smallest n is its floor.",
        ),
        misconceptions=[
            Misconception(
                "without the end",
                lambda p_right, p_end: floor(log(p_end) / log(p_right)) + 1,
                "One too many. A sentence of n words has n + 1 factors: its end is one.",
            ),
            Misconception(
                "without the end, equally likely",
                lambda p_right, p_end: ceil(log(p_end) / log(p_right)),
                "Mostly one too many. A sentence of n words has n + 1 factors: its end is one. And the empty one must "
                "be likelier, not equally likely.",
            ),
            Misconception(
                "not rounded",
                lambda p_right, p_end: log(p_end) / log(p_right) - 1,
                "This is where both are equally likely. Words come in whole numbers: take the next one above.",
            ),
            Misconception(
                "not rounded, with the end",
                lambda p_right, p_end: log(p_end) / log(p_right),
                "This is n + 1 where both are equally likely, the end counted and nothing rounded. Take the end's one "
                "off: which whole n is the first beyond what is left?",
            ),
            Misconception(
                "equally likely",
                lambda p_right, p_end: ceil(log(p_end) / log(p_right)) - 1,
                "At this length both may be equally likely. The empty one must be likelier: try p_right = 0.5 and "
                "p_end = 0.25.",
            ),
            Misconception(
                "rounded down",
                lambda p_right, p_end: ceil(log(p_end) / log(p_right)) - 2,
                "Too short: at this length the sentence is still likelier than the empty one.",
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
    Exercise(
        id="14.4",
        title="A model that rewards a wider search",
        reference=_table,
        adapt=_widths,
        compare=_wider_is_better,
        hints=(
            "Greedy must choose a wrong word. So several sentences must share a likeliest beginning.",
            "Give three beginnings of falling probability. The first goes on in three ways, the second in two, the "
            "third in one.",
            "() to a 0.5, b 0.3, c 0.2; a to three words of about a third each (0.17 at best), b to 0.6 and 0.4 "
            "(0.18), c to one word for certain (0.2).",
        ),
        misconceptions=[
            Misconception(
                "greedy is best",
                lambda: {(): {"a": 0.6, "b": 0.4}, ("a",): {"b": 1.0}},
                "Neither a width of 2 nor one of 3 finds a likelier sentence than greedy. The likeliest beginning "
                "must lead to several sentences that share its probability.",
            ),
            Misconception(
                "two is enough",
                lambda: {(): {"a": 0.6, "b": 0.4}, ("a",): {"a": 0.5, "b": 0.5}},
                "A width of 2 beats greedy, and 3 finds nothing better. The sentence that 3 is to find must begin "
                "with words that a width of 2 drops.",
            ),
            Misconception(
                "two does not help",
                lambda: {
                    (): {"a": 0.5, "b": 0.3, "c": 0.2},
                    ("a",): {"a": 0.38, "b": 0.32, "c": 0.3},
                    ("b",): {"a": 0.5, "b": 0.5},
                },
                "A width of 3 finds a likelier sentence than 2, but 2 none likelier than greedy. It must find one, "
                "though a less likely one than 3 finds.",
            ),
        ],
    ),
]
