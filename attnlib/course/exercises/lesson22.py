"""Exercises of lesson 22: the contrastive loss, captions as classes, candidates, a gate, codes of patches."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _log_softmax(scores, axis):
    return scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True))


def _loss(scores):
    by_picture, by_caption = (np.diagonal(_log_softmax(scores, axis)).mean() for axis in (1, 0))
    return -(by_picture + by_caption) / 2


def _solve_loss(scores):
    log_p = [scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True)) for axis in (0, 1)]
    return -np.mean([np.diagonal(table) for table in log_p])


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


def _candidates(rng, n, m, n_candidates):
    candidates = np.zeros(m, bool)
    candidates[rng.permutation(m)[:n_candidates]] = True
    answer, scores = rng.integers(m, size=n), rng.normal(size=(n, m)) - 1.5
    scores[np.arange(n), answer] += 1.2
    return scores, answer, candidates


EXERCISES = [
    Exercise(
        id="22.1",
        title="The contrastive loss",
        reference=_loss,
        cases=lambda rng: [(2 * rng.normal(size=(n, n)) + np.eye(n),) for n in (4, 7, 3)],
        hints=(
            "Each picture chooses along its row, each caption down its column. Where is the right one?",
            "Take the log of the softmax over axis 1, and of that over axis 0, and of both the diagonal.",
            "-(np.diagonal(log_softmax(scores, 1)).mean() + np.diagonal(log_softmax(scores, 0)).mean()) / 2",
        ),
        misconceptions=[
            Misconception(
                "pictures only",
                lambda scores: -np.diagonal(_log_softmax(scores, 1)).mean(),
                "Your pictures choose among captions. Captions choose among pictures too, down the columns.",
            ),
            Misconception(
                "captions only",
                lambda scores: -np.diagonal(_log_softmax(scores, 0)).mean(),
                "Your captions choose among pictures. Pictures choose among captions too, along the rows.",
            ),
            Misconception(
                "a sum",
                lambda scores: 2 * _loss(scores),
                "You added up both directions. The loss is their mean: divide by two.",
            ),
            Misconception(
                "not divided by n",
                lambda scores: len(scores) * _loss(scores),
                "You added up the pairs. The loss is a mean over them.",
            ),
            Misconception(
                "one softmax for all",
                lambda scores: -np.diagonal(scores - np.log(np.exp(scores).sum())).mean(),
                "You took one softmax over the whole table. Each row is a choice of its own, and each column.",
            ),
            Misconception(
                "no logarithm",
                lambda scores: -np.mean([np.diagonal(np.exp(_log_softmax(scores, axis))) for axis in (0, 1)]),
                "These are probabilities. The loss is the mean of minus their logarithms.",
            ),
            Misconception(
                "the sign",
                lambda scores: -_loss(scores),
                "The sign is turned: a loss is minus the logarithm of a probability, and never below zero.",
            ),
            Misconception(
                "everything, not the diagonal",
                lambda scores: -(_log_softmax(scores, 0) + _log_softmax(scores, 1)).mean() / 2,
                "You averaged over the whole table. What belongs together stands on the diagonal.",
            ),
        ],
        solution=_solve_loss,
    ),
    Exercise(
        id="22.2",
        title="Classify by writing",
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
                "You took the nearest row. For rows of length one that is the same; these are not yet that.",
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
                "You made the columns of length one. A caption is a row: axis=1, keepdims=True.",
            ),
            Misconception(
                "the absolute cosine",
                lambda pictures, captions: abs(_normalised(pictures) @ _normalised(captions).T).argmax(axis=1),
                "You took the cosine without its sign. A row that points the other way goes worst, not best.",
            ),
        ],
        solution=_solve_captions,
    ),
    Exercise(
        id="22.3",
        title="Right among candidates",
        reference=_share,
        cases=lambda rng: [_candidates(rng, n, m, k) for n, m, k in ((60, 9, 4), (75, 7, 5), (90, 11, 3))],
        hints=(
            "Two things are left out: pictures whose answer cannot be chosen, and captions that are no candidates.",
            "Set the scores of other captions to -inf, take argmax, and average over candidates[answer].",
            "best = np.where(candidates, scores, -np.inf).argmax(axis=1); (best == answer)[candidates[answer]].mean()",
        ),
        misconceptions=[
            Misconception(
                "all captions",
                lambda scores, answer, candidates: (scores.argmax(axis=1) == answer)[candidates[answer]].mean(),
                "You let every caption be chosen. Only the candidates stand to choose from.",
            ),
            Misconception(
                "all pictures",
                lambda scores, answer, candidates: (
                    np.where(candidates, scores, -np.inf).argmax(axis=1) == answer
                ).mean(),
                "You counted pictures whose right caption is no candidate: they cannot be right. Leave them out.",
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
                "You set the other scores to 0. That is more than a negative score: use -np.inf.",
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
                "You multiplied by the gate itself. It goes through tanh, which keeps it between -1 and 1.",
            ),
            Misconception(
                "a sigmoid",
                lambda x, rows, gate: x + _taken(x, rows) / (1 + np.exp(-gate)),
                "You used a sigmoid. That is one half at 0, and a new layer would change what the model says: tanh.",
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
                "self-attention",
                lambda x, rows, gate: x + np.tanh(gate) * _taken(x, x),
                "The text attends to itself here. Keys and values are the picture's rows.",
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
                "You cut the pixels of a line one after the other. A patch is a square: patch rows of patch pixels.",
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
