"""Exercises of lesson 21: patches, a map rolled out, overlap, the cheapest matching, and what each query learns."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from attnlib.course.exercises.exercise import Exercise, Misconception


def _patches(picture, size):
    rows = picture.reshape(picture.shape[0] // size, size, -1, size)
    return rows.swapaxes(1, 2).reshape(-1, size * size)


def _by_column(picture, size):
    rows = picture.reshape(picture.shape[0] // size, size, -1, size)
    return rows.transpose(2, 0, 1, 3).reshape(-1, size * size)


def _overlapping(picture, size):
    return sliding_window_view(picture, (size, size)).reshape(-1, size * size)


def _turned(picture, size):
    rows = picture.reshape(picture.shape[0] // size, size, -1, size)
    return rows.transpose(0, 2, 3, 1).reshape(-1, size * size)


def _dealt(picture, size):
    return np.stack([picture[i::size, j::size].ravel() for i in range(size) for j in range(size)])


def _means(picture, size):
    return _patches(picture, size).mean(axis=1)


def _solve_patches(picture, size):
    rows = []
    for r in range(0, picture.shape[0], size):
        for c in range(0, picture.shape[1], size):
            rows.append(picture[r : r + size, c : c + size].ravel())
    return np.stack(rows)


def _rolled(weights, *, own=0.5, heads=lambda alpha: alpha.mean(axis=0), up=True):
    n = weights.shape[-1]
    rolled = np.eye(n)
    for alpha in weights if up else weights[::-1]:
        rolled = ((1 - own) * heads(alpha) + own * np.eye(n)) @ rolled
    return rolled


def _rollout(weights):
    rolled = np.eye(weights.shape[-1])
    for alpha in weights:
        rolled = (alpha.mean(axis=0) + np.eye(len(rolled))) / 2 @ rolled
    return rolled


def _unhalved(weights):
    rolled = np.eye(weights.shape[-1])
    for alpha in weights:
        rolled = (alpha.mean(axis=0) + np.eye(len(rolled))) @ rolled
    return rolled


def _head_by_head(weights):
    return np.mean([_rollout(weights[:, [head]]) for head in range(weights.shape[1])], axis=0)


def _residual_once(weights):
    return (_rolled(weights, own=0.0) + np.eye(weights.shape[-1])) / 2


def _iou(a, b):
    inside = 1.0
    for i in (0, 1):  # across, then down
        right = min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2)
        left = max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)
        inside *= max(0.0, right - left)
    return inside / (a[2] * a[3] + b[2] * b[3] - inside)


def _side(x, width, y, other):
    """How long two pieces of a line overlap, given by middle and length."""
    return max(0.0, min(x + width / 2, y + other / 2) - max(x - width / 2, y - other / 2))


def _inside(a, b):
    return _side(a[0], a[2], b[0], b[2]) * _side(a[1], a[3], b[1], b[3])


def _around(a, b):
    """The area of the smallest box around both."""

    def side(i):
        return max(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) - min(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)

    return side(0) * side(1)


def _unclipped(a, b):
    def side(i):
        return min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) - max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2)

    inside = side(0) * side(1)
    return inside / (a[2] * a[3] + b[2] * b[3] - inside)


def _corners_taken(a, b):
    """As if the four numbers were left, top, right, bottom."""

    def side(i):
        return max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i]))

    def area(box):
        return (box[2] - box[0]) * (box[3] - box[1])

    inside = side(0) * side(1)
    return inside / (area(a) + area(b) - inside)


def _from_corner(a, b):
    """As if the first two were the upper left corner."""
    moved = [[x + w / 2, y + h / 2, w, h] for x, y, w, h in (a, b)]
    return _iou(*moved)


def _matched(costs):
    n_queries, n_objects = costs.shape
    ways = permutations(range(n_queries), n_objects)
    return list(min(ways, key=lambda way: sum(costs[q, i] for i, q in enumerate(way))))


def _greedy(costs):
    taken = []
    for i in range(costs.shape[1]):
        taken.append(min((q for q in range(costs.shape[0]) if q not in taken), key=lambda q: costs[q, i]))
    return taken


def _cheapest_first(costs):
    found, left = [-1] * costs.shape[1], costs.astype(float).copy()
    for _ in found:
        q, i = np.unravel_index(left.argmin(), left.shape)
        found[i] = int(q)
        left[q], left[:, i] = np.inf, np.inf
    return found


def _objects_of_queries(costs):
    found = [-1] * costs.shape[0]
    for i, q in enumerate(_matched(costs)):
        found[q] = i
    return found


def _classes(matched, kinds, n_queries, none):
    wanted = np.full(n_queries, none)
    wanted[matched] = kinds
    return wanted


def _zeros_elsewhere(matched, kinds, n_queries, none):
    wanted = np.zeros(n_queries, int)
    wanted[matched] = kinds
    return wanted


def _in_order(matched, kinds, n_queries, none):
    wanted = np.full(n_queries, none)
    wanted[: len(kinds)] = kinds
    return wanted


def _sorted_queries(matched, kinds, n_queries, none):
    wanted = np.full(n_queries, none)
    wanted[np.sort(matched)] = kinds
    return wanted


def _solve_classes(matched, kinds, n_queries, none):
    wanted = np.full(n_queries, none)
    for i, query in enumerate(matched):
        wanted[query] = kinds[i]
    return wanted


def _weights(rng, layers, heads, n):
    scores = np.exp(1.5 * rng.normal(size=(layers, heads, n, n)))
    return scores / scores.sum(axis=-1, keepdims=True)


def _two_boxes(rng):
    a = np.concatenate([rng.uniform(0.4, 0.6, 2), rng.uniform(0.3, 0.5, 2)])
    b = a + np.concatenate([rng.uniform(0.05, 0.12, 2) * rng.choice([-1, 1], 2), rng.uniform(-0.1, 0.1, 2)])
    return a, b


EXERCISES = [
    Exercise(
        id="21.1",
        title="Patches",
        reference=_patches,
        cases=lambda rng: [(rng.normal(size=shape), size) for shape, size in (((6, 8), 2), ((6, 9), 3), ((8, 4), 4))],
        hints=(
            "Which rows of pixels does the first patch take, and which columns?",
            "picture.reshape(h // size, size, w // size, size) has the axes patch row, pixel row, patch column, pixel "
            "column. Which two must change places?",
            "picture.reshape(h // size, size, -1, size).swapaxes(1, 2).reshape(-1, size * size)",
        ),
        misconceptions=[
            Misconception(
                "no change of axes",
                lambda picture, size: picture.reshape(-1, size * size),
                "You cut the pixels off one after the other, so a patch is a piece of one line, or wraps round to the "
                "next. A patch is a square: it needs pixels from several lines.",
            ),
            Misconception(
                "column by column",
                _by_column,
                "Your patches go down the picture first. Read them like words: along a line, then down.",
            ),
            Misconception(
                "overlapping",
                _overlapping,
                "Your patches overlap: they start at every pixel. Here the stride is as large as the patch.",
            ),
            Misconception(
                "turned",
                _turned,
                "The patches are right, but in each you read the pixels down the columns. Read them line by line.",
            ),
            Misconception(
                "every second pixel",
                _dealt,
                "Rows and columns are exchanged: each of your rows has one pixel of every patch, and is a small copy "
                "of the whole picture. A row should be one patch, with all its pixels.",
            ),
            Misconception(
                "means",
                _means,
                "You kept one mean for each patch. A row holds all pixels of a patch.",
            ),
        ],
        solution=_solve_patches,
    ),
    Exercise(
        id="21.2",
        title="A map rolled out",
        reference=_rollout,
        cases=lambda rng: [(_weights(rng, *sizes),) for sizes in ((2, 3, 4), (3, 2, 5), (4, 4, 3))],
        hints=(
            "What does one layer do to the rows, if half of it is its weights and half the residual connection?",
            "The mean over heads plus the identity, divided by two. Which layer stands on the left of the product?",
            "Start with np.eye(n); for each layer from the lowest: rolled = (alpha.mean(axis=0) + np.eye(n)) / 2 @ "
            "rolled",
        ),
        misconceptions=[
            Misconception(
                "no residual",
                lambda weights: _rolled(weights, own=0.0),
                "You left the residual connection out. Half of each layer is the row itself: the identity.",
            ),
            Misconception(
                "upside down",
                lambda weights: _rolled(weights, up=False),
                "You multiplied in the other order. The highest layer asks last, so it stands on the left: it "
                "weighs what the layers below have made.",
            ),
            Misconception(
                "not halved",
                _unhalved,
                "You added the identity and did not divide by two, so the rows sum to two and, layer upon layer, to "
                "more.",
            ),
            Misconception(
                "head by head",
                _head_by_head,
                "You rolled each head out by itself and took the mean last. In the next layer every head reads what "
                "all heads have written: take their mean in each layer.",
            ),
            Misconception(
                "the residual once",
                _residual_once,
                "You added the identity once, at the end. Each layer has its own residual connection: half of each "
                "factor is the identity.",
            ),
            Misconception(
                "the largest head",
                lambda weights: _rolled(weights, heads=lambda alpha: alpha.max(axis=0)),
                "You took the largest weight among the heads. Rollout takes their mean; with the largest, rows no "
                "longer sum to one.",
            ),
            Misconception(
                "the last layer",
                lambda weights: (weights[-1].mean(axis=0) + np.eye(weights.shape[-1])) / 2,
                "This is the last layer alone. It attends to rows that have already gathered from others.",
            ),
            Misconception(
                "a mean of layers",
                lambda weights: (weights.mean(axis=(0, 1)) + np.eye(weights.shape[-1])) / 2,
                "You averaged the layers. They come one after the other: multiply them.",
            ),
            Misconception(
                "the class token's row",
                lambda weights: _rollout(weights)[0],
                "This is the row of the class token. The whole map was asked for, (n, n).",
            ),
        ],
    ),
    Exercise(
        id="21.3",
        title="Overlap over union",
        reference=_iou,
        cases=lambda rng: [
            *(_two_boxes(rng) for _ in range(2)),
            *(_two_boxes(rng)[::-1] for _ in range(2)),
            (np.array([0.5, 0.5, 0.2, 0.3]), np.array([0.55, 0.45, 0.4, 0.35])),
            (np.array([0.2, 0.3, 0.2, 0.1]), np.array([0.7, 0.8, 0.1, 0.3])),
            (np.array([0.2, 0.5, 0.2, 0.2]), np.array([0.7, 0.55, 0.2, 0.3])),  # apart across alone
            (np.array([0.5, 0.2, 0.2, 0.2]), np.array([0.55, 0.7, 0.3, 0.2])),  # apart down alone
            (np.array([0.1, 0.1, 0.5, 0.6]), np.array([0.2, 0.2, 0.6, 0.5])),  # boxes as corners, too
        ],
        hints=(
            "From where to where do the two boxes go across, and what do both cover?",
            "Across they share max(0, smaller right end - larger left end); down likewise. Multiply the two.",
            "inside / (a[2] * a[3] + b[2] * b[3] - inside), with left = x - width / 2 and right = x + width / 2",
        ),
        misconceptions=[
            Misconception(
                "negative sides",
                _unclipped,
                "Two boxes that are apart both across and down gave an overlap: the product of two negative lengths. "
                "Where a length is negative, it is 0.",
            ),
            Misconception(
                "corners",
                _corners_taken,
                "You read the four numbers as left, top, right, bottom. They are the middle, then width and height.",
            ),
            Misconception(
                "from the corner",
                _from_corner,
                "You took the first two numbers for a left corner of the box. They are the middle of the box.",
            ),
            Misconception(
                "counted twice",
                lambda a, b: _inside(a, b) / (a[2] * a[3] + b[2] * b[3]),
                "You divided by the sum of both areas, in which the overlap counts twice. Subtract it once.",
            ),
            Misconception(
                "of the first",
                lambda a, b: _inside(a, b) / (a[2] * a[3]),
                "You divided by the area of the first box. The union of both was asked for.",
            ),
            Misconception(
                "of the second",
                lambda a, b: _inside(a, b) / (b[2] * b[3]),
                "You divided by the area of the second box. The union of both was asked for.",
            ),
            Misconception(
                "of the larger",
                lambda a, b: _inside(a, b) / max(a[2] * a[3], b[2] * b[3]),
                "You divided by the larger box. The union is larger still, unless one box lies inside the other.",
            ),
            Misconception(
                "of the box around both",
                lambda a, b: _inside(a, b) / _around(a, b),
                "You divided by the smallest box around both, which can have corners that neither box covers. Divide "
                "by the union.",
            ),
            Misconception(
                "GIoU",
                lambda a, b: _iou(a, b) - 1 + (a[2] * a[3] + b[2] * b[3] - _inside(a, b)) / _around(a, b),
                "This is GIoU. Overlap over union is the first part of it alone.",
            ),
            Misconception(
                "twice the overlap",
                lambda a, b: 2 * _inside(a, b) / (a[2] * a[3] + b[2] * b[3]),
                "You took twice the overlap over the sum of both areas, which is known as Dice. Divide the overlap by "
                "the union.",
            ),
            Misconception(
                "how far from equal",
                lambda a, b: 1 - _iou(a, b),
                "This is one minus the answer: 0 for equal boxes. Equal boxes should have 1.",
            ),
            Misconception(
                "of the smaller",
                lambda a, b: _inside(a, b) / min(a[2] * a[3], b[2] * b[3]),
                "You divided by the smaller box: then one inside the other counts as equal. Divide by the union.",
            ),
            Misconception(
                "the overlap alone",
                _inside,
                "This is the area of the overlap. Divide it by the area of the union.",
            ),
        ],
    ),
    Exercise(
        id="21.4",
        title="The cheapest matching",
        reference=_matched,
        cases=lambda rng: [
            (np.array([[1.0, 2.0], [2.0, 9.0], [7.0, 8.0]]),),
            (np.array([[3.0, 1.0, 4.0], [2.0, 0.5, 9.0], [8.0, 7.0, 3.5], [5.0, 5.0, 1.0]]),),
            (np.array([[0.0, 0.1, 6.0], [0.2, 5.0, 7.0], [6.0, 8.0, 1.0]]),),
            (np.array([[4.0, 1.0], [1.5, 0.2], [3.0, 3.0], [2.0, 2.5]]),),
            (np.array([[2.0, 5.0, 9.0], [7.0, 4.0, 2.1], [7.5, 5.2, 6.8], [0.1, 2.2, 3.0]]),),
            (np.array([[5.0, 1.0, 2.0], [2.0, 3.0, 9.0], [1.0, 8.0, 4.0], [9.0, 1.2, 6.0], [7.0, 7.0, 2.1]]),),
        ],
        hints=(
            "In how many ways can three objects be given to five queries? Few enough to try them all.",
            "itertools.permutations(range(n_queries), n_objects) lists them; each costs the sum of its entries.",
            "list(min(permutations(range(n_queries), n_objects), key=lambda way: sum(costs[q, i] for i, q in "
            "enumerate(way))))",
        ),
        misconceptions=[
            Misconception(
                "each its cheapest",
                lambda costs: costs.argmin(axis=0).tolist(),
                "Each object took its cheapest query, and two may share one. A query answers for one object.",
            ),
            Misconception(
                "first come",
                _greedy,
                "The first object chose first, and left the others what remained. Compare sums of whole matchings.",
            ),
            Misconception(
                "the cheapest pair first",
                _cheapest_first,
                "You gave away the cheapest pair first. It can force an expensive one later: compare whole matchings.",
            ),
            Misconception(
                "objects for queries",
                _objects_of_queries,
                "You have an object for each query. Return a query for each object.",
            ),
            Misconception(
                "SciPy's first array",
                lambda costs: sorted(_matched(costs)),
                "These are the right queries in rising order, as linear_sum_assignment(costs)[0] has them: which "
                "object is whose is lost. Give it costs.T, and take the second array.",
            ),
            Misconception(
                "SciPy's second array",
                lambda costs: np.argsort(_matched(costs)).tolist(),
                "These are objects, in the order of their queries, as linear_sum_assignment(costs)[1] has them. Give "
                "it costs.T, and the second array has a query for each object.",
            ),
            Misconception(
                "the smallest cost",
                lambda costs: sum(costs[q, i] for i, q in enumerate(_matched(costs))),
                "This is what the cheapest matching costs. Return the matching: for each object its query.",
            ),
            Misconception(
                "the dearest",
                lambda costs: _matched(-costs),
                "This is the most expensive matching. Return the cheapest.",
            ),
            Misconception(
                "in order",
                lambda costs: list(range(costs.shape[1])),
                "These are 0, 1, 2, ..., whatever the costs: the numbers of the objects, or the first of all ways. "
                "With SciPy and costs.T, take the second array.",
            ),
        ],
    ),
    Exercise(
        id="21.5",
        title="What each query should say",
        reference=_classes,
        cases=lambda rng: [
            (np.array([4, 0, 2]), np.array([1, 3, 1]), 6, 5),
            (np.array([3, 1]), np.array([2, 1]), 5, 4),
            (np.array([2, 6, 0, 3]), np.array([6, 2, 1, 3]), 8, 7),
        ],
        hints=(
            "What should a query say that answers for no object?",
            "Begin with none everywhere. Which entries change, and to what?",
            "wanted = np.full(n_queries, none); wanted[matched] = kinds",
        ),
        misconceptions=[
            Misconception(
                "nothing is 0",
                _zeros_elsewhere,
                "The queries that are left over say kind 0, which is a kind. They should say `none`.",
            ),
            Misconception(
                "in order",
                _in_order,
                "You gave the kinds to the first queries. matched says which query answers for each object.",
            ),
            Misconception(
                "sorted",
                _sorted_queries,
                "Your kinds go to the matched queries in rising order, so which object is whose is lost. Keep the "
                "pairs.",
            ),
            Misconception(
                "queries for kinds",
                lambda matched, kinds, n_queries, none: np.where(
                    np.isin(np.arange(n_queries), matched), np.arange(n_queries), none
                ),
                "You wrote the number of the query where its object's kind belongs.",
            ),
            Misconception(
                "numbers of objects",
                lambda matched, kinds, n_queries, none: _classes(matched, np.arange(len(matched)), n_queries, none),
                "You wrote the number of the object where its kind belongs.",
            ),
            Misconception(
                "nothing is -1",
                lambda matched, kinds, n_queries, none: _classes(matched, kinds, n_queries, -1),
                "The queries that are left over say -1, which is not a kind. They should say `none`.",
            ),
            Misconception(
                "only the matched",
                lambda matched, kinds, n_queries, none: kinds,
                "These are the kinds of the objects. Every query is asked, including those that should say none.",
            ),
        ],
        solution=_solve_classes,
    ),
]
