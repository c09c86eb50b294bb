"""Exercises of lesson 04: a choice, its gradient, two levels, and weights as an answer."""

from __future__ import annotations

import numpy as np

from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception


def _hard(S, V):
    return V[S.argmax(axis=1)]


def _estimate(s, j, reward, baseline):
    return (reward - baseline) * (np.eye(len(s))[j] - masked_softmax(s))


def _joint(word_scores, sentence_scores):
    return masked_softmax(sentence_scores)[:, None] * masked_softmax(word_scores)


def _pointer(scores, seen):
    return masked_softmax(scores[None], ~seen[None])[0]


def _slope(gap, tau):
    alpha = 1 / (1 + np.exp(-gap / tau))
    return alpha * (1 - alpha) / tau


def _baseline(weights, reward):
    steps = np.eye(len(weights)) - weights  # row j: the gradient of log alpha_j
    share = weights * (steps**2).sum(axis=1)
    return share @ reward / share.sum()


def _weights_and_rewards(rng, n, spread=1.0):
    return masked_softmax(spread * rng.normal(size=n)), rng.normal(size=n)


def _choices(rng):
    usual = [(rng.normal(size=(n_q, n_k)), rng.normal(size=(n_k, d))) for n_q, n_k, d in ((4, 6, 3), (5, 3, 2))]
    ties = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 1.0, 2.0]])  # the first of equals
    return [*usual, (ties, rng.normal(size=(4, 5)))]


def _flat(scores):
    return masked_softmax(scores.reshape(1, -1)).reshape(scores.shape)


def _mask_cases(rng):
    cases = []
    for n, names in ((5, [1, 3]), (7, [0, 2, 6]), (6, [5])):
        seen = np.zeros(n, dtype=bool)
        seen[names] = True
        cases.append((rng.normal(size=n), seen))
    return [*cases, (rng.normal(size=n) - 150, seen)]  # below all but minus infinity


EXERCISES = [
    Exercise(
        id="04.1",
        title="One position for each query",
        reference=_hard,
        cases=_choices,
        hints=(
            "For each row of S, where is the largest score? That is one number for each query.",
            "S.argmax(axis=1) gives the positions. Rows of V can be taken with an array of positions.",
            "V[S.argmax(axis=1)].",
        ),
        misconceptions=[
            Misconception(
                "sharp softmax",
                lambda S, V: masked_softmax(100.0 * S) @ V,
                "A softmax at a low temperature comes near, but it still mixes: where two scores are close, both "
                "values count. Choose one position.",
            ),
            Misconception(
                "the mean",
                lambda S, V: masked_softmax(S) @ V,
                "That is soft attention, the mean over all positions. Take the value of the one with the best score.",
            ),
            Misconception(
                "best query for each key",
                lambda S, V: V[S.argmax(axis=0) % len(V)],
                "You took the largest score of each column, which is a query for each key. A row belongs to a query: "
                "axis=1.",
            ),
            Misconception(
                "all of the equals",
                lambda S, V: np.equal(S, S.max(axis=1, keepdims=True)) @ V,
                "Where several scores tie, you added their values up. One is chosen: the first of equals.",
            ),
            Misconception(
                "mean of the equals",
                lambda S, V: masked_softmax(1e6 * S) @ V,
                "Where scores tie, or nearly do, you averaged the values. One is chosen: the first of equals.",
            ),
            Misconception(
                "the worst",
                lambda S, V: V[S.argmin(axis=1)],
                "You took the position with the lowest score.",
            ),
            Misconception(
                "the position",
                lambda S, V: S.argmax(axis=1),
                "Those are the positions. The output is the value that stands there.",
            ),
            Misconception(
                "one-hot",
                lambda S, V: np.eye(S.shape[1])[S.argmax(axis=1)],
                "Those are the weights, one-hot. Multiply them by V.",
            ),
            Misconception(
                "one winner for all",
                lambda S, V: V[[S.argmax() % S.shape[1]] * len(S)],
                "All your queries take the same position, the best of the whole matrix. Each row has its own.",
            ),
            Misconception(
                "last of the equals",
                lambda S, V: V[S.shape[1] - 1 - S[:, ::-1].argmax(axis=1)],
                "Right but for ties: there you took the last of the largest. np.argmax takes the first.",
            ),
        ],
    ),
    Exercise(
        id="04.2",
        title="The gradient from one draw",
        reference=_estimate,
        cases=lambda rng: [
            (rng.normal(size=n), j, float(rng.normal()), float(rng.normal())) for n, j in ((4, 2), (6, 0), (3, 1))
        ],
        hints=(
            "The estimate is reward minus baseline, times the gradient of log alpha_j with respect to the scores.",
            "log alpha_j = s_j - log of the sum of exp(s). Its derivative: [i = j] - alpha_i.",
            "(reward - baseline) * (np.eye(len(s))[j] - alpha) with alpha the softmax of s.",
        ),
        misconceptions=[
            Misconception(
                "without baseline",
                lambda s, j, reward, baseline: _estimate(s, j, reward, 0.0),
                "The baseline is missing: subtract it from the reward first.",
            ),
            Misconception(
                "baseline added",
                lambda s, j, reward, baseline: _estimate(s, j, reward, -baseline),
                "You added the baseline. Subtract it.",
            ),
            Misconception(
                "baseline outside the bracket",
                lambda s, j, reward, baseline: _estimate(s, j, reward, 0.0) - baseline,
                "Your baseline stands outside the bracket, so it is subtracted from every entry. Subtract it from the "
                "reward, before you multiply.",
            ),
            Misconception(
                "sign",
                lambda s, j, reward, baseline: -_estimate(s, j, reward, baseline),
                "The sign is reversed: raising s_j makes j likelier, so a good reward must raise s_j.",
            ),
            Misconception(
                "without the one drawn",
                lambda s, j, reward, baseline: -(reward - baseline) * masked_softmax(s),
                "The 1 of the position that was drawn is missing: its score moves by 1 - alpha_j, others by -alpha_i.",
            ),
            Misconception(
                "only the one drawn",
                lambda s, j, reward, baseline: (reward - baseline) * np.eye(len(s))[j],
                "You moved only the score that was drawn. The others move the other way, each by its share alpha_i.",
            ),
            Misconception(
                "one minus every weight",
                lambda s, j, reward, baseline: (reward - baseline) * (1 - masked_softmax(s)),
                "Only the score that was drawn moves by 1 - alpha_j. The others move by -alpha_i.",
            ),
            Misconception(
                "not differentiated",
                lambda s, j, reward, baseline: (reward - baseline) * np.log(masked_softmax(s)[j]),
                "That is the number whose gradient is the estimate. Differentiate it with respect to s: one number "
                "for each score.",
            ),
            Misconception(
                "gradient of the weight",
                lambda s, j, reward, baseline: masked_softmax(s)[j] * _estimate(s, j, reward, baseline),
                "That has the gradient of alpha_j in it. Position j is drawn with chance alpha_j already, so the "
                "estimate needs the gradient of its logarithm.",
            ),
            Misconception(
                "divided by the weight",
                lambda s, j, reward, baseline: _estimate(s, j, reward, baseline) / masked_softmax(s)[j],
                "You divided by alpha_j once too often: the gradient of log alpha_j has that division in it.",
            ),
            Misconception(
                "no reward",
                lambda s, j, reward, baseline: _estimate(s, j, 1.0, 0.0),
                "That is the gradient of log alpha_j. It is multiplied by what the draw earned: reward minus "
                "baseline.",
            ),
        ],
    ),
    Exercise(
        id="04.3",
        title="Two levels, one distribution",
        reference=_joint,
        cases=lambda rng: [(rng.normal(size=(m, n)), rng.normal(size=m)) for m, n in ((3, 5), (4, 2), (3, 3))],
        hints=(
            "Two softmaxes: one in each sentence, one over sentences.",
            "The weight of a word is its sentence's weight times its own within the sentence.",
            "softmax(sentence_scores)[:, None] * softmax(word_scores, along the last axis).",
        ),
        misconceptions=[
            Misconception(
                "words only",
                lambda w, s: masked_softmax(w),
                "Those are the weights within a sentence: each sentence's sum to one. Multiply each row by "
                "its sentence's weight.",
            ),
            Misconception(
                "one softmax",
                lambda w, s: _flat(w + s[:, None]),
                "That is one softmax over all words, of word score plus sentence score. That way a sentence gains by "
                "having many words, or high scores. Here its words share what the sentence gets, whatever their "
                "scores.",
            ),
            Misconception(
                "sentences ignored",
                lambda w, s: _flat(w),
                "That is flat attention over all words. The sentence scores play no part in it.",
            ),
            Misconception(
                "words over the document",
                lambda w, s: masked_softmax(s)[:, None] * _flat(w),
                "Your word weights sum to one over the whole document, so the joint ones sum to less. Normalise "
                "in each sentence.",
            ),
            Misconception(
                "sentence scores as weights",
                lambda w, s: s[:, None] * masked_softmax(w),
                "You multiplied by the scores of the sentences. The scores need a softmax first.",
            ),
            Misconception(
                "wrong axis",
                lambda w, s: masked_softmax(s)[:, None] * masked_softmax(w.T).T,
                "The word weights sum to one down the columns, over words of different sentences. Let them sum to one "
                "along a sentence: the last axis.",
            ),
            Misconception(
                "softmax of the product",
                lambda w, s: _flat(_joint(w, s)),
                "You took a softmax of what was a distribution already. The product is the answer.",
            ),
            Misconception(
                "equal sentences",
                lambda w, s: masked_softmax(w) / len(w),
                "Your sentences all weigh the same. Their weights are the softmax of sentence_scores.",
            ),
        ],
    ),
    Exercise(
        id="04.4",
        title="Point at something new",
        reference=_pointer,
        cases=_mask_cases,
        hints=(
            "What was pointed at has weight zero, and what is left sums to one.",
            "Hide the scores before the softmax, by minus infinity.",
            "np.exp(np.where(seen, -np.inf, scores)), divided by its sum.",
        ),
        misconceptions=[
            Misconception(
                "not masked",
                lambda scores, seen: masked_softmax(scores),
                "What was pointed at still has weight. Hide it before the softmax.",
            ),
            Misconception(
                "the wrong ones",
                lambda scores, seen: masked_softmax(scores[None], seen[None])[0],
                "You kept what was pointed at and hid the rest. seen is True where the pointer may not point.",
            ),
            Misconception(
                "scores times mask",
                lambda scores, seen: masked_softmax(scores * ~seen),
                "You set the hidden scores to zero, and exp(0) is 1. Set them to minus infinity.",
            ),
            Misconception(
                "hidden by a number",
                lambda scores, seen: masked_softmax(np.where(seen, -100.0, scores)),
                "You hid scores with a finite number, and the others lie below it. Only minus infinity is below all.",
            ),
            Misconception(
                "weights times mask",
                lambda scores, seen: masked_softmax(scores) * ~seen,
                "You removed the weights after the softmax, so the rest sums to less than one. Hide scores before it.",
            ),
            Misconception(
                "one-hot",
                lambda scores, seen: np.eye(len(scores))[np.where(seen, -np.inf, scores).argmax()],
                "That is the choice. The distribution over positions was asked for.",
            ),
            Misconception(
                "shorter",
                lambda scores, seen: masked_softmax(scores[~seen]),
                "The weights are right, but not at their positions: return one weight for each input, with zeros "
                "where the pointer may not point.",
            ),
        ],
    ),
    Exercise(
        id="04.5",
        title="How steep is a sharp choice?",
        reference=_slope,
        cases=lambda rng: [(float(g), float(t)) for g, t in rng.uniform(0.2, 1.5, size=(5, 2))],
        hints=(
            "With values 1 and 0 the output is the first weight, alpha = 1 / (1 + exp(-gap / tau)).",
            "Its derivative with respect to gap / tau is alpha * (1 - alpha). Then the chain rule.",
            "alpha * (1 - alpha) / tau.",
        ),
        misconceptions=[
            Misconception(
                "chain rule",
                lambda gap, tau: _slope(gap, tau) * tau,
                "The chain rule is missing: the gap is divided by tau, which is one more factor of 1 / tau.",
            ),
            Misconception(
                "times tau",
                lambda gap, tau: _slope(gap, tau) * tau**2,
                "You multiplied by tau. The gap is divided by it, and so is the derivative.",
            ),
            Misconception(
                "chain rule twice",
                lambda gap, tau: _slope(gap, tau) / tau,
                "You divided by tau twice. The gap is divided by it once.",
            ),
            Misconception(
                "of the logarithm",
                lambda gap, tau: _slope(gap, tau) * (1 + np.exp(-gap / tau)),
                "That is the derivative of log alpha. The derivative of alpha has one more factor, alpha.",
            ),
            Misconception(
                "the output",
                lambda gap, tau: 1 / (1 + np.exp(-gap / tau)),
                "That is the output. How fast does it change with the gap?",
            ),
            Misconception(
                "no temperature",
                lambda gap, tau: _slope(gap, 1.0),
                "Your answer does not depend on the temperature. The scores are divided by tau before the softmax.",
            ),
            Misconception(
                "with respect to the temperature",
                lambda gap, tau: -gap / tau * _slope(gap, tau),
                "That is the derivative with respect to tau. The derivative with respect to the gap is asked for.",
            ),
            Misconception(
                "temperature outside only",
                lambda gap, tau: _slope(gap, 1.0) / tau,
                "You divided the derivative by tau, and left it out of the weight, which depends on gap / tau.",
            ),
            Misconception(
                "sign",
                lambda gap, tau: -_slope(gap, tau),
                "The sign is reversed: the farther ahead the first key is, the more weight it has.",
            ),
        ],
    ),
    Exercise(
        id="04.6",
        title="The calmest baseline",
        reference=_baseline,
        tolerance=(1e-3, 1e-3),  # as near as a search in steps of 0.001 comes
        cases=lambda rng: [
            _weights_and_rewards(rng, 3),
            _weights_and_rewards(rng, 5, 2.0),
            _weights_and_rewards(rng, 8),
        ],
        hints=(
            "The mean of the estimates does not depend on the baseline, b. Minimise the mean of their squares.",
            "With e_j one-hot: sum alpha_j (r_j - b)^2 |e_j - alpha|^2 over j, and find the b where it is lowest.",
            "share = alpha_j |e_j - alpha|^2, and b is the mean of the rewards weighted with share.",
        ),
        misconceptions=[
            Misconception(
                "mean reward",
                lambda weights, reward: weights @ reward,
                "That is the mean reward, the usual baseline, and often a good one. But draws do not all move the "
                "scores equally far: one that was nearly certain moves them little. Weigh rewards by that too.",
            ),
            Misconception(
                "nothing",
                lambda weights, reward: 0.0,
                "Without a baseline the spread is larger, unless the best baseline happens to be near zero.",
            ),
            Misconception(
                "equal chances",
                lambda weights, reward: reward.mean(),
                "You counted all positions alike. They are drawn with the chances in weights.",
            ),
            Misconception(
                "best reward",
                lambda weights, reward: reward.max(),
                "With the best reward as baseline the score that was drawn never rises, and here the spread is larger "
                "than with no baseline.",
            ),
            Misconception(
                "lengths not squared",
                lambda weights, reward: (
                    (weights * np.linalg.norm(np.eye(len(weights)) - weights, axis=1))
                    @ reward
                    / (weights @ np.linalg.norm(np.eye(len(weights)) - weights, axis=1))
                ),
                "Close: rewards are weighted with the chance times the length of the step. The spread is a mean of "
                "squares, so take the length squared.",
            ),
            Misconception(
                "own score, not squared",
                lambda weights, reward: (weights * (1 - weights)) @ reward / (weights @ (1 - weights)),
                "Your rewards are weighted with alpha_j (1 - alpha_j). The spread is a mean of squares over all "
                "scores: take alpha_j |e_j - alpha|².",
            ),
            Misconception(
                "not divided",
                lambda weights, reward: (weights * ((np.eye(len(weights)) - weights) ** 2).sum(axis=1)) @ reward,
                "The shares that weight your rewards do not sum to one. Divide by their sum.",
            ),
            Misconception(
                "without the chances",
                lambda weights, reward: (
                    ((np.eye(len(weights)) - weights) ** 2).sum(axis=1)
                    @ reward
                    / ((np.eye(len(weights)) - weights) ** 2).sum()
                ),
                "You weighted the rewards with how far each draw moves the scores, not with how often it is drawn.",
            ),
            Misconception(
                "own score only",
                lambda weights, reward: (weights * (1 - weights) ** 2) @ reward / (weights @ (1 - weights) ** 2),
                "Your rewards are weighted with alpha_j (1 - alpha_j)². The square of the whole step is |e_j - "
                "alpha|²: (1 - alpha_j)², and alpha_i² for each of the others.",
            ),
        ],
    ),
]
