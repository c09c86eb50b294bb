"""Exercises of lesson 18: spans out and in again, answers that count alike, invalid ones, and a memory left out."""

from __future__ import annotations

import re

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.pretraining.spans import corrupt_spans, restore_spans


def _corrupt(text, spans):
    source, target = corrupt_spans(text.split(), spans)
    return " ".join(source), " ".join(target)


def _corrupt_as(
    text, spans, *, first=0, same=False, kept=False, last=True, per_token=False, inclusive=False, counts=False
):
    """The right answer, or one that differs in one thing."""
    words, source, target, end = text.split(), [], [], 0
    for i, (start, stop) in enumerate(spans):
        stop += inclusive + start * counts  # of a pair that is a start and a length
        mark = f"<{first + (0 if same else i)}>"
        source += words[end:start] + [mark] * (stop - start if per_token else 1) + words[start:stop] * kept
        target += [mark, *words[start:stop]]
        end = stop
    final = [f"<{first + (0 if same else len(spans))}>"] if last else []
    return " ".join(source + words[end:]), " ".join(target + final)


def _two_sides(out):
    """A pair may come as a list, and words that were not joined as tuples."""
    if not isinstance(out, tuple | list):
        return out
    return tuple(list(side) if isinstance(side, tuple) else side for side in out)


def _not_joined(text, spans):
    return tuple(side.split() for side in _corrupt(text, spans))


def _targets_without_marks(text, spans):
    words = text.split()
    return _corrupt(text, spans)[0], " ".join(word for start, stop in spans for word in words[start:stop])


def _whole_text(text, spans):
    return _corrupt(text, spans)[0], text


def _tail_forgotten(text, spans):
    source, target = _corrupt(text, spans)
    rest = len(text.split()) - spans[-1][1]
    return " ".join(source.split()[: len(source.split()) - rest]), target


def _marks_behind(text, spans):
    words = text.split()
    target = [word for i, (start, stop) in enumerate(spans) for word in [*words[start:stop], f"<{i}>"]]
    return _corrupt(text, spans)[0], " ".join(target)


def _no_marks_in_source(text, spans):
    source, target = _corrupt(text, spans)
    return " ".join(word for word in source.split() if not word.startswith("<")), target


def _replaced(text, spans, most=-1):
    """Words looked for in the text, and not counted."""
    words, source = text.split(), text
    for i, (start, stop) in enumerate(spans):
        source = source.replace(" ".join(words[start:stop]), f"<{i}>", most)
    return source, _corrupt(text, spans)[1]


def _mark_between(text, spans):
    source, target = _corrupt(text, spans)
    return source, target.removeprefix("<0> ")


def _last_mark_again(text, spans):
    source, target = _corrupt(text, spans)
    return source, target.removesuffix(f"<{len(spans)}>") + f"<{len(spans) - 1}>"


def _places_moved(text, spans):
    """Spans cut out of a list that has become shorter since they were counted."""
    words, target = text.split(), []
    for i, (start, stop) in enumerate(spans):
        target += [f"<{i}>", *words[start:stop]]
        words[start:stop] = [f"<{i}>"]
    return " ".join(words), " ".join([*target, f"<{len(spans)}>"])


def _solve_corrupt(text, spans):
    words, source, target, end = text.split(), [], [], 0
    for i, (start, stop) in enumerate(spans):
        source += [*words[end:start], f"<{i}>"]
        target += [f"<{i}>", *words[start:stop]]
        end = stop
    source += words[end:]
    target += [f"<{len(spans)}>"]
    return " ".join(source), " ".join(target)


def _restore(source, target):
    return " ".join(restore_spans(source.split(), target.split()))


def _parts(target):
    """What stands behind each sentinel, by its number."""
    marks = re.findall(r"<(\d+)>", target)
    texts = [part.split() for part in re.split(r"<\d+>", target)[1:]]
    return dict(zip(map(int, marks), texts, strict=True))


def _filled(source, fill):
    words = []
    for word in source.split():
        found = re.fullmatch(r"<(\d+)>", word)
        words += fill(int(found[1])) if found else [word]
    return " ".join(words)


def _in_turn(source, target):
    """Spans in the order of the target, whatever their numbers."""
    texts = iter(part.split() for part in re.split(r"<\d+>", target)[1:])
    return _filled(source, lambda i: next(texts, []))


def _words_before(source, target):
    parts = [part.split() for part in re.split(r"<\d+>", target)]
    return _filled(source, lambda i: parts[i])


def _one_blank(text):
    return " ".join(text.split()) if isinstance(text, str) else text


def _solve_restore(source, target):
    spans, mark = {}, None
    for word in target.split():
        if word.startswith("<"):
            mark = word
            spans[mark] = []
        else:
            spans[mark].append(word)
    return " ".join(new for word in source.split() for new in spans.get(word, [word]))


def _loss(losses, real):
    return np.mean([row[there].mean() for row, there in zip(losses, real, strict=True)])


def _solve_loss(losses, real):
    each = (losses * real).sum(axis=1) / real.sum(axis=1)  # the mean over the tokens of each answer
    return each.mean()


def _shares(written, wanted, possible):
    right = np.array([a == b for a, b in zip(written, wanted, strict=True)])
    valid = np.array([a in some for a, some in zip(written, possible, strict=True)])
    return float(right.mean()), float((valid & ~right).mean()), float((~valid).mean())


def _among_the_wrong(written, wanted, possible):
    right, other, invalid = _shares(written, wanted, possible)
    return right, other / (1 - right), invalid / (1 - right)


def _valid_anywhere(written, wanted, possible):
    return _shares(written, wanted, [set().union(*possible)] * len(written))


def _wrong_in_all(written, wanted, possible):
    right, _, invalid = _shares(written, wanted, possible)
    return right, 1 - right, invalid


def _possible_in_all(written, wanted, possible):
    right, other, invalid = _shares(written, wanted, possible)
    return right, right + other, invalid


def _wanted_by_another(written, wanted, possible):
    return _shares(written, wanted, [set(wanted)] * len(written))


def _inside_one(written, wanted, possible):
    inside = [{a} if any(a in text for text in some) else set() for a, some in zip(written, possible, strict=True)]
    return _shares(written, wanted, inside)


def _part_of_one(written, wanted, possible):
    as_words = [{word for text in some for word in text.split()} for some in possible]
    right = np.array([a == b for a, b in zip(written, wanted, strict=True)])
    valid = np.array([set(a.split()) <= words for a, words in zip(written, as_words, strict=True)])
    return float(right.mean()), float((valid & ~right).mean()), float((~valid).mean())


def _first_words(written, wanted, possible):
    first = [(a.split() or [""])[0] for a in written]
    return _shares(first, [b.split()[0] for b in wanted], [{text.split()[0] for text in some} for some in possible])


def _solve_shares(written, wanted, possible):
    n = len(written)
    right = sum(a == b for a, b in zip(written, wanted))  # noqa: B905
    invalid = sum(a not in some for a, some in zip(written, possible))  # noqa: B905
    return right / n, (n - right - invalid) / n, invalid / n


def _softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _unit(x, least=1e-12):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), least)


def _memory(features, bandwidth):
    scores = _unit(features) @ _unit(features).T / bandwidth
    np.fill_diagonal(scores, -np.inf)
    return _softmax(scores)


def _memory_as(features, bandwidth, *, unit=True, axis=-1, own=-np.inf):
    x = _unit(features) if unit else features
    scores = x @ x.T / bandwidth
    if own is not None:
        np.fill_diagonal(scores, own)
    return _softmax(scores, axis)


def _not_summed_again(features, bandwidth):
    weights = _memory_as(features, bandwidth, own=None)
    np.fill_diagonal(weights, 0)
    return weights


def _nearest(features, bandwidth):
    return np.eye(len(features))[_memory(features, bandwidth).argmax(axis=1)]


def _squared(features, bandwidth):
    x = _unit(features)
    scores = -((x[:, None] - x[None]) ** 2).sum(-1) / bandwidth
    np.fill_diagonal(scores, -np.inf)
    return _softmax(scores)


def _no_softmax(features, bandwidth):
    scores = _unit(features) @ _unit(features).T
    np.fill_diagonal(scores, 0)
    return scores / scores.sum(axis=1, keepdims=True)


def _zero_by_zero(features, bandwidth):
    scores = _unit(features, 0.0) @ _unit(features, 0.0).T / bandwidth
    np.fill_diagonal(scores, -np.inf)
    return _softmax(scores)


def _overflowing(features, bandwidth):
    scores = _unit(features) @ _unit(features).T / bandwidth
    np.fill_diagonal(scores, -np.inf)
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)


def _solve_memory(features, bandwidth):
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    unit = features / np.maximum(lengths, 1e-12)  # a row of zeros stays one
    scores = unit @ unit.T / bandwidth
    np.fill_diagonal(scores, -np.inf)  # nobody asks itself
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _some_losses(rng, lengths):
    real = np.arange(max(lengths) + 1) < np.array(lengths)[:, None]
    return rng.uniform(0.2, 3.0, size=real.shape), real


_THANKS = "Thank you for inviting me to your party last week"
_FOUR = "one hundred twenty one thousand nine hundred four"

EXERCISES = [
    Exercise(
        id="18.1",
        title="Take spans out",
        reference=_corrupt,
        cases=lambda rng: [
            (_THANKS, [(2, 4), (8, 9)]),
            (_FOUR, [(0, 1), (3, 5), (6, 8)]),
            (_FOUR, [(1, 4)]),
            (_FOUR, [(3, 4), (6, 7)]),  # words that stand earlier, too
        ],
        hints=(
            "Go through the spans in order and remember where the last one ended.",
            "Before span i the source gets words[end:start] and its sentinel; the target the sentinel and "
            "words[start:stop].",
            "At the end: source += words[end:]; target += [f'<{len(spans)}>']; then ' '.join of both.",
        ),
        misconceptions=[
            Misconception(
                "without the last sentinel",
                lambda text, spans: _corrupt_as(text, spans, last=False),
                "The last sentinel is missing from the target: one more than there are spans. It says that nothing "
                "follows.",
            ),
            Misconception(
                "the last sentinel again",
                _last_mark_again,
                "Your target ends with the sentinel of the last span once more. The one at the end is new: its number "
                "is len(spans).",
            ),
            Misconception(
                "no sentinel before the first",
                _mark_between,
                "Your target has no <0> before the first span. Each span has its own sentinel before it.",
            ),
            Misconception(
                "one sentinel for all",
                lambda text, spans: _corrupt_as(text, spans, same=True),
                "Every span got the same sentinel. Number them, or nobody can tell which words belong where.",
            ),
            Misconception(
                "a sentinel for each word",
                lambda text, spans: _corrupt_as(text, spans, per_token=True),
                "You put a sentinel for every word that was taken out. One stands for the whole span, however long: "
                "how many words it hides is part of the question.",
            ),
            Misconception(
                "the words left in",
                lambda text, spans: _corrupt_as(text, spans, kept=True),
                "The words of the spans are still in the source, after their sentinels. Then nothing is asked.",
            ),
            Misconception(
                "no sentinels in the target",
                _targets_without_marks,
                "The target has the words, but no sentinels. Put one before each span, and one more at the end.",
            ),
            Misconception(
                "the whole text as target",
                _whole_text,
                "Your target is the whole text. T5 writes only what is missing, with its sentinels.",
            ),
            Misconception(
                "stop included",
                lambda text, spans: _corrupt_as(text, spans, inclusive=True),
                "You took out the word at stop as well. A span ends before it, as in words[start:stop].",
            ),
            Misconception(
                "numbered from 1",
                lambda text, spans: _corrupt_as(text, spans, first=1),
                "Your sentinels begin with <1>. The first is <0>.",
            ),
            Misconception(
                "the rest forgotten",
                _tail_forgotten,
                "The source ends with the last sentinel. What comes after the last span stays: add words[end:].",
            ),
            Misconception(
                "sentinels behind",
                _marks_behind,
                "In your target the sentinels come after their words. Put each before, and one more at the end.",
            ),
            Misconception(
                "no sentinels in the source",
                _no_marks_in_source,
                "The source has no sentinels, so nobody can see where something is missing.",
            ),
            Misconception(
                "places that moved",
                _places_moved,
                "You cut each span out of what was left of the text. After the first cut the words have moved: count "
                "all places in the text as it was.",
            ),
            Misconception(
                "replaced everywhere",
                _replaced,
                "str.replace takes the words of a span out wherever they occur. Go by the places in spans.",
            ),
            Misconception(
                "replaced at the first place",
                lambda text, spans: _replaced(text, spans, 1),
                "You took a span's words out where they occur first. They may occur twice: go by the places in spans.",
            ),
            Misconception(
                "a start and a length",
                lambda text, spans: _corrupt_as(text, spans, counts=True),
                "You took the second number as a length. It is where the span stops: words[start:stop].",
            ),
            Misconception(
                "T5's names",
                lambda text, spans: tuple(
                    re.sub(r"<(\d+)>", r"<extra_id_\1>", side) for side in _corrupt(text, spans)
                ),
                "<extra_id_0> is how T5's own vocabulary writes it. Here the sentinels are <0>, <1>, …",
            ),
            Misconception(
                "lists of words",
                _not_joined,
                "You did not join the words. Two strings are asked for: ' '.join(source), ' '.join(target).",
            ),
            Misconception(
                "exchanged",
                lambda text, spans: _corrupt(text, spans)[::-1],
                "The two are exchanged: what is shown comes first, then what is to be written.",
            ),
        ],
        adapt=_two_sides,
        solution=_solve_corrupt,
    ),
    Exercise(
        id="18.2",
        title="Put spans back",
        reference=_restore,
        cases=lambda rng: [
            ("Thank you <0> me to your party <1> week", "<0> for inviting <1> last <2>"),
            ("<0> hundred twenty <1> nine <2>", "<0> one <1> one thousand <2> hundred four <3>"),
            ("a <0> d <1> f", "<1> e <0> b c <2>"),
            (" ".join(f"a{i} <{i}>" for i in range(11)), " ".join(f"<{i}> b{i}" for i in range(11)) + " <11>"),
        ],
        hints=(
            "Read the target first: which words follow each sentinel?",
            "Make a dictionary from sentinels to lists of words, starting a new list at each sentinel.",
            "Then go through the source and replace each word that is in the dictionary by its list.",
        ),
        misconceptions=[
            Misconception(
                "in turn",
                _in_turn,
                "You put the spans back in the order in which the target has them. Go by the numbers of the "
                "sentinels: a target may name them in another order.",
            ),
            Misconception(
                "sentinels kept",
                lambda source, target: _filled(source, lambda i: [f"<{i}>", *_parts(target).get(i, [])]),
                "The sentinels are still in your text. They go when their words come.",
            ),
            Misconception(
                "one word each",
                lambda source, target: _filled(source, lambda i: _parts(target).get(i, [])[:1]),
                "You put back one word for each sentinel. A span goes on until the next sentinel.",
            ),
            Misconception(
                "sentinels dropped",
                lambda source, target: _filled(source, lambda i: []),
                "The sentinels are gone and nothing came in their place.",
            ),
            Misconception(
                "the source as it is",
                lambda source, target: source,
                "This is the source as it came: nothing was put in. Look its words up one by one, with keys like "
                "'<0>', and keep what you get: str.replace returns a new string.",
            ),
            Misconception(
                "the target's words alone",
                lambda source, target: " ".join(word for word in target.split() if not word.startswith("<")),
                "These are the words of the target. They belong in the source, in the places of their sentinels.",
            ),
            Misconception(
                "a list of words",
                lambda source, target: _restore(source, target).split(),
                "You returned a list of words. A string is asked for: ' '.join(words).",
            ),
            Misconception(
                "at the end",
                lambda source, target: " ".join(
                    [_filled(source, lambda i: []), *(w for w in target.split() if not w.startswith("<"))]
                ),
                "You put all missing words at the end. Each span belongs where its sentinel is.",
            ),
            Misconception(
                "one number on",
                lambda source, target: _filled(source, lambda i: _parts(target).get(i + 1, [])),
                "You took the words of the next sentinel. Take the words that follow the same sentinel in the target.",
            ),
            Misconception(
                "the words before",
                _words_before,
                "Your parts are one place late: re.split begins with what stands before the first sentinel. Go by the "
                "name of the sentinel, and take the words that follow it.",
            ),
        ],
        adapt=_one_blank,
        solution=_solve_restore,
    ),
    Exercise(
        id="18.3",
        title="All answers alike",
        reference=_loss,
        cases=lambda rng: [_some_losses(rng, lengths) for lengths in ((1, 4, 2), (5, 1), (3, 6, 1, 2))],
        hints=(
            "What is the mean loss of one answer, over its own tokens?",
            "(losses * real).sum(axis=1) are the sums of the answers, real.sum(axis=1) their lengths.",
            "((losses * real).sum(axis=1) / real.sum(axis=1)).mean()",
        ),
        misconceptions=[
            Misconception(
                "over tokens",
                lambda losses, real: losses[real].mean(),
                "This is the mean over tokens, in which an answer of four words counts four times as much as one of "
                "one word. Take the mean of each answer first.",
            ),
            Misconception(
                "padding counted",
                lambda losses, real: losses.mean(),
                "You averaged over the padding too. There is a token only where real is True.",
            ),
            Misconception(
                "padding in the length",
                lambda losses, real: (losses * real).mean(axis=1).mean(),
                "The padding's losses are out, but it still counts in the lengths: divide by real.sum(axis=1).",
            ),
            Misconception(
                "padding in the sums",
                lambda losses, real: (losses.sum(axis=1) / real.sum(axis=1)).mean(),
                "The lengths are right, but the sums hold the padding's losses: (losses * real).sum(axis=1).",
            ),
            Misconception(
                "a mean over places too",
                lambda losses, real: (losses * real / real.sum(axis=1, keepdims=True)).mean(),
                "You divided by the lengths, and your mean divides by the number of places as well: sum over axis 1, "
                "then take the mean.",
            ),
            Misconception(
                "one for each answer",
                lambda losses, real: (losses * real).sum(axis=1) / real.sum(axis=1),
                "These are the means of the answers. One number is asked for, their mean.",
            ),
            Misconception(
                "sums",
                lambda losses, real: (losses * real).sum(axis=1).mean(),
                "You averaged the sums of the answers, so long ones count more. Divide each by its length.",
            ),
            Misconception(
                "a sum of means",
                lambda losses, real: _loss(losses, real) * len(losses),
                "You summed the means of the answers. Divide by how many answers there are.",
            ),
            Misconception(
                "first tokens",
                lambda losses, real: losses[:, 0].mean(),
                "This is the loss of the first tokens alone.",
            ),
            Misconception(
                "places first",
                lambda losses, real: np.nanmean((losses * real).sum(axis=0) / real.sum(axis=0)),
                "You took the mean of each place over the answers. Take the mean of each answer over its places.",
            ),
            Misconception(
                "one sum",
                lambda losses, real: losses[real].sum(),
                "This is the sum over all tokens. Take the mean of each answer, then the mean of these.",
            ),
            Misconception(
                "the sum over answers",
                lambda losses, real: losses[real].sum() / real.sum(axis=1).mean(),
                "You divided the sum of all by the mean length. Each answer has a length of its own.",
            ),
        ],
        solution=_solve_loss,
    ),
    Exercise(
        id="18.4",
        title="Invalid answers",
        reference=_shares,
        cases=lambda rng: [
            (
                ["eighty three", "ninety", "odd", "twenty one", "seventeen", "forty", "sixty five", "ninety two"],
                ["eighty seven", "ninety", "even", "forty six", "seventeen", "forty one", "sixty five", "eighty two"],
                [
                    {"eighty seven", "sixty three"},
                    {"ninety", "fifty"},
                    {"odd", "even"},
                    {"twenty one", "forty six"},
                    {"seventeen", "eighty three"},
                    {"forty one", "twelve"},
                    {"sixty five", "forty"},
                    {"eighty two", "thirty"},
                ],
            ),
            (
                ["odd", "even", "odd 2", "two", ""],
                ["even", "even", "odd", "odd", "odd"],
                [{"odd", "even"}] * 5,
            ),
        ],
        hints=(
            "There are three kinds of answers, and no answer is of two.",
            "Invalid is what is not in possible[i]. Of the rest, right is what equals wanted[i].",
            "Divide all three counts by len(written). They sum to one.",
        ),
        misconceptions=[
            Misconception(
                "shares of the wrong ones",
                _among_the_wrong,
                "You divided by the number of wrong answers. All three are shares of all questions.",
            ),
            Misconception(
                "valid anywhere",
                _valid_anywhere,
                "You counted an answer as possible if any question allows it, or its first or last word. Only "
                "possible[i] decides for question i, on the whole answer.",
            ),
            Misconception(
                "all wrong ones",
                _wrong_in_all,
                "Your second share holds all wrong answers, the invalid ones too. Each answer belongs to one kind.",
            ),
            Misconception(
                "the words are possible",
                _part_of_one,
                "You asked whether the words of an answer occur. 'eighty three' is made of words of 'eighty seven' "
                "and 'sixty three', and is neither.",
            ),
            Misconception(
                "right ones are possible too",
                _possible_in_all,
                "Your second share holds the right answers as well. It is for those that are wrong but possible.",
            ),
            Misconception(
                "wanted by another question",
                _wanted_by_another,
                "You did not look in possible[i] for question i: it says what that question allows. (Did you look "
                "among the right answers, or at another question?)",
            ),
            Misconception(
                "a part of one",
                _inside_one,
                "You looked for each answer inside the possible ones, as part of a string: 'forty' is not 'forty "
                "one', and an empty answer is part of every string.",
            ),
            Misconception(
                "the first word",
                _first_words,
                "You compared first words. The whole answer counts.",
            ),
            Misconception(
                "exchanged",
                lambda written, wanted, possible: tuple(np.array(_shares(written, wanted, possible))[[0, 2, 1]]),
                "The last two are exchanged: wrong but possible comes before invalid.",
            ),
            Misconception(
                "counts",
                lambda written, wanted, possible: tuple(len(written) * np.array(_shares(written, wanted, possible))),
                "These are counts. Divide them by the number of questions.",
            ),
            Misconception(
                "right of the valid",
                lambda written, wanted, possible: (lambda r, o, i: (r / (r + o), o / (r + o), i))(
                    *_shares(written, wanted, possible)
                ),
                "You left the invalid answers out of the first two shares. A network that answers nonsense would "
                "look better for it.",
            ),
        ],
        adapt=lambda shares: np.asarray(shares, dtype=float),
        solution=_solve_shares,
    ),
    Exercise(
        id="18.5",
        title="Each text asks all the others",
        reference=_memory,
        cases=lambda rng: [
            *((rng.uniform(0.1, 2.0, size=(n, d)), h) for n, d, h in ((5, 3, 0.3), (4, 6, 0.5), (7, 2, 0.2))),
            (rng.uniform(0.1, 2.0, size=(6, 4)) * (np.arange(6) != 2)[:, None], 0.4),  # one like no other
            (rng.uniform(0.1, 2.0, size=(3, 5)), 0.001),  # scores near 1,000
        ],
        hints=(
            "Divide each row by its length, or by something tiny where that is 0: then products of rows are cosines.",
            "A text must not ask itself: set the diagonal of the scores to minus infinity before the softmax.",
            "scores = unit @ unit.T / bandwidth; np.fill_diagonal(scores, -np.inf); subtract each row's largest; then "
            "softmax over axis 1.",
        ),
        misconceptions=[
            Misconception(
                "itself included",
                lambda features, bandwidth: _memory_as(features, bandwidth, own=None),
                "Nearly each text has found itself, with the largest weight: its own translation leaks into its "
                "score. Leave the diagonal out.",
            ),
            Misconception(
                "the diagonal zeroed afterwards",
                _not_summed_again,
                "You set the diagonal to zero after the softmax, so that the rows no longer sum to one. Do it before, "
                "with minus infinity.",
            ),
            Misconception(
                "a score of zero",
                lambda features, bandwidth: _memory_as(features, bandwidth, own=0.0),
                "You gave the diagonal a score of 0, and exp(0) is 1: where the bandwidth is not tiny, each text "
                "still gives itself weight. Use minus infinity.",
            ),
            Misconception(
                "no cosine",
                lambda features, bandwidth: _memory_as(features, bandwidth, unit=False),
                "You took products of the rows as they are, in which long rows win. Divide each by its length first.",
            ),
            Misconception(
                "over columns",
                lambda features, bandwidth: _memory_as(features, bandwidth, axis=0),
                "Your columns sum to one. One row is one text's distribution over the others.",
            ),
            Misconception(
                "times the bandwidth",
                lambda features, bandwidth: _memory_as(features, 1 / bandwidth),
                "You multiplied by the bandwidth. A small one lets the nearest text decide: divide.",
            ),
            Misconception(
                "the bandwidth squared",
                lambda features, bandwidth: _memory(features, bandwidth**2),
                "You divided by the square of the bandwidth, as a Gaussian kernel does. Divide the cosine by the "
                "bandwidth itself.",
            ),
            Misconception(
                "the farthest",
                lambda features, bandwidth: _memory(features, -bandwidth),
                "The least similar text has the largest weight. A cosine grows with similarity: no minus.",
            ),
            Misconception(
                "the nearest alone",
                _nearest,
                "All weight is on the nearest text. A softmax leaves some to the others.",
            ),
            Misconception(
                "distances",
                _squared,
                "You took minus the squared distance of unit rows, which is twice the cosine minus 2 (but for a row "
                "of zeros): as if the bandwidth were half as large.",
            ),
            Misconception(
                "one length for all",
                lambda features, bandwidth: _memory_as(features / np.linalg.norm(features), bandwidth, unit=False),
                "You divided by the length of the whole matrix. Each row has its own: axis=1, keepdims=True.",
            ),
            Misconception(
                "divided by sums",
                lambda features, bandwidth: _memory_as(
                    features / features.sum(axis=1, keepdims=True), bandwidth, unit=False
                ),
                "You divided each row by its sum. For a cosine, divide by its length, the root of the sum of squares.",
            ),
            Misconception(
                "no softmax",
                _no_softmax,
                "You divided the cosines by their sum. The weights are a softmax of the scores.",
            ),
            Misconception(
                "zero by zero",
                _zero_by_zero,
                "A row of zeros has length 0, and 0 / 0 is NaN. Divide by np.maximum(lengths, 1e-12): such a row "
                "stays zeros, and its cosine with every other is 0.",
            ),
            Misconception(
                "overflow",
                _overflowing,
                "With a small bandwidth scores may be above 709, and exp of that is infinite. Subtract each row's "
                "largest score first; the weights stay the same.",
            ),
            Misconception(
                "no bandwidth",
                lambda features, bandwidth: _memory(features, 1.0),
                "The bandwidth changes nothing in your weights. Divide the cosines by it (before rows get length 1, "
                "it cancels).",
            ),
        ],
        solution=_solve_memory,
    ),
]
