"""Exercises of lesson 15: the parts that were broken, written right; a batch and a list that find mistakes."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _mask(hidden):
    return ~hidden[:, None, None, :]  # (batch, 1, 1, n_k)


def _step_mask(n_new, n_cached):
    query = n_cached + np.arange(n_new)[:, None]
    return np.arange(n_cached + n_new) <= query


def _places(n_new, n_cached):
    return np.arange(n_new)[:, None], np.arange(n_cached + n_new)


def _upper_left(n_new, n_cached):
    query, key = _places(n_new, n_cached)
    return key <= query


def _loss(log_p, target, pad):
    right = np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]  # (batch, n)
    return -right[target != pad].mean()


def _targets(rng, batch, n, n_tokens, pad):
    log_p = rng.normal(size=(batch, n, n_tokens))
    log_p -= np.log(np.exp(log_p).sum(axis=-1, keepdims=True))
    target = rng.choice([word for word in range(n_tokens) if word != pad], size=(batch, n))
    target[0, n - 2 :], target[-1, 1:] = pad, pad
    return log_p, target, pad


def _right_words(log_p, target):
    return np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]


def _mean_of_means(log_p, target, pad):
    return np.mean([_loss(p[None], words[None], pad) for p, words in zip(log_p, target, strict=True)])


def _shifted(log_p, target, pad):
    return _loss(log_p[:, :-1], target[:, 1:], pad)


def _without_zeros(log_p, target, pad):
    return -(_right_words(log_p, target) * (target != pad)).mean()


def _weights(scores, allowed):
    hidden = np.where(allowed, scores, -np.inf)
    top = np.where(allowed.any(axis=-1, keepdims=True), hidden.max(axis=-1, keepdims=True), 0)
    exp_scores = np.exp(hidden - top)
    total = exp_scores.sum(axis=-1, keepdims=True)
    return exp_scores / np.where(total > 0, total, 1)


def _softmax(scores):
    exp_scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exp_scores / exp_scores.sum(axis=-1, keepdims=True)


def _of_all(scores, allowed):
    exp_scores = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allowed
    total = exp_scores.sum(axis=-1, keepdims=True)
    return exp_scores / np.where(total > 0, total, 1)


def _filled(fill):
    return lambda scores, allowed: _softmax(np.where(allowed, scores, scores.dtype.type(fill)))


def _half_cases(rng):
    cases = []
    for n_q, n_k, size in ((3, 5, 1), (4, 6, 2), (2, 7, 1)):
        scores = rng.normal(size=(n_q, n_k)) * size
        allowed = rng.random((n_q, n_k)) < 0.6
        allowed[0], allowed[-1] = False, True  # a row with nothing left, and a whole one
        if n_q == 4:
            scores[1] -= 20_000  # a row far below the others
            allowed[1] = np.arange(n_k) < 3
            scores[2, 0], allowed[2, :2] = 1000, (False, True)  # what is hidden is large
        cases.append((scores.astype(np.float16), allowed))
    return cases


def _smallest_batch():
    return [7, 7, 7, 100]


def _tried(numbers):
    """Whether patient 3 answers a batch otherwise than one at a time, and its morphemes; or what is wrong."""
    import torch

    from attnlib.course.lab import patient

    if not isinstance(numbers, list | tuple | np.ndarray) or not len(numbers):
        return "A list of numbers is asked for, such as [7, 21, 342, 905]."
    for n in numbers:
        if not isinstance(n, int | np.integer) or not 0 <= n < 1000:
            return f"{n!r} is not a whole number from 0 to 999."
    one = patient(3, steps=0)
    batch = one.batch(*map(int, numbers))
    with torch.no_grad():
        together = one.logits(batch)
        alone = [one.logits(one.batch(int(n)))[0] for n in numbers]
    wrong = [not torch.allclose(row[: len(a)], a, atol=1e-8) for row, a in zip(together, alone, strict=True)]
    return np.array([float(any(wrong)), float(batch.source_lengths.sum())])


def _small_enough(wanted, came):
    if np.array_equal(wanted, came):
        return True
    shows, size = came
    if not shows:
        return "Every number of this batch is answered as if it were alone, so the batch does not show the mistake."
    return f"It shows the mistake with {size:.0f} morphemes. There is a batch with fewer."


def _fewest():
    return ["answer", "padding", "batch", "steps", "first", "loss", "sizes", "half", "maps", "beams"]


def _told_apart(names):
    """How many pairs of rows of the table look the same, and how many experiments came; or what is wrong."""
    from attnlib.course.lab import EXPERIMENTS
    from attnlib.course.lab.causes import CAUSES

    if not isinstance(names, list | tuple | set):
        return 'A list of names is asked for, such as ["twice", "loss"].'
    for name in names:
        if name not in EXPERIMENTS:
            return f"{name!r} is not an experiment; the names are {', '.join(EXPERIMENTS)}."
    rows = [cause.found_by & set(names) for cause in CAUSES.values()]
    same = sum(a == b for i, a in enumerate(rows) for b in rows[:i])
    return np.array([float(same), float(len(set(names)))])


def _apart_with_few(wanted, came):
    if np.array_equal(wanted, came):
        return True
    same, count = came
    if same:
        pairs = "pair of rows has" if same == 1 else "pairs of rows have"
        return f"{same:.0f} {pairs} the same marks in the columns of your list."
    return f"Your {count:.0f} experiments tell all rows apart. Fewer do."


EXERCISES = [
    Exercise(
        id="15.1",
        title="The mask that torch takes",
        reference=_mask,
        cases=lambda rng: [(rng.random((b, n)) < 0.4,) for b, n in ((3, 5), (4, 6), (2, 7))],
        hints=(
            "hidden is True at padding. What is True in the mask that torch's function takes?",
            "One row of the batch has one mask, for all heads and all queries: two axes of size 1 are missing.",
            "~hidden[:, None, None, :] is (batch, 1, 1, n_k).",
        ),
        misconceptions=[
            Misconception(
                "as it came",
                lambda hidden: hidden[:, None, None, :],
                "This mask is True at padding, so only padding may be attended to. Here torch takes True where "
                "attention is allowed.",
            ),
            Misconception(
                "as it came, no axes",
                lambda hidden: hidden,
                "This is the mask that came: True at padding, and without axes for heads and queries.",
            ),
            Misconception(
                "no axes",
                lambda hidden: ~hidden,
                "(batch, n_k) broadcasts to scores (batch, n_heads, n_q, n_k) from the right: your rows stand under "
                "the queries. Put in the two axes that are missing.",
            ),
            Misconception(
                "one axis",
                lambda hidden: ~hidden[:, None, :],
                "(batch, 1, n_k) has the axis of the batch under that of the heads. Beyond one text it runs only if "
                "the batch is as large as the number of heads, and then it is wrong. One more axis is missing.",
            ),
            Misconception(
                "under the heads",
                lambda hidden: ~hidden[None, :, None, :],
                "In (1, batch, 1, n_k) the rows of the batch stand under the heads. The batch comes first.",
            ),
            Misconception(
                "under the queries",
                lambda hidden: ~hidden[:, None, :, None],
                "You hid queries. It is the keys that are padding: they are the last axis.",
            ),
            Misconception(
                "numbers",
                lambda hidden: np.where(hidden, -1e6, 0.0)[:, None, None, :],
                "These are numbers to be added to scores, and minus a million is infinite in half precision. A "
                "boolean mask is asked for.",
            ),
        ],
    ),
    Exercise(
        id="15.2",
        title="The mask of a step",
        reference=_step_mask,
        cases=lambda rng: [(1, 4), (3, 2), (2, 5), (4, 0), (1, 0)],
        hints=(
            "The keys stand at places 0 to n_cached + n_new - 1. At which place does the first new query stand?",
            "Query i stands at n_cached + i, and sees the keys up to its own place.",
            "np.arange(n_cached + n_new) <= n_cached + np.arange(n_new)[:, None].",
        ),
        misconceptions=[
            Misconception(
                "one short",
                lambda n_new, n_cached: _places(n_new, n_cached)[1] < n_cached + _places(n_new, n_cached)[0],
                "Your queries do not see their own key. The mask is one short: a position may attend to itself.",
            ),
            Misconception(
                "one too far",
                lambda n_new, n_cached: _places(n_new, n_cached)[1] <= n_cached + 1 + _places(n_new, n_cached)[0],
                "Each of your queries but the last sees one key after its own. With a single new token this does not "
                "show; of several, all but the last read what they are to predict.",
            ),
            Misconception(
                "counted from the upper left",
                _upper_left,
                "You counted the queries from 0. The first new one comes after the cache, at n_cached. (The "
                "is_causal of torch's function counts from the upper left, too.)",
            ),
            Misconception(
                "upper left, one short",
                lambda n_new, n_cached: _places(n_new, n_cached)[1] < _places(n_new, n_cached)[0],
                "You counted the queries from 0, and left out each one's own key. The first stands at n_cached, and "
                "sees itself.",
            ),
            Misconception(
                "the new ones alone",
                lambda n_new, n_cached: np.tri(n_new, dtype=bool),
                "This is the mask of the new positions among themselves. The keys in the cache are missing.",
            ),
            Misconception(
                "the cache alone",
                lambda n_new, n_cached: np.broadcast_to(
                    np.arange(n_cached + n_new) < n_cached, (n_new, n_cached + n_new)
                ),
                "Only what is in the cache is seen. The new keys join it before they are attended to.",
            ),
            Misconception(
                "everything",
                lambda n_new, n_cached: np.ones((n_new, n_cached + n_new), dtype=bool),
                "Everything is seen. That is right for a single new token; several must not see those after them.",
            ),
            Misconception(
                "hidden",
                lambda n_new, n_cached: ~_step_mask(n_new, n_cached),
                "Your mask is True where a key is hidden. True should mean that the key may be attended to.",
            ),
        ],
    ),
    Exercise(
        id="15.3",
        title="A loss without the padding",
        reference=_loss,
        cases=lambda rng: [_targets(rng, *sizes) for sizes in ((3, 5, 7, 0), (4, 6, 9, 0), (2, 4, 6, 3))],
        hints=(
            "Which log-probability counts at each place, and at which places?",
            "np.take_along_axis picks the log-probability of the right word. Then keep those where target != pad.",
            "-right[target != pad].mean(), in which the mean divides by how many there are.",
        ),
        misconceptions=[
            Misconception(
                "padding counted",
                lambda log_p, target, pad: -_right_words(log_p, target).mean(),
                "Padding is counted as if it were a word. Leave out the places where the target is pad.",
            ),
            Misconception(
                "padding in the count",
                _without_zeros,
                "The sum leaves the padding out, and you divide by all places. Divide by the number of words.",
            ),
            Misconception(
                "a mean of means",
                _mean_of_means,
                "You took the mean of each sentence first, so that a word of a short one counts more.",
            ),
            Misconception(
                "not negative",
                lambda log_p, target, pad: -_loss(log_p, target, pad),
                "This is the mean log-probability. A loss is its negative, and falls as the right words become "
                "likelier.",
            ),
            Misconception(
                "a sum",
                lambda log_p, target, pad: -_right_words(log_p, target)[target != pad].sum(),
                "This is the sum. Divide by the number of words.",
            ),
            Misconception(
                "shifted once more",
                _shifted,
                "You compared each prediction with the word after its own. The logits are aligned already: row t "
                "predicts word t.",
            ),
            Misconception(
                "sentences",
                lambda log_p, target, pad: -_right_words(log_p, target)[target != pad].sum() / len(target),
                "You divided by the number of sentences. Divide by the number of words.",
            ),
        ],
    ),
    Exercise(
        id="15.4",
        title="Weights in half precision",
        reference=_weights,
        cases=_half_cases,
        tolerance=(1e-2, 1e-3),
        hints=(
            "Which number is below every score that float16 can hold, and is in float16 itself?",
            "Minus infinity. Subtract the largest score that is allowed first. What of a row without allowed scores?",
            "Where nothing is allowed, subtract 0 and divide by 1: np.where(total > 0, total, 1).",
        ),
        misconceptions=[
            Misconception(
                "multiplied with minus a million",
                lambda scores, allowed: _softmax(scores + (~allowed).astype(scores.dtype) * scores.dtype.type(-1e6)),
                "In float16 minus a million is minus infinity, and 0 times infinity is NaN, even where nothing is "
                "hidden. Choose with np.where, and do not multiply.",
            ),
            Misconception(
                "minus ten thousand",
                _filled(-1e4),
                "The number that you filled in is a score like any other: one case has scores of minus twenty "
                "thousand, and its hidden keys won. And a row with nothing left becomes a mean of what is hidden.",
            ),
            Misconception(
                "the lowest number",
                _filled(np.finfo(np.float16).min),
                "In these cases what is hidden stays hidden, as long as something is left. A row with nothing left "
                "becomes a mean of what is hidden. It should be zeros.",
            ),
            Misconception(
                "nothing left, NaN",
                lambda scores, allowed: _softmax(np.where(allowed, scores, scores.dtype.type(-np.inf))),
                "Right, except where nothing is left: minus infinity less itself is NaN. Such a row should be zeros.",
            ),
            Misconception(
                "hidden afterwards",
                lambda scores, allowed: _softmax(scores) * allowed,
                "You hid weights after the softmax, so that what is left does not sum to one. Hide scores before it.",
            ),
            Misconception(
                "the largest of all",
                lambda scores, allowed: _of_all(scores.astype(np.float32), allowed),
                "Right, as long as hidden scores are small. You subtract the largest score of all, hidden ones too: "
                "beside a hidden score of 1000 nothing is left of its row. Hide first, then take the largest.",
            ),
            Misconception(
                "nothing hidden",
                lambda scores, allowed: _softmax(scores),
                "Nothing is hidden.",
            ),
            Misconception(
                "the wrong way round",
                lambda scores, allowed: _weights(scores, ~allowed),
                "You hid what is allowed. In `allowed`, True means may be attended to.",
            ),
            Misconception(
                "zeroed scores",
                lambda scores, allowed: _softmax(scores * allowed),
                "You set hidden scores to 0. exp(0) is 1, and a score of 0 is above every negative one: use -np.inf.",
            ),
        ],
    ),
    Exercise(
        id="15.5",
        title="The smallest batch that shows it",
        reference=_smallest_batch,
        adapt=_tried,
        compare=_small_enough,
        seconds=20.0,
        hints=(
            "How many rows must the batch have at least? Count the heads.",
            "If all numbers are equally long there is no padding, and no mask. How short are the shortest numbers?",
            "Three of one morpheme, such as 7, and one of two. Which numbers have two?",
        ),
        misconceptions=[
            Misconception(
                "no padding",
                lambda: [7, 7, 7, 8],
                "Nothing shows. Either all numbers are equally long, so there is no padding and no mask, or there are "
                "fewer of them than the model has heads.",
            ),
            Misconception(
                "one too long",
                lambda: [7, 7, 7, 21],
                "It shows the mistake with 6 morphemes. One number that is longer by one is enough to give padding "
                "to the others.",
            ),
            Misconception(
                "only one is short",
                lambda: [7, 100, 100, 100],
                "It shows the mistake with 7 morphemes. One number that is longer than the others is enough, and it "
                "may be longer by one.",
            ),
        ],
    ),
    Exercise(
        id="15.6",
        title="The fewest experiments",
        reference=_fewest,
        adapt=_told_apart,
        compare=_apart_with_few,
        hints=(
            "Which rows have a single mark? Their experiments must all be there.",
            "Which experiment finds nothing? And which find only what others find as well? Some of these can go.",
            "Cover a column with your thumb: are there two rows now that look the same? If not, it can go.",
        ),
        misconceptions=[
            Misconception(
                "all of them",
                lambda: [*_fewest(), "falls", "twice", "reference"],
                "All thirteen tell the rows apart. Cover a column: do the rows still differ? Some columns can go.",
            ),
            Misconception(
                "one that finds each",
                lambda: [name for name in _fewest() if name not in ("padding", "first")],
                "3 pairs of rows have the same marks under your 8 experiments. To tell each mistake from the others "
                "takes more.",
            ),
            Misconception(
                "one too many",
                lambda: [*_fewest(), "twice"],
                "Your 11 experiments tell all rows apart, and one of them can still go. Is there one that finds "
                "nothing, or one that the others can do without?",
            ),
        ],
    ),
]
