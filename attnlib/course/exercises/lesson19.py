"""Exercises of lesson 19: a step, ridge, the rows of a prompt, errors by number of examples, copies."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _step(x, y, query, rate):
    return query @ (rate * x.T @ y / len(y))


def _softmax_weights(x, y, query, rate):
    scores = np.exp(rate * x @ query)
    return scores / scores.sum() @ y


def _ridge(x, y, query, noise):
    return query @ np.linalg.solve(x.T @ x + noise**2 * np.eye(x.shape[1]), x.T @ y)


def _penalised(penalty):
    def ridge(x, y, query, noise):
        return query @ np.linalg.solve(x.T @ x + penalty(x, noise) * np.eye(x.shape[1]), x.T @ y)

    return ridge


def _with_intercept(x, y, query, noise):
    x = np.column_stack([x, np.ones(len(x))])
    return _ridge(x, y, np.append(query, 1), noise)


def _centred(x, y, query, noise):
    return _ridge(x - x.mean(axis=0), y - y.mean(), query - x.mean(axis=0), noise) + y.mean()


def _rows(x, y):
    example = np.column_stack([x, y, np.ones(len(y))])
    before = np.vstack([np.zeros(example.shape[1]), example[:-1]])
    return np.hstack([before, x])


def _own_answer(x, y):
    return np.column_stack([x, y, np.ones(len(y)), x])


def _own_answer_alone(x, y):
    rows = _rows(x, y)
    rows[:, x.shape[1]] = y
    return rows


def _flag_everywhere(x, y):
    rows = _rows(x, y)
    rows[0, x.shape[1] + 1] = 1
    return rows


def _wrapped(x, y):
    example = np.column_stack([x, y, np.ones(len(y))])
    return np.hstack([np.roll(example, 1, axis=0), x])


def _next_example(x, y):
    example = np.column_stack([x, y, np.ones(len(y))])
    return np.hstack([np.vstack([example[1:], np.zeros(example.shape[1])]), x])


def _question_before(x, y):
    d = x.shape[1]
    rows = _rows(x, y)
    return np.hstack([rows[:, d + 2 :], rows[:, : d + 2]])


def _errors(answers, y):
    return ((answers - y) ** 2).mean(axis=0)


def _asked(questions, up_to=0):
    found = np.zeros(questions.shape, bool)
    for i in range(questions.shape[1]):
        found[:, i] = (questions[:, : i + up_to] == questions[:, i : i + 1]).any(axis=1)
    return found


def _shares(right, which):
    return (right & which).sum(axis=0) / np.maximum(which.sum(axis=0), 1)


def _new_questions(questions, right):
    return _shares(right, ~_asked(questions))


def _anywhere(questions, right):
    same = (questions[:, :, None] == questions[:, None, :]).sum(axis=2)
    return _shares(right, same == 1)


def _neighbour(questions, right):
    new = np.ones(questions.shape, bool)
    new[:, 1:] = questions[:, 1:] != questions[:, :-1]
    return _shares(right, new)


def _by_prompt(questions, right):
    new = ~_asked(questions)
    return (right & new).sum(axis=1) / np.maximum(new.sum(axis=1), 1)


def _nan_where_none(questions, right):
    new = ~_asked(questions)
    return np.where(new.any(axis=0), _shares(right, new), np.nan)


def _copy(tokens):
    for i in range(len(tokens) - 2, -1, -1):
        if tokens[i] == tokens[-1]:
            return tokens[i + 1]
    return -1


def _first_copy(tokens):
    earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    return tokens[earlier[0] + 1] if earlier else -1


def _the_copy(tokens):
    return tokens[-1] if tokens[-1] in tokens[:-1] else -1


def _token_before(tokens):
    earlier = [i for i in range(1, len(tokens) - 1) if tokens[i] == tokens[-1]]
    return tokens[earlier[-1] - 1] if earlier else -1


def _place(tokens):
    earlier = [i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    return earlier[-1] + 1 if earlier else -1


def _most_frequent(tokens):
    after = [tokens[i + 1] for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]]
    return max(sorted(set(after)), key=after.count) if after else -1


def _solve_new_questions(questions, right):
    shares = []
    for i in range(questions.shape[1]):
        new = (questions[:, :i] != questions[:, i : i + 1]).all(axis=1)
        shares.append(right[new, i].mean() if new.any() else 0.0)
    return np.array(shares)


def _function(rng, n, d):
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=d) + 0.3 * rng.normal(size=n), rng.normal(size=d)


def _quiz(rng, batch, n, kinds):
    questions = rng.integers(kinds, size=(batch, n))
    if kinds == 3:  # nothing is new from the fourth place on
        questions[:, :kinds] = np.arange(kinds)
    return questions, rng.random((batch, n)) < np.where(_asked(questions), 0.8, 0.4)


EXERCISES = [
    Exercise(
        id="19.1",
        title="One step",
        reference=_step,
        cases=lambda rng: [(*_function(rng, n, d), rate) for n, d, rate in ((7, 3, 0.6), (11, 2, 1.7), (5, 4, 0.3))],
        hints=(
            "What is the gradient of half the mean square error at w = 0, where every answer is 0?",
            "It is -(x.T @ y) / n. The step goes against it, and the answer is query @ w.",
            "query @ (rate * x.T @ y / len(y))",
        ),
        misconceptions=[
            Misconception(
                "a sum",
                lambda x, y, query, rate: query @ (rate * x.T @ y),
                "You took the sum over the examples. The loss is a mean, so divide by how many they are.",
            ),
            Misconception(
                "uphill",
                lambda x, y, query, rate: -_step(x, y, query, rate),
                "You went uphill. The gradient at 0 is -x.T @ y / n, and the step goes against it: plus.",
            ),
            Misconception(
                "not halved",
                lambda x, y, query, rate: 2 * _step(x, y, query, rate),
                "Twice too far: this is the gradient of the mean square error. Half of it has half the gradient.",
            ),
            Misconception(
                "no rate",
                lambda x, y, query, rate: _step(x, y, query, 1.0),
                "The rate is missing: the step is rate times the gradient.",
            ),
            Misconception(
                "a softmax",
                _softmax_weights,
                "You made a distribution of the scores. A gradient step uses the dot products as they are, also the "
                "negative ones.",
            ),
            Misconception(
                "a softmax of plain scores",
                lambda x, y, query, rate: _softmax_weights(x, y, query, 1.0),
                "This is a head with its softmax, and without a rate. A gradient step uses the dot products as they "
                "are.",
            ),
            Misconception(
                "answers to the examples",
                lambda x, y, query, rate: rate * x @ (x.T @ y) / len(y),
                "These are the answers for the examples. One was asked for, that of query.",
            ),
            Misconception(
                "means first",
                lambda x, y, query, rate: query @ (rate * x.mean(axis=0) * y.mean()),
                "You multiplied the mean of x by the mean of y. It is the mean of the products y_i x_i.",
            ),
            Misconception(
                "the whole way",
                lambda x, y, query, rate: query @ np.linalg.lstsq(x, y)[0],
                "This is least squares, where gradient descent ends. One step does not come so far.",
            ),
            Misconception(
                "the slopes",
                lambda x, y, query, rate: rate * x.T @ y / len(y),
                "These are the slopes w after the step. The answer is query @ w, one number.",
            ),
        ],
    ),
    Exercise(
        id="19.2",
        title="The best answer there is",
        reference=_ridge,
        cases=lambda rng: [(*_function(rng, n, d), s) for n, d, s in ((6, 2, 0.7), (4, 5, 0.4), (9, 3, 1.6))],
        hints=(
            "Least squares solves (x.T @ x) w = x.T @ y. What does the penalty add to x.T @ x?",
            "The noise's variance over that of the slopes, on the diagonal: noise ** 2 * np.eye(d).",
            "query @ np.linalg.solve(x.T @ x + noise ** 2 * np.eye(x.shape[1]), x.T @ y)",
        ),
        misconceptions=[
            Misconception(
                "no penalty",
                lambda x, y, query, noise: query @ np.linalg.lstsq(x, y)[0],
                "This is least squares, without the penalty. It believes the noise.",
            ),
            Misconception(
                "standard deviation",
                _penalised(lambda x, noise: noise),
                "You added the standard deviation. The penalty is the variance, noise ** 2.",
            ),
            Misconception(
                "times n",
                _penalised(lambda x, noise: len(x) * noise**2),
                "You multiplied the penalty by n. Sums of squares grow with n by themselves; the penalty does not.",
            ),
            Misconception(
                "divided by n",
                _penalised(lambda x, noise: noise**2 / len(x)),
                "You divided the penalty by n. Beside the sum x.T @ x it is noise ** 2, however many examples there "
                "are.",
            ),
            Misconception(
                "penalty of one",
                _penalised(lambda x, noise: 1.0),
                "The penalty is 1 in your answer. It should be the variance of the noise, noise ** 2.",
            ),
            Misconception(
                "subtracted",
                _penalised(lambda x, noise: -(noise**2)),
                "You subtracted the penalty. It is added, and makes the slopes smaller.",
            ),
            Misconception(
                "everywhere",
                lambda x, y, query, noise: query @ np.linalg.solve(x.T @ x + noise**2, x.T @ y),
                "You added noise ** 2 to every entry of x.T @ x. It belongs on the diagonal: times np.eye(d).",
            ),
            Misconception(
                "centred",
                _centred,
                "You took the means off first, as scikit-learn's Ridge does unless fit_intercept=False. These planes "
                "go through the origin.",
            ),
            Misconception(
                "an intercept",
                _with_intercept,
                "You gave the plane a height at the origin. Here all planes go through it: no column of ones.",
            ),
            Misconception(
                "the slopes",
                lambda x, y, query, noise: np.linalg.solve(x.T @ x + noise**2 * np.eye(x.shape[1]), x.T @ y),
                "These are the slopes. The answer is query @ w, one number.",
            ),
        ],
    ),
    Exercise(
        id="19.3",
        title="The rows of a prompt",
        reference=_rows,
        cases=lambda rng: [_function(rng, n, d)[:2] for n, d in ((5, 2), (4, 3), (7, 1))],
        hints=(
            "Row i holds the example before i and question i. Which part of a row comes from the row above?",
            "Put x, y and a column of ones side by side, move them one row down, and zeros on top.",
            "example = np.column_stack([x, y, np.ones(len(y))]); before = np.vstack([zeros, example[:-1]]); then "
            "np.hstack([before, x])",
        ),
        misconceptions=[
            Misconception(
                "own example",
                _own_answer,
                "Each row holds its own answer. Trained on that, a model copies it and learns nothing: move the "
                "examples one row down.",
            ),
            Misconception(
                "own y",
                _own_answer_alone,
                "You moved x and left y. Row i holds the answer to its own question, which it is to find.",
            ),
            Misconception(
                "a first example",
                _flag_everywhere,
                "The first row says that there is an example, x = 0 with y = 0. It has none: the 1 is a 0 there.",
            ),
            Misconception(
                "round the corner",
                _wrapped,
                "Your first row holds the last example, as np.roll puts it there. It has none before it: zeros.",
            ),
            Misconception(
                "the next example",
                _next_example,
                "You moved the examples up: row i holds example i + 1. It may know what came before it only.",
            ),
            Misconception(
                "no question",
                lambda x, y: _rows(x, y)[:, : x.shape[1] + 2],
                "The question is missing: behind the example before it, each row has its own x.",
            ),
            Misconception(
                "no 1",
                lambda x, y: np.delete(_rows(x, y), x.shape[1] + 1, axis=1),
                "The 1 is missing. Without it the first row cannot be told from one whose example is zero.",
            ),
            Misconception(
                "the question first",
                _question_before,
                "All is there, in another order: the example, the 1, and then the question.",
            ),
        ],
    ),
    Exercise(
        id="19.4",
        title="Error by number of examples",
        reference=_errors,
        cases=lambda rng: [(rng.normal(size=(b, n)), rng.normal(size=(b, n))) for b, n in ((6, 4), (5, 9), (8, 3))],
        hints=(
            "How many errors are there for each number of examples?",
            "One for each prompt. The mean is over prompts, and columns stay apart.",
            "((answers - y) ** 2).mean(axis=0)",
        ),
        misconceptions=[
            Misconception(
                "over places",
                lambda answers, y: ((answers - y) ** 2).mean(axis=1),
                "You averaged over the places of each prompt. The question is how the error falls along them: average "
                "over prompts, axis 0.",
            ),
            Misconception(
                "over all",
                lambda answers, y: ((answers - y) ** 2).mean(),
                "One number for all hides what the examples bring. Keep one for each place.",
            ),
            Misconception(
                "a root",
                lambda answers, y: np.sqrt(_errors(answers, y)),
                "You took the root. The mean square error was asked for.",
            ),
            Misconception(
                "absolute",
                lambda answers, y: abs(answers - y).mean(axis=0),
                "These are mean absolute errors. Square the differences.",
            ),
            Misconception(
                "a sum",
                lambda answers, y: ((answers - y) ** 2).sum(axis=0),
                "You added up the prompts. Divide by how many they are.",
            ),
            Misconception(
                "square of the mean",
                lambda answers, y: (answers - y).mean(axis=0) ** 2,
                "You averaged before squaring, so that errors of both signs cancel. Square first.",
            ),
            Misconception(
                "without the first",
                lambda answers, y: _errors(answers, y)[1:],
                "The first place is missing. It is answered after no example, and counts.",
            ),
            Misconception(
                "running mean",
                lambda answers, y: np.cumsum(_errors(answers, y)) / np.arange(1, answers.shape[1] + 1),
                "These are means over a place and all before it. Each number of examples stands for itself.",
            ),
        ],
    ),
    Exercise(
        id="19.5",
        title="Who was asked before?",
        reference=_new_questions,
        cases=lambda rng: [
            _quiz(rng, b, n, kinds) for b, n, kinds in ((40, 5, 4), (30, 9, 8), (25, 4, 2), (50, 6, 3))
        ],
        hints=(
            "At place i, which prompts have a question that is not among their first i?",
            "new = (questions[:, :i] != questions[:, i:i + 1]).all(axis=1) picks those prompts.",
            "For each i: right[new, i].mean(), or 0 if there is no such prompt.",
        ),
        misconceptions=[
            Misconception(
                "the others",
                lambda questions, right: _shares(right, _asked(questions)),
                "These are the questions that had come before, which need no more than copying. Take the others.",
            ),
            Misconception(
                "all questions",
                lambda questions, right: right.mean(axis=0),
                "You took all questions. Those that had come before are answered by copying, and hide the rest.",
            ),
            Misconception(
                "divided by all",
                lambda questions, right: (right & ~_asked(questions)).sum(axis=0) / len(right),
                "You divided by all prompts. A share among the new questions is divided by how many of these there "
                "are.",
            ),
            Misconception(
                "itself",
                lambda questions, right: _shares(right, ~_asked(questions, up_to=1)),
                "You counted the question itself as one that had come before, and so nothing is new. Look at "
                "questions[:, :i].",
            ),
            Misconception(
                "later ones too",
                _anywhere,
                "You left out questions that come again later, too. What stands behind them, the reader cannot know.",
            ),
            Misconception(
                "the one before",
                _neighbour,
                "You compared with the question right before only. It may have come at any earlier place.",
            ),
            Misconception(
                "a count",
                lambda questions, right: (right & ~_asked(questions)).sum(axis=0),
                "These are counts. Divide each by how many prompts had a new question there.",
            ),
            Misconception(
                "nothing is NaN",
                _nan_where_none,
                "NaN where no question is new. The exercise asks for 0 there.",
            ),
            Misconception(
                "by prompt",
                _by_prompt,
                "You have a share for each prompt. One for each place was asked for: sum over prompts, axis 0.",
            ),
        ],
        solution=_solve_new_questions,
    ),
    Exercise(
        id="19.6",
        title="Copy what came next",
        reference=_copy,
        cases=lambda rng: [
            ([3, 7, 1, 3, 8, 2, 3],),
            ([4, 9, 5, 4, 9, 6, 4, 9, 5, 2, 9],),
            ([5, 1, 6, 2],),
            ([2, 8, 8],),
            ([6, 4, 7, 6, 4, 3, 6, 5, 4, 7, 9, 4],),
            ([1, 5, 1, 7, 1, 7, 0, 1, 3, 1],),
        ],
        hints=(
            "Walk backwards from the last token but one. Where do you stop?",
            "At the first i with tokens[i] == tokens[-1]. What followed stands at i + 1.",
            "for i in range(len(tokens) - 2, -1, -1): if tokens[i] == tokens[-1]: return tokens[i + 1]",
        ),
        misconceptions=[
            Misconception(
                "the copy itself",
                _the_copy,
                "You returned the copy, which is the last token again. What followed it is one place on.",
            ),
            Misconception(
                "the first copy",
                _first_copy,
                "You took the first copy. The latest was asked for: walk backwards.",
            ),
            Misconception(
                "the token before",
                _token_before,
                "You returned what stood before the copy. What comes next stands after it.",
            ),
            Misconception(
                "the place",
                _place,
                "This is the place of the token, and not the token.",
            ),
            Misconception(
                "the place of the copy",
                lambda tokens: next((i for i in range(len(tokens) - 2, -1, -1) if tokens[i] == tokens[-1]), -1),
                "This is the place of the copy. The token that followed it is tokens[i + 1].",
            ),
            Misconception(
                "zero for none",
                lambda tokens: _copy(tokens) if tokens[-1] in tokens[:-1] else 0,
                "Where there is no earlier copy, the answer is -1: 0 might be a token.",
            ),
            Misconception(
                "a vote",
                _most_frequent,
                "You counted what followed all copies. That is lesson 16's table of counts; here the latest decides.",
            ),
            Misconception(
                "one too far",
                lambda tokens: next(
                    (tokens[i + 2] for i in range(len(tokens) - 3, -1, -1) if tokens[i] == tokens[-1]), -1
                ),
                "You went two places on from the copy. What followed it is at i + 1.",
            ),
        ],
    ),
]
