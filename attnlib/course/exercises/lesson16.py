"""Exercises of lesson 16: bits, exact matches, the loss of an answer, sizes, and leaks."""

from __future__ import annotations

import re

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


def _unguarded(tokens, context):
    with np.errstate(invalid="ignore"):
        return _matches(tokens, context) / _matches(tokens, context).sum()


def _even_without(tokens, context):
    found = _matches(tokens, context)
    return found / found.sum() if found.any() else np.full(len(found), 1 / len(found))


def _soft(tokens, context):
    weights = np.exp(_matches(tokens, context))
    return weights / weights.sum()


def _any_order(tokens, context):
    k = len(context)
    found = [sorted(tokens[i - k : i]) == sorted(context) for i in range(k, len(tokens))]
    return _normal(np.r_[np.zeros(k), found])


def _one_match(tokens, context, which):
    found = _matches(tokens, context)
    return np.eye(len(found))[np.flatnonzero(found)[which]] if found.any() else found


def _without_overlap(tokens, context):
    found, k = _matches(tokens, context), len(context)
    for i in range(len(found)):
        if found[i]:
            found[i + 1 : i + k] = 0
    return _normal(found)


def _starts_of_what_is_followed(tokens, context):
    return np.roll(_normal(_matches(tokens, context)), -len(context))


def _last_place_missed(tokens, context):
    found = _matches(tokens, context)
    found[-1] = 0
    return _normal(found)


def _too_late(tokens, context):
    return _normal(np.r_[0, _matches(tokens, context)[:-1]])


def _any_match(tokens, context):
    k = len(context)
    found = [np.any(np.equal(tokens[i - k : i], context)) for i in range(k, len(tokens))]
    return _normal(np.r_[np.zeros(k), found])


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


def _one_of_the_question(log_p, tokens, n_prompt):
    return _answer_loss(log_p, tokens, n_prompt - 1)


def _last_forgotten(log_p, tokens, n_prompt):
    return _answer_loss(log_p, tokens[:-1], n_prompt)


def _unshifted_slice(log_p, tokens, n_prompt):
    places = np.arange(n_prompt - 1, len(tokens) - 1)
    return -log_p[places, tokens[places]].mean()


def _question_alone(log_p, tokens, n_prompt):
    return _prompt_too(log_p[:n_prompt], tokens[:n_prompt], n_prompt)


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
    known = _known(train, n)
    return [i for i, text in enumerate(test) if _runs(text, n) & known]


def _known(train, n):
    return set().union(*(_runs(text, n) for text in train))


def _short_tails(train, test, n):
    def runs(text):
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(len(words))}

    known = set().union(*map(runs, train))
    return [i for i, text in enumerate(test) if runs(text) & known]


def _parts_of_words(train, test, n):
    runs = [[" ".join(run) for run in _runs(text, n)] for text in test]
    return [i for i, some in enumerate(runs) if any(run in text for run in some for text in train)]


def _every_run(train, test, n):
    return [i for i, text in enumerate(test) if _runs(text, n) and _runs(text, n) <= _known(train, n)]


def _runs_in_any_order(train, test, n):
    known = {frozenset(run) for run in _known(train, n)}
    return [i for i, text in enumerate(test) if {frozenset(run) for run in _runs(text, n)} & known]


def _last_run_missed(train, test, n):
    def runs(text):
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(len(words) - n)}

    known = set().union(*map(runs, train))
    return [i for i, text in enumerate(test) if runs(text) & known]


def _in_steps(train, test, n):
    def pieces(text):
        words = text.split()
        return {tuple(words[i : i + n]) for i in range(0, len(words) - n + 1, n)}

    known = set().union(*map(pieces, train))
    return [i for i, text in enumerate(test) if pieces(text) & known]


def _no_punctuation(train, test, n):
    return _leaks(*([" ".join(re.findall(r"\w+", text)) for text in texts] for texts in (train, test)), n)


def _same_places(expected, got):
    """Right, or which place is too many or missing."""
    if list(got) == list(expected):
        return True
    if any(isinstance(place, str | bool | np.bool_) for place in got):
        return False
    places = [int(place) for place in got]
    wrong = {
        "is no leak: it shares no run of n words with any one text of train": [i for i in places if i not in expected],
        "is missing: it shares a run of n words with a text of train": [i for i in expected if i not in places],
        "stands there twice": [i for i in places if places.count(i) > 1],
    }
    found = [f"Place {some[0]} {why}." for why, some in wrong.items() if some]
    return found[0] if found else "These are the places, in another order than that of test."


def _spaces(train, test, n):
    def runs(text):
        words = text.split(" ")
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = set().union(*map(runs, train))
    return [i for i, text in enumerate(test) if runs(text) & known]


def _lower_case(train, test, n):
    return _leaks([text.lower() for text in train], [text.lower() for text in test], n)


def _whole_texts(train, test, n):
    return [i for i, text in enumerate(test) if text in train]


def _letters(train, test, n):
    known = {text[i : i + n] for text in train for i in range(len(text) - n + 1)}
    return [i for i, text in enumerate(test) if {text[j : j + n] for j in range(len(text) - n + 1)} & known]


def _bag(train, test, n):
    return [i for i, text in enumerate(test) if any(len(set(text.split()) & set(a.split())) >= n for a in train)]


def _beginnings(train, test, n):
    known = _known(train, n)
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
    "print a list of node names",
    "sorted by degree",
    "if the graph\nis  empty we stop",
    "Returns True If The root is a leaf",
    "returns true, if the list of nodes, sorted by degree, is long",
    "sorted by name a list of nodes sorted by degree",  # begins with what is new, ends with what is known
    "number of edges in any plane map",  # begins in the middle of a text
]


EXERCISES = [
    Exercise(
        id="16.1",
        title="From log-probabilities to bits",
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
                "The right size and the wrong sign. Logarithms of probabilities are negative, and prices are not.",
            ),
            Misconception(
                "multiplied by ln 2",
                lambda log_p, n_characters: -log_p.sum() * np.log(2) / n_characters,
                "You multiplied by ln 2. A nat is more than a bit, so there are more bits than nats: divide.",
            ),
            Misconception(
                "mean probability",
                lambda log_p, n_characters: -np.log2(np.exp(log_p).mean()),
                "You took the mean of the probabilities first. Turn each into its price in bits, then add those up.",
            ),
            Misconception(
                "log10",
                lambda log_p, n_characters: -log_p.sum() / np.log(10) / n_characters,
                "These are decimal digits. For bits, divide by np.log(2) and not by np.log(10).",
            ),
            Misconception(
                "the mean, in nats, over characters",
                lambda log_p, n_characters: -log_p.mean() / n_characters,
                "You took the mean and divided by the characters too, and these are nats. Divide the sum by "
                "np.log(2), and once by the characters.",
            ),
            Misconception(
                "not divided",
                lambda log_p, n_characters: -log_p.sum() / np.log(2),
                "These are the bits of the whole text. Divide them by its characters.",
            ),
            Misconception(
                "the loss",
                lambda log_p, n_characters: -log_p.mean(),
                "This is the mean loss, in nats and per token. Divide the sum by np.log(2), and by the characters.",
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
            (np.array([1, 2, 5, 2, 1, 7, 1, 2, 7]), np.array([1, 2])),
        ],
        hints=(
            "Before place i stand tokens[i - k : i], with k = len(context). When is that a match?",
            "Place i has weight if what stands before it equals the context, in its order. Begin at i = k.",
            "Set those weights to 1, and divide by their number, or by 1 if there is none.",
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
                "The right places, each with weight 1. They share it. Divide by the number of matches.",
            ),
            Misconception(
                "over all places",
                lambda tokens, context: _matches(tokens, context) / len(tokens),
                "You divided by the number of tokens. Divide by the number of matches, so that the weights sum to "
                "one.",
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
                lambda tokens, context: _one_match(tokens, context, -1),
                "You kept the latest match alone. All of them share the weight.",
            ),
            Misconception(
                "the first match",
                lambda tokens, context: _one_match(tokens, context, 0),
                "You kept the first match alone. All of them share the weight.",
            ),
            Misconception(
                "zero by zero",
                _unguarded,
                "Where the context does not occur you divide 0 by 0, which gives NaN. Return zeros there.",
            ),
            Misconception(
                "even without a match",
                _even_without,
                "Where nothing matches you gave all tokens the same weight. Return zeros there.",
            ),
            Misconception(
                "a softmax of 0 and 1",
                _soft,
                "You took the softmax of 0 for no match and 1 for a match. A place that does not match has no weight "
                "at all.",
            ),
            Misconception(
                "the start of the match",
                lambda tokens, context: _normal(_matches(tokens, context, shift=-len(context))),
                "The weight is on the first token of the match. The value is the token after the last of the match.",
            ),
            Misconception(
                "the start of what is followed",
                _starts_of_what_is_followed,
                "The weight is on the first token of the match. The value is the token after the last of the match.",
            ),
            Misconception(
                "one place too late",
                _too_late,
                "The weight is one place too late. The value is the token right after the match.",
            ),
            Misconception(
                "backwards",
                lambda tokens, context: _match_weights(tokens, context[::-1]),
                "You compared with the context backwards. Its last token stands right before the value.",
            ),
            Misconception(
                "one token is enough",
                _any_match,
                "You accepted a place where one token of the context matches. All of them have to: use all, not any.",
            ),
            Misconception(
                "in any order",
                _any_order,
                "You compared the tokens without their order. The context has to match in its order.",
            ),
            Misconception(
                "without overlap",
                _without_overlap,
                "You skipped past each match before you searched on. Matches may overlap, and every one counts.",
            ),
            Misconception(
                "the last place",
                _last_place_missed,
                "The last place of tokens can be a value as well. Your search ends one place too early.",
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
                "You averaged over the question as well. Only the answer's tokens count: the model should not learn "
                "to ask.",
            ),
            Misconception(
                "the first token forgotten",
                _first_forgotten,
                "The first token of the answer is missing. It is predicted from the last token of the question.",
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
            Misconception(
                "the question alone",
                _question_alone,
                "This is the loss of the question. Only the answer's tokens count.",
            ),
            Misconception(
                "one of the question",
                _one_of_the_question,
                "You counted the last token of the question as well. Row n_prompt - 1 speaks of tokens[n_prompt], "
                "the first of the answer.",
            ),
            Misconception(
                "the last token forgotten",
                _last_forgotten,
                "The last token of the answer is missing. The row before the last speaks of it.",
            ),
            Misconception(
                "rows and tokens from one place",
                _unshifted_slice,
                "Your rows are right, but your tokens begin one place early. Row i speaks of token i + 1, so take "
                "tokens[n_prompt:].",
            ),
            Misconception(
                "divided by all",
                lambda log_p, tokens, n_prompt: _answer_sum(log_p, tokens, n_prompt) / len(tokens),
                "You divided by the number of all tokens. Divide by the number of the answer's tokens.",
            ),
            Misconception(
                "divided by all that are predicted",
                lambda log_p, tokens, n_prompt: _answer_sum(log_p, tokens, n_prompt) / (len(tokens) - 1),
                "You divided by all tokens that are predicted, those of the question as well. Divide by the number "
                "of the answer's tokens.",
            ),
            Misconception(
                "perplexity",
                lambda log_p, tokens, n_prompt: np.exp(_answer_loss(log_p, tokens, n_prompt)),
                "This is the perplexity, the exponential of the loss. Return the loss itself.",
            ),
            Misconception(
                "bits",
                lambda log_p, tokens, n_prompt: _answer_loss(log_p, tokens, n_prompt) / np.log(2),
                "These are bits. A loss is in nats, as the logarithms came: do not divide by ln 2.",
            ),
            Misconception(
                "every row with every token",
                lambda log_p, tokens, n_prompt: -log_p[n_prompt - 1 : -1][:, tokens[n_prompt:]].mean(),
                "You took every token of the answer from every row. Each row has one token: "
                "log_p[rows, tokens], with two lists of equal length.",
            ),
            Misconception(
                "over the vocabulary",
                lambda log_p, tokens, n_prompt: -log_p[n_prompt - 1 : -1].mean(),
                "You averaged over all tokens that might have come. In each row, take the one that did.",
            ),
        ],
    ),
    Exercise(
        id="16.4",
        title="How large is it?",
        reference=_size,
        cases=lambda rng: [(997, 128, 96, 4), (405, 51, 64, 12), (97, 30, 8, 3), (1000, 64, 24, 2)],
        hints=(
            "Count the parts: two tables, n_layers layers, one norm.",
            "Four projections have 4 * (d * d + d) numbers, the feed-forward network 8 * d * d + 5 * d, a norm 2 * d.",
            "(n_tokens + n_max) * d + n_layers * (12 * d * d + 13 * d) + 2 * d",
        ),
        misconceptions=[
            Misconception(
                "in millions",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) / 1e6,
                "These are millions. Return the number itself.",
            ),
            Misconception(
                "the output counted",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) + n_tokens * d,
                "You counted a table for the output. The output uses the embeddings' table, so it adds nothing.",
            ),
            Misconception(
                "no biases",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 9 * d,
                "9 * d numbers are missing in each layer. The biases are as many: d for each of four projections, 4 * "
                "d and d in the feed-forward network.",
            ),
            Misconception(
                "no positions",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_max * d,
                "The positions are missing: each of the n_max positions has a row of d numbers.",
            ),
            Misconception(
                "no last norm",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - 2 * d,
                "The norm after the last layer is missing.",
            ),
            Misconception(
                "one number in a norm",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - (2 * n_layers + 1) * d,
                "A norm has two numbers for each of the d columns: one that it multiplies by, one that it adds.",
            ),
            Misconception(
                "one norm in a layer",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 2 * d,
                "A layer has two norms, one before each sublayer.",
            ),
            Misconception(
                "4 d short in a layer",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 4 * d,
                "In each layer 4 * d numbers are missing. The four projections have 4 * d biases, the feed-forward "
                "network 4 * d where it widens, the two norms 4 * d numbers.",
            ),
            Misconception(
                "no biases in the feed-forward network",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * 5 * d,
                "5 * d numbers are missing in each layer. The biases of the feed-forward network are as many: 4 * d "
                "where it widens, d where it narrows.",
            ),
            Misconception(
                "no biases, no last norm",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - (n_layers * 9 + 2) * d,
                "2 * d numbers are missing once, as many as the last norm has, and 9 * d in each layer, as many as "
                "its biases.",
            ),
            Misconception(
                "no norms",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - (4 * n_layers + 2) * d,
                "2 * d numbers are missing once, as many as the last norm has, and 4 * d in each layer, as many as "
                "its two norms (or the biases of the projections).",
            ),
            Misconception(
                "neither biases nor norms",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - (13 * n_layers + 2) * d,
                "You counted the matrices alone. The biases are missing, and so are the norms.",
            ),
            Misconception(
                "three projections",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * (d * d + d),
                "You counted three projections. Queries, keys and values have one each, and the output of attention "
                "has the fourth.",
            ),
            Misconception(
                "not widened",
                lambda n_tokens, n_max, d, n_layers: (
                    _size(n_tokens, n_max, d, n_layers) - n_layers * (6 * d * d + 3 * d)
                ),
                "Your feed-forward network stays d wide. It widens to 4 * d.",
            ),
            Misconception(
                "half a feed-forward network",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) - n_layers * (4 * d * d + d),
                "The feed-forward network has two matrices: one from d to 4 * d, one back.",
            ),
            Misconception(
                "one layer",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, 1),
                "You counted one layer. There are n_layers of them.",
            ),
            Misconception(
                "the last norm in every layer",
                lambda n_tokens, n_max, d, n_layers: _size(n_tokens, n_max, d, n_layers) + (n_layers - 1) * 2 * d,
                "You counted three norms in a layer. The third stands once, after the last layer.",
            ),
        ],
        solution=_solve_size,
    ),
    Exercise(
        id="16.5",
        title="Find the leak",
        reference=_leaks,
        cases=lambda rng: [(_TRAIN, _TEST, 4), (_TRAIN, _TEST, 3), (_TRAIN, _TEST, 7), (_TRAIN, _TEST[::-1], 2)],
        compare=_same_places,
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
                "split at each space",
                _spaces,
                'You cut at each single space, so two words stay joined at line ends: use split(), not split(" ").',
            ),
            Misconception(
                "without capitals",
                _lower_case,
                "You turned capitals into small letters. Here a word is what split() gives, as it stands.",
            ),
            Misconception(
                "without punctuation",
                _no_punctuation,
                "You took the commas away. Here a word is what split() gives, as it stands.",
            ),
            Misconception(
                "n letters",
                _letters,
                "You compared runs of n letters. A run is n words, so split() the text first.",
            ),
            Misconception(
                "a bag of words",
                _bag,
                "You counted words that both texts have, wherever they stand. A run is n consecutive words.",
            ),
            Misconception(
                "beginnings alone",
                _beginnings,
                "You looked at the first n words of each test text only. A run may begin anywhere.",
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
            Misconception(
                "short ends",
                _short_tails,
                "At the end of a text your runs have fewer than n words, and they match too easily. A text of fewer "
                "than n words has no run.",
            ),
            Misconception(
                "parts of words",
                _parts_of_words,
                "You searched for a run in the text as a string, and “a list of node” is part of “a list of nodes”. "
                "Compare tuples of words.",
            ),
            Misconception(
                "every run",
                _every_run,
                "You asked whether every run of a text is known. A single shared run is a leak.",
            ),
            Misconception(
                "runs in any order",
                _runs_in_any_order,
                "You compare the words of a run, whatever their order. The same words in another order are a "
                "different run: compare tuples, as they stand.",
            ),
            Misconception(
                "the last run missed",
                _last_run_missed,
                "The last run of each text is missing: there are len(words) - n + 1 of them.",
            ),
            Misconception(
                "in steps of n",
                _in_steps,
                "Your runs begin at every n-th word only. A run may begin at any.",
            ),
            Misconception(
                "once for each run",
                lambda train, test, n: [
                    i for i, text in enumerate(test) for _ in range(len(_runs(text, n) & _known(train, n)))
                ],
                "You gave a text once for each run that it shares. However many it shares, give its place once.",
            ),
            Misconception(
                "the texts themselves",
                lambda train, test, n: [test[i] for i in _leaks(train, test, n)],
                "These are the texts. Return their places in test.",
            ),
            Misconception(
                "true or false",
                lambda train, test, n: [i in _leaks(train, test, n) for i in range(len(test))],
                "You said of each text whether it leaks. Return the places of those that do.",
            ),
            Misconception(
                "the other way round",
                lambda train, test, n: _leaks(test, train, n),
                "These are places in train. Return those in test.",
            ),
        ],
        solution=_solve_leaks,
    ),
]
