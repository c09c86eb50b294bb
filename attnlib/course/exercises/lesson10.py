"""Exercises of lesson 10: what stands around attention in a layer."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.course.exercises.exercise import Exercise, Misconception


def _layer_norm(x, eps):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def _rms_norm(x, eps):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


def _layer(x, attend, network, norm):
    x = x + attend(norm(x))
    return x + network(norm(x))


def _parameters(d_model, d_ff):
    attention_part = 4 * (d_model**2 + d_model)
    network_part = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return attention_part + network_part + 2 * 2 * d_model


def _group(x, b, t, c, n_groups):
    size = x.shape[-1] // n_groups
    first = c // size * size
    members = x[b, :, first : first + size]
    return members.mean(), members.var()


def _rows(rng):
    return [(rng.normal(size=(4, 6)) * 3 + 1, 0.1), (rng.normal(size=(2, 3, 5)) + 2, 1e-3)]


def _parts(rng):
    w = rng.normal(size=(5, 5)) / 2
    return rng.normal(size=(4, 5)) + 1, _attend, lambda x: np.tanh(x @ w), lambda x: _layer_norm(x, 1e-5)


def _attend(x):
    return attention(x, x, 2 * x).out


def _cells(rng):
    x = rng.normal(size=(3, 4, 6)) * np.arange(1, 7)
    return [(x, 1, 2, 3, 2), (x, 0, 1, 5, 3), (x, 2, 0, 2, 3)]


EXERCISES = [
    Exercise(
        id="10.1",
        title="Layer normalisation",
        reference=_layer_norm,
        cases=_rows,
        hints=(
            "Mean and variance are taken over the last axis, one of each for every row.",
            "keepdims=True keeps the axis, so that the mean can be subtracted from the row.",
            "(x - mean) / np.sqrt(variance + eps).",
        ),
        misconceptions=[
            Misconception(
                "over everything",
                lambda x, eps: (x - x.mean()) / np.sqrt(x.var() + eps),
                "You took one mean over the whole array. Each row has its own.",
            ),
            Misconception(
                "over positions",
                lambda x, eps: (x - x.mean(-2, keepdims=True)) / np.sqrt(x.var(-2, keepdims=True) + eps),
                "You normalised each feature over the positions. That is instance normalisation, and it reads the "
                "future.",
            ),
            Misconception(
                "eps outside",
                lambda x, eps: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps),
                "eps is added to the standard deviation. It belongs to the variance, under the root.",
            ),
            Misconception(
                "one less",
                lambda x, eps: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + eps),
                "Your variance divides by d - 1. Layer normalisation divides by d.",
            ),
            Misconception(
                "no root",
                lambda x, eps: (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps),
                "You divided by the variance. It is its root that brings the spread to one.",
            ),
            Misconception(
                "no eps",
                lambda x, eps: _layer_norm(x, 0.0),
                "eps is not in it. It is added to the variance, so that a row of equal numbers gives no 0/0.",
            ),
            Misconception(
                "no mean",
                _rms_norm,
                "The mean is still there. This is RMS normalisation, the next exercise.",
            ),
        ],
    ),
    Exercise(
        id="10.2",
        title="RMS normalisation",
        reference=_rms_norm,
        cases=_rows,
        hints=(
            "RMS: the root of the mean of the squares.",
            "No mean is taken off.",
            "x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps).",
        ),
        misconceptions=[
            Misconception(
                "with a mean",
                _layer_norm,
                "You took the mean off. That is layer normalisation; RMS leaves it.",
            ),
            Misconception(
                "length",
                lambda x, eps: x / np.sqrt((x**2).sum(axis=-1, keepdims=True) + eps),
                "You divided by the length of the row. It is the root of the *mean* of the squares.",
            ),
            Misconception(
                "deviation",
                lambda x, eps: x / np.sqrt(x.var(axis=-1, keepdims=True) + eps),
                "You divided by the standard deviation, which takes the mean off inside. RMS squares x as it is.",
            ),
            Misconception(
                "no root",
                lambda x, eps: x / ((x**2).mean(axis=-1, keepdims=True) + eps),
                "The root is missing.",
            ),
            Misconception(
                "eps outside",
                lambda x, eps: x / (np.sqrt((x**2).mean(axis=-1, keepdims=True)) + eps),
                "eps belongs under the root.",
            ),
        ],
    ),
    Exercise(
        id="10.3",
        title="A pre-norm layer",
        reference=_layer,
        cases=lambda rng: [_parts(rng) for _ in range(2)],
        hints=(
            "Two lines, each of the form x = x + f(norm(x)).",
            "The second line starts from what the first has made.",
            "x = x + attend(norm(x)); return x + network(norm(x)).",
        ),
        misconceptions=[
            Misconception(
                "post-norm",
                lambda x, attend, network, norm: (lambda h: norm(h + network(h)))(norm(x + attend(x))),
                "You normalised after adding. That is post-norm; pre-norm normalises what goes into the sublayer.",
            ),
            Misconception(
                "no residual",
                lambda x, attend, network, norm: network(norm(attend(norm(x)))),
                "The input is not added back, in neither place.",
            ),
            Misconception(
                "norm in the stream",
                lambda x, attend, network, norm: (lambda h: norm(h) + network(norm(h)))(norm(x) + attend(norm(x))),
                "You added the normalised x. The stream itself stays as it is: x + f(norm(x)).",
            ),
            Misconception(
                "from the start",
                lambda x, attend, network, norm: x + attend(norm(x)) + network(norm(x)),
                "Your network reads the layer's input, beside attention. It should read what attention has added to.",
            ),
            Misconception(
                "network first",
                lambda x, attend, network, norm: (lambda h: h + attend(norm(h)))(x + network(norm(x))),
                "The network comes before attention. Attention is first.",
            ),
            Misconception(
                "network of the stream",
                lambda x, attend, network, norm: (lambda h: h + network(h))(x + attend(norm(x))),
                "The network gets the stream as it is. Normalise what goes into it too.",
            ),
            Misconception(
                "norm of the output",
                lambda x, attend, network, norm: (lambda h: h + norm(network(h)))(x + norm(attend(x))),
                "You normalised what comes out of the sublayers. Pre-norm normalises what goes in.",
            ),
            Misconception(
                "one norm more",
                lambda x, attend, network, norm: norm(_layer(x, attend, network, norm)),
                "There is one normalisation too many, at the end. A stack has one there, a layer does not.",
            ),
            Misconception(
                "one residual",
                lambda x, attend, network, norm: x + network(norm(attend(norm(x)))),
                "One residual stands around both. Each sublayer has its own.",
            ),
        ],
    ),
    Exercise(
        id="10.4",
        title="The parameters of a layer",
        reference=_parameters,
        cases=lambda rng: [(64, 256), (512, 2048), (32, 100)],
        hints=(
            "Attention: four matrices d × d, each with a bias.",
            "The network: d × d_ff with d_ff biases, d_ff × d with d biases. A normalisation: 2 d.",
            "4 * (d**2 + d) + 2 * d * d_ff + d_ff + d + 4 * d.",
        ),
        misconceptions=[
            Misconception(
                "no biases",
                lambda d, f: 4 * d**2 + 2 * d * f + 4 * d,
                "The biases of the matrices are missing: 4 d in attention, d_ff + d in the network.",
            ),
            Misconception(
                "no norms",
                lambda d, f: _parameters(d, f) - 4 * d,
                "4 d are missing: the biases of attention's four matrices, or the two normalisations, each with a "
                "scale and a shift.",
            ),
            Misconception(
                "one norm",
                lambda d, f: _parameters(d, f) - 2 * d,
                "2 d are missing: there are two normalisations, each with a scale and a shift.",
            ),
            Misconception(
                "three matrices",
                lambda d, f: _parameters(d, f) - d**2 - d,
                "Attention has four matrices. The one that mixes the heads, W_O, is missing.",
            ),
            Misconception(
                "half the network",
                lambda d, f: _parameters(d, f) - d * f - d,
                "The network has two matrices: into the hidden layer, and out of it.",
            ),
        ],
    ),
    Exercise(
        id="10.5",
        title="What group normalisation averages",
        reference=_group,
        cases=_cells,
        adapt=np.asarray,
        hints=(
            "One sequence, all its positions, the features of one group.",
            "A group has d / n_groups features; that of c begins at c // size * size.",
            "members = x[b, :, first : first + size]; return members.mean(), members.var().",
        ),
        misconceptions=[
            Misconception(
                "one position",
                lambda x, b, t, c, n_groups: (lambda m: (m.mean(), m.var()))(
                    x[b, t, c // (x.shape[-1] // n_groups) * (x.shape[-1] // n_groups) :][: x.shape[-1] // n_groups]
                ),
                "You stayed at position t. Group normalisation takes all positions of the sequence, the future "
                "included.",
            ),
            Misconception(
                "all sequences",
                lambda x, b, t, c, n_groups: (lambda m: (m.mean(), m.var()))(
                    x[:, :, c // (x.shape[-1] // n_groups) * (x.shape[-1] // n_groups) :][
                        :, :, : x.shape[-1] // n_groups
                    ]
                ),
                "You took all sequences of the batch. That is what batch normalisation does; here it is sequence b.",
            ),
            Misconception(
                "one feature",
                lambda x, b, t, c, n_groups: (x[b, :, c].mean(), x[b, :, c].var()),
                "You took feature c alone, which is instance normalisation. A group has several features.",
            ),
            Misconception(
                "all features",
                lambda x, b, t, c, n_groups: (x[b].mean(), x[b].var()),
                "You took all features. Only those in the group of c count.",
            ),
            Misconception(
                "deviation",
                lambda x, b, t, c, n_groups: (
                    _group(x, b, t, c, n_groups)[0],
                    np.sqrt(_group(x, b, t, c, n_groups)[1]),
                ),
                "Your second number is the standard deviation. The variance is asked for.",
            ),
        ],
    ),
]
