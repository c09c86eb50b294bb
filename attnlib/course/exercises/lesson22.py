"""Exercises of lesson 22: the contrastive loss, captions as classes, candidates, a gate, codes of patches."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _log_softmax(scores, axis):
    scores = scores - scores.max(axis=axis, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True))


def _by_picture(scores, answer, *, axis=1):
    return -_log_softmax(scores, axis)[np.arange(len(answer)), answer].mean()


def _by_caption(scores, answer, *, axis=0, of=np.sum):
    p = np.exp(_log_softmax(scores, axis))
    return -np.mean([np.log(of(p[answer == j, j])) for j in np.unique(answer)])


def _loss(scores, answer):
    return (_by_picture(scores, answer) + _by_caption(scores, answer)) / 2


def _on_its_own(scores, answer):
    return (_by_picture(scores, answer) + _by_picture(scores, answer, axis=0)) / 2


def _mean_of_pictures(scores, answer):
    return (_by_picture(scores, answer) + _by_caption(scores, answer, of=np.mean)) / 2


def _mean_of_logs(scores, answer):
    log_p = _log_softmax(scores, 0)
    return (_by_picture(scores, answer) - np.mean([log_p[answer == j, j].mean() for j in np.unique(answer)])) / 2


def _by_number(scores, answer):
    p = np.exp(_log_softmax(scores, 0))
    captions = -sum(np.log(p[answer == j, j].sum()) for j in np.unique(answer)) / scores.shape[1]
    return (_by_picture(scores, answer) + captions) / 2


def _once_a_picture(scores, answer):
    p = np.exp(_log_softmax(scores, 0))
    sums = np.array([p[answer == j, j].sum() for j in answer])
    return (_by_picture(scores, answer) - np.log(sums).mean()) / 2


def _by_pictures(scores, answer):
    used = len(np.unique(answer))
    return (_by_picture(scores, answer) + _by_caption(scores, answer) * used / len(answer)) / 2


def _other_axis(scores, answer):
    return (_by_picture(scores, answer, axis=0) + _by_caption(scores, answer, axis=1)) / 2


def _rows_twice(scores, answer):
    return (_by_picture(scores, answer) + _by_caption(scores, answer, axis=1)) / 2


def _best_only(scores, answer):
    return (_by_picture(scores, answer) + _by_caption(scores, answer, of=np.max)) / 2


def _used_only(scores, answer):
    used, places = np.unique(answer, return_inverse=True)
    return _loss(scores[:, used], places)


def _solve_loss(scores, answer):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))  # the same probabilities, and nothing overflows
    p = e / e.sum(axis=1, keepdims=True)
    pictures = -np.log(p[np.arange(len(answer)), answer]).mean()
    e = np.exp(scores - scores.max(axis=0))
    p = e / e.sum(axis=0)
    captions = -np.mean([np.log(p[answer == j, j].sum()) for j in set(answer)])
    return (pictures + captions) / 2


def _batch(rng, n, m, height):
    return 2 * rng.normal(size=(n, m)) + height, np.append(rng.integers(m - 1, size=n - 2), [0, 0])


def _normalised(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _captions(pictures, captions):
    return (_normalised(pictures) @ _normalised(captions).T).argmax(axis=1)


def _solve_captions(pictures, captions):
    p, c = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (pictures, captions))
    return (p @ c.T).argmax(axis=1)


def _share(scores, answer, candidates):
    best = np.where(candidates, scores, -np.inf).argmax(axis=1)
    return (best == answer)[candidates[answer]].mean()


def _solve_share(scores, answer, candidates):
    asked = candidates[answer]
    best = np.flatnonzero(candidates)[scores[asked][:, candidates].argmax(axis=1)]
    return (best == answer[asked]).mean()


def _place_among(scores, answer, candidates):
    asked = candidates[answer]
    return (scores[asked][:, candidates].argmax(axis=1) == answer[asked]).mean()


def _zeroed(scores, answer, candidates):
    best = np.where(candidates, scores, 0).argmax(axis=1)
    return (best == answer)[candidates[answer]].mean()


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _taken(x, rows):
    return _softmax(x @ rows.T / np.sqrt(x.shape[1])) @ rows


def _gated(x, rows, gate):
    return x + np.tanh(gate) * _taken(x, rows)


def _solve_gated(x, rows, gate):
    scores = x @ rows.T / np.sqrt(x.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return x + np.tanh(gate) * weights @ rows


def _patches(pictures, patch):
    n, side, _ = pictures.shape
    grid = pictures.reshape(n, side // patch, patch, side // patch, patch).swapaxes(2, 3)
    return grid.reshape(n, -1, patch * patch)


def _codes(pictures, centres, order=2):
    patches, flat = _patches(pictures, centres.shape[1]), centres.reshape(len(centres), -1)
    return (abs(patches[:, :, None] - flat) ** order).sum(axis=-1).argmin(axis=-1)


def _cut_wrongly(pictures, centres):
    rows = pictures.reshape(len(pictures), -1, centres.shape[1] ** 2)
    return ((rows[:, :, None] - centres.reshape(len(centres), -1)) ** 2).sum(axis=-1).argmin(axis=-1)


def _by_columns(pictures, centres):
    lines = pictures.shape[1] // centres.shape[1]
    return _codes(pictures, centres).reshape(-1, lines, lines).swapaxes(1, 2).reshape(len(pictures), -1)


def _by_product(pictures, centres):
    flat = centres.reshape(len(centres), -1)
    return (_patches(pictures, centres.shape[1]) @ flat.T).argmax(axis=-1)


def _by_cosine(pictures, centres):
    return (_patches(pictures, centres.shape[1]) @ _normalised(centres.reshape(len(centres), -1)).T).argmax(axis=-1)


def _off(pictures, centres):
    return _patches(pictures, centres.shape[1])[:, :, None] - centres.reshape(len(centres), -1)


def _cancelled(pictures, centres):
    return (_off(pictures, centres).sum(axis=-1) ** 2).argmin(axis=-1)


def _by_largest(pictures, centres):
    return abs(_off(pictures, centres)).max(axis=-1).argmin(axis=-1)


def _farthest(pictures, centres):
    patches, flat = _patches(pictures, centres.shape[1]), centres.reshape(len(centres), -1)
    return ((patches[:, :, None] - flat) ** 2).sum(axis=-1).argmax(axis=-1)


def _solve_codes(pictures, centres):
    patch, codes = centres.shape[1], []
    for picture in pictures:
        for i in range(0, picture.shape[0], patch):
            for j in range(0, picture.shape[1], patch):
                off = picture[i : i + patch, j : j + patch] - centres
                codes.append((off**2).sum(axis=(1, 2)).argmin())
    return np.array(codes).reshape(len(pictures), -1)


def _candidates(rng, n, m, n_candidates, size):
    candidates = np.zeros(m, bool)
    candidates[rng.permutation(m)[:n_candidates]] = True
    answer, scores = rng.integers(m, size=n), rng.normal(size=(n, m)) - 1.5
    scores[np.arange(n), answer] += 1.2
    return size * scores, answer, candidates


EXERCISES = [
    Exercise(
        id="22.1",
        title="The contrastive loss, when captions repeat",
        reference=_loss,
        cases=lambda rng: [_batch(rng, n, m, height) for n, m, height in ((4, 3, 0), (7, 5, 1000), (5, 8, -2))],
        hints=(
            "Two losses. Who chooses along a row of scores, and who down a column? Which columns have no choice?",
            "A softmax over axis 1: take [np.arange(n), answer]. A softmax over axis 0, and for each caption in "
            "np.unique(answer) the sum over the pictures where answer is this caption.",
            "p = softmax(scores, 0); -np.mean([np.log(p[answer == j, j].sum()) for j in np.unique(answer)])",
        ),
        misconceptions=[
            Misconception(
                "pictures only",
                _by_picture,
                "Your pictures choose among captions. Captions choose among pictures too, down the columns.",
            ),
            Misconception(
                "captions only",
                _by_caption,
                "Your captions choose among pictures. Pictures choose among captions too, along the rows.",
            ),
            Misconception(
                "a sum",
                lambda scores, answer: 2 * _loss(scores, answer),
                "You added up both directions. The loss is their mean: divide by two.",
            ),
            Misconception(
                "each picture on its own",
                _on_its_own,
                "Down a column you ask for each picture alone, so two pictures of one caption count against each "
                "other. Add up the probabilities of all its pictures first, and count the caption once.",
            ),
            Misconception(
                "a mean of probabilities",
                _mean_of_pictures,
                "You averaged the probabilities of a caption's pictures. Any of these pictures is right: add them up.",
            ),
            Misconception(
                "a mean of logarithms",
                _mean_of_logs,
                "You averaged logarithms over a caption's pictures. Add up the probabilities first.",
            ),
            Misconception(
                "divided by all captions",
                _by_number,
                "You divided by the number of all captions. Those without a picture have nothing to choose: the mean "
                "is over the others.",
            ),
            Misconception(
                "divided by all pictures",
                _by_pictures,
                "You divided the captions' sum by the number of pictures. Divide by how many captions have a picture.",
            ),
            Misconception(
                "the other axis",
                _other_axis,
                "Your two softmaxes are exchanged. A picture chooses along its row, axis 1, and a caption down its "
                "column, axis 0.",
            ),
            Misconception(
                "one softmax for both",
                _rows_twice,
                "You took the softmax along the rows for both directions. Captions choose down their columns, and "
                "need a softmax of their own, over axis 0.",
            ),
            Misconception(
                "the best picture only",
                _best_only,
                "You took the best of a caption's pictures. Any of them is right: add up their probabilities.",
            ),
            Misconception(
                "once for each picture",
                _once_a_picture,
                "You counted a caption once for each of its pictures. The mean is over captions, each once.",
            ),
            Misconception(
                "captions without pictures left out of the rows",
                _used_only,
                "You left captions without a picture out of the rows too. They are wrong answers like all others.",
            ),
            Misconception(
                "one softmax for all",
                lambda scores, answer: (
                    -np.log(
                        (np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())[
                            np.arange(len(answer)), answer
                        ]
                    ).mean()
                ),
                "You took one softmax over the whole table. Each row is a choice of its own, and so is each column.",
            ),
            Misconception(
                "the sign",
                lambda scores, answer: -_loss(scores, answer),
                "The sign is wrong: a loss is minus the logarithm of a probability, and never below zero.",
            ),
        ],
        solution=_solve_loss,
    ),
    Exercise(
        id="22.2",
        title="Classify by captions",
        reference=_captions,
        cases=lambda rng: [
            (rng.normal(size=(n, d)) * 3, rng.normal(size=(m, d)) * np.exp(rng.normal(size=(m, 1))))
            for n, m, d in ((19, 6, 4), (25, 5, 3), (31, 8, 5))
        ],
        hints=(
            "What does the score of CLIP compare, apart from lengths?",
            "Divide every row by its length, multiply pictures by captions, and take the largest of each row.",
            "p = pictures / np.linalg.norm(pictures, axis=1, keepdims=True), c likewise; (p @ c.T).argmax(axis=1)",
        ),
        misconceptions=[
            Misconception(
                "dot products",
                lambda pictures, captions: (pictures @ captions.T).argmax(axis=1),
                "You compared dot products, so that a long caption row wins. Divide each row by its length.",
            ),
            Misconception(
                "distances",
                lambda pictures, captions: ((pictures[:, None] - captions) ** 2).sum(axis=-1).argmin(axis=1),
                "You took the nearest row. For rows of length one that is the same; yours have other lengths.",
            ),
            Misconception(
                "a picture for each caption",
                lambda pictures, captions: (_normalised(pictures) @ _normalised(captions).T).argmax(axis=0),
                "You have a picture for each caption. A caption for each picture was asked for: axis 1.",
            ),
            Misconception(
                "the worst",
                lambda pictures, captions: (_normalised(pictures) @ _normalised(captions).T).argmin(axis=1),
                "You took the lowest score. The best caption has the highest.",
            ),
            Misconception(
                "columns of length one",
                lambda pictures, captions: (
                    (pictures / np.linalg.norm(pictures, axis=0)) @ (captions / np.linalg.norm(captions, axis=0)).T
                ).argmax(axis=1),
                "You gave the columns length one. A caption is a row: axis=1, keepdims=True.",
            ),
            Misconception(
                "squared lengths",
                lambda pictures, captions: (pictures @ (captions / (captions**2).sum(axis=1, keepdims=True)).T).argmax(
                    axis=1
                ),
                "You divided by the square of the length, so that a short caption row wins. Take the root: a row's "
                "length is np.sqrt((row ** 2).sum()).",
            ),
            Misconception(
                "absolute values",
                lambda pictures, captions: (pictures @ (captions / abs(captions).sum(axis=1, keepdims=True)).T).argmax(
                    axis=1
                ),
                "You divided by the sum of absolute values. A row's length is the root of the sum of its squares.",
            ),
            Misconception(
                "the absolute cosine",
                lambda pictures, captions: abs(_normalised(pictures) @ _normalised(captions).T).argmax(axis=1),
                "You took the cosine without its sign. A row that points the other way fits worst, not best.",
            ),
        ],
        solution=_solve_captions,
    ),
    Exercise(
        id="22.3",
        title="Right among candidates",
        reference=_share,
        cases=lambda rng: [_candidates(rng, *sizes) for sizes in ((60, 9, 4, 1), (75, 7, 5, 1000), (90, 11, 3, 1))],
        hints=(
            "Two things are left out: pictures whose answer cannot be chosen, and captions that are not candidates.",
            "Set the scores of other captions to -inf, take argmax, and average over candidates[answer].",
            "best = np.where(candidates, scores, -np.inf).argmax(axis=1); (best == answer)[candidates[answer]].mean()",
        ),
        misconceptions=[
            Misconception(
                "all captions",
                lambda scores, answer, candidates: (scores.argmax(axis=1) == answer)[candidates[answer]].mean(),
                "You let every caption be chosen. Only the candidates may be chosen.",
            ),
            Misconception(
                "all pictures",
                lambda scores, answer, candidates: (
                    np.where(candidates, scores, -np.inf).argmax(axis=1) == answer
                ).mean(),
                "You counted pictures whose right caption is not a candidate: they cannot be right. Leave them out.",
            ),
            Misconception(
                "everything",
                lambda scores, answer, candidates: (scores.argmax(axis=1) == answer).mean(),
                "This is the share of all pictures with all captions. Candidates limit both.",
            ),
            Misconception(
                "the place among candidates",
                _place_among,
                "You compared the place among the candidates with the place among all captions. Translate it back, "
                "by np.flatnonzero(candidates).",
            ),
            Misconception(
                "hidden by zero",
                _zeroed,
                "You set the other scores to 0, which beats every negative score: use -np.inf.",
            ),
            Misconception(
                "the place among candidates, of all pictures",
                lambda scores, answer, candidates: (scores[:, candidates].argmax(axis=1) == answer).mean(),
                "You compared the place among the candidates with the place among all captions, and counted pictures "
                "whose caption cannot be chosen. Translate the place back, and leave these pictures out.",
            ),
            Misconception(
                "pictures whose answer was a candidate",
                lambda scores, answer, candidates: (scores.argmax(axis=1) == answer)[
                    candidates[scores.argmax(axis=1)]
                ].mean(),
                "You kept the pictures for which a candidate scored best of all captions. Keep those whose own "
                "caption is a candidate, and let each choose among the candidates.",
            ),
            Misconception(
                "caption by caption",
                lambda scores, answer, candidates: np.mean(
                    [
                        (np.where(candidates, scores, -np.inf).argmax(axis=1) == j)[answer == j].mean()
                        for j in np.flatnonzero(candidates)
                        if (answer == j).any()
                    ]
                ),
                "You took the share caption by caption, and then their mean. Each picture counts once, whatever its "
                "caption.",
            ),
            Misconception(
                "how many",
                lambda scores, answer, candidates: (np.where(candidates, scores, -np.inf).argmax(axis=1) == answer)[
                    candidates[answer]
                ].sum(),
                "You counted. The share was asked for, a mean.",
            ),
            Misconception(
                "wrong ones",
                lambda scores, answer, candidates: 1 - _share(scores, answer, candidates),
                "This is the share of the wrong ones.",
            ),
        ],
        solution=_solve_share,
    ),
    Exercise(
        id="22.4",
        title="Through a gate",
        reference=_gated,
        cases=lambda rng: [
            (rng.normal(size=(n, d)), rng.normal(size=(m, d)), gate)
            for n, m, d, gate in ((3, 5, 4, 0.7), (4, 2, 6, -0.4), (2, 6, 3, 1.8), (5, 3, 2, 0.0))
        ],
        hints=(
            "Who asks, and who answers? What is there to add to x if the gate is 0?",
            "Scores are x @ rows.T / sqrt(d), then a softmax along rows and a mean of rows; the gate is tanh(gate).",
            "x + np.tanh(gate) * softmax(x @ rows.T / np.sqrt(x.shape[1])) @ rows",
        ),
        misconceptions=[
            Misconception(
                "no tanh",
                lambda x, rows, gate: x + gate * _taken(x, rows),
                "You multiplied by the gate itself. The gate goes through tanh, which keeps it between -1 and 1.",
            ),
            Misconception(
                "a sigmoid",
                lambda x, rows, gate: x + _taken(x, rows) / (1 + np.exp(-gate)),
                "You used a sigmoid. It is one half at 0, so a new layer would change what the model says. Use tanh.",
            ),
            Misconception(
                "no residual",
                lambda x, rows, gate: np.tanh(gate) * _taken(x, rows),
                "x is missing: with the gate at 0 nothing would be left of the text.",
            ),
            Misconception(
                "a mixture",
                lambda x, rows, gate: (1 - np.tanh(gate)) * x + np.tanh(gate) * _taken(x, rows),
                "You took away from x what the gate lets in. x stays whole, as in every residual connection.",
            ),
            Misconception(
                "no scale",
                lambda x, rows, gate: x + np.tanh(gate) * (_softmax(x @ rows.T) @ rows),
                "The scores are not scaled. Divide by the root of d.",
            ),
            Misconception(
                "the root of m",
                lambda x, rows, gate: x + np.tanh(gate) * (_softmax(x @ rows.T / np.sqrt(len(rows))) @ rows),
                "You divided by the root of the number of rows. Divide by the root of their length, d.",
            ),
            Misconception(
                "a softmax down the columns",
                lambda x, rows, gate: x + np.tanh(gate) * (_softmax(rows @ x.T / np.sqrt(x.shape[1])).T @ rows),
                "Your weights add up to one for each row of the picture. They should do so for each row of x: axis 1.",
            ),
            Misconception(
                "tanh of the product",
                lambda x, rows, gate: x + np.tanh(gate * _taken(x, rows)),
                "You took tanh of what comes through. Only the gate goes through tanh; what was taken is multiplied.",
            ),
            Misconception(
                "self-attention",
                lambda x, rows, gate: x + np.tanh(gate) * _taken(x, x),
                "The text attends to itself here. Keys and values are the picture's rows.",
            ),
            Misconception(
                "divided by d",
                lambda x, rows, gate: x + np.tanh(gate) * (_softmax(x @ rows.T / x.shape[1]) @ rows),
                "You divided the scores by d. Divide by the root of d.",
            ),
            Misconception(
                "times the root of d",
                lambda x, rows, gate: x + np.tanh(gate) * (_softmax(x @ rows.T * np.sqrt(x.shape[1])) @ rows),
                "You multiplied the scores by the root of d. Divide.",
            ),
            Misconception(
                "the gate at the text",
                lambda x, rows, gate: np.tanh(gate) * x + _taken(x, rows),
                "The gate is on x. It belongs to what was taken from the picture; x stays whole.",
            ),
            Misconception(
                "the gate at the scores",
                lambda x, rows, gate: x + _softmax(np.tanh(gate) * x @ rows.T / np.sqrt(x.shape[1])) @ rows,
                "The gate is on the scores: with a gate of 0 the rows' mean would still come in. Multiply what was "
                "taken.",
            ),
            Misconception(
                "no softmax",
                lambda x, rows, gate: x + np.tanh(gate) * (x @ rows.T / np.sqrt(x.shape[1])) @ rows,
                "There is no softmax: your weights do not add up to one.",
            ),
            Misconception(
                "picture and text",
                lambda x, rows, gate: x + np.tanh(gate) * _taken(x, np.concatenate([x, rows])),
                "The text attends to itself and to the picture. Keys and values are the picture's rows alone.",
            ),
            Misconception(
                "the gate around everything",
                lambda x, rows, gate: np.tanh(gate) * (x + _taken(x, rows)),
                "The gate is around x too. It lets in what was taken from the picture, and x stays outside.",
            ),
            Misconception(
                "no gate",
                lambda x, rows, gate: x + _taken(x, rows),
                "There is no gate: a new layer would change what the language model says from the first step on.",
            ),
        ],
        solution=_solve_gated,
    ),
    Exercise(
        id="22.5",
        title="Codes of patches",
        reference=_codes,
        cases=lambda rng: [
            (rng.normal(size=(n, side, side)), np.exp(rng.normal(size=(k, 1, 1))) * rng.normal(size=(k, patch, patch)))
            for n, side, patch, k in ((3, 6, 2, 7), (2, 9, 3, 11), (4, 8, 4, 9))
        ],
        hints=(
            "Which pixels are the first patch, and which the second?",
            "picture[i : i + patch, j : j + patch] for i and j in steps of patch; the nearest centre by the sum of "
            "squares.",
            "((picture[i : i + patch, j : j + patch] - centres) ** 2).sum(axis=(1, 2)).argmin()",
        ),
        misconceptions=[
            Misconception(
                "pixels in a row",
                _cut_wrongly,
                "You cut the pixels of a line one after the other. A patch is a square: `patch` by `patch` pixels.",
            ),
            Misconception(
                "column by column",
                _by_columns,
                "Your patches go down the columns. Line by line: from left to right, then the next line.",
            ),
            Misconception(
                "dot products",
                _by_product,
                "You took the largest dot product, and bright centres win. The nearest has the smallest distance.",
            ),
            Misconception(
                "cosines",
                _by_cosine,
                "You compared directions alone, which ignores brightness. The nearest has the smallest distance to "
                "the centres as they are.",
            ),
            Misconception(
                "differences that cancel",
                _cancelled,
                "You compared sums of pixels, in which bright and dark cancel. Square the difference in each pixel, "
                "then add.",
            ),
            Misconception(
                "the largest difference",
                _by_largest,
                "You went by the pixel that is furthest off. Add up the squares of all.",
            ),
            Misconception(
                "turned centres",
                lambda pictures, centres: _codes(pictures, centres.swapaxes(1, 2)),
                "You read patches and centres in two orders, one along the lines, the other down the columns. Read "
                "both in one order.",
            ),
            Misconception(
                "the farthest",
                _farthest,
                "You took the centre that is farthest away. The nearest was asked for: argmin.",
            ),
            Misconception(
                "absolute differences",
                lambda pictures, centres: _codes(pictures, centres, order=1),
                "You added up absolute differences. k-means goes by squares.",
            ),
            Misconception(
                "a grid",
                lambda pictures, centres: _codes(pictures, centres).reshape(
                    len(pictures), pictures.shape[1] // centres.shape[1], -1
                ),
                "You kept lines and columns apart. One row of codes for each picture: (n, n_patches).",
            ),
        ],
        solution=_solve_codes,
    ),
]
