"""Exercises of lesson 10: what stands around attention in a layer."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.course.exercises.exercise import Exercise, Misconception

KINDS = "post-norm", "pre-norm", "no residual", "no norm"


def _layer_norm(x, eps=1e-5):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def _batch_norm(x, real, eps):
    rows = x[real]  # (words, d)
    out = np.zeros_like(x)
    out[real] = (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + eps)
    return out


def _over(x, real, eps, axes):
    """Normalised over some axes of ``(batch, n, d)``, real places alone."""
    weights = np.broadcast_to(real[..., None], x.shape).astype(float)
    count = weights.sum(axis=axes, keepdims=True)
    mean = (weights * x).sum(axis=axes, keepdims=True) / count
    variance = (weights * (x - mean) ** 2).sum(axis=axes, keepdims=True) / count
    return weights * (x - mean) / np.sqrt(variance + eps)


def _zeros_in_variance(x, real, eps):
    centred = np.where(real[..., None], x - x[real].mean(axis=0), 0)
    return centred / np.sqrt((centred**2).mean(axis=(0, 1)) + eps)


def _means_of_sequences(x, real, eps):
    means = np.mean([row[here].mean(axis=0) for row, here in zip(x, real, strict=True)], axis=0)
    variances = np.mean([row[here].var(axis=0) for row, here in zip(x, real, strict=True)], axis=0)
    return np.where(real[..., None], (x - means) / np.sqrt(variances + eps), 0)


def _fold(g, b, W, c):
    return g[:, None] * W, b @ W + c


def _layer(x, attend, network, norm):
    x = x + attend(norm(x))
    return x + network(norm(x))


def _parameters(d_model, d_ff):
    attention_part = 4 * (d_model**2 + d_model)
    network_part = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return attention_part + network_part + 2 * 2 * d_model


def _diagnosis(layer, d):
    x = np.random.default_rng(0).normal(size=(3, d))
    once, large = layer(x), layer(1000 * x)
    if np.allclose(once.mean(axis=1), 0, atol=1e-3) and np.allclose(once.std(axis=1), 1, atol=1e-2):
        return "post-norm"  # every row comes out normalised
    if np.allclose(large, once, atol=1e-2):
        return "no residual"  # how large the input is makes no difference
    if np.allclose(large - 1000 * x, once - x, atol=1e-2):
        return "pre-norm"  # nor does it to what is added
    return "no norm"


def _same_kind(wanted, named):
    if named == wanted:
        return True
    if isinstance(named, str) and named not in KINDS:
        return f"{named!r} is not one of the four names. They are {', '.join(map(repr, KINDS))}."
    return False


def _box(rng, kind, d):
    """A sublayer of this kind around a random network that mixes positions too, and saturates nowhere.

    Its normalisation adds next to nothing to the variance, so that what should be equal is, to many digits.
    """
    w_in, w_out = rng.normal(size=(d, 2 * d)) / np.sqrt(d), rng.normal(size=(2 * d, d)) / np.sqrt(d)
    shift = rng.normal(size=2 * d)

    def f(x):
        return np.maximum(0, (x + x.mean(axis=-2, keepdims=True)) @ w_in + shift) @ w_out

    return {
        "post-norm": lambda x: _layer_norm(x + f(x), 1e-12),
        "pre-norm": lambda x: x + f(_layer_norm(x, 1e-12)),
        "no residual": lambda x: f(_layer_norm(x, 1e-12)),
        "no norm": lambda x: x + f(x),
    }[kind]


def _boxes(rng):
    kinds = "pre-norm", "no norm", "post-norm", "no residual", "pre-norm", "post-norm", "no norm", "no residual"
    return [(_box(rng, kind, d), d) for kind, d in zip(kinds, (6, 9, 5, 8, 12, 7, 4, 10), strict=True)]


def _grows(layer, d):
    x = np.random.default_rng(0).normal(size=(3, d))
    return abs(layer(1000 * x)).max() > 30 * abs(layer(x)).max()


def _padded(rng):
    cases = []
    for shape, lengths, eps in (((3, 5, 4), (5, 2, 3), 0.1), ((2, 6, 3), (4, 6), 1e-3)):
        real = np.arange(shape[1]) < np.array(lengths)[:, None]
        cases.append((rng.normal(size=shape) * np.arange(1, shape[2] + 1) + 1, real, eps))
    return cases


def _parts(rng):
    w = rng.normal(size=(5, 5)) / 2
    return rng.normal(size=(4, 5)) + 1, _attend, lambda x: np.tanh(x @ w), lambda x: _layer_norm(x, 1e-5)


def _attend(x):
    return attention(x, x, 2 * x).out


EXERCISES = [
    Exercise(
        id="10.1",
        title="Batch normalisation without the padding",
        reference=_batch_norm,
        cases=_padded,
        hints=(
            "Which numbers share a mean? Those of one feature, at all real positions of all sequences.",
            "x[real] is an array (words, d) of the rows that are there. Normalise its columns.",
            "out = np.zeros_like(x); out[real] = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + eps).",
        ),
        misconceptions=[
            Misconception(
                "padding counted",
                lambda x, real, eps: _over(x, np.ones_like(real), eps, (0, 1)) * real[..., None],
                "The padding is in your mean and variance. Take both over the real positions alone.",
            ),
            Misconception(
                "zeros counted",
                lambda x, real, eps: _over(x * real[..., None], np.ones_like(real), eps, (0, 1)) * real[..., None],
                "You set the padding to zero and then counted the zeros in the mean. Leave these places out.",
            ),
            Misconception(
                "mean left in",
                lambda x, real, eps: np.where(real[..., None], x / np.sqrt(x[real].var(0) + eps), 0),
                "You divided by the standard deviation and left the mean in. Subtract it first.",
            ),
            Misconception(
                "padding not cleared",
                lambda x, real, eps: (lambda r: (x - r.mean(0)) / np.sqrt(r.var(0) + eps))(x[real]),
                "Mean and variance are right. Where there is padding, zeros are asked for.",
            ),
            Misconception(
                "layer",
                lambda x, real, eps: _layer_norm(x, eps) * real[..., None],
                "You normalised each row over its features, which is layer normalisation. Here each feature is "
                "normalised over the rows.",
            ),
            Misconception(
                "instance",
                lambda x, real, eps: _over(x, real, eps, (1,)),
                "You normalised each sequence by itself, which is instance normalisation. A batch shares one mean and "
                "one variance for each feature.",
            ),
            Misconception(
                "everything",
                lambda x, real, eps: _over(x, real, eps, (0, 1, 2)),
                "You took one mean of all numbers. Each feature has its own.",
            ),
            Misconception(
                "eps outside",
                lambda x, real, eps: np.where(
                    real[..., None], (x - x[real].mean(0)) / (np.sqrt(x[real].var(0)) + eps), 0
                ),
                "eps is added to the variance, under the root.",
            ),
            Misconception(
                "one less",
                lambda x, real, eps: np.where(
                    real[..., None], (x - x[real].mean(0)) / np.sqrt(x[real].var(0, ddof=1) + eps), 0
                ),
                "Your variance divides by the number of words less one. Divide by the number itself.",
            ),
            Misconception(
                "zeros counted in the variance",
                _zeros_in_variance,
                "Your mean is right. In the variance you counted the zeros of the padding too: divide the sum of "
                "squares by the number of words.",
            ),
            Misconception(
                "no eps",
                lambda x, real, eps: _batch_norm(x, real, 0),
                "eps is missing: add it to the variance, under the root.",
            ),
            Misconception(
                "divided by the variance",
                lambda x, real, eps: np.where(real[..., None], (x - x[real].mean(0)) / (x[real].var(0) + eps), 0),
                "You divided by the variance. Divide by its root, the standard deviation.",
            ),
            Misconception(
                "only the words",
                lambda x, real, eps: _batch_norm(x, real, eps)[real],
                "These are the right rows, without the padding. Put them back in their places in an array like x, "
                "with zeros elsewhere.",
            ),
            Misconception(
                "each position by itself",
                lambda x, real, eps: _over(x, real, eps, (0,)),
                "You took the mean over sequences only, for each position by itself. All real positions share one.",
            ),
            Misconception(
                "means of sequences",
                _means_of_sequences,
                "You took mean and variance of each sequence first, and then their means. All words count alike: "
                "take them over x[real] at once.",
            ),
        ],
    ),
    Exercise(
        id="10.2",
        title="Fold the scale and the shift",
        reference=_fold,
        cases=lambda rng: [
            (rng.normal(size=d) + 1, rng.normal(size=d), rng.normal(size=(d, out)), rng.normal(size=out))
            for d, out in ((4, 4), (7, 7))  # square, so that g * W raises nothing
        ],
        hints=(
            "In full it is (y * g + b) @ W + c. Multiply out the bracket.",
            "b @ W + c does not depend on y: that is c'. In (y * g) @ W, which numbers of W meet g[0]?",
            "g[0] meets the first row of W: g[:, None] * W, and b @ W + c.",
        ),
        misconceptions=[
            Misconception(
                "columns scaled",
                lambda g, b, W, c: (g * W, b @ W + c),
                "You scaled the columns of W. Row i of W is what feature i is multiplied by, so g[i] belongs to row "
                "i. (W is square here, so NumPy does not complain.)",
            ),
            Misconception(
                "matrix as it was",
                lambda g, b, W, c: (W, b @ W + c),
                "The constant is right. The scale is missing from the matrix: row i of W is multiplied by g[i].",
            ),
            Misconception(
                "shift forgotten",
                lambda g, b, W, c: (g[:, None] * W, c),
                "The shift b goes through W too: it adds b @ W to the constant.",
            ),
            Misconception(
                "shift scaled",
                lambda g, b, W, c: (g[:, None] * W, (g * b) @ W + c),
                "You scaled the shift as well, or sent it through the new matrix: the same thing. The shift is added "
                "after the scale, y * g + b, and goes through the old W.",
            ),
            Misconception(
                "constant lost",
                lambda g, b, W, c: (g[:, None] * W, b @ W),
                "The linear layer's own c is missing.",
            ),
            Misconception(
                "divided",
                lambda g, b, W, c: (W / g[:, None], b @ W + c),
                "You divided by the scale. Multiply: the new matrix does what scale and matrix did together.",
            ),
            Misconception(
                "shift not sent through",
                lambda g, b, W, c: (g[:, None] * W, c + b),
                "You added b to c. The shift comes before the linear layer, so it goes through W: b @ W + c.",
            ),
            Misconception(
                "exchanged",
                lambda g, b, W, c: (b @ W + c, g[:, None] * W),
                "The matrix comes first, then the constant: return W', c'.",
            ),
            Misconception(
                "shift taken off",
                lambda g, b, W, c: (g[:, None] * W, c - b @ W),
                "You subtracted b @ W. The shift b is added, so b @ W is added too.",
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
                "no norm",
                lambda x, attend, network, norm: _layer(x, attend, network, lambda x: x),
                "Nothing is normalised. Each half reads norm(x).",
            ),
            Misconception(
                "no residual",
                lambda x, attend, network, norm: network(norm(attend(norm(x)))),
                "The input is not added back in either place.",
            ),
            Misconception(
                "norm in the stream",
                lambda x, attend, network, norm: (lambda h: norm(h) + network(norm(h)))(norm(x) + attend(norm(x))),
                "You added the normalised x. The stream itself stays as it is: x + f(norm(x)).",
            ),
            Misconception(
                "from the start",
                lambda x, attend, network, norm: x + attend(norm(x)) + network(norm(x)),
                "Your network reads the layer's input, as attention does. Let it read norm(x + attend(norm(x))).",
            ),
            Misconception(
                "network first",
                lambda x, attend, network, norm: (lambda h: h + attend(norm(h)))(x + network(norm(x))),
                "Your network comes before attention. Put attention first.",
            ),
            Misconception(
                "attention of the stream",
                lambda x, attend, network, norm: (lambda h: h + network(norm(h)))(x + attend(x)),
                "Attention gets the stream as it is. Normalise what goes into it too.",
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
                "You have one residual around both sublayers. Each sublayer has its own.",
            ),
            Misconception(
                "second residual forgotten",
                lambda x, attend, network, norm: network(norm(x + attend(norm(x)))),
                "The residual around attention is there. The one around the network is missing.",
            ),
            Misconception(
                "second residual from the start",
                lambda x, attend, network, norm: x + network(norm(x + attend(norm(x)))),
                "Your second residual adds the layer's input. Add what the network's half began with, which has "
                "attention in it already.",
            ),
            Misconception(
                "norm in the stream once",
                lambda x, attend, network, norm: (lambda h: h + network(norm(h)))(norm(x) + attend(norm(x))),
                "In the first half you added the normalised x. The stream itself stays as it is: x + f(norm(x)).",
            ),
            Misconception(
                "no network",
                lambda x, attend, network, norm: x + attend(norm(x)),
                "This is the first half, attention. The network comes after it in the same way.",
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
                "no biases in the network",
                lambda d, f: _parameters(d, f) - f - d,
                "The biases of the network are missing: d_ff of its first matrix, d of its second.",
            ),
            Misconception(
                "no norms",
                lambda d, f: _parameters(d, f) - 4 * d,
                "4 d numbers are missing: the biases of attention's four matrices, or the two normalisations, each "
                "with a scale and a shift.",
            ),
            Misconception(
                "one norm",
                lambda d, f: _parameters(d, f) - 2 * d,
                "2 d numbers are missing: two normalisations have 2 d each, and attention has four biases of d.",
            ),
            Misconception(
                "three matrices",
                lambda d, f: _parameters(d, f) - d**2 - d,
                "Attention has four matrices, with W_O, which mixes the heads. You counted three.",
            ),
            Misconception(
                "half the network",
                lambda d, f: _parameters(d, f) - d * f - d,
                "The network has two matrices: into the hidden layer, and out of it.",
            ),
            Misconception(
                "one matrix of the network",
                lambda d, f: _parameters(d, f) - d * f,
                "d_model times d_ff numbers are missing: the network has two matrices of this size, in and out.",
            ),
            Misconception(
                "narrow bias in the network",
                lambda d, f: _parameters(d, f) - f + d,
                "The network's first bias has d_ff numbers, one for each hidden unit. You gave it d_model.",
            ),
            Misconception(
                "twelve squares",
                lambda d, f: 12 * d**2,
                "These are the matrices alone, for a network of d_ff = 4 d_model. Use d_ff, and add the biases and "
                "the normalisations.",
            ),
            Misconception(
                "four times as wide",
                lambda d, f: _parameters(d, 4 * d),
                "You assumed that d_ff is 4 d_model. That is customary, but one of the cases is different.",
            ),
            Misconception(
                "one bias",
                lambda d, f: _parameters(d, f) - d,
                "d_model numbers are missing: one bias, of one of attention's four matrices or of the network's last, "
                "or a scale or a shift.",
            ),
        ],
    ),
    Exercise(
        id="10.5",
        title="What is in the box?",
        reference=_diagnosis,
        cases=_boxes,
        compare=_same_kind,
        hints=(
            "What does a normalisation do to the size of what it gets? Send rows in, then the same rows times 1000.",
            "Post-norm gives rows of mean 0 and standard deviation 1. Without a residual the input's size makes no "
            "difference. Pre-norm adds to x something that does not depend on its size.",
            "Compare layer(x) with layer(1000 * x), and layer(x) - x with layer(1000 * x) - 1000 * x.",
        ),
        misconceptions=[
            Misconception(
                "always post-norm",
                lambda layer, d: "post-norm",
                "You answered post-norm for every box. Send in something that tells them apart.",
            ),
            Misconception(
                "always pre-norm",
                lambda layer, d: "pre-norm",
                "You answered pre-norm for every box. Send in something that tells them apart.",
            ),
            Misconception(
                "always no residual",
                lambda layer, d: "no residual",
                "You answered no residual for every box. Send in something that tells them apart.",
            ),
            Misconception(
                "always no norm",
                lambda layer, d: "no norm",
                "You answered no norm for every box. If your code compares arrays, are they the right ones? Does it "
                "want floats to agree to the last digit? Use np.allclose.",
            ),
            Misconception(
                "post-norm not found",
                lambda layer, d: (lambda found: "no norm" if found == "post-norm" else found)(_diagnosis(layer, d)),
                "Your code finds three kinds, but calls post-norm 'no norm'. After post-norm every row has mean 0 and "
                "standard deviation 1: x.std(axis=1), which divides by d and not by d - 1 (no ddof=1, and "
                "not torch's).",
            ),
            Misconception(
                "post-norm and pre-norm exchanged",
                lambda layer, d: {"post-norm": "pre-norm", "pre-norm": "post-norm"}.get(
                    found := _diagnosis(layer, d), found
                ),
                "You exchanged post-norm and pre-norm. Post-norm normalises what comes out, x + f(x).",
            ),
            Misconception(
                "it grows, so there is no norm",
                lambda layer, d: "no norm" if _grows(layer, d) else _diagnosis(layer, d),
                "A layer whose output grows with the input may have a norm: pre-norm leaves the stream alone, so "
                "x itself comes through. Look at what is added to x, and whether that grows.",
            ),
            Misconception(
                "it grows, so it is pre-norm",
                lambda layer, d: "pre-norm" if _grows(layer, d) else _diagnosis(layer, d),
                "Without any norm the output grows with the input too. Look at what is added to x: with pre-norm it "
                "does not depend on how large x is.",
            ),
            Misconception(
                "it does not grow, so it is post-norm",
                lambda layer, d: _diagnosis(layer, d) if _grows(layer, d) else "post-norm",
                "Without a residual the output does not grow either. After post-norm every row has mean 0 and "
                "standard deviation 1; look at that.",
            ),
            Misconception(
                "it does not grow, so there is no residual",
                lambda layer, d: _diagnosis(layer, d) if _grows(layer, d) else "no residual",
                "Post-norm does not grow either. After it every row has mean 0 and standard deviation 1: look "
                "at that.",
            ),
        ],
    ),
]
