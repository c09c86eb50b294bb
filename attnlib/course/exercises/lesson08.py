"""Exercises of lesson 08: positions."""

from __future__ import annotations

import numpy as np

from attnlib.core.attention import attention
from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.masks import causal
from attnlib.positions import rotary, sinusoidal


def _omega(d):
    return 10000.0 ** (-np.arange(0, d, 2) / d)


def _columns(d):
    return 10000.0 ** (-np.arange(d) / d)


def _halves(places, d):
    angles = places[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _in_halves(angles):
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _inner_product(k, d):
    omega = 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.cos(k * omega).sum()


def _rotary(x):
    return rotary(x, layout="pairs")


def _rotary_pairs(x):
    n, d = x.shape
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    a, b = x[:, 0::2], x[:, 1::2]
    turned = [a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)]
    return np.stack(turned, axis=-1).reshape(n, d)


def _turned(x, angles):
    a, b = x[:, 0::2], x[:, 1::2]
    pairs = [a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)]
    return np.stack(pairs, axis=-1).reshape(x.shape)


def _turned_in_place(x):
    x, angles = x.copy(), _angles(x)
    x[:, 0::2] = x[:, 0::2] * np.cos(angles) - x[:, 1::2] * np.sin(angles)
    x[:, 1::2] = x[:, 0::2] * np.sin(angles) + x[:, 1::2] * np.cos(angles)
    return x


def _quarter_turned(x):
    return np.stack([-x[:, 1::2], x[:, 0::2]], axis=-1).reshape(x.shape)


def _is_equivariant(f, x, order):
    return bool(np.allclose(f(x[order]), f(x)[order]))


def _attend(x):
    return attention(x, x, x).out


def _attend_before(x):
    return attention(x, x, x, mask=causal(len(x))).out


def _mean_everywhere(x):
    return np.broadcast_to(x.mean(axis=0), x.shape)


def _with_places(x):
    return _attend(x + sinusoidal(*x.shape))


def _running_sum(x):
    return np.cumsum(x, axis=0)


def _backwards(x):
    return x[::-1]


def _doubled(x, row):
    return x * np.where(np.arange(len(x)) == row, 2, 1)[:, None]


# Three functions with a name each, which a message gives.
def _last_row_doubled(x):
    return _doubled(x, len(x) - 1)


def _first_row_doubled(x):
    return _doubled(x, 0)


def _second_row_doubled(x):
    return _doubled(x, 1)


def _functions(rng):
    functions = (_attend, _attend_before, _mean_everywhere, _with_places, _running_sum, _backwards)
    functions += (_last_row_doubled, _first_row_doubled, _second_row_doubled)
    return [(f, rng.normal(size=(5, 4)), np.array([2, 0, 1, 4, 3])) for f in functions]


def _angles(x):
    return np.arange(len(x))[:, None] * _omega(x.shape[1])


def _codes(angles):
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)


EXERCISES = [
    Exercise(
        id="08.1",
        title="Sinusoidal codes of any places, in halves",
        reference=_halves,
        cases=lambda rng: [(np.array([0.0, 1.0, 2.5, 7.0, 40.0]), 8), (np.array([3.0, -0.5, 3.0]), 6)],
        hints=(
            "One angle for each place and each pair: the place times ω_i.",
            "omega = 10000.0 ** (-np.arange(0, d, 2) / d); angles = places[:, None] * omega, (n, d / 2).",
            "np.concatenate([np.sin(angles), np.cos(angles)], axis=1).",
        ),
        misconceptions=[
            Misconception(
                "alternating",
                lambda places, d: _codes(places[:, None] * _omega(d)),
                "Sines and cosines alternate, as in the formula. Here all sines come first.",
            ),
            Misconception(
                "cosines first",
                lambda places, d: np.roll(_halves(places, d), d // 2, axis=1),
                "The halves are exchanged: sines come first.",
            ),
            Misconception(
                "counted",
                lambda places, d: _halves(np.arange(len(places)), d),
                "You counted the rows, 0, 1, 2, …. The places are given, and need be neither whole nor in order.",
            ),
            Misconception(
                "exponent twice",
                lambda places, d: _in_halves(places[:, None] * 10000.0 ** (-2 * np.arange(0, d, 2) / d)),
                "Your exponent is doubled: with 2i as the column, ω_i is 10000^(-2i/d), not 10000^(-4i/d).",
            ),
            Misconception(
                "half the exponent",
                lambda places, d: _in_halves(places[:, None] * 10000.0 ** (-np.arange(d // 2) / d)),
                "Your exponent is half of what it should be: 2i/d for pair i, not i/d.",
            ),
            Misconception(
                "other speeds for the cosines",
                lambda places, d: np.concatenate(
                    [np.sin(places[:, None] * _columns(d)[: d // 2]), np.cos(places[:, None] * _columns(d)[d // 2 :])],
                    axis=1,
                ),
                "You gave each column its own speed. A sine and its cosine are one hand of a clock, with one speed.",
            ),
            Misconception(
                "growing",
                lambda places, d: _in_halves(places[:, None] / _omega(d)),
                "Your hands turn faster from pair to pair. They should turn slower: multiply by 10000^(-2i/d), or "
                "divide by 10000^(2i/d).",
            ),
            Misconception(
                "whole places",
                lambda places, d: _halves(places.astype(int), d),
                "You rounded the places. They need not be whole: keep what comes after the decimal point.",
            ),
            Misconception(
                "one pair fewer",
                lambda places, d: _in_halves(places[:, None] * 10000.0 ** (-np.arange(d // 2) / (d // 2 - 1))),
                "Your last hand turns at 1/10000 of the first: the exponent is divided by d/2 - 1, as in "
                "Tensor2Tensor. In the formula it is 2i/d, and the last hand is faster, by 10000^(2/d).",
            ),
            Misconception(
                "from one",
                lambda places, d: _halves(places + 1, d),
                "You added one to the places. At place 0 all sines are 0 and all cosines 1.",
            ),
        ],
    ),
    Exercise(
        id="08.2",
        title="The inner product by distance",
        reference=_inner_product,
        cases=lambda rng: [(3, 8), (10, 16), (-4, 6)],
        hints=(
            "Write the inner product as a sum over pairs of columns.",
            "sin a sin b + cos a cos b = cos(a - b), and a - b is k times ω_i.",
            "np.cos(k * omega).sum() with omega = 10000.0 ** (-np.arange(0, d, 2) / d).",
        ),
        misconceptions=[
            Misconception(
                "mean",
                lambda k, d: np.cos(k * _omega(d)).mean(),
                "You divided by the number of pairs, or scaled the codes to length 1, which comes to the same. An "
                "inner product is the sum itself.",
            ),
            Misconception(
                "all columns",
                lambda k, d: 2 * np.cos(k * _omega(d)).sum(),
                "You counted each pair twice. A sine and a cosine together give one cosine.",
            ),
            Misconception(
                "a speed for each column",
                lambda k, d: np.cos(k * 10000.0 ** (-np.arange(d) / d)).sum(),
                "You used d speeds. A pair of columns shares one, so there are d / 2.",
            ),
            Misconception(
                "sine",
                lambda k, d: np.sin(k * _omega(d)).sum(),
                "sin a sin b + cos a cos b is the cosine of the difference. At k = 0 it is as large as it can be.",
            ),
            Misconception(
                "one hand",
                lambda k, d: d / 2 * np.cos(k),
                "You turned all hands at the speed of the first. Each has its own ω_i.",
            ),
            Misconception(
                "product",
                lambda k, d: np.cos(k * _omega(d)).prod(),
                "You multiplied the pairs. They add up.",
            ),
            Misconception(
                "half the exponent",
                lambda k, d: np.cos(k * 10000.0 ** (-np.arange(d // 2) / d)).sum(),
                "Your exponent is half of what it should be: 2i/d for pair i, not i/d.",
            ),
            Misconception(
                "exponent twice",
                lambda k, d: np.cos(k * 10000.0 ** (-2 * np.arange(0, d, 2) / d)).sum(),
                "Your exponent is doubled: with 2i as the column, ω_i is 10000^(-2i/d), not 10000^(-4i/d).",
            ),
            Misconception(
                "growing",
                lambda k, d: np.cos(k / _omega(d)).sum(),
                "Your hands turn faster from pair to pair. They should turn slower: multiply by 10000^(-2i/d), or "
                "divide by 10000^(2i/d).",
            ),
            Misconception(
                "one by one",
                lambda k, d: np.cos(k * _omega(d)),
                "This is one number for each pair. The inner product is their sum.",
            ),
        ],
    ),
    Exercise(
        id="08.3",
        title="Rotary, neighbours as pairs",
        reference=_rotary,
        solution=_rotary_pairs,
        cases=lambda rng: [(rng.normal(size=(5, 6)),), (rng.normal(size=(7, 4)),)],
        hints=(
            "angles = np.arange(n)[:, None] * omega: one for each row and each pair.",
            "With a = x[:, 0::2] and b = x[:, 1::2], the turned pair is (a cos - b sin, a sin + b cos).",
            "Put them back side by side: np.stack([…, …], axis=-1).reshape(n, d).",
        ),
        misconceptions=[
            Misconception(
                "halves",
                lambda x: rotary(x, layout="halves"),
                "You paired column i with column i + d/2, as GPT-NeoX does. Here it is neighbours: 2i and 2i + 1.",
            ),
            Misconception(
                "backwards",
                lambda x: _turned(x, -np.arange(len(x))[:, None] * _omega(x.shape[1])),
                "You turned the other way: check the signs of the two sines. (Scores of queries and keys that both "
                "turn this way still depend on the distance alone, but weights trained the other way do not fit.)",
            ),
            Misconception(
                "reflected",
                lambda x: _turned(x * np.where(np.arange(x.shape[1]) % 2, -1, 1), _angles(x)),
                "b has the wrong sign in both: (a cos + b sin, a sin - b cos) turns the mirror image. Lengths stay, "
                "but at position 0, where nothing should happen, each b changes its sign.",
            ),
            Misconception(
                "added",
                lambda x: x + sinusoidal(*x.shape),
                "You added a code. Rotary turns the numbers and adds nothing: lengths stay what they were.",
            ),
            Misconception(
                "one speed",
                lambda x: _turned(x, np.arange(len(x))[:, None] * np.ones(x.shape[1] // 2)),
                "Your pairs all turn at one speed. Pair i turns by p ω_i, the later ones slower.",
            ),
            Misconception(
                "from one",
                lambda x: rotary(x, start=1, layout="pairs"),
                "Your first row is turned by one step. Positions begin at 0: the first row stays as it is.",
            ),
            Misconception(
                "not put back",
                lambda x: np.concatenate([_rotary(x)[:, 0::2], _rotary(x)[:, 1::2]], axis=1),
                "The turn is right, but the columns come back in another order: first all a, then all b. Put each b "
                "beside its a.",
            ),
            Misconception(
                "in place",
                _turned_in_place,
                "The first of each pair is right and the second is not: the new b was made from the new a. Both are "
                "made from the old a and b.",
            ),
            Misconception(
                "half the exponent",
                lambda x: _turned(
                    x, np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(x.shape[1] // 2) / x.shape[1])
                ),
                "Your exponent is half of what it should be: 2i/d for pair i, not i/d.",
            ),
            Misconception(
                "exponent twice",
                lambda x: _turned(x, np.arange(len(x))[:, None] * _omega(x.shape[1]) ** 2),
                "Your exponent is doubled: with 2i as the column, ω_i is 10000^(-2i/d), not 10000^(-4i/d).",
            ),
            Misconception(
                "growing",
                lambda x: _turned(x, np.arange(len(x))[:, None] / _omega(x.shape[1])),
                "Your pairs turn faster from one to the next. They should turn slower: multiply by 10000^(-2i/d), or "
                "divide by 10000^(2i/d).",
            ),
            Misconception(
                "angles in halves",
                lambda x: x * np.tile(np.cos(_angles(x)), 2) + _quarter_turned(x) * np.tile(np.sin(_angles(x)), 2),
                "Neighbours are paired, but the angles are laid out for halves: all of them, and then all again, as "
                "np.tile does. The two numbers of a pair turn by the same angle: np.repeat(angles, 2, axis=1).",
            ),
            Misconception(
                "not across",
                lambda x: x * np.repeat(np.cos(_angles(x)) + np.sin(_angles(x)), 2, axis=1),
                "Each number met only its own sine and cosine. In a turn both numbers of a pair mix: (a cos - b sin, "
                "a sin + b cos).",
            ),
            Misconception(
                "second reflected",
                lambda x: _turned(x, _angles(x)) * np.where(np.arange(x.shape[1]) % 2, -1, 1),
                "Every b has the wrong sign: it is a sin + b cos. At position 0 nothing should happen.",
            ),
        ],
    ),
    Exercise(
        id="08.4",
        title="A test of equivariance",
        reference=_is_equivariant,
        cases=_functions,
        hints=(
            "Equivariant: permute the input, and the output is permuted likewise.",
            "Compute f twice: once of the permuted input, once of the input as it is.",
            "np.allclose(f(x[order]), f(x)[order]).",
        ),
        misconceptions=[
            Misconception(
                "invariance",
                lambda f, x, order: bool(np.allclose(f(x[order]), f(x))),
                "You say yes only where the output is the same in every order. Either you asked for that, which is "
                "invariance; or input and output went by different orders (one by order, the other by its inverse, "
                "np.argsort(order)); or the input was not permuted.",
            ),
            Misconception(
                "first row",
                lambda f, x, order: bool(np.allclose(f(x[order])[0], f(x)[order][0])),
                "You compared the first row only. One of the functions treats all rows alike except the last.",
            ),
            Misconception(
                "last row",
                lambda f, x, order: bool(np.allclose(f(x[order])[-1], f(x)[order][-1])),
                "You compared the last row only. One of the functions treats all rows alike except the first.",
            ),
            Misconception(
                "of the set",
                lambda f, x, order: bool(np.allclose(f(x[order]).sum(axis=0), f(x).sum(axis=0))),
                "You compared something that has no order, such as sums over the rows or sorted rows, or permuted by "
                "another order than the one given. That can agree while the rows do not.",
            ),
            Misconception(
                "first and last row",
                lambda f, x, order: bool(np.allclose(f(x[order])[[0, -1]], f(x)[order][[0, -1]])),
                "You compared the first row and the last. One of the functions treats those two alike, but not the "
                "rows between them.",
            ),
            Misconception(
                "always",
                lambda f, x, order: True,
                "You say yes to every function. Among these are some with positions in them.",
            ),
            Misconception(
                "never",
                lambda f, x, order: False,
                "You say no to every function. Exact equality of floats may be too much to ask: use np.allclose.",
            ),
            Misconception(
                "the other way round",
                lambda f, x, order: not _is_equivariant(f, x, order),
                "Your answers are the opposite of what they should be.",
            ),
        ],
    ),
]
