"""Exercises of lesson 20: pairs, layers, a pattern of one's own, a state that forgets, a lead, two halves."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _pairs(n, back, ahead):
    return sum(min(i, back) + 1 + min(n - 1 - i, ahead) for i in range(n))


def _layers(mask):
    reached = np.eye(len(mask), dtype=bool)
    for n_layers in range(1, len(mask) + 1):
        reached = reached @ (mask | np.eye(len(mask), dtype=bool))
        if reached.all():
            return n_layers
    return 0


def _reach(masks):
    reached = np.eye(masks.shape[1], dtype=bool)
    for mask in masks:
        reached = (mask | np.eye(len(mask), dtype=bool)) @ reached
    return reached.mean()


def _no_residual(masks):
    reached = np.eye(masks.shape[1], dtype=bool)
    for mask in masks:
        reached = mask @ reached
    return reached.mean()


def _layers_drawn(rng, n_layers, n):
    return rng.random((n_layers, n, n)) < 1.3 / n


def _mask(n):
    middle = 2 + (n - 2) // 2
    mask = np.eye(n, dtype=bool)
    mask[:, :2] = True
    mask[0, 2:middle] = True
    mask[1, middle:] = True
    return mask


def _star(n):
    mask = np.eye(n, dtype=bool)
    mask[0] = mask[:, 0] = True
    return mask


def _strangers(n):
    mask = _mask(n)
    mask[0, 1] = mask[1, 0] = False
    return mask


def _unseen(n):
    return _mask(n).T


def _window(n):
    place = np.arange(n)
    return abs(place[:, None] - place) <= 1


def _qualities(mask):
    """Its size, who sees not himself, who sees all, pairs beyond 4n, the longest path beyond 2. Or what it lacks."""
    mask = np.asarray(mask)
    if mask.ndim != 2 or len(mask) != mask.shape[1]:
        return f"The shape is {mask.shape}. Return (n, n)."
    if not np.isin(mask, (0, 1)).all():
        return "A mask is True and False, or 1 and 0."
    mask = mask.astype(bool)
    longest = _layers(mask) or np.inf
    blind, overseers = (~mask.diagonal()).sum(), mask.all(axis=1).sum()
    return np.array([len(mask), blind, overseers, max(mask.sum() - 4 * len(mask), 0), max(longest, 2)], dtype=float)


def _fits(wanted, got):
    if np.array_equal(wanted, got):
        return True
    n, blind, overseers, too_many, longest = got
    faults = [
        f"your mask is {n:.0f} by {n:.0f}" if n != wanted[0] else "",
        f"places that do not see themselves: {blind:.0f}" if blind else "",
        f"places that see all: {overseers:.0f}" if overseers else "",
        f"pairs too many: {too_many:.0f}" if too_many else "",
        "some query never reaches some key" if longest == np.inf else f"the longest path has {longest:.0f} steps",
    ]
    faults = faults if longest > 2 else faults[:-1]
    return f"With n = {wanted[0]:.0f}, {', '.join(filter(None, faults))}."


def _forgetting(phi_q, phi_k, v, keep):
    S, z, rows = np.zeros((phi_k.shape[1], v.shape[1])), np.zeros(phi_k.shape[1]), []
    for q_t, k_t, v_t in zip(phi_q, phi_k, v, strict=True):
        S, z = keep * S + np.outer(k_t, v_t), keep * z + k_t
        rows.append(q_t @ S / (q_t @ z))
    return np.array(rows)


def _by_weights(age):
    def forgetting(phi_q, phi_k, v, keep):
        i = np.arange(len(v))
        weights = np.tril(phi_q @ phi_k.T * float(keep) ** age(i[:, None], i))
        return weights / weights.sum(axis=1, keepdims=True) @ v

    return forgetting


def _unnormalised(phi_q, phi_k, v, keep):
    i = np.arange(len(v))
    return np.tril(phi_q @ phi_k.T * float(keep) ** np.maximum(i[:, None] - i, 0)) @ v


def _remembers_z(phi_q, phi_k, v, keep):
    i = np.arange(len(v))
    return _unnormalised(phi_q, phi_k, v, keep) / np.tril(phi_q @ phi_k.T)[i].sum(axis=1, keepdims=True)


def _afterwards(phi_q, phi_k, v, keep):
    i = np.arange(len(v))
    weights = np.tril(phi_q @ phi_k.T * float(keep) ** np.maximum(i[:, None] - i, 0), -1)
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights @ v, total, out=np.zeros_like(v), where=total > 0)


def _join(here, there):
    (m, s, out), (other_m, other_s, other_out) = here, there
    largest = max(m, other_m)
    a, b = np.exp(m - largest), np.exp(other_m - largest)
    return (a * out + b * other_out) / (a * s + b * other_s)


def _halves(rng, d_v, keys, ahead):
    def half(n, more):
        scores = rng.normal(size=n) * 2 + more
        weights = np.exp(scores - scores.max())
        return scores.max(), weights.sum(), weights @ rng.normal(size=(n, d_v))

    return half(keys[0], 0.0), half(keys[1], ahead)


def _lead(n, p):
    return np.log(p * (n - 1) / (1 - p))


def _faded_after(phi_q, phi_k, v, keep):
    S, z, rows = np.zeros((phi_k.shape[1], v.shape[1])), np.zeros(phi_k.shape[1]), []
    for t in range(len(v)):
        S, z = keep * (S + np.outer(phi_k[t], v[t])), keep * (z + phi_k[t])
        with np.errstate(invalid="ignore"):
            rows.append(phi_q[t] @ S / (phi_q[t] @ z))
    return np.array(rows)


EXERCISES = [
    Exercise(
        id="20.1",
        title="Count before you compute",
        reference=_pairs,
        cases=lambda rng: [(9, 3, 2), (40, 5, 0), (17, 0, 4), (6, 8, 7), (1, 3, 3), (100, 12, 7)],
        hints=(
            "How many does a place in the middle see? How many does place 0 see, and place 1?",
            "Place i has i places before it and n - 1 - i after it. It sees at most `back` and `ahead` of them.",
            "sum(min(i, back) + 1 + min(n - 1 - i, ahead) for i in range(n)).",
        ),
        misconceptions=[
            Misconception(
                "no edges",
                lambda n, back, ahead: n * (back + 1 + ahead),
                "That is right in the middle. The first places have fewer before them, and the last ones fewer after.",
            ),
            Misconception(
                "without itself",
                lambda n, back, ahead: _pairs(n, back, ahead) - n,
                "Each place sees itself too: n pairs more.",
            ),
            Misconception(
                "one edge",
                lambda n, back, ahead: sum(min(i, back) + 1 + ahead for i in range(n)),
                "The beginning is right. At the end there are fewer than `ahead` places left.",
            ),
            Misconception(
                "wider than the text",
                lambda n, back, ahead: n * (back + 1 + ahead) - back * (back + 1) // 2 - ahead * (ahead + 1) // 2,
                "You subtracted a triangle at each edge. Where the window is wider than the text, these triangles do "
                "not fit into it: ask each place how many it sees.",
            ),
        ],
    ),
    Exercise(
        id="20.2",
        title="A mask for each layer",
        reference=_reach,
        cases=lambda rng: [(_layers_drawn(rng, n_layers, n),) for n_layers, n in ((2, 7), (3, 9), (4, 12), (2, 15))],
        hints=(
            "An output of the first layer depends on what its row of the first mask shows, and on its own input.",
            "An output of the second layer depends on all that the outputs it sees depended on. That is a product "
            "of two matrices of True and False. Which of them stands on the left?",
            "reached = np.eye(n, dtype=bool); for each mask: reached = (mask | np.eye(n, dtype=bool)) @ reached; then "
            "reached.mean().",
        ),
        misconceptions=[
            Misconception(
                "no residual",
                _no_residual,
                "A place that does not see itself still depends on its own input: the residual hands it on past the "
                "attention.",
            ),
            Misconception(
                "the last layer first",
                lambda masks: _reach(masks[::-1]),
                "Your layers come in the opposite order. The last layer's rows are those of the outputs: its mask "
                "stands on the left.",
            ),
            Misconception(
                "all at once",
                lambda masks: _reach(masks.any(axis=0)[None]),
                "You joined the masks. That is one layer that may see what any of them sees; two steps lead further.",
            ),
            Misconception(
                "a count",
                lambda masks: _reach(masks) * masks.shape[-1] ** 2,
                "This is how many pairs there are. Divide by n * n.",
            ),
            Misconception(
                "any order",
                lambda masks: _reach(np.repeat(masks.any(axis=0)[None], len(masks), axis=0)),
                "You gave every layer the links of all layers. A path takes its first step in the first layer's mask, "
                "the second in the second's.",
            ),
        ],
    ),
    Exercise(
        id="20.3",
        title="Two steps without an overseer",
        reference=_mask,
        adapt=_qualities,
        compare=_fits,
        cases=lambda rng: [(4,), (7,), (12,), (31,)],
        hints=(
            "One global place would do it, but it sees all. What if two of them share its work?",
            "Let everyone see both. Let each of the two see half of the others. Is every pair joined now?",
            "mask = np.eye(n, dtype=bool); mask[:, :2] = True; then row 0 sees the first half of the rest, row 1 the "
            "other.",
        ),
        misconceptions=[
            Misconception(
                "one global place",
                _star,
                "Everything is two steps from everything, by way of one place that sees all. Let two places share "
                "what it does.",
            ),
            Misconception(
                "a window",
                _window,
                "That is cheap, but the longest path has n - 1 steps.",
            ),
            Misconception(
                "strangers",
                _strangers,
                "Nearly: some paths have three steps. Do your two go-betweens see each other, and does everyone "
                "see both?",
            ),
            Misconception(
                "turned",
                _unseen,
                "Rows are queries. In your mask two places see all. If each is seen by half of the others, transpose "
                "it.",
            ),
        ],
    ),
    Exercise(
        id="20.4",
        title="A state that forgets",
        reference=_forgetting,
        cases=lambda rng: [
            (rng.random((n, m)) + 0.1, rng.random((n, m)) + 0.1, rng.normal(size=(n, d_v)), keep)
            for n, m, d_v, keep in ((5, 3, 2, 0.5), (9, 4, 3, 0.9), (6, 2, 5, 1.0), (4, 5, 1, 0.0))
        ],
        hints=(
            "Take the lesson's loop. What happens to the state before a key and its value are added?",
            "Both S and z fade, or the weights would no longer sum to one.",
            "S, z = keep * S + np.outer(phi_k[t], v[t]), keep * z + phi_k[t], then phi_q[t] @ S / (phi_q[t] @ z).",
        ),
        misconceptions=[
            Misconception(
                "no forgetting",
                lambda phi_q, phi_k, v, keep: _forgetting(phi_q, phi_k, v, 1.0),
                "Nothing fades in your state. Multiply the state by `keep` before each step.",
            ),
            Misconception(
                "fades at once",
                _by_weights(lambda i, j: np.maximum(i - j, 0) + (i > j) * 1.0),
                "Old keys are fainter than they should be, by one factor: each fades once for every step taken "
                "since it came.",
            ),
            Misconception(
                "the total stays",
                _remembers_z,
                "S fades and z does not: then the weights sum to less than one, and the output shrinks.",
            ),
            Misconception(
                "not divided",
                _unnormalised,
                "These are weighted sums. Divide by what the weights sum to, the query's product with z.",
            ),
            Misconception(
                "fades after it was added",
                _faded_after,
                "You multiplied after adding. Then the factor is in both S and z, and cancels; with "
                "keep = 0 nothing is left to divide by. Multiply before you add.",
            ),
            Misconception(
                "read first",
                _afterwards,
                "You asked the state before the newest key was in it. Under a causal mask a place sees itself.",
            ),
        ],
    ),
    Exercise(
        id="20.5",
        title="How large a lead",
        reference=_lead,
        cases=lambda rng: [(10, 0.9), (1000, 0.5), (7, 0.2), (50_000, 0.99), (2, 0.75)],
        hints=(
            "Let the others have the score 0. What are the n weights, before they are divided?",
            "The share is e^lead / (e^lead + n - 1). Solve for the lead.",
            "np.log(p * (n - 1) / (1 - p)).",
        ),
        misconceptions=[
            Misconception(
                "n others",
                lambda n, p: np.log(p * n / (1 - p)),
                "There are n keys in all, and n - 1 others.",
            ),
            Misconception(
                "times the mean",
                lambda n, p: np.log(p * (n - 1)),
                "That makes the key's weight p times the sum of the others. It should be p times the sum of all n.",
            ),
            Misconception(
                "a ratio",
                lambda n, p: p * (n - 1) / (1 - p),
                "That is how many times larger the key's weight must be. The lead in scores is the logarithm of that.",
            ),
            Misconception(
                "half only",
                lambda n, p: np.log(n - 1),
                "That gives the key half of the weight, whatever p is.",
            ),
        ],
    ),
    Exercise(
        id="20.6",
        title="Two halves",
        reference=_join,
        cases=lambda rng: [
            _halves(rng, 3, (4, 7), 3.0),
            _halves(rng, 2, (9, 5), -4.0),
            _halves(rng, 5, (6, 2), 900.0),
            _halves(rng, 1, (3, 8), -800.0),
        ],
        hints=(
            "Both sums were measured against a maximum of their own. What is the maximum of all?",
            "Shrink the total and the sum of the half whose maximum is smaller, as `carry_on` does with what it kept. "
            "Divide at the end, once.",
            "new = max(m, other_m); a, b = np.exp(m - new), np.exp(other_m - new); then (a * out + b * other_out) / "
            "(a * total + b * other_total).",
        ),
        misconceptions=[
            Misconception(
                "one maximum for both",
                lambda here, there: (here[2] + there[2]) / (here[1] + there[1]),
                "You added sums measured against different maxima. First shrink the half with the smaller maximum.",
            ),
            Misconception(
                "mean of the outputs",
                lambda here, there: (here[2] / here[1] + there[2] / there[1]) / 2,
                "This is the mean of two means: both halves count the same, however much weight each has.",
            ),
            Misconception(
                "by their totals",
                lambda here, there: (
                    (here[0] * here[2] + there[0] * there[2]) / (here[0] * here[1] + there[0] * there[1])
                ),
                "You weighted the halves by their largest scores. Weigh each by exp(its own - the larger of the two).",
            ),
            Misconception(
                "not divided",
                lambda here, there: (
                    np.exp(here[0] - max(here[0], there[0])) * here[2]
                    + np.exp(there[0] - max(here[0], there[0])) * there[2]
                ),
                "The sum of the weighted values is right. Divide it by the sum of the weights.",
            ),
        ],
    ),
]
