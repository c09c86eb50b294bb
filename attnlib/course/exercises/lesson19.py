"""Exercises of lesson 19: a step, ridge, the rows of a prompt, prompts of different lengths, copies."""

from __future__ import annotations

import numpy as np

from attnlib.course.exercises.exercise import Exercise, Misconception


def _step(x, y, query, rate):
    return query @ (rate * x.T @ y / len(y)) + rate * y.mean()


def _without_height(x, y, query, rate):
    return query @ (rate * x.T @ y / len(y))


def _height_second(x, y, query, rate):
    w = rate * x.T @ y / len(y)
    return query @ w + rate * (y - x @ w).mean()


def _parts(slopes, height):
    """Both parts of the right answer, each times a factor."""

    def step(x, y, query, rate):
        return slopes(y, rate) * _without_height(x, y, query, rate) + height(y, rate) * rate * y.mean()

    return step


def _softmax_weights(x, y, query, rate):
    scores = np.exp(rate * (x @ query + 1))
    return scores / scores.sum() @ y


def _ridge(x, y, query, noise, spread):
    return query @ np.linalg.solve(x.T @ x + (noise / spread) ** 2 * np.eye(x.shape[1]), x.T @ y)


def _penalised(penalty):
    def ridge(x, y, query, noise, spread):
        return query @ np.linalg.solve(x.T @ x + penalty(x, noise, spread) * np.eye(x.shape[1]), x.T @ y)

    return ridge


def _with_intercept(x, y, query, noise, spread):
    x = np.column_stack([x, np.ones(len(x))])
    return _ridge(x, y, np.append(query, 1), noise, spread)


def _centred(x, y, query, noise, spread):
    return _ridge(x - x.mean(axis=0), y - y.mean(), query - x.mean(axis=0), noise, spread) + y.mean()


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


def _there(y, lengths):
    return np.arange(y.shape[1]) < lengths[:, None]


def _errors(answers, y, lengths):
    there = np.arange(y.shape[1]) < lengths[:, None]
    return (there * (answers - y) ** 2).sum(axis=0) / there.sum(axis=0)


def _mean_where(answers, y, there):
    return (there * (answers - y) ** 2).sum(axis=0) / np.maximum(there.sum(axis=0), 1)


def _latest(questions):
    """How many places back the same question came last, 0 if never."""
    back = np.zeros(questions.shape, int)
    for i in range(questions.shape[1]):
        for j in range(i):
            back[questions[:, j] == questions[:, i], i] = i - j
    return back


def _share(right, which):
    return (right & which).sum() / max(which.sum(), 1)


def _by_age(questions, right):
    back = _latest(questions)
    return np.array([_share(right, back == age) for age in range(1, questions.shape[1])])


def _any_copy(questions, right):
    shares = []
    for age in range(1, questions.shape[1]):
        same = questions[:, age:] == questions[:, :-age]
        shares.append(_share(right[:, age:], same))
    return np.array(shares)


def _first_ones(questions, right):
    n, first = questions.shape[1], np.zeros(questions.shape, int)
    for i in range(n):
        for j in reversed(range(i)):
            first[questions[:, j] == questions[:, i], i] = i - j
    return np.array([_share(right, first == age) for age in range(1, n)])


def _within(questions, right):
    back = _latest(questions)
    return np.array([_share(right, (back > 0) & (back <= age)) for age in range(1, questions.shape[1])])


def _by_place(questions, right):
    back = _latest(questions) > 0
    return ((right & back).sum(axis=0) / np.maximum(back.sum(axis=0), 1))[1:]


def _divided(by):
    def shares(questions, right):
        back = _latest(questions)
        return np.array([(right & (back == age)).sum() / by(back, age) for age in range(1, questions.shape[1])])

    return shares


def _mean_of_prompts(questions, right):
    back, shares = _latest(questions), []
    for age in range(1, questions.shape[1]):
        which = back == age
        has = which.any(axis=1)
        by_prompt = (right & which)[has].sum(axis=1) / which[has].sum(axis=1)
        shares.append(by_prompt.mean() if has.any() else 0.0)
    return np.array(shares)


def _nan_where_none(questions, right):
    back, shares = _latest(questions), _by_age(questions, right)
    return np.array([shares[age - 1] if (back == age).any() else np.nan for age in range(1, questions.shape[1])])


def _next_copy(questions, right):
    ahead = _latest(questions[:, ::-1])[:, ::-1]
    return np.array([_share(right, ahead == age) for age in range(1, questions.shape[1])])


def _copy(tokens):
    for i in range(len(tokens) - 2, -1, -1):
        if tokens[i] == tokens[-1]:
            return tokens[i + 1]
    return -1


def _no_return(tokens):
    _copy(tokens)


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


def _solve_by_age(questions, right):
    n = questions.shape[1]
    back = np.zeros(questions.shape, int)
    for i in range(n):
        for j in range(i):  # a later copy overwrites an earlier one
            back[questions[:, j] == questions[:, i], i] = i - j
    return np.array([right[back == age].mean() if (back == age).any() else 0.0 for age in range(1, n)])


def _function(rng, n, d):
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=d) + 0.3 * rng.normal(size=n), rng.normal(size=d)


def _tall(rng, n, d):
    x, y, query = _function(rng, n, d)
    return x, y + 0.8, query


def _uneven(rng, batch, n):
    lengths = rng.integers(1, n + 1, size=batch)
    lengths[rng.integers(batch)] = n
    return rng.normal(size=(batch, n)), rng.normal(size=(batch, n)), lengths


def _quiz(rng, batch, n, kinds):
    questions = rng.integers(kinds, size=(batch, n))
    return questions, rng.random((batch, n)) < np.where(_latest(questions) > 2, 0.4, 0.8)


EXERCISES = [
    Exercise(
        id="19.1",
        title="One step, and a height",
        reference=_step,
        cases=lambda rng: [(*_tall(rng, n, d), rate) for n, d, rate in ((7, 3, 0.6), (11, 2, 1.7), (5, 4, 0.3))],
        hints=(
            "At w = 0 and b = 0 every answer is 0. What is the gradient of half the mean square error there?",
            "It is -(x.T @ y) / n for w and -y.mean() for b. The step goes against it; then query @ w + b.",
            "query @ (rate * x.T @ y / len(y)) + rate * y.mean()",
        ),
        misconceptions=[
            Misconception(
                "no height",
                _without_height,
                "The height b is missing. Its gradient is -y.mean(), and it takes a step too.",
            ),
            Misconception(
                "the height alone",
                lambda x, y, query, rate: rate * y.mean(),
                "This is the height alone. The slopes take a step too: rate * x.T @ y / n, times query.",
            ),
            Misconception(
                "a sum in the height",
                _parts(lambda y, rate: 1, lambda y, rate: len(y)),
                "The gradient of b is a mean as well: -y.mean(), and not the sum.",
            ),
            Misconception(
                "a sum in the slopes",
                _parts(lambda y, rate: len(y), lambda y, rate: 1),
                "The gradient of w is a mean as well: divide x.T @ y by n.",
            ),
            Misconception(
                "slopes without rate",
                _parts(lambda y, rate: 1 / rate, lambda y, rate: 1),
                "Only your height took a step of the rate. The slopes are rate * x.T @ y / n.",
            ),
            Misconception(
                "the height downhill only",
                _parts(lambda y, rate: -1, lambda y, rate: 1),
                "Your slopes went uphill. Their gradient at 0 is -x.T @ y / n, and the step goes against it: plus.",
            ),
            Misconception(
                "the slopes downhill only",
                _parts(lambda y, rate: 1, lambda y, rate: -1),
                "Your height went uphill. Its gradient at 0 is -y.mean(), and the step goes against it: plus.",
            ),
            Misconception(
                "the mean whole",
                lambda x, y, query, rate: _without_height(x, y, query, rate) + y.mean(),
                "You gave the height the mean of y at once. It takes a step of the same rate: rate * y.mean().",
            ),
            Misconception(
                "one after the other",
                _height_second,
                "You moved the slopes first, and b by what they left over. Both take their step from 0, at once.",
            ),
            Misconception(
                "a sum",
                lambda x, y, query, rate: len(y) * _step(x, y, query, rate),
                "You took the sum over the examples. The loss is a mean, so divide by their number.",
            ),
            Misconception(
                "divided by d",
                lambda x, y, query, rate: query @ (rate * x.T @ y / x.shape[1]) + rate * y.mean(),
                "You divided by d, the number of slopes. The mean is over the n examples: len(y).",
            ),
            Misconception(
                "all divided by d",
                lambda x, y, query, rate: len(y) / x.shape[1] * _step(x, y, query, rate),
                "You divided by d, the number of slopes. The mean is over the n examples: len(y).",
            ),
            Misconception(
                "halved twice",
                lambda x, y, query, rate: _step(x, y, query, rate) / 2,
                "Half as far as it should be: the 1/2 of the loss cancels the 2 of the square. Divide by n, not 2n.",
            ),
            Misconception(
                "uphill",
                lambda x, y, query, rate: -_step(x, y, query, rate),
                "You went uphill. The gradient at 0 is -x.T @ y / n, and the step goes against it: plus.",
            ),
            Misconception(
                "not halved",
                lambda x, y, query, rate: 2 * _step(x, y, query, rate),
                "Twice the step: this is the gradient of the mean square error. Half of it has half the gradient.",
            ),
            Misconception(
                "no rate",
                lambda x, y, query, rate: _step(x, y, query, 1.0),
                "The rate is missing: the step is rate times the gradient.",
            ),
            Misconception(
                "a softmax",
                _softmax_weights,
                "You made a distribution of the scores. A gradient step uses the dot products as they are, even the "
                "negative ones.",
            ),
            Misconception(
                "answers to the examples",
                lambda x, y, query, rate: rate * x @ (x.T @ y) / len(y) + rate * y.mean(),
                "These are the answers to the examples. One answer was asked for, the one to query.",
            ),
            Misconception(
                "means first",
                lambda x, y, query, rate: query @ (rate * x.mean(axis=0) * y.mean()) + rate * y.mean(),
                "You multiplied the mean of x by the mean of y. It is the mean of the products y_i x_i.",
            ),
            Misconception(
                "the whole way",
                lambda x, y, query, rate: (
                    np.append(query, 1) @ np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y)[0]
                ),
                "This is least squares, where many small steps end. One step of the given rate was asked for.",
            ),
            Misconception(
                "the slopes",
                lambda x, y, query, rate: rate * x.T @ y / len(y),
                "These are the slopes w after the step. The answer is query @ w + b, one number.",
            ),
        ],
    ),
    Exercise(
        id="19.2",
        title="The best answer for other slopes",
        reference=_ridge,
        cases=lambda rng: [
            (*_function(rng, n, d), noise, spread)
            for n, d, noise, spread in ((6, 2, 0.7, 1.8), (4, 5, 0.4, 0.6), (9, 3, 1.6, 2.5))
        ],
        hints=(
            "With slopes of variance 1 the penalty is noise ** 2. Divide y and the noise by spread: whose slopes "
            "have variance 1 now?",
            "The penalty is the noise's variance over that of the slopes: (noise / spread) ** 2 on the diagonal.",
            "query @ np.linalg.solve(x.T @ x + (noise / spread) ** 2 * np.eye(x.shape[1]), x.T @ y)",
        ),
        misconceptions=[
            Misconception(
                "slopes of variance one",
                _penalised(lambda x, noise, spread: noise**2),
                "Your penalty is right for slopes of variance 1. Slopes that spread more need less of it: divide by "
                "spread ** 2.",
            ),
            Misconception(
                "multiplied",
                _penalised(lambda x, noise, spread: (noise * spread) ** 2),
                "Your penalty comes to the product of the two variances. Slopes that spread more are to be held back "
                "less: it is the noise's variance divided by theirs.",
            ),
            Misconception(
                "upside down",
                _penalised(lambda x, noise, spread: (spread / noise) ** 2),
                "Your fraction is upside down. More noise needs more penalty: the noise's variance is the numerator.",
            ),
            Misconception(
                "not squared",
                _penalised(lambda x, noise, spread: noise / spread),
                "You took the standard deviations. The penalty is a ratio of variances: square it.",
            ),
            Misconception(
                "spread not squared",
                _penalised(lambda x, noise, spread: noise**2 / spread),
                "In effect you divided by the standard deviation of the slopes. Divide by their variance, spread ** "
                "2.",
            ),
            Misconception(
                "slopes alone",
                _penalised(lambda x, noise, spread: 1 / spread**2),
                "The noise is missing from your penalty: it is noise ** 2 / spread ** 2.",
            ),
            Misconception(
                "noise alone",
                _penalised(lambda x, noise, spread: noise),
                "You took the noise's standard deviation. The penalty is its variance over that of the slopes.",
            ),
            Misconception(
                "noise not squared",
                _penalised(lambda x, noise, spread: noise / spread**2),
                "The slopes' variance is there, but you took the standard deviation of the noise: use noise ** 2.",
            ),
            Misconception(
                "the slopes' variance",
                _penalised(lambda x, noise, spread: spread**2),
                "You took the slopes' variance as the penalty. Divide the noise's variance by it.",
            ),
            Misconception(
                "the lesson's noise",
                _penalised(lambda x, noise, spread: 0.2**2),
                "0.2 ** 2 is the lesson's penalty. Here it is (noise / spread) ** 2.",
            ),
            Misconception(
                "not scaled back",
                lambda x, y, query, noise, spread: _ridge(x, y, query, noise, spread) / spread,
                "Your answer is too small by the factor spread. If you divided y by it, multiply the answer by it; if "
                "you multiplied x by it, multiply query, too.",
            ),
            Misconception(
                "no penalty",
                lambda x, y, query, noise, spread: query @ np.linalg.lstsq(x, y)[0],
                "This is least squares, without the penalty. It believes the noise.",
            ),
            Misconception(
                "times n",
                _penalised(lambda x, noise, spread: len(x) * (noise / spread) ** 2),
                "Beside x.T @ x your penalty is n times too large: did you multiply it by n, or divide x.T @ x and "
                "x.T @ y by n? Sums of squares grow with n by themselves; the penalty does not.",
            ),
            Misconception(
                "divided by n",
                _penalised(lambda x, noise, spread: (noise / spread) ** 2 / len(x)),
                "You divided the penalty by n. Added to the sum x.T @ x it stays the same for any number of examples.",
            ),
            Misconception(
                "subtracted",
                _penalised(lambda x, noise, spread: -((noise / spread) ** 2)),
                "You subtracted the penalty. It is added, and makes the slopes smaller.",
            ),
            Misconception(
                "everywhere",
                lambda x, y, query, noise, spread: query @ np.linalg.solve(x.T @ x + (noise / spread) ** 2, x.T @ y),
                "You added the penalty to every entry of x.T @ x. It belongs on the diagonal: times np.eye(d).",
            ),
            Misconception(
                "centred",
                _centred,
                "You gave the plane a free height: by subtracting the means, as scikit-learn's Ridge does unless "
                "fit_intercept=False, or by a column of ones without penalty. These planes go through the origin.",
            ),
            Misconception(
                "an intercept",
                _with_intercept,
                "You gave the plane a height at the origin. Here all planes go through it: no column of ones.",
            ),
            Misconception(
                "the slopes",
                lambda x, y, query, noise, spread: np.linalg.solve(
                    x.T @ x + (noise / spread) ** 2 * np.eye(x.shape[1]), x.T @ y
                ),
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
            "Put x, y and a column of ones side by side, move them one row down, and put zeros on top.",
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
                "You moved x down but not y. Row i holds the answer to its own question, which the model is to find.",
            ),
            Misconception(
                "own x",
                lambda x, y: np.hstack([x, _rows(x, y)[:, x.shape[1] :]]),
                "You moved y down but not x, so each answer stands beside the wrong x. Move an example's x and y down "
                "together.",
            ),
            Misconception(
                "the next question",
                lambda x, y: np.column_stack([x, y, np.ones(len(y)), np.vstack([x[1:], 0 * x[:1]])]),
                "You moved the questions up. Then the first is never asked, and the last row asks nothing: move the "
                "examples down.",
            ),
            Misconception(
                "no first row",
                lambda x, y: _rows(x, y)[1:],
                "The first row is missing. It has no example, but it asks a question: zeros, and then its x.",
            ),
            Misconception(
                "a first example",
                _flag_everywhere,
                "The first row says that it has an example, x = 0 with y = 0. It has none: put a 0 in place of the 1.",
            ),
            Misconception(
                "an empty first row",
                lambda x, y: np.vstack([np.zeros(2 * x.shape[1] + 2), _rows(x, y)[1:]]),
                "Your first row is all zeros. It has no example, but it asks a question: its own x stands at the end.",
            ),
            Misconception(
                "round the corner",
                _wrapped,
                "Your first row holds the last example, which np.roll and the index -1 find there. Nothing comes "
                "before row 0: zeros.",
            ),
            Misconception(
                "the next example",
                _next_example,
                "You moved the examples up: row i holds example i + 1. Row i may know only what came before it.",
            ),
            Misconception(
                "no question",
                lambda x, y: _rows(x, y)[:, : x.shape[1] + 2],
                "The question is missing: after the previous example comes the row's own x.",
            ),
            Misconception(
                "no 1",
                lambda x, y: np.delete(_rows(x, y), x.shape[1] + 1, axis=1),
                "The 1 is missing. Without it the first row cannot be told from one whose example is zero.",
            ),
            Misconception(
                "the question first",
                _question_before,
                "Everything is there, but in the wrong order. First the example, then the 1, then the question.",
            ),
        ],
    ),
    Exercise(
        id="19.4",
        title="Prompts of different lengths",
        reference=_errors,
        cases=lambda rng: [_uneven(rng, b, n) for b, n in ((6, 4), (5, 9), (8, 3))],
        hints=(
            "Which prompts have a column i? Those with lengths > i.",
            "there = np.arange(n) < lengths[:, None]. Add the squares there, divide by how many.",
            "(there * (answers - y) ** 2).sum(axis=0) / there.sum(axis=0)",
        ),
        misconceptions=[
            Misconception(
                "padding too",
                lambda answers, y, lengths: ((answers - y) ** 2).mean(axis=0),
                "You took every column. From column lengths[b] on there is padding, whatever numbers stand there: "
                "nothing was asked.",
            ),
            Misconception(
                "divided by all",
                lambda answers, y, lengths: (_there(y, lengths) * (answers - y) ** 2).mean(axis=0),
                "You divided by all prompts. Divide each column by how many prompts are that long.",
            ),
            Misconception(
                "one too many",
                lambda answers, y, lengths: _errors(answers, y, np.minimum(lengths + 1, y.shape[1])),
                "You kept one column too many: a prompt of length 3 has the columns 0, 1 and 2.",
            ),
            Misconception(
                "one too few",
                lambda answers, y, lengths: _errors(answers, y, lengths - 1),
                "You left out the last column of each prompt: a prompt of length 3 has the columns 0, 1 and 2.",
            ),
            Misconception(
                "only the last",
                lambda answers, y, lengths: _mean_where(answers, y, np.arange(1, y.shape[1] + 1) == lengths[:, None]),
                "You took each prompt's last column only. A prompt of length 3 counts in columns 0 and 1 as well.",
            ),
            Misconception(
                "over places",
                lambda answers, y, lengths: (_there(y, lengths) * (answers - y) ** 2).sum(axis=1) / lengths,
                "You averaged over the places of each prompt. The question is how the error falls along them: average "
                "over prompts, axis 0.",
            ),
            Misconception(
                "over all",
                lambda answers, y, lengths: (_there(y, lengths) * (answers - y) ** 2).sum() / lengths.sum(),
                "One number for all hides what the examples bring. Keep one for each place.",
            ),
            Misconception(
                "a root",
                lambda answers, y, lengths: np.sqrt(_errors(answers, y, lengths)),
                "You took the root. The mean square error was asked for.",
            ),
            Misconception(
                "absolute",
                lambda answers, y, lengths: (
                    (_there(y, lengths) * abs(answers - y)).sum(axis=0) / _there(y, lengths).sum(axis=0)
                ),
                "These are mean absolute errors. Square the differences.",
            ),
            Misconception(
                "a sum",
                lambda answers, y, lengths: (_there(y, lengths) * (answers - y) ** 2).sum(axis=0),
                "You added up the prompts. Divide by how many have that column.",
            ),
            Misconception(
                "square of the mean",
                lambda answers, y, lengths: (
                    ((_there(y, lengths) * (answers - y)).sum(axis=0) / _there(y, lengths).sum(axis=0)) ** 2
                ),
                "You averaged before squaring, so that errors of both signs cancel. Square first.",
            ),
            Misconception(
                "without the first",
                lambda answers, y, lengths: _errors(answers, y, lengths)[1:],
                "The first place is missing. It is answered before any example is seen, and it counts.",
            ),
        ],
    ),
    Exercise(
        id="19.5",
        title="How long ago?",
        reference=_by_age,
        cases=lambda rng: [_quiz(rng, b, n, kinds) for b, n, kinds in ((40, 5, 4), (30, 9, 8), (25, 4, 2), (3, 6, 3))],
        hints=(
            "For each question, how many places back did the same one come last?",
            "Walk over pairs j < i, forwards: where they are the same, back[:, i] = i - j. The latest overwrites.",
            "For each distance from 1 to n - 1: right[back == distance].mean(), or 0 if there is none.",
        ),
        misconceptions=[
            Misconception(
                "any copy",
                _any_copy,
                "You counted every earlier copy that stands that far back. Only the latest counts: a question has one "
                "distance.",
            ),
            Misconception(
                "the first copy",
                _first_ones,
                "You measured to the first copy. The latest was asked for.",
            ),
            Misconception(
                "at most so far",
                _within,
                "You took all copies up to that many places back. Each distance is counted by itself.",
            ),
            Misconception(
                "by place",
                _by_place,
                "These are shares by where the question stands. Sort by how far back its latest copy is.",
            ),
            Misconception(
                "divided by all",
                _divided(lambda back, age: back.size),
                "You divided by all questions. Divide by how many have their latest copy that far back.",
            ),
            Misconception(
                "divided by copies",
                _divided(lambda back, age: max((back > 0).sum(), 1)),
                "You divided by all questions that had come before. Divide by how many have the latest copy that far "
                "back.",
            ),
            Misconception(
                "a count",
                _divided(lambda back, age: 1),
                "These are counts. Divide each by how many questions have their latest copy that far back.",
            ),
            Misconception(
                "a mean of prompts",
                _mean_of_prompts,
                "You took a share for each prompt, then their mean. Put the questions of all prompts together first.",
            ),
            Misconception(
                "the next copy",
                _next_copy,
                "You asked whether the earlier of two was answered correctly. It is the later one that counts, and "
                "how far back its copy stands.",
            ),
            Misconception(
                "questions between",
                lambda questions, right: np.append(0, _by_age(questions, right)[:-1]),
                "Your shares stand one place too late. The first is for one place back, a copy right before: did you "
                "count the questions in between, or put distance d at index d?",
            ),
            Misconception(
                "the wrong ones",
                lambda questions, right: _by_age(questions, ~right),
                "These are the shares that were answered wrongly.",
            ),
            Misconception(
                "nothing is NaN",
                _nan_where_none,
                "You give NaN where no question has its copy that far back. The exercise asks for 0 there.",
            ),
            Misconception(
                "new ones too",
                lambda questions, right: np.append(_share(right, _latest(questions) == 0), _by_age(questions, right)),
                "Your first share is that of new questions. Begin with one place back.",
            ),
        ],
        solution=_solve_by_age,
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
            ([4, 2, 7, 4],),  # the only copy stands at the beginning
            ([6, 4, 7, 6, 4, 3, 6, 5, 4, 7, 9, 4],),
            ([1, 5, 1, 7, 1, 7, 0, 1, 3, 1],),
        ],
        adapt=lambda token: np.nan if token is None else token,
        hints=(
            "Walk backwards from the last token but one. Where do you stop?",
            "At the first i with tokens[i] == tokens[-1]. What followed stands at i + 1.",
            "next((tokens[i + 1] for i in range(len(tokens) - 2, -1, -1) if tokens[i] == tokens[-1]), -1)",
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
                "You took the first copy. The latest was asked for: walk backwards, and stop at the first that you "
                "meet.",
            ),
            Misconception(
                "index",
                lambda tokens: tokens[tokens.index(tokens[-1]) + 1],
                "You find the first copy, as tokens.index does, and where there is no earlier one the last token "
                "itself, which nothing follows. Walk backwards from the last but one.",
            ),
            Misconception(
                "not to the beginning",
                lambda tokens: _copy([-1, *tokens[1:]]),
                "A copy at place 0 is lost. Does your search reach it (range(len(tokens) - 2, -1, -1): range stops "
                "before its second number), and is 0 not taken for 'none'?",
            ),
            Misconception(
                "not the neighbour",
                lambda tokens: next(
                    (tokens[i + 1] for i in range(len(tokens) - 3, -1, -1) if tokens[i] == tokens[-1]), -1
                ),
                "You never look at the last token but one. Where it is the copy, the last token itself followed it.",
            ),
            Misconception(
                "all that followed",
                lambda tokens: [tokens[i + 1] for i in range(len(tokens) - 1) if tokens[i] == tokens[-1]],
                "You returned what followed each copy. The latest alone was asked for, one token.",
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
                "None for none",
                lambda tokens: _copy(tokens) if tokens[-1] in tokens[:-1] else None,
                "Where there is no earlier copy, return -1. Yours gives None there; is a `return` missing?",
            ),
            Misconception(
                "nothing returned",
                _no_return,
                "None came every time. Did you forget `return`?",
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
