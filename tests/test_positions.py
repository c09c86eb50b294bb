"""Positions: each against the words of its paper; `parity.py` compares them with the models that use them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import attention, causal, masked_softmax, positions
from attnlib.nn import LearnedPositions, RelativeBias
from attnlib.positions import (
    alibi,
    alibi_slopes,
    relative_buckets,
    rotary,
    rotation,
    sinusoidal,
)

sizes = st.integers(1, 6)
half = st.integers(1, 5)
places = st.integers(0, 50)
layouts = st.sampled_from(["halves", "pairs"])


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def toeplitz(matrix):
    """Are all entries the same along each diagonal?"""
    return np.array_equal(matrix[..., 1:, 1:], matrix[..., :-1, :-1])


@given(sizes, half, places, st.sampled_from([2.0, 100.0, 10000.0]))
def test_sinusoidal_is_its_formula(n, pairs, start, base):
    d = 2 * pairs
    code = sinusoidal(n, d, start=start, base=base)
    for row in range(n):
        for i in range(pairs):
            angle = (start + row) / base ** (2 * i / d)
            assert code[row, 2 * i] == pytest.approx(np.sin(angle), abs=1e-12)
            assert code[row, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-12)


@given(half, st.integers(-20, 20))
def test_one_matrix_moves_every_sinusoidal_code(pairs, k):
    code = sinusoidal(60, 2 * pairs)
    np.testing.assert_allclose(code[20:40] @ rotation(k, 2 * pairs), code[20 + k : 40 + k], atol=1e-12)
    matrix = rotation(k, 2 * pairs, base=50.0)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(2 * pairs), atol=1e-12)
    np.testing.assert_allclose(rotation(1, 4) @ rotation(2, 4), rotation(3, 4), atol=1e-12)


@given(half, places, places)
def test_the_inner_product_of_codes_depends_on_the_offset_alone(pairs, start, k):
    code = sinusoidal(start + k + 1, 2 * pairs)
    assert code[start] @ code[start + k] == pytest.approx(code[0] @ code[k], abs=1e-11)


@given(sizes, half, half, places, places, layouts)
def test_rotary_scores_depend_on_the_offset_alone(n, pairs, rest, start, shift, layout):
    d, d_rotary = 2 * pairs + rest, 2 * pairs
    q, k = normal(2, n, d), normal(2, n, d, seed=1)

    def scores(start):
        a, b = (rotary(x, start=start, layout=layout, d_rotary=d_rotary) for x in (q, k))
        return a @ b.mT

    np.testing.assert_allclose(scores(start), scores(start + shift), atol=1e-10)
    if n > 1:
        assert not np.allclose(scores(start), q @ k.mT)


@given(sizes, half, places, layouts)
def test_rotary_keeps_norms_and_the_first_position(n, pairs, start, layout):
    x = normal(3, n, 2 * pairs)
    turned = rotary(x, start=start, layout=layout)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1))
    np.testing.assert_array_equal(rotary(x, layout=layout)[:, 0], x[:, 0])


@given(sizes, half, places)
def test_rotary_is_a_product_of_complex_numbers(n, pairs, start):
    d = 2 * pairs
    x = normal(n, d)
    turn = np.exp(1j * np.arange(start, start + n)[:, None] * 10000.0 ** (-2 * np.arange(pairs) / d))
    z = (x[:, :pairs] + 1j * x[:, pairs:]) * turn
    np.testing.assert_allclose(rotary(x, start=start), np.concatenate([z.real, z.imag], axis=1), atol=1e-12)
    z = (x[:, ::2] + 1j * x[:, 1::2]) * turn
    want = np.stack([z.real, z.imag], axis=-1).reshape(n, d)
    np.testing.assert_allclose(rotary(x, start=start, layout="pairs"), want, atol=1e-12)


def test_the_layouts_differ_by_the_order_of_the_columns():
    x, order = normal(5, 6), [0, 2, 4, 1, 3, 5]
    np.testing.assert_allclose(rotary(x[:, order]), rotary(x, layout="pairs")[:, order])
    assert not np.allclose(rotary(x), rotary(x, layout="pairs"))


def test_rotary_turns_the_first_dimensions_only():
    x = normal(4, 10)
    turned = rotary(x, d_rotary=4)
    np.testing.assert_array_equal(turned[:, 4:], x[:, 4:])
    np.testing.assert_array_equal(turned[:, :4], rotary(x[:, :4]))
    np.testing.assert_array_equal(rotary(x, d_rotary=0), x)


def test_rotary_with_a_cache_is_rotary_without():
    x = normal(2, 7, 4)
    parts = [rotary(x[:, :4]), rotary(x[:, 4:6], start=4), rotary(x[:, 6:], start=6)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), rotary(x))


@pytest.mark.parametrize("layout", ["halves", "pairs"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rotary_in_torch(dtype, layout):
    x = torch.tensor(normal(2, 3, 5, 6)).to(dtype).requires_grad_()
    turned = rotary(x, start=1000, layout=layout)
    assert turned.dtype == dtype
    want = rotary(x.detach().double().numpy(), start=1000, layout=layout)
    step = torch.finfo(dtype).eps
    np.testing.assert_allclose(turned.detach().double(), want, atol=10 * step)  # with angles in bfloat16: 3
    if dtype.itemsize == 2:  # rounded once, at the end
        assert torch.equal(turned, rotary(x.float(), start=1000, layout=layout).to(dtype))
    out = torch.tensor(normal(2, 3, 5, 6, seed=1)).to(dtype)
    (gradient,) = torch.autograd.grad(turned, x, out)  # a rotation's gradient is the rotation back
    np.testing.assert_allclose(rotary(gradient, start=1000, layout=layout).double(), out.double(), atol=20 * step)
    assert rotary(normal(2, 4).astype(np.float16)).dtype == np.float16


def test_gradients_of_rotary():
    x = torch.tensor(normal(3, 6), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: rotary(x, start=2, layout="pairs", d_rotary=4), x)


@given(st.integers(1, 9), st.integers(0, 4), st.booleans())
def test_biases_are_the_same_along_each_diagonal_and_end_together(n_q, extra, bidirectional):
    n_k = n_q + extra
    buckets = relative_buckets(n_q, n_k, n_buckets=8, max_distance=6, bidirectional=bidirectional)
    bias = alibi(3, n_q, n_k)
    for matrix in (buckets, bias):
        assert matrix.shape[-2:] == (n_q, n_k)
        assert toeplitz(matrix)
    np.testing.assert_array_equal(
        buckets, relative_buckets(n_k, n_buckets=8, max_distance=6, bidirectional=bidirectional)[extra:]
    )
    np.testing.assert_array_equal(bias, alibi(3, n_k)[:, extra:])
    assert (bias[:, -1, -1] == 0).all()


def test_buckets():
    row = relative_buckets(200, n_buckets=16, max_distance=64)[100]
    assert row[100] == 0
    assert row[96:101].tolist() == [4, 3, 2, 1, 0]
    assert row[101:104].tolist() == [9, 10, 11]
    assert (np.diff(row[:101]) <= 0).all()
    assert row[0] == row[100 - 64] == row[100 - 40] == 7
    assert row[199] == 15
    assert set(row) == set(range(16)) - {8}  # no key stands after the query at distance 0
    one_way = relative_buckets(200, n_buckets=16, max_distance=64, bidirectional=False)
    assert (one_way[~causal(200)] == 0).all()
    assert set(one_way[-1]) == set(range(16))
    exact = relative_buckets(130, n_buckets=32, max_distance=128)[-1][::-1]
    assert [exact[distance] for distance in (7, 8, 15, 16, 31, 32, 63, 64, 128)] == [7, 8, 9, 10, 11, 12, 13, 14, 15]


def test_slopes_and_bias_of_alibi():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(1).tolist() == [2.0**-8]
    assert alibi_slopes(12).tolist() == pytest.approx(
        [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    )
    for h, slope in enumerate(alibi_slopes(6)):
        for i in range(3):
            for j in range(5):
                assert alibi(6, 3, 5)[h, i, j] == -slope * abs(i + 2 - j)
    allowed = causal(5)  # under a causal mask, the position of the key alone gives the same weights
    by_key = masked_softmax(alibi_slopes(2)[:, None, None] * np.arange(5.0) * np.ones((5, 1)), allowed)
    np.testing.assert_allclose(masked_softmax(alibi(2, 5), allowed), by_key, atol=1e-15)


def test_biases_go_into_a_score():
    q = torch.tensor(normal(2, 4, 5, 6))
    bias = RelativeBias(4, n_buckets=8).double()
    plain = attention(q, q, q).out
    added = attention(q, q, q, score=lambda q, k: q @ k.mT / 6**0.5 + bias(5))
    torch.testing.assert_close(added.out, plain)  # it starts at zero
    added.out.square().sum().backward()
    assert bias.weight.grad.abs().sum() > 0
    assert bias(2, 5).shape == (4, 2, 5)
    tilted = attention(q, q, q, score=lambda q, k: q @ k.mT / 6**0.5 + 100 * alibi(4, 5, like=q)).out
    torch.testing.assert_close(tilted[:, 0], q[:, 0], atol=1e-2, rtol=0)


def test_the_library_of_like():
    like = torch.zeros(1, dtype=torch.bfloat16)
    for made in (sinusoidal(3, 4, like=like), alibi(2, 3, like=like)):
        assert made.dtype == torch.bfloat16
    np.testing.assert_array_equal(sinusoidal(3, 4, like=torch.zeros(1).double()), sinusoidal(3, 4))
    assert sinusoidal(3, 4, like=np.zeros(1, np.float32)).dtype == np.float32
    assert sinusoidal(3, 4).dtype == np.float64
    assert sinusoidal(0, 4).shape == (0, 4)


def test_learned_positions():
    learned = LearnedPositions(6, 4)
    torch.testing.assert_close(learned(4, start=2), learned.weight[2:6])
    learned(2).sum().backward()
    assert learned.weight.grad[:, 0].tolist() == [1, 1, 0, 0, 0, 0]
    assert repr(learned) == "LearnedPositions(n_max=6, d=4)"
    assert repr(RelativeBias(2)) == "RelativeBias(n_heads=2, n_buckets=32, max_distance=128, bidirectional=True)"
    with pytest.raises(ValueError, match=r"start \+ n must not exceed n_max = 6.*got 7"):
        learned(5, start=2)
    torch.testing.assert_close(LearnedPositions(1, 4000).weight.std(), torch.tensor(0.02), rtol=0.1, atol=0)


def test_numpy_pays_nothing_for_torch():
    code = "import sys; import attnlib.positions as p; p.alibi(2, 3); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    with pytest.raises(AttributeError, match="no attribute 'learnt'"):
        positions.learnt  # noqa: B018


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sinusoidal(3, 5), ValueError, "d must be even.*got 5"),
        (lambda: sinusoidal(-3, 4), ValueError, "n must not be negative; got -3"),
        (lambda: sinusoidal(3, 4, base=0), ValueError, "base must be positive"),
        (lambda: sinusoidal(3, 4, like=torch.zeros(1, dtype=torch.int)), TypeError, "like must hold floating-point"),
        (lambda: rotation(1, 3), ValueError, "d must be even"),
        (lambda: alibi_slopes(0), ValueError, "n_heads must be at least 1"),
        (lambda: alibi(2, 4, 3), ValueError, "n_q must not exceed n_k.*4 > 3"),
        (lambda: relative_buckets(3, n_buckets=5), ValueError, "n_buckets must be even and at least 4.*got 5"),
        (lambda: relative_buckets(3, n_buckets=1, bidirectional=False), ValueError, "n_buckets must be at least 2"),
        (lambda: relative_buckets(3, max_distance=8), ValueError, "max_distance must exceed the 8 distances.*got 8"),
        (lambda: RelativeBias(2, n_buckets=2), ValueError, "n_buckets must be even and at least 4"),
        (lambda: rotary([[1.0, 0.0]]), TypeError, "x must be a NumPy array or a torch tensor.*; got list"),
        (lambda: rotary(np.zeros(4)), ValueError, r"x must have shape \(\.\.\., n, d\); got \(4,\)"),
        (lambda: rotary(np.zeros((2, 3))), ValueError, "the last axis of x must be even.*got 3"),
        (lambda: rotary(np.zeros((2, 4)), d_rotary=3), ValueError, "d_rotary must be even.*got 3"),
        (lambda: rotary(np.zeros((2, 4)), d_rotary=6), ValueError, "d_rotary must not exceed the last axis of x, 4"),
        (lambda: rotary(np.zeros((2, 4)), layout="llama"), ValueError, "layout must be one of.*got 'llama'"),
        (lambda: rotary(np.zeros((2, 4)), start=-1), ValueError, "start must not be negative"),
        (lambda: LearnedPositions(4, 2)(2.0), TypeError, "n must be an integer; got float"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
