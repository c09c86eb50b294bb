"""Linear attention is attention with its score: as sums in advance, in blocks and key by key; random features."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import attention, padding
from attnlib.variants import elu_plus_one, linear_attention, linear_score, positive_features, random_directions

N = 37


def arrays(n_q=N, n_k=N, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 3, n_q, 4)), rng.normal(size=(2, 1, n_k, 4)), rng.normal(size=(n_k, 5))


def tensors(n_q=N, n_k=N):
    return [torch.tensor(x, requires_grad=True) for x in arrays(n_q, n_k)]


def favor(like=None, n_features=16, **options):
    return partial(positive_features, w=random_directions(4, n_features, like=like, **options))


@pytest.mark.parametrize("kind", ["elu", "favor"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("block", [1, 5, 64])
def test_it_is_attention_with_the_linear_score_in_value_and_gradient(kind, causal, padded, block):
    q, k, v = tensors()
    features = elu_plus_one if kind == "elu" else favor(like=q)
    mask = padding([N, 20], N, like=q)[:, None] if padded else None
    want = attention(q, k, v, score=partial(linear_score, features=features), mask=mask, causal=causal).out
    out = linear_attention(q, k, v, features=features, mask=mask, causal=causal, block=block).out
    torch.testing.assert_close(out, want, atol=1e-12, rtol=0)
    up = torch.randn(want.shape, dtype=want.dtype, generator=torch.Generator().manual_seed(0))
    for mine, theirs in zip(*(torch.autograd.grad(x, (q, k, v), up) for x in (out, want)), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    features = features if kind == "elu" else favor()
    mask = None if mask is None else mask.numpy()
    got = linear_attention(*arrays(), features=features, mask=mask, causal=causal, block=block).out
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, want.detach(), rtol=0, atol=1e-12)


@given(st.integers(0, 9), st.integers(1, 12), st.integers(1, 9))
@settings(max_examples=30)
def test_queries_and_keys_may_differ_in_number_where_all_are_seen(n_q, n_k, block):
    q, k, v = arrays(n_q, n_k)
    want = attention(q, k, v, score=linear_score).out
    np.testing.assert_allclose(linear_attention(q, k, v, block=block).out, want, rtol=0, atol=1e-12)


def test_key_by_key_it_is_a_recurrent_network_with_a_state_of_constant_size():
    q, k, v = arrays()
    want, end = linear_attention(q, k, v, causal=True)
    state, sizes, steps = None, set(), []
    for t in range(N):
        now = slice(t, t + 1)
        out, state = linear_attention(q[..., now, :], k[..., now, :], v[now], causal=True, state=state)
        steps.append(out)
        sizes.add((state.values.shape, state.total.shape))
    np.testing.assert_allclose(np.concatenate(steps, axis=-2), want, rtol=0, atol=1e-12)
    assert sizes == {((2, 1, 4, 5), (2, 1, 4))}
    np.testing.assert_allclose(state.values, end.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.total, end.total, rtol=0, atol=1e-12)


def test_the_state_goes_on_in_pieces_of_any_length_and_for_a_memory_read_at_once():
    q, k, v = arrays()
    want = linear_attention(q, k, v, causal=True).out
    first = linear_attention(q[..., :10, :], k[..., :10, :], v[:10], causal=True, block=4)
    rest = linear_attention(q[..., 10:, :], k[..., 10:, :], v[10:], causal=True, state=first.state, block=7)
    np.testing.assert_allclose(np.concatenate([first.out, rest.out], axis=-2), want, rtol=0, atol=1e-12)
    both = linear_attention(q, k[..., 10:, :], v[10:], state=first.state).out
    np.testing.assert_allclose(both, attention(q, k, v, score=linear_score).out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_row_with_nothing_to_attend_to_gives_zeros(library, causal):
    q, k, v = tensors() if library == "torch" else arrays()
    mask = padding([0, N], N, like=q)[:, None]
    out = linear_attention(q, k, v, mask=mask, causal=causal).out
    assert not out[0].any()
    assert out[1].all()
    if library == "torch":
        assert all(grad.isfinite().all() for grad in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_as_the_length(causal):
    def peak(n):
        q, k, v = np.random.default_rng(0).normal(size=(3, n, 8))
        tracemalloc.start()
        try:
            linear_attention(q, k, v, causal=causal)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)
    assert peak(16000) < 4.4 * peak(4000)
    assert peak(4000) < 4000 * 8 * 8 * 20


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_single(dtype):
    n = 80_000  # beyond the largest float16, and beyond what bfloat16 can add 64 to
    q, k = (torch.zeros(n, 1, dtype=dtype) for _ in range(2))
    v = (torch.arange(n) >= n // 2).to(dtype)[:, None]
    for causal in (False, True):
        out = linear_attention(q, k, v, causal=causal).out
        assert out.dtype == dtype
        assert abs(out[-1].item() - 0.5) < 0.01


def test_elu_plus_one_is_torchs_and_has_a_gradient_everywhere():
    x = torch.tensor([[-1e4, -3.0, 0.0, 2.0, 1e4]], dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(elu_plus_one(x), torch.nn.functional.elu(x) + 1)
    assert torch.autograd.grad(elu_plus_one(x).sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("orthogonal", [False, True])
def test_random_features_are_right_on_average(orthogonal):
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 6, 4)) / 2  # of long ones few draws are most of the mean
    want = np.exp(q @ k.T / 2)
    draws = []
    for seed in range(400):
        w = random_directions(4, 32, seed=seed, orthogonal=orthogonal)
        draws.append(positive_features(q, w) @ positive_features(k, w).T)
    draws = np.array(draws)
    error = draws.std(0) / len(draws) ** 0.5
    assert (abs(draws.mean(0) - want) < 4.5 * error).all()


def errors(n_features, orthogonal):
    """Mean squared errors of the output against attention, one for each of 40 seeds."""
    rng = np.random.default_rng(5)
    q, k, v = rng.normal(size=(3, 50, 16)) * np.array([0.5, 0.5, 1])[:, None, None]
    want = attention(q, k, v).out
    found = []
    for seed in range(40):
        w = random_directions(16, n_features, seed=seed, orthogonal=orthogonal)
        out = linear_attention(q, k, v, features=partial(positive_features, w=w)).out
        found.append(((out - want) ** 2).mean())
    return np.array(found)


def test_the_error_falls_with_the_number_of_features_and_with_right_angles():
    free = {m: errors(m, orthogonal=False).mean() for m in (16, 64, 256, 1024)}
    for m in (16, 64, 256):
        assert free[4 * m] < 0.5 * free[m]  # by 4 in the limit
    assert free[1024] < free[16] / 30
    assert errors(64, orthogonal=True).mean() < 0.95 * free[64]


@pytest.mark.parametrize("n_features", [3, 5, 11])
def test_directions_are_orthogonal_within_a_block_and_seeded(n_features):
    w = random_directions(5, n_features, seed=1)
    inner = w @ w.T
    for start in range(0, n_features, 5):
        block = inner[start : start + 5, start : start + 5]
        np.testing.assert_allclose(block, np.diag(np.diag(block)), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(w, random_directions(5, n_features, seed=1))
    assert not np.allclose(w, random_directions(5, n_features, seed=2))
    like = torch.zeros(1)
    assert random_directions(5, n_features, seed=1, like=like).dtype == like.dtype


X = np.ones((4, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: linear_attention(X, X[:3], X[:3], causal=True), ValueError, "n_q must not exceed n_k"),
        (
            lambda: linear_attention(X[:3], X, X, causal=True),
            ValueError,
            "causal needs as many keys.*4 keys and 3 quer",
        ),
        (lambda: linear_attention(X, X[:, :1], X), ValueError, "q and k must have the same last axis d"),
        (lambda: linear_attention(X, X, X[:3]), ValueError, "k and v must have one row for each position"),
        (lambda: linear_attention(X, X, X, mask=np.ones((4, 4), bool)), ValueError, r"mask must broadcast .*\(1, 4\)"),
        (lambda: linear_attention(X, X, X, mask=X), TypeError, "mask must be boolean"),
        (lambda: linear_attention(X, X, X, block=0), ValueError, "block must be at least 1"),
        (lambda: linear_attention(X, X * np.nan, X), ValueError, "k holds NaN in 8 of 8"),
        (lambda: linear_attention(X, X, X, features=lambda x: x[0]), ValueError, r"features must give \(..., n, m\)"),
        (
            lambda: linear_attention(X, X, X, state=linear_attention(X, X, X[:, :1]).state),
            ValueError,
            r"state must hold values \(..., m = 2, d_v = 2\).*got values \(2, 1\)",
        ),
        (lambda: attention(-X, X, X, score=partial(linear_score, features=lambda x: x)), ValueError, "got NaN"),
        (lambda: positive_features(X, X[:, :1]), ValueError, r"w must have shape \(m, d\)"),
        (lambda: positive_features(X.astype(int), X), TypeError, "x must hold floating-point numbers"),
        (lambda: random_directions(0, 4), ValueError, "d must be at least 1"),
        (lambda: random_directions(4, 0), ValueError, "n_features must be at least 1"),
        (lambda: random_directions(4, 4, seed=0.5), TypeError, "seed must be an integer"),
        (lambda: linear_score(X, X[:, :1]), ValueError, "q and k must have the same last axis d"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
