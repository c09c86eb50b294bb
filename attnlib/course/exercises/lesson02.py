"""Exercises of lesson 02: queries, keys, and a distance that is learned."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from attnlib import NadarayaWatson, data
from attnlib.core.attention import attention
from attnlib.core.softmax import masked_softmax
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.scores import dot, gaussian, scaled_dot


def _gaussian_weights(q, k, h):
    return masked_softmax(gaussian(q, k, bandwidth=h))


def _squares(q, k):
    return ((q[:, None, :] - k[None, :, :]) ** 2).sum(axis=-1)


def _lift(q, k):
    return np.column_stack([q, np.ones(len(q))]), np.column_stack([k, -(k**2).sum(axis=1) / 2])


def _append(x, column):
    return np.column_stack([x, np.broadcast_to(column, len(x))])


def _products(pair):
    """The dot products of two matrices, or words that say why there are none."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return "Two matrices are expected, with a comma between them: the factors, not their product."
    one, other = (np.asarray(matrix, float) for matrix in pair)
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        return f"Shapes {one.shape} and {other.shape} came. Both need two axes and the same number of columns."
    return one @ other.T if np.isfinite(one @ other.T).all() else "Some of the dot products are not finite."


def _same_weights(expected, got):
    """Any lift counts whose dot products give the right weights, whatever its numbers are."""
    wanted, came = _products(expected), _products(got)
    if isinstance(wanted, str) or isinstance(came, str):
        return came if isinstance(came, str) else False
    if wanted.shape != came.shape:
        return f"Your dot products have shape {came.shape}, expected {wanted.shape}."
    differ = abs(masked_softmax(wanted) - masked_softmax(came)).max()
    return (
        True if differ < 1e-6 else f"The softmax of your dot products differs from the weights by up to {differ:.2g}."
    )


def _loss(x, y, W, mask=True, score=gaussian, queries=None, keys=None, error=np.square):
    others = ~np.eye(len(x), dtype=bool)
    q, k = x @ (W if queries is None else queries), x @ (W if keys is None else keys)
    out = attention(q, k, y[:, None], score=score, mask=others if mask else None).out
    return np.mean(error(out[:, 0] - y))


def _loss_by_zeroing(x, y, W):
    weights = masked_softmax(gaussian(x @ W, x @ W)) * (1 - np.eye(len(x)))
    return np.mean((weights @ y - y) ** 2)


def _loss_sum(x, y, W):
    return len(y) * _loss(x, y, W)


def _loss_broadcast(x, y, W):
    others = ~np.eye(len(x), dtype=bool)
    return np.mean((attention(x @ W, x @ W, y[:, None], score=gaussian, mask=others).out - y) ** 2)


def _matrices():
    W_q = np.array([[6.0, 0.0], [0.0, 6.0], [0.0, 0.0]])  # an adjective asks in the first column, a noun in the second
    W_k = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # a noun offers in the first, a verb in the second
    return W_q, W_k


def _asks_as_wanted(expected, got):
    """Every design counts that does what was asked for. A wrong one is compared by its weights."""
    wanted, came = _products(expected), _products(got)
    if isinstance(wanted, str) or isinstance(came, str):
        return came if isinstance(came, str) else False
    if came.shape != (3, 3):
        return f"Your dot products have shape {came.shape}. Both matrices need three rows."
    wanted, came = masked_softmax(wanted), masked_softmax(came)
    wrong = _complaint(came)
    if _complaint(wanted):
        return bool(wrong) and np.allclose(wanted, came, atol=1e-3)
    return wrong or True


def _complaint(alpha):
    """What is wrong with the weights that adjective, noun and verb give, a row each; nothing if they are right."""
    if alpha[0, 1] < 0.9:
        return f"The adjective gives the noun {_down(alpha[0, 1])} of its weight; 0.9 was asked for."
    if alpha[1, 2] < 0.9:
        return f"The noun gives the verb {_down(alpha[1, 2])} of its weight; 0.9 was asked for."
    if np.ptp(alpha[2]) > 0.01:
        return f"The verb's weights are {np.round(alpha[2], 2).tolist()}; it should give all three the same."
    return ""


def _down(weight):
    """Two digits, rounded down: what is below 0.9 is not printed as 0.90."""
    return f"{np.floor(100 * weight) / 100:.2f}"


def _descent(f, w, lr, steps):
    import torch

    w = torch.tensor(w, requires_grad=True)
    optimiser = torch.optim.SGD([w], lr=lr)
    for _ in range(steps):
        optimiser.zero_grad()
        f(w).backward()
        optimiser.step()
    return w.detach().numpy()


def _descend(f, w, lr, steps, *, keep=0.0):
    """Descent that keeps a share of the old gradients: with 1 they add up, as where nobody clears them."""
    import torch

    w, old = torch.tensor(w), 0.0
    for _ in range(steps):
        at = w.clone().requires_grad_()
        f(at).backward()
        old = keep * old + at.grad
        w = w - lr * old
    return w.numpy()


def _adam(f, w, lr, steps):
    import torch

    w = torch.tensor(w, requires_grad=True)
    optimiser = torch.optim.Adam([w], lr=lr)
    for _ in range(steps):
        optimiser.zero_grad()
        f(w).backward()
        optimiser.step()
    return w.detach().numpy()


def _bowl(rng, n):
    """A valley with its own steepness along each axis, lowest at a random place."""
    steep, low = rng.uniform(0.5, 2, size=n), rng.normal(size=n)

    def f(w):
        import torch

        return (torch.tensor(steep) * (w - torch.tensor(low)) ** 2).sum()

    return f, rng.normal(size=n), rng.uniform(0.05, 0.1), int(rng.integers(4, 9))


BANDWIDTHS = (0.1, 0.2, 0.3, 0.5, 0.7)


def _halves():
    images, _ = data.digits()
    return images[:1400, :4].reshape(1400, 32), images[:1400, 4:].reshape(1400, 32)


@lru_cache
def _best_bandwidth(left_out=True):
    upper, lower = _halves()
    models = [NadarayaWatson(bandwidth=h).fit(upper, lower) for h in BANDWIDTHS]
    errors = [m.loo_error() if left_out else np.mean((m.predict(upper) - lower) ** 2) for m in models]
    return BANDWIDTHS[np.argmin(errors)]


def _least_error():
    images, _ = data.digits()
    upper, lower = images[:1400, :4].reshape(1400, 32), images[:1400, 4:].reshape(1400, 32)
    models = {h: NadarayaWatson(bandwidth=h).fit(upper, lower) for h in (0.1, 0.2, 0.3, 0.5, 0.7)}
    return min(models, key=lambda h: models[h].loo_error())


def _cases(rng, n=7, m=4, d=3):
    return rng.normal(size=(m, d)), rng.normal(size=(n, d))


def _for_loss(rng):
    x = rng.normal(size=(9, 3))
    return x, rng.normal(size=9), rng.normal(size=(3, 3)) / 2


EXERCISES = [
    Exercise(
        id="02.1",
        title="Gaussian weights as a softmax",
        reference=_gaussian_weights,
        cases=lambda rng: [(*_cases(rng), rng.uniform(0.7, 1.6)) for _ in range(3)],
        hints=(
            "First a table of squared distances, (m, n). Then scores. Then a softmax along each row.",
            "((q[:, None, :] - k[None, :, :]) ** 2).sum(axis=-1) is the table of squared distances.",
            "scores = -squares / (2 * h**2); e = np.exp(scores); the answer is e / e.sum(axis=1, keepdims=True).",
        ),
        misconceptions=[
            Misconception(
                "lost sign",
                lambda q, k, h: masked_softmax(_squares(q, k) / (2 * h**2)),
                "Your weights grow with distance: the farthest key gets the largest. Exactly one minus belongs before "
                "the squared distance.",
            ),
            Misconception(
                "h not squared",
                lambda q, k, h: masked_softmax(-_squares(q, k) / (2 * h)),
                "You divided the squared distance by 2h. The bandwidth is squared with the distance: 2h².",
            ),
            Misconception(
                "the half of the key",
                lambda q, k, h: masked_softmax((q @ k.T - (k**2).sum(axis=1)) / h**2),
                "The key's own term is there, but twice as large as it should be: the square of q - k has it beside "
                "2 q · k, so beside q · k it is halved.",
            ),
            Misconception(
                "dot product",
                lambda q, k, h: masked_softmax(q @ k.T / h**2),
                "That is a softmax of dot products. The key's own term is missing, and long keys gain.",
            ),
            Misconception(
                "forgotten 2",
                lambda q, k, h: masked_softmax(-_squares(q, k) / h**2),
                "You divided by h². The Gaussian has 2h² below the squared distance; yours has a bandwidth of h/√2.",
            ),
            Misconception(
                "order of operations",
                lambda q, k, h: masked_softmax(-_squares(q, k) / 2 * h**2),
                "You multiplied by h². In Python, a / 2 * h**2 is (a / 2) * h**2; write a / (2 * h**2).",
            ),
            Misconception(
                "distance not squared",
                lambda q, k, h: masked_softmax(-np.sqrt(_squares(q, k)) / h),
                "You used the distance itself. That is a kernel too, the Laplacian one. The Gaussian has the "
                "square of the distance, over 2h².",
            ),
            Misconception(
                "wrong axis",
                lambda q, k, h: masked_softmax(gaussian(k, q, bandwidth=h)).T,
                "Your weights sum to 1 down each column. They should sum to 1 along each row: one row is one "
                "query's distribution over keys.",
            ),
            Misconception(
                "no bandwidth",
                lambda q, k, h: _gaussian_weights(q, k, 1.0),
                "Your weights do not change with h. The squared distance is divided by 2h².",
            ),
        ],
    ),
    Exercise(
        id="02.2",
        title="Descend",
        reference=_descent,
        cases=lambda rng: [_bowl(rng, n) for n in (2, 3, 4)],
        hints=(
            "A loop of three things: clear the gradient, backward, step.",
            "torch.optim.SGD([w], lr=lr) has zero_grad and step; w is torch.tensor(w, requires_grad=True).",
            "In the loop: optimiser.zero_grad(); f(w).backward(); optimiser.step(). Return w.detach().numpy().",
        ),
        misconceptions=[
            Misconception(
                "never cleared",
                partial(_descend, keep=1.0),
                "Your gradients add up from step to step. Clear them, by zero_grad, before each backward.",
            ),
            Misconception(
                "uphill",
                lambda f, w, lr, steps: _descend(f, w, -lr, steps),
                "You went with the gradient of f, uphill. Step against it.",
            ),
            Misconception(
                "one too many",
                lambda f, w, lr, steps: _descend(f, w, lr, steps + 1),
                "You took one step too many: range(steps) has exactly `steps` of them.",
            ),
            Misconception(
                "one step",
                lambda f, w, lr, steps: _descend(f, w, lr, 1),
                "That is one step. Repeat it `steps` times, each from where the last one ended.",
            ),
            Misconception(
                "never moved",
                lambda f, w, lr, steps: w,
                "You are where you began. Is step missing, or does zero_grad clear the gradient before step uses it? "
                "First clear, then backward, then step.",
            ),
            Misconception(
                "first gradient only",
                lambda f, w, lr, steps: _descend(f, w, lr * steps, 1),
                "Every step went against the first gradient. It changes with w: in each step compute f(w) again, at "
                "the new w, and then call backward.",
            ),
            Misconception(
                "Adam",
                _adam,
                "You used Adam, which chooses its own step sizes. Plain gradient descent is torch.optim.SGD.",
            ),
            Misconception(
                "one too few",
                lambda f, w, lr, steps: _descend(f, w, lr, steps - 1),
                "You took one step too few: range(steps) has exactly `steps` of them. Or does step come before the "
                "first backward?",
            ),
        ],
    ),
    Exercise(
        id="02.3",
        title="One more dimension",
        reference=_lift,
        compare=_same_weights,
        cases=lambda rng: [_cases(rng) for _ in range(3)],
        hints=(
            "Which of the three terms of the expanded square is missing from the dot product, and cannot be dropped?",
            "Append a number to each key that is a function of that key alone, and to each query a constant.",
            "np.column_stack([q, np.ones(len(q))]) and np.column_stack([k, -(k**2).sum(axis=1) / 2]).",
        ),
        misconceptions=[
            Misconception(
                "no half",
                lambda q, k: (_append(q, 1.0), _append(k, -(k**2).sum(axis=1))),
                "The key's term reaches your score as -‖k‖². The half is missing: with bandwidth 1 it is -‖k‖²/2.",
            ),
            Misconception(
                "plus",
                lambda q, k: (_append(q, 1.0), _append(k, (k**2).sum(axis=1) / 2)),
                "Your long keys gain where they should lose: the key's term must reach the score as -‖k‖²/2; yours "
                "reaches it as +‖k‖²/2.",
            ),
            Misconception(
                "query's term",
                lambda q, k: (_append(q, -(q**2).sum(axis=1) / 2), _append(k, 1.0)),
                "These are the weights of the bare dot product: what you appended, if anything, adds nothing to a "
                "score (a 0 in the query does that), or the same to all of a query's scores. The key's own term must "
                "reach the score: the term in the key, a 1 in the query.",
            ),
            Misconception(
                "made equal",
                lambda q, k: (q, k / np.linalg.norm(k, axis=1, keepdims=True)),
                "You made all keys equally long. That removes the difference by changing the keys, and the weights "
                "with them. Keep the keys and append a number.",
            ),
            Misconception(
                "length not squared",
                lambda q, k: (_append(q, 1.0), _append(k, -np.linalg.norm(k, axis=1) / 2)),
                "You appended -‖k‖/2. The key's term has the square of its length, -‖k‖²/2: no root.",
            ),
        ],
    ),
    Exercise(
        id="02.4",
        title="Leave one out, by a mask",
        reference=_loss,
        cases=lambda rng: [_for_loss(rng) for _ in range(3)],
        hints=(
            "Nobody may attend to itself. True means may attend.",
            "mask = ~np.eye(len(x), dtype=bool), and the values need two axes: y[:, None].",
            "out = attention(x @ W, x @ W, y[:, None], score=gaussian, mask=mask).out[:, 0], and the answer is "
            "np.mean((out - y) ** 2).",
        ),
        misconceptions=[
            Misconception(
                "no mask",
                partial(_loss, mask=False),
                "Each point attends to itself here, so a sharper and sharper kernel would learn to repeat the data. "
                "Mask the diagonal out.",
            ),
            Misconception(
                "mask inverted",
                lambda x, y, W: 0.0,
                "Your loss is zero: each point attends to itself and to nobody else. True means may attend, so the "
                "mask is the opposite of np.eye.",
            ),
            Misconception(
                "zeroed weights",
                _loss_by_zeroing,
                "You set the point's own weight, or its value, to zero. The weights of the others do not sum to one "
                "without it. Mask before the softmax, with mask=.",
            ),
            Misconception(
                "root",
                lambda x, y, W: np.sqrt(_loss(x, y, W)),
                "You took the root. The mean squared error was asked for.",
            ),
            Misconception(
                "absolute",
                lambda x, y, W: _loss(x, y, W, error=np.abs),
                "That is the mean of the absolute errors. The mean of their squares was asked for.",
            ),
            Misconception(
                "broadcast",
                _loss_broadcast,
                "One of output and targets has shape (n, 1), the other (n,): their difference is a table of shape (n, "
                "n), every output against every target. Give both the same shape.",
            ),
            Misconception(
                "sum",
                _loss_sum,
                "You added the squared errors up. The mean was asked for.",
            ),
            Misconception(
                "default score",
                partial(_loss, score=scaled_dot),
                "This is the scaled dot product, which `attention` takes when nothing is said. Pass score=gaussian.",
            ),
            Misconception(
                "dot product",
                partial(_loss, score=dot),
                "You compared by the dot product. Pass score=gaussian.",
            ),
            Misconception(
                "without the matrix",
                lambda x, y, W: _loss(x, y, np.eye(len(W))),
                "Your loss does not change with W. Queries and keys are x @ W.",
            ),
            Misconception(
                "queries only",
                lambda x, y, W: _loss(x, y, W, keys=np.eye(len(W))),
                "You multiplied the queries by W and left the keys as they are. Both are x @ W.",
            ),
            Misconception(
                "keys only",
                lambda x, y, W: _loss(x, y, W, queries=np.eye(len(W))),
                "You multiplied the keys by W and left the queries as they are. Both are x @ W.",
            ),
        ],
    ),
    Exercise(
        id="02.5",
        title="The bandwidth that completes digits",
        reference=_best_bandwidth,
        solution=_least_error,
        tolerance=(0, 1e-6),
        hints=(
            "Judge a bandwidth by images that are left out, as in lesson 01.",
            "NadarayaWatson takes the 32 pixels of the lower half as y, and has a method loo_error.",
            "min((0.1, 0.2, 0.3, 0.5, 0.7), key=lambda h: NadarayaWatson(bandwidth=h).fit(upper, lower)"
            ".loo_error()), with the first 1,400 rows of each.",
        ),
        misconceptions=[
            Misconception(
                "own data",
                partial(_best_bandwidth, left_out=False),
                "That is the best one when each digit may answer its own question. On images that are left out it "
                "is among the worst. Use loo_error, or a mask.",
            ),
            Misconception(
                "the lesson's",
                lambda: 0.2,
                "That is the lesson's choice, made without an experiment. Another one has a smaller loo_error.",
            ),
            Misconception(
                "borrowed",
                lambda: 0.5,
                "That is the bandwidth that the lesson uses for whole images. Here the keys are upper halves: compare "
                "loo_error for all five bandwidths.",
            ),
            Misconception(
                "smoothest",
                lambda: 0.7,
                "With the widest bandwidth each answer is a mean of too many digits. Compare loo_error for all five.",
            ),
        ],
    ),
    Exercise(
        id="02.6",
        title="Who asks whom",
        reference=_matrices,
        cases=lambda rng: [(), ()],
        compare=_asks_as_wanted,
        hints=(
            "The lesson's matrices have one column: one thing that is asked for and offered. How many are there here?",
            "Let the first column mean noun, the second verb. What does an adjective ask for, and what a noun?",
            "W_q is zero but for (adjective, first) and (noun, second), with strength 6. W_k is zero but for "
            "(noun, first) and (verb, second), with 1.",
        ),
        misconceptions=[
            Misconception(
                "too weak",
                lambda: tuple(np.sign(W) for W in _matrices()),
                "Your matrices ask for the right words, but too softly: a score of 1 among zeros gives e / (e + 2) = "
                "0.58 of the weight. Make the questions stronger.",
            ),
            Misconception(
                "one column",
                lambda: (np.array([[6.0], [6.0], [0.0]]), np.array([[0.0], [1.0], [1.0]])),
                "Whoever asks gives noun and verb half each: nobody asks for one of the two alone. Give each thing "
                "that is asked for a column of its own.",
            ),
            Misconception(
                "exchanged",
                lambda: _matrices()[::-1],
                "You exchanged the two: here a noun asks for its adjective and a verb for its noun. Rows of W_q say "
                "who asks, rows of W_k who offers.",
            ),
            Misconception(
                "one matrix",
                lambda: (_matrices()[0],) * 2,
                "Here adjective and noun each give all their weight to themselves: W_k offers a word what that same "
                "word asks for in W_q. The two must differ.",
            ),
        ],
    ),
]
