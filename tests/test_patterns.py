"""Patterns: what they hide is never computed, and the rest is dense attention under the same mask."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import MultiHeadAttention, attention, causal, padding, scaled_dot
from attnlib.masks import Band, BigBird, combine, window
from attnlib.nn import EncoderLayer
from attnlib.scores import gaussian


@st.composite
def bands(draw, n):
    """Windows narrower and wider than a block, and than the sequence."""
    back, ahead = (draw(st.integers(0, 70)) for _ in range(2))
    chosen = draw(st.lists(st.integers(0, n - 1), max_size=3))
    return Band(back, ahead, dilation=draw(st.integers(1, 4)), global_positions=chosen)


@st.composite
def birds(draw, n):
    blocks = {"back": draw(st.integers(0, 2)), "ahead": draw(st.integers(0, 2)), "n_random": draw(st.integers(0, 3))}
    chosen = draw(st.sampled_from([(), (0,), (0, -1)]))
    return BigBird(draw(st.integers(1, 40)), **blocks, global_blocks=chosen, seed=draw(st.integers(0, 9)))


@st.composite
def cases(draw):
    """Numbers of queries and keys, and a pattern for them."""
    n_k = draw(st.sampled_from([1, 2, 5, 33, 100, 150]))
    n_q = draw(st.sampled_from([n_k, (n_k + 1) // 2, 1]))
    return n_q, n_k, draw(st.one_of(bands(n_k), birds(n_k)))


def arrays(n_q, n_k, seed=0):
    """Queries, keys and values whose leading axes broadcast and whose widths differ."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 3, n_q, 4)), rng.normal(size=(2, 1, n_k, 4)), rng.normal(size=(n_k, 5))


def tensors(n_q, n_k):
    return [torch.tensor(x, requires_grad=True) for x in arrays(n_q, n_k)]


def by_definition(pattern, n_q, n_k):
    """The mask, pair by pair, as the equation says it."""
    mask = np.zeros((n_q, n_k), dtype=bool)
    for row, j in product(range(n_q), range(n_k)):
        i = row + n_k - n_q
        if isinstance(pattern, Band):
            steps = {i - t * pattern.dilation for t in range(-pattern.ahead, pattern.back + 1)}
            mask[row, j] = j in steps or i in pattern.global_positions or j in pattern.global_positions
        else:
            n_blocks = -(-n_k // pattern.block)
            own, other = i // pattern.block, j // pattern.block
            chosen = [range(n_blocks)[number] for number in pattern.global_blocks]
            near = own - pattern.back <= other <= own + pattern.ahead
            mask[row, j] = near or other in pattern.random_blocks(n_blocks)[own] or own in chosen or other in chosen
    return mask


@given(cases())
@settings(max_examples=40)
def test_the_dense_mask_is_the_definition(case):
    n_q, n_k, pattern = case
    np.testing.assert_array_equal(pattern.dense(n_q, n_k), by_definition(pattern, n_q, n_k))


def test_a_band_alone_is_the_window():
    np.testing.assert_array_equal(Band(3, 2).dense(5, 9), window(5, 9, back=3, ahead=2))
    like = torch.zeros(1)
    assert torch.equal(Band(3).dense(6, like=like), window(6, back=3, like=like))


@given(cases(), st.booleans(), st.booleans())
def test_it_is_dense_attention_under_the_same_mask_in_value_and_gradient(case, is_causal, padded):
    n_q, n_k, pattern = case
    q, k, v = tensors(n_q, n_k)
    ends = padding([n_k, n_k // 2], n_k, like=q)[:, None] if padded else None
    mask = combine(pattern, ends)
    want = attention(q, k, v, mask=mask.dense(n_q, n_k, like=q), causal=is_causal).out
    up = torch.randn(want.shape, dtype=want.dtype, generator=torch.Generator().manual_seed(0))
    grads = torch.autograd.grad(want, (q, k, v), up)
    for score in (scaled_dot, lambda q, k: q @ k.mT / 2):  # by the fused kernel, and not
        out = attention(q, k, v, score=score, mask=mask, causal=is_causal, weights=False).out
        torch.testing.assert_close(out, want, atol=1e-12, rtol=0)
        for mine, theirs in zip(torch.autograd.grad(out, (q, k, v), up), grads, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    if not padded:
        out = attention(*arrays(n_q, n_k), mask=pattern, causal=is_causal, weights=False).out
        assert isinstance(out, np.ndarray)
        np.testing.assert_allclose(out, want.detach(), rtol=0, atol=1e-12)


@given(cases(), st.booleans())
@settings(max_examples=40)
def test_weights_are_those_of_the_dense_mask(case, is_causal):
    n_q, n_k, pattern = case
    q, k, v = arrays(n_q, n_k)
    got = attention(q, k, v, mask=pattern, causal=is_causal)
    want = attention(q, k, v, mask=by_definition(pattern, n_q, n_k), causal=is_causal)
    np.testing.assert_array_equal(got.weights, want.weights)
    np.testing.assert_array_equal(got.out, want.out)


@pytest.mark.parametrize("pattern", [Band(20, 9, dilation=2, global_positions=[3]), BigBird(8)])
@pytest.mark.parametrize("rows", [90, 1])
def test_a_bias_and_a_mask_beside_it_are_cut_into_tiles(pattern, rows):
    (q, k, v), rng = arrays(90, 90), np.random.default_rng(1)
    bias, beside = rng.normal(size=(3, rows, 90)), rng.random((2, 1, rows, 90)) < 0.8
    bias[..., 5] = -np.inf
    got = attention(q, k, v, mask=combine(beside, pattern), bias=bias, weights=False).out
    want = attention(q, k, v, mask=pattern.dense(90) & beside, bias=bias).out
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
    flat = attention(q, k, v, mask=combine(beside[0, 0, 0], pattern), weights=False).out  # one axis, for all queries
    np.testing.assert_allclose(
        flat, attention(q, k, v, mask=pattern.dense(90) & beside[0, 0, 0]).out, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("pattern", [Band(20, global_positions=[3]), BigBird(8)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_row_with_nothing_to_attend_to_gives_zeros_and_infinities_share(pattern, library):
    q, k, v = tensors(60, 60) if library == "torch" else arrays(60, 60)
    nothing = combine(pattern, padding([0, 60], 60, like=q)[:, None])
    out = attention(q, k, v, mask=nothing, weights=False).out
    assert not out[0].any()
    assert out[1].any()
    if library == "torch":
        assert all(grad.isfinite().all() for grad in torch.autograd.grad(out.sum(), (q, k, v)))
    huge = k * 1.0
    huge[..., 7, :] = np.inf
    q = abs(q)
    got = attention(q, huge, v, mask=pattern, weights=False).out
    want = attention(q, huge, v, mask=pattern.dense(60, like=q)).out
    np.testing.assert_allclose(
        *(np.asarray(x.detach() if library == "torch" else x) for x in (got, want)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_stays(dtype):
    q, k, v = torch.randn(3, 2, 200, 8).to(dtype)
    band = Band(30, 4, dilation=2, global_positions=[0])
    out = attention(q, k, v, mask=band, weights=False).out
    assert out.dtype == dtype
    want = attention(q, k, v, mask=band.dense(200, like=q)).out
    torch.testing.assert_close(out, want, atol=0.03 if dtype.itemsize == 2 else 1e-6, rtol=0)


def test_dropout_drops_within_the_pattern():
    torch.manual_seed(0)
    q, k = torch.randn(2, 400, 4)
    v = torch.eye(400)
    band = Band(20, 20, global_positions=[3])
    shares = attention(q, k, v, mask=band, dropout=0.25, weights=False).out  # the weights, since v is the identity
    allowed = band.dense(400, like=q)
    assert not shares[~allowed].any()
    assert 0.22 < (shares[allowed] == 0).float().mean() < 0.28
    assert abs(shares.sum(-1).mean() - 1) < 0.02


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (Band(64), 1.5),
        (Band(64, 64, dilation=3), 1.5),
        (Band(256, global_positions=[0, 1]), 1.5),
        (BigBird(32), 1.05),
    ],
)
def test_hardly_a_score_is_computed_that_the_mask_hides(pattern, most):
    sizes = []

    def counted(q, k):
        scores = scaled_dot(q, k)
        sizes.append(scores.size)
        return scores

    q, k, v = np.random.default_rng(0).normal(size=(3, 2000, 4))
    attention(q, k, v, score=counted, mask=pattern, weights=False)
    assert sum(sizes) < most * pattern.dense(2000).sum()
    assert max(sizes) < 2000 * 128
    assert sum(sizes) < 2000 * 2000 / 2


@pytest.mark.parametrize("pattern", [Band(64, dilation=2, global_positions=[5]), BigBird(32)])
def test_memory_grows_as_the_length(pattern):
    def peak(n):
        q, k, v = np.random.default_rng(0).normal(size=(3, n, 4))
        tracemalloc.start()
        try:
            attention(q, k, v, mask=pattern, weights=False)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)
    small, large = peak(4000), peak(16000)
    assert large < 4.6 * small
    assert large < 16000 * 16000 * 8 / 50


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("padded", [False, True])
def test_heads_take_a_pattern_as_they_take_a_mask(n_kv_heads, padded):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(16, 4, n_kv_heads=n_kv_heads).double(), torch.randn(3, 90, 16).double()
    band = Band(10, 3, dilation=2, global_positions=[0])
    ends = padding([90, 40, 7], 90, like=x) if padded else None
    got = layer(x, mask=combine(band, ends))
    assert got.weights is None
    want = layer(x, mask=combine(band.dense(90, like=x), ends), weights=True)
    torch.testing.assert_close(got.out, want.out, atol=1e-12, rtol=0)
    torch.testing.assert_close(layer(x, mask=combine(band, ends), weights=True).weights, want.weights)


@torch.no_grad()
def test_a_layer_with_a_band_reads_a_sequence_at_once_or_with_a_cache():
    torch.manual_seed(0)
    layer, x, band = MultiHeadAttention(16, 4), torch.randn(1, 70, 16), Band(10, global_positions=[0])
    want, cache = layer(x, mask=band, causal=True).out, layer.new_cache(1, 70)
    steps = [layer(x[:, :50], mask=band, causal=True, cache=cache).out]
    steps += [layer(x[:, t : t + 1], mask=band, causal=True, cache=cache).out for t in range(50, 70)]
    torch.testing.assert_close(torch.cat(steps, 1), want, atol=1e-6, rtol=0)
    encoder = EncoderLayer(16, 4, 32).eval()
    torch.testing.assert_close(
        encoder(x, mask=band).out, encoder(x, mask=band.dense(70, like=x)).out, atol=1e-5, rtol=0
    )


@given(st.integers(1, 12), st.integers(0, 3), st.integers(0, 99))
def test_random_blocks_are_new_to_each_and_the_same_for_a_seed(n_blocks, n_random, seed):
    bird = BigBird(4, n_random=n_random, global_blocks=(0,), seed=seed)
    rows = bird.random_blocks(n_blocks)
    assert rows == BigBird(4, n_random=n_random, global_blocks=(0,), seed=seed).random_blocks(n_blocks)
    for own, drawn in enumerate(rows):
        left = set(range(1, n_blocks)) - {own - 1, own, own + 1} if own else set()
        assert set(drawn) <= left
        assert len(set(drawn)) == len(drawn) == min(n_random, len(left))


def test_a_seed_draws_the_same_everywhere():
    drawn = ((), (3, 5), (5, 6), (5, 6), (2, 6), (1, 3), (2, 4))
    assert BigBird(n_random=2, global_blocks=[0]).random_blocks(7) == drawn


@pytest.mark.parametrize("n_q", [1, 4, 11, 24, 33])
def test_blocks_of_queries_stand_where_those_of_keys_do(n_q):
    q, k, v = arrays(n_q, 41)
    bird = BigBird(5, back=0, ahead=0, n_random=1, global_blocks=())
    got = attention(q, k, v, mask=bird, weights=False).out
    np.testing.assert_allclose(got, attention(q, k, v, mask=by_definition(bird, n_q, 41)).out, rtol=0, atol=1e-12)


def test_numbers_are_looked_at_as_a_whole():
    q, k, v = arrays(300, 300)
    k[0, 0, [3, 200], 1] = np.nan
    with pytest.raises(ValueError, match="k holds NaN in 2 of 2400 entries"):
        attention(q, k, v, mask=Band(10), weights=False)


def test_another_seed_draws_other_blocks():
    assert len({BigBird(seed=seed).random_blocks(20) for seed in range(5)}) == 5


X = np.ones((4, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Band(-1), ValueError, "back must not be negative; got -1"),
        (lambda: Band(1, 0.5), TypeError, "ahead must be an integer; got float"),
        (lambda: Band(1, dilation=0), ValueError, "dilation must be at least 1; got 0"),
        (lambda: Band(1, global_positions=[0, -1]), ValueError, r"global_positions\[1\] must not be negative"),
        (lambda: Band(1, global_positions=[0.5]), TypeError, r"global_positions must hold integers"),
        (lambda: Band(1, global_positions=3), TypeError, "global_positions must be a sequence of integers; got int"),
        (lambda: Band(1, global_positions=[4]).dense(4), ValueError, "global_positions must lie below n_k = 4; got 4"),
        (lambda: Band(1).dense(4, 3), ValueError, "n_q must not exceed n_k.*4 > 3"),
        (lambda: BigBird(0), ValueError, "block must be at least 1; got 0"),
        (lambda: BigBird(4, n_random=-1), ValueError, "n_random must not be negative"),
        (lambda: BigBird(4, seed="a"), TypeError, "seed must be an integer; got str"),
        (lambda: BigBird(4, global_blocks=[1.5]), TypeError, r"global_blocks must hold integers; got float"),
        (lambda: BigBird(4, global_blocks=[3]).dense(12), ValueError, "global_blocks must be among the 3.*got 3"),
        (lambda: combine(Band(1), BigBird(2)), TypeError, "masks must hold one pattern at most; got 2"),
        (lambda: combine(Band(1), X), TypeError, r"masks\[1\] must be boolean"),
        (
            lambda: attention(X, X[:3], X[:3], mask=Band(1), weights=False),
            ValueError,
            "n_q must not exceed n_k.*4 > 3",
        ),
        (
            lambda: attention(X, X, X, mask=Band(1), weights=False, block=2),
            ValueError,
            "block must be None with a pat",
        ),
        (
            lambda: attention(X, X, X, mask=Band(1, global_positions=[9])),
            ValueError,
            "global_positions must lie below",
        ),
        (
            lambda: attention(X, X, X, mask=combine(Band(1), causal(3)), weights=False),
            ValueError,
            r"mask must broadcast to the scores.*= \(4, 4\); got \(3, 3\)",
        ),
        (
            lambda: attention(X, X, X, mask=combine(Band(1), causal(4, like=torch.ones(1))), weights=False),
            TypeError,
            "mask must come from the library of the scores, NumPy; got torch",
        ),
        (lambda: attention(X, X * np.nan, X, mask=Band(0), weights=False), ValueError, "k holds NaN in 8 of 8"),
        (lambda: attention(X, X, X * np.inf, mask=Band(0), weights=False), ValueError, "v holds NaN or infinity in 8"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_any_score_and_no_positions():
    q, k, v = arrays(50, 50)
    got = attention(q, k, v, score=gaussian, mask=Band(7), weights=False).out
    np.testing.assert_allclose(
        got, attention(q, k, v, score=gaussian, mask=window(50, back=7)).out, rtol=0, atol=1e-12
    )
    assert attention(q[..., :0, :], k, v, mask=Band(7), weights=False).out.shape == (2, 3, 0, 5)
    empty = attention(q[..., :0, :], k[..., :0, :], v[:0], mask=Band(7), weights=False).out
    assert empty.shape == (2, 3, 0, 5)
