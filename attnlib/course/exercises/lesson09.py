"""Exercises of lesson 09: masks, and what gets past them."""

from __future__ import annotations

import numpy as np

from attnlib import masks
from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.masks import causal, padding, window


def _mask(lengths, n, back, ahead):
    return padding(lengths, n)[:, None] & window(n, back=back, ahead=ahead)


def _random_case(rng):
    mask = rng.uniform(size=(5, 6)) < 0.5
    mask[1], mask[2], mask[3, :2] = False, True, (True, False)
    return rng.normal(size=(5, 6)), mask


def _hidden_is_large(rng):
    """A row with a very large score that is hidden, one with such a score that is not, and one far below zero."""
    scores, mask = _random_case(rng)
    mask[0], mask[4] = [True, True, False, False, True, False], [True, False, True, True, False, True]
    scores[0, 2], scores[4, 3] = 1000, 1000
    scores[3, mask[3]] -= 100_000
    return scores, mask


def _softmax(scores, mask):
    e = np.where(mask, scores, -np.inf)
    top = e.max(axis=-1, keepdims=True)
    e = np.exp(e - np.where(np.isfinite(top), top, 0))
    row_sum = e.sum(axis=-1, keepdims=True)
    return e / np.where(row_sum > 0, row_sum, 1)


def _hidden_afterwards(scores, mask):
    e = np.where(mask, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0)
    row_sum = e.sum(axis=-1, keepdims=True)
    return e / np.where(row_sum > 0, row_sum, 1)


def _divided(e):
    row_sum = e.sum(axis=-1, keepdims=True)
    return e / np.where(row_sum > 0, row_sum, 1)


def _plain_softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _quietly(function):
    """The same function; the warnings of 0/0 and of overflow are what these mistakes are about."""

    def quiet(*inputs):
        with np.errstate(all="ignore"):
            return function(*inputs)

    return quiet


def _probe(f, x):
    before, reads = f(x), np.zeros((len(x), len(x)), dtype=bool)
    for s in range(len(x)):
        changed = x.copy()
        changed[s] = np.random.default_rng(s).normal(size=x.shape[1])
        reads[:, s] = abs(f(changed) - before).max(axis=1) > 1e-9
    return reads


def _changed_by(change):
    """A probe that makes this change to row s."""

    def probe(f, x):
        columns = [abs(f(np.where(np.arange(len(x))[:, None] == s, change(x), x)) - f(x)) for s in range(len(x))]
        return np.stack([column.max(axis=1) > 1e-9 for column in columns], axis=1)

    return probe


def _changed_for_good(f, x):
    before, reads, changed = f(x), [], x.copy()
    for s in range(len(x)):
        changed[s] = np.random.default_rng(s).normal(size=x.shape[1])
        reads.append(abs(f(changed) - before).max(axis=1) > 1e-9)
    return np.stack(reads, axis=1)


def _attend(x, mask=None):
    return attention(x, x, x, mask=mask).out


def _models(rng):
    """Causal; one place off; a window; one that takes from each row the mean of its numbers; one with idle columns."""

    def causally(x):
        return _attend(x, causal(len(x)))

    def one_place_off(x):
        return _attend(x, np.tril(np.ones((len(x), len(x)), dtype=bool), 1))

    def in_a_window(x):
        return _attend(x, window(len(x), back=1, ahead=2))

    def centred(x):
        return causally(x - x.mean(axis=1, keepdims=True))

    x = rng.normal(size=(5, 3))

    def with_idle_columns(x):
        return causally(x) * [0, 1, 0]

    return [(f, x) for f in (causally, one_place_off, in_a_window, centred, with_idle_columns)]


def _mean_loss(losses, lengths):
    real = np.arange(losses.shape[1]) < np.array(lengths)[:, None]
    return losses[real].mean()


def _losses(rng):
    some, many = rng.uniform(1, 3, size=(3, 5)), rng.uniform(1, 3, size=(4, 6))
    many[np.arange(6) >= np.array([6, 1, 3, 2])[:, None]] = np.nan
    return [(some, [5, 3, 1]), (many, [6, 1, 3, 2])]


EXERCISES = [
    Exercise(
        id="09.1",
        title="The causal mask of the last queries",
        reference=causal,
        solution=lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q,
        cases=lambda rng: [(4, 4), (2, 5), (1, 6)],
        hints=(
            "Query i of n_q stands at position i + n_k - n_q.",
            "Compare a column of the queries' positions with a row of 0 … n_k - 1.",
            "np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q.",
        ),
        misconceptions=[
            Misconception(
                "diagonal closed",
                lambda n_q, n_k: np.arange(n_k) < np.arange(n_q)[:, None] + n_k - n_q,
                "Every query loses its own place, and it may attend to it. If you compare with <, use <=; if not, you "
                "are one place off.",
            ),
            Misconception(
                "future",
                lambda n_q, n_k: np.arange(n_k) >= np.arange(n_q)[:, None] + n_k - n_q,
                "Your mask opens the future and closes the past. Rows are queries: key <= query.",
            ),
            Misconception(
                "inverted",
                lambda n_q, n_k: ~causal(n_q, n_k),
                "This is True where attending is forbidden, as torch's modules have it. Here True means may attend.",
            ),
            Misconception(
                "from the start",
                lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None],
                "Your queries stand at the first positions. They should be the last: add n_k - n_q to their places.",
            ),
            Misconception(
                "one too far",
                lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q + 1,
                "One place of the future is open. Query i stands at i + n_k - n_q, not one further on.",
            ),
            Misconception(
                "offset turned round",
                lambda n_q, n_k: np.arange(n_k) <= np.arange(n_q)[:, None] + n_q - n_k,
                "The offset has the wrong sign. Query 0 stands n_k - n_q places in, after what was read before.",
            ),
            Misconception(
                "earlier ones hidden",
                lambda n_q, n_k: np.tri(n_q, n_k, n_k - n_q, dtype=bool) & (np.arange(n_k) >= n_k - n_q),
                "You hid the positions that were read before. They lie in the past of every query, so all of them "
                "are open.",
            ),
            Misconception(
                "nothing hidden",
                lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
                "Your mask hides nothing. A query may attend to its own place and what stands before it.",
            ),
        ],
    ),
    Exercise(
        id="09.2",
        title="A softmax under a mask",
        reference=masked_softmax,
        solution=_softmax,
        cases=lambda rng: [_random_case(rng), _random_case(rng), _hidden_is_large(rng)],
        hints=(
            "Hidden entries count neither in the numerator nor in the denominator, nor in what you subtract.",
            "Hide first: np.where(mask, scores, -np.inf). Then subtract the largest score that is left in the row.",
            "In a row with nothing left the largest score is -inf; subtract 0 there. Where the sum is zero, divide "
            "by one instead: np.where(row_sum > 0, row_sum, 1).",
        ),
        misconceptions=[
            Misconception(
                "hidden afterwards",
                _hidden_afterwards,
                "Right, as long as scores are small. Hidden scores have a part in what you divide by, or in what "
                "you subtract. Beside a hidden score of 1000 the exponentials of all others vanish, and nothing is "
                "left of the row. Hide first, then subtract the largest score of what may be seen.",
            ),
            Misconception(
                "zero where hidden",
                lambda scores, mask: _hidden_afterwards(np.where(mask, scores, 0), mask),
                "Right, as long as scores are small. Where all visible scores are near -100,000, their exponentials "
                "vanish, unless the largest of them is subtracted first. If you put 0 where a score is hidden, that 0 "
                "was the largest: put -np.inf there. If you clipped the scores instead, subtract the largest.",
            ),
            Misconception(
                "softmax, mask, divide again",
                lambda scores, mask: _quietly(lambda e: e / e.sum(axis=-1, keepdims=True))(
                    masked_softmax(scores) * mask
                ),
                "You hid after the exponentials, and divided by the sum of what was left. A row with nothing left is "
                "then 0/0, and so is a row where a hidden score of 1000 made all others underflow. Hide first, then "
                "subtract the largest of what is left.",
            ),
            Misconception(
                "nothing left is 0/0",
                _quietly(lambda scores, mask: _plain_softmax(np.where(mask, scores, -np.inf))),
                "The numbers are right, except in a row with nothing left, which became NaN. It should be zeros.",
            ),
            Misconception(
                "nothing subtracted",
                _quietly(lambda scores, mask: _divided(np.where(mask, np.exp(scores), 0))),
                "The exponential of a score of 1000 is too large for a float. First subtract the largest score "
                "that may be seen: the fraction stays the same.",
            ),
            Misconception(
                "scores times mask",
                lambda scores, mask: masked_softmax(scores * mask),
                "You set hidden scores to 0, as multiplying by the mask does. A score of 0 has the weight e⁰ = 1 "
                "before dividing: nothing is hidden.",
            ),
            Misconception(
                "weights times mask",
                lambda scores, mask: masked_softmax(scores) * mask,
                "You hid the weights after the softmax. Rows no longer sum to one, and the hidden scores are still in "
                "the denominator.",
            ),
            Misconception(
                "a large negative number",
                lambda scores, mask: masked_softmax(np.where(mask, scores, -1e9)),
                "A row with nothing left became uniform over what is forbidden. It should be zeros. (With one large "
                "negative number in place of minus infinity all its scores are the same.)",
            ),
            Misconception(
                "inverted",
                lambda scores, mask: masked_softmax(scores, ~mask),
                "You hid where mask is True. True means may attend.",
            ),
            Misconception(
                "down the columns",
                lambda scores, mask: masked_softmax(scores.T, mask.T).T,
                "Your columns sum to one. The softmax runs along the last axis, over the keys.",
            ),
            Misconception(
                "without exponential",
                lambda scores, mask: mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1),
                "The scores have no effect: what is open gets equal weights.",
            ),
            Misconception(
                "a large number subtracted",
                lambda scores, mask: masked_softmax(scores - 1e9 * ~mask),
                "A row with nothing left got the softmax without a mask. It should be zeros. (If you subtract a large "
                "number where a score is hidden: there it is subtracted from every score, and cancels.)",
            ),
            Misconception(
                "mask forgotten",
                lambda scores, mask: masked_softmax(scores),
                "This is the softmax of all entries: your mask has no effect.",
            ),
            Misconception(
                "one maximum for all",
                _quietly(lambda scores, mask: _divided(np.where(mask, np.exp(scores - scores.max()), 0))),
                "You subtracted one number from all rows. Beside a row with a score of 1000, the others become "
                "exp(-1000) = 0. Each row has a largest score of its own.",
            ),
        ],
    ),
    Exercise(
        id="09.3",
        title="A window on a padded batch with heads",
        reference=_mask,
        solution=lambda lengths, n, back, ahead: (
            padding(lengths, n)[:, None] & masks.window(n, back=back, ahead=ahead)
        ),
        cases=lambda rng: [([5, 3], 6, 2, 1), ([2, 7, 4], 7, 1, 3)],
        hints=(
            "Two masks: the padding, (batch, 1, 1, n), and the window, (n, n).",
            "A word may attend where both allow it. The first axis of 1 stands for the heads.",
            "padding(lengths, n)[:, None] & masks.window(n, back=back, ahead=ahead), or write the comparisons out.",
        ),
        misconceptions=[
            Misconception(
                "no axis for heads",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead)[:, 0],
                "The shape is (batch, n, n). Under scores of shape (batch, heads, n, n) its first axis meets the "
                "heads: an error, or no error and the wrong mask, as where both are equally many. Give it an axis "
                "of 1 for the heads: (batch, 1, n, n).",
            ),
            Misconception(
                "heads first",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead).swapaxes(0, 1),
                "The shape is (1, batch, n, n): the sentences stand where the heads should. Return (batch, 1, n, n).",
            ),
            Misconception(
                "or",
                lambda lengths, n, back, ahead: padding(lengths, n)[:, None] | window(n, back=back, ahead=ahead),
                "You joined the masks with or. Both must allow it: and.",
            ),
            Misconception(
                "turned round",
                lambda lengths, n, back, ahead: _mask(lengths, n, ahead, back),
                "back and ahead are exchanged. Key j lies before query i where j < i.",
            ),
            Misconception(
                "no padding",
                lambda lengths, n, back, ahead: np.repeat(
                    window(n, back=back, ahead=ahead)[None, None], len(lengths), 0
                ),
                "The keys of the padding are open. A word near the end of a short sentence would see what follows.",
            ),
            Misconception(
                "one too few",
                lambda lengths, n, back, ahead: _mask(lengths, n, back - 1, ahead),
                "Your window counts the word itself in `back`. Open the word itself and `back` places before it.",
            ),
            Misconception(
                "one too many",
                lambda lengths, n, back, ahead: _mask(lengths, n, back + 1, ahead),
                "Your window reaches one place too far back.",
            ),
            Misconception(
                "not itself",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead) & ~np.eye(n, dtype=bool),
                "A word sees itself too.",
            ),
            Misconception(
                "no window",
                lambda lengths, n, back, ahead: np.repeat(padding(lengths, n)[:, None], n, axis=2),
                "All real words are open. Close what lies more than `back` before a word or more than `ahead` after "
                "it.",
            ),
            Misconception(
                "rows too",
                lambda lengths, n, back, ahead: (
                    _mask(lengths, n, back, ahead) & padding(lengths, n).swapaxes(1, 2)[:, None]
                ),
                "You closed the rows of padding queries too. What they compute is read by nobody; the exercise leaves "
                "them as they come.",
            ),
            Misconception(
                "one too far ahead",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead + 1),
                "Your window reaches one place too far ahead.",
            ),
            Misconception(
                "one short ahead",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead - 1),
                "Your window ends one place too early: at most ahead places after the word itself.",
            ),
            Misconception(
                "ends left out",
                lambda lengths, n, back, ahead: _mask(lengths, n, back - 1, ahead - 1),
                "Your window is one place short at both ends. At most back, at most ahead: the ends are open, too. (A "
                "slice stops before its last number.)",
            ),
            Misconception(
                "one key too many",
                lambda lengths, n, back, ahead: _mask([min(m + 1, n) for m in lengths], n, back, ahead),
                "One place of padding is open. A sentence of m words has the keys 0 to m - 1: j < m.",
            ),
            Misconception(
                "transposed",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, ahead).swapaxes(-1, -2),
                "Rows and columns are exchanged: queries are rows, keys are columns.",
            ),
            Misconception(
                "nothing ahead",
                lambda lengths, n, back, ahead: _mask(lengths, n, back, 0),
                "Your mask closes everything after a word. At most `ahead` places after it are open.",
            ),
            Misconception(
                "a mask for each head",
                lambda lengths, n, back, ahead: np.repeat(_mask(lengths, n, back, ahead), 2, axis=1),
                "You repeated the mask for several heads, but nobody has said how many there are. Give their axis the "
                "size 1: it broadcasts.",
            ),
            Misconception(
                "queries closed instead",
                lambda lengths, n, back, ahead: (
                    padding(lengths, n).swapaxes(1, 2)[:, None] & window(n, back=back, ahead=ahead)
                ),
                "You closed the rows of the padding and left its columns open. Nobody may see padding as a key.",
            ),
        ],
    ),
    Exercise(
        id="09.4",
        title="A probe of your own",
        reference=_probe,
        cases=_models,
        hints=(
            "Compute f(x) once. Then, for each s, change row s of a copy and compute f again.",
            "Fill column s of the answer: which rows of the output differ from those of f(x)?",
            "changed = x.copy(); changed[s] = other numbers; reads[:, s] = abs(f(changed) - f(x)).max(axis=1) > 1e-9.",
        ),
        misconceptions=[
            Misconception(
                "transposed",
                lambda f, x: _probe(f, x).T,
                "Rows and columns are exchanged: reads[t, s] is about output t and input s. The row is the output.",
            ),
            Misconception(
                "for good",
                _changed_for_good,
                "Your changes add up: when you change input s, those before it are still changed. Begin with a fresh "
                "copy of x for every s.",
            ),
            Misconception(
                "the same number everywhere",
                _changed_by(lambda x: x + 1),
                "Did you add the same number to the whole row? One of the functions subtracts each row's mean first, "
                "as layer normalisation does: it cannot notice. Draw the new row at random. Or did you add up "
                "differences with their signs? There they cancel.",
            ),
            Misconception(
                "one number changed",
                _changed_by(lambda x: x + np.eye(x.shape[1])[0]),
                "You leave a number of the row as it is. One of the functions shows one column of its output, and a "
                "row that sees only itself keeps your change in columns that are not shown. Change all of the row.",
            ),
            Misconception(
                "some output",
                lambda f, x: np.repeat(_probe(f, x).any(axis=0, keepdims=True), len(x), axis=0),
                "Your probe says every output reads every input. Did you ask whether any output changes? Ask each "
                "output t by itself. If you compare floats with !=, allow for rounding; if you change all inputs, "
                "change one.",
            ),
            Misconception(
                "inverted",
                lambda f, x: ~_probe(f, x),
                "Your table is True where nothing changes.",
            ),
            Misconception(
                "future only",
                lambda f, x: np.triu(_probe(f, x), 1),
                "You kept only the pairs with s > t, the leaks. All pairs are asked for, allowed ones too.",
            ),
            Misconception(
                "itself only",
                lambda f, x: np.eye(len(x), dtype=bool),
                "You found that every output reads its own input, and nothing else. Compare all rows of the output, "
                "not only row s. (Or is your change so small that it drowns in rounding?)",
            ),
            Misconception(
                "one column",
                lambda f, x: _probe(lambda x: f(x)[:, :1], x),
                "In the outputs of one function most numbers never change. Did you look at one number, or "
                "ask that all of them change? An output has changed if any of its numbers has: abs(...).max(axis=1).",
            ),
        ],
    ),
    Exercise(
        id="09.5",
        title="The mean loss of the real words",
        reference=_mean_loss,
        cases=_losses,
        hints=(
            "Choose the real entries first; then all of them count the same.",
            "A boolean mask of shape (batch, n) as an index gives the chosen entries: losses[real].",
            "real = np.arange(n) < np.array(lengths)[:, None], then losses[real].mean().",
        ),
        misconceptions=[
            Misconception(
                "padding too",
                lambda losses, lengths: losses.mean(),
                "The padding is in your mean. A model that predicts padding well would look good.",
            ),
            Misconception(
                "times the mask",
                lambda losses, lengths: (losses * padding(lengths, losses.shape[1])[:, 0]).sum() / sum(lengths),
                "Right where the padding holds numbers. NaN times zero is NaN: choose the real entries with the mask "
                "as an index, or with np.where.",
            ),
            Misconception(
                "zeros in the mean",
                lambda losses, lengths: np.where(padding(lengths, losses.shape[1])[:, 0], losses, 0).mean(),
                "You set the padding to zero and divided by all positions. Divide by the number of real ones.",
            ),
            Misconception(
                "mean of means",
                lambda losses, lengths: np.mean([row[:n].mean() for row, n in zip(losses, lengths, strict=True)]),
                "You took each sentence's mean, then the mean of these. A word of a short sentence then counts more; "
                "here each word counts the same.",
            ),
            Misconception(
                "nanmean",
                lambda losses, lengths: np.nanmean(losses),
                "You left out NaN, and kept padding that holds numbers. The lengths say what is real.",
            ),
            Misconception(
                "for each sentence",
                lambda losses, lengths: (
                    np.where(padding(lengths, losses.shape[1])[:, 0], losses, 0).sum() / len(lengths)
                ),
                "You divided by the number of sentences. Divide by the number of real words.",
            ),
            Misconception(
                "one by one",
                lambda losses, lengths: np.array([row[:n].mean() for row, n in zip(losses, lengths, strict=True)]),
                "That is a mean for each sentence. One number is asked for, over all real words.",
            ),
            Misconception(
                "one too many",
                lambda losses, lengths: losses[np.arange(losses.shape[1]) <= np.array(lengths)[:, None]].mean(),
                "One place of padding of each shorter sentence is in your mean. A sentence of m words has the places "
                "0 to m - 1: j < m.",
            ),
            Misconception(
                "one too few",
                lambda losses, lengths: _mean_loss(losses, np.array(lengths) - 1),
                "The last word of each sentence is missing. A sentence of m words has the places 0 to m - 1: j < m.",
            ),
            Misconception(
                "zeros for NaN",
                lambda losses, lengths: np.nan_to_num(losses).sum() / sum(lengths),
                "You turned NaN into 0, but padding that holds numbers is in your sum. The lengths say what is real.",
            ),
            Misconception(
                "not divided",
                lambda losses, lengths: losses[padding(lengths, losses.shape[1])[:, 0]].sum(),
                "This is the sum over the real words. Divide by their number.",
            ),
            Misconception(
                "inverted",
                lambda losses, lengths: losses[~padding(lengths, losses.shape[1])[:, 0]].mean(),
                "You took the mean over the padding. True means a real word.",
            ),
        ],
    ),
]
