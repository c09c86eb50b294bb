"""Exercises of lesson 16: bits, exact matches, the loss of an answer, sizes, and leaks."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _bits(log_p, n_characters):
    return -log_p.sum() / np.log(2) / n_characters


def _match_weights(tokens, context):
    k = len(context)
    weights = np.zeros(len(tokens))
    for i in range(k, len(tokens)):
        weights[i] = np.array_equal(tokens[i - k : i], context)
    return weights / max(weights.sum(), 1)


def _matches(tokens, context, shift=0):
    k = len(context)
    found = np.zeros(len(tokens))
    for i in range(k, len(tokens) + (shift < 0)):
        if np.array_equal(tokens[i - k : i], context):
            found[i + shift] = 1
    return found


def _normal(weights):
    return weights / max(weights.sum(), 1)


def _last_alone(tokens, context):
    return _normal(np.r_[0, np.asarray(tokens[:-1]) == context[-1]].astype(float))


def _anywhere(tokens, context):
    return _normal(np.isin(tokens, context).astype(float))


def _answer_loss(log_p, tokens, n_prompt):
    places = np.arange(n_prompt, len(tokens))
    return -log_p[places - 1, tokens[places]].mean()


def _unshifted(log_p, tokens, n_prompt):
    places = np.arange(n_prompt, len(tokens))
    return -log_p[places, tokens[places]].mean()


def _prompt_too(log_p, tokens, n_prompt):
    places = np.arange(1, len(tokens))
    return -log_p[places - 1, tokens[places]].mean()


def _first_forgotten(log_p, tokens, n_prompt):
    places = np.arange(n_prompt + 1, len(tokens))
    return -log_p[places - 1, tokens[places]].mean()


def _answer_sum(log_p, tokens, n_prompt):
    return _answer_loss(log_p, tokens, n_prompt) * (len(tokens) - n_prompt)


def _shifted_back(log_p, tokens, n_prompt):
    places = np.arange(n_prompt, len(tokens) - 1)
    return -log_p[places + 1, tokens[places]].mean()


def _size(n_tokens, n_max, d, n_layers):
    layer = 4 * (d * d + d) + (d * 4 * d + 4 * d) + (4 * d * d + d) + 2 * 2 * d
    return n_tokens * d + n_max * d + n_layers * layer + 2 * d


def _runs(text, n):
    words = text.split()
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def _leaks(train, test, n):
    known = set().union(*(_runs(text, n) for text in train))
    return [i for i, text in enumerate(test) if _runs(text, n) & known]


def _whole_texts(train, test, n):
    return [i for i, text in enumerate(test) if text in train]


def _letters(train, test, n):
    known = {text[i : i + n] for text in train for i in range(len(text) - n + 1)}
    return [i for i, text in enumerate(test) if {text[j : j + n] for j in range(len(text) - n + 1)} & known]


def _bag(train, test, n):
    return [i for i, text in enumerate(test) if any(len(set(text.split()) & set(a.split())) >= n for a in train)]


def _beginnings(train, test, n):
    known = set().union(*(_runs(text, n) for text in train))
    return [i for i, text in enumerate(test) if tuple(text.split()[:n]) in known]


def _across(train, test, n):
    known = _runs(" ".join(train), n)
    return [i for i, text in enumerate(test) if _runs(text, n) & known]


def _solve_weights(tokens, context):
    k = len(context)
    weights = np.zeros(len(tokens))
    for i in range(k, len(tokens)):
        if list(tokens[i - k : i]) == list(context):  # what stood before place i
            weights[i] = 1
    return weights / max(weights.sum(), 1)


def _solve_leaks(train, test, n):
    def runs(text):
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = {run for text in train for run in runs(text)}
    return [i for i, text in enumerate(test) if runs(text) & known]


def _solve_size(n_tokens, n_max, d, n_layers):
    attention = 4 * (d * d + d)
    feed_forward = d * 4 * d + 4 * d + 4 * d * d + d
    norms = 2 * 2 * d
    return (n_tokens + n_max) * d + n_layers * (attention + feed_forward + norms) + 2 * d


def _log_p(rng, n, size):
    logits = 2 * rng.normal(size=(n, size))
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


_TRAIN = [
    "the number of edges in the graph",
    "a list of nodes sorted by degree",
    "returns true if the graph is empty",
]
_TEST = [
    "returns the number of edges in a tree",
    "nodes of a list sorted by name",
    "a list of nodes sorted by degree",
    "the graph is empty or not",
    "the shortest path between two nodes",
    "degree returns true for the root",
]


EXERCISES = [
    Exercise(
        id="16.1",
        title="From surprise to bits",
        reference=_bits,
        cases=lambda rng: [(np.log(rng.uniform(0.01, 0.9, size=n)), m) for n, m in ((5, 17), (9, 31), (4, 26))],
        hints=(
            "What does one token cost, in bits?",
            "-log2(p) is -ln(p) / ln(2). All tokens together pay for all characters.",
            "-log_p.sum() / np.log(2) / n_characters",
        ),
        misconceptions=[
            Misconception(
                "nats",
                lambda log_p, n_characters: -log_p.sum() / n_characters,
                "These are nats, as natural logarithms give them. One bit is ln 2 nats: divide by np.log(2).",
            ),
            Misconception(
                "per token",
                lambda log_p, n_characters: -log_p.mean() / np.log(2),
                "These are bits per token. A model with longer tokens would look worse than it is: divide the sum by "
                "the characters.",
            ),
            Misconception(
                "mean over characters",
                lambda log_p, n_characters: -log_p.mean() / np.log(2) / n_characters,
                "You took the mean over tokens and divided by the characters too. Divide the sum, once.",
            ),
            Misconception(
                "negative",
                lambda log_p, n_characters: log_p.sum() / np.log(2) / n_characters,
                "The right size and the wrong sign. Logarithms of probabilities are negative, and surprise is not.",
            ),
            Misconception(
                "multiplied by ln 2",
                lambda log_p, n_characters: -log_p.sum() * np.log(2) / n_characters,
                "You multiplied by ln 2. A nat is more than a bit, so there are more bits than nats: divide.",
            ),
            Misconception(
                "mean probability",
                lambda log_p, n_characters: -np.log2(np.exp(log_p).mean()),
                "You took the mean of the probabilities first. What is averaged is the surprise of each.",
            ),
        ],
    ),
    Exercise(
        id="16.2",
        title="An n-gram's attention map",
        reference=_match_weights,
        cases=lambda rng: [
            (np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 1, 4, 2]), np.array([3, 1])),
            (np.array([0, 1, 0, 1, 2, 0, 1, 3, 1, 0]), np.array([0, 1])),
            (np.array([2, 2, 2, 7, 2, 2, 5, 2]), np.array([2, 2])),
            (np.array([1, 2, 3, 4]), np.array([4, 3])),
            (np.array([5, 6, 5, 8, 5]), np.array([5])),
        ],
        hints=(
            "Before place i stand tokens[i - k : i], with k = len(context). When is that a match?",
            "Place i has weight if what stands before it equals the context, in its order. Begin at i = k.",
            "Set those weights to 1, and divide by how many they are, or by 1 if there is none.",
        ),
        misconceptions=[
            Misconception(
                "the match itself",
                lambda tokens, context: _normal(_matches(tokens, context, shift=-1)),
                "The weight is on the last token of the match. The value is the token that came after it.",
            ),
            Misconception(
                "not shared",
                lambda tokens, context: _matches(tokens, context),
                "The right places, each with weight 1. They share it: all weights sum to one.",
            ),
            Misconception(
                "over all places",
                lambda tokens, context: _matches(tokens, context) / len(tokens),
                "You divided by the number of tokens. Divide by that of the matches, so that the weights sum to one.",
            ),
            Misconception(
                "the last token alone",
                _last_alone,
                "You compared the last token only. All of the context has to match, in its order.",
            ),
            Misconception(
                "any of the context",
                _anywhere,
                "You weighted tokens that occur in the context. It is what stands before a place that has to match.",
            ),
            Misconception(
                "the latest match",
                lambda tokens, context: (
                    np.eye(len(tokens))[np.flatnonzero(_matches(tokens, context))[-1]]
                    if _matches(tokens, context).any()
                    else np.zeros(len(tokens))
                ),
                "You kept the latest match alone. All of them share the weight.",
            ),
        ],
        solution=_solve_weights,
    ),
    Exercise(
        id="16.3",
        title="The loss of an answer",
        reference=_answer_loss,
        cases=lambda rng: [
            (_log_p(rng, n, size), rng.integers(0, size, n), m) for n, size, m in ((9, 5, 3), (7, 6, 4), (12, 8, 5))
        ],
        hints=(
            "Which row of log_p speaks of the first token of the answer?",
            "Row i is what the model says after token i, so token j is in row j - 1.",
            "places = np.arange(n_prompt, len(tokens)); then -log_p[places - 1, tokens[places]].mean()",
        ),
        misconceptions=[
            Misconception(
                "not shifted",
                _unshifted,
                "You asked each row for the token that stands at its own place, which the model has read already. Row "
                "i speaks of token i + 1.",
            ),
            Misconception(
                "the question too",
                _prompt_too,
                "You averaged over the question as well. The model is not to learn to ask.",
            ),
            Misconception(
                "the first token forgotten",
                _first_forgotten,
                "The first token of the answer is missing. It is predicted from the last of the question.",
            ),
            Misconception(
                "a sum", _answer_sum, "You returned the sum. Divide it by the number of tokens in the answer."
            ),
            Misconception(
                "shifted the wrong way",
                _shifted_back,
                "You shifted the wrong way: row i speaks of the token after it, i + 1, not of the one before.",
            ),
            Misconception(
                "the sign",
                lambda log_p, tokens, n_prompt: -_answer_loss(log_p, tokens, n_prompt),
                "The right size and the wrong sign: a loss is the negative of the log-probability.",
            ),
        ],
    ),
    Exercise(
        id="16.4",
        title="How large is it?",
        reference=_size,
        cases=lambda rng: [(50257, 1024, 768, 12), (40478, 512, 768, 12), (97, 30, 8, 3), (1000, 64, 24, 2)],
        hints=(
            "Count the parts: two tables, n_layers layers, one norm.",
            "Four projections have 4 * (d * d + d) numbers, the feed-forward network 8 * d * d + 5 * d, a norm 2 * d.",
            "(n_tokens + n_max) * d + n_layers * (12 * d * d + 13 * d) + 2 * d",
        ),
        misconceptions=[
            Misconception(
                "the output counted",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) + n_tokens * d,
                "You counted a table for the output. It is the table of embeddings, so it costs nothing.",
            ),
            Misconception(
                "no biases",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 9 * d,
                "The biases are missing: d for each of four projections, 4 * d and d in the feed-forward network.",
            ),
            Misconception(
                "no positions",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_max * d,
                "The positions are missing: there is a row of d numbers for each of n_max.",
            ),
            Misconception(
                "no last norm",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - 2 * d,
                "The norm after the last layer is missing.",
            ),
            Misconception(
                "one number in a norm",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - (2 * n_layers + 1) * d,
                "A norm has two numbers for each of d: one that it multiplies with, one that it adds.",
            ),
            Misconception(
                "one norm in a layer",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 2 * d,
                "A layer has two norms, one before each sublayer.",
            ),
        ],
        solution=_solve_size,
    ),
    Exercise(
        id="16.5",
        title="Find the leak",
        reference=_leaks,
        cases=lambda rng: [(_TRAIN, _TEST, 4), (_TRAIN, _TEST, 3), (_TRAIN, _TEST, 7), (_TRAIN, _TEST[::-1], 2)],
        hints=(
            "Cut a text into words. Which runs of n words does it have?",
            "The runs of a text are tuples: put those of all of train into one set.",
            "known = all runs of train; [i for i, text in enumerate(test) if runs(text) & known]",
        ),
        misconceptions=[
            Misconception(
                "whole texts",
                _whole_texts,
                "You found texts that were copied whole. A leak of n words is enough.",
            ),
            Misconception(
                "n letters",
                _letters,
                "You compared runs of n letters. It is n words, so split() the text first.",
            ),
            Misconception(
                "a bag of words",
                _bag,
                "You counted words that both have, wherever they stand. They have to follow each other.",
            ),
            Misconception(
                "beginnings alone",
                _beginnings,
                "You looked at the first n words of each test text only. A leak may begin anywhere.",
            ),
            Misconception(
                "across texts",
                _across,
                "You joined the training texts, and found runs that cross from one to the next. Look at each alone.",
            ),
            Misconception(
                "the clean ones",
                lambda train, test, n: [i for i in range(len(test)) if i not in _leaks(train, test, n)],
                "These are the clean ones. Return those that leak.",
            ),
        ],
        solution=_solve_leaks,
    ),
]
