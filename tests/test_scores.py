"""Scores: against loops, torch's own distance, and each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import additive, bilinear, dot, gaussian, scaled_dot, squared_distance

RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 6, 4))
W, W_Q, W_K, W_OUT = (RNG.normal(size=shape) for shape in [(4, 4), (4, 7), (4, 7), (7,)])

ONE_PAIR = {
    "dot": (dot, lambda q, k: sum(q * k)),
    "scaled_dot": (scaled_dot, lambda q, k: sum(q * k) / 2),
    "bilinear": (lambda q, k: bilinear(q, k, _like(W, q)), lambda q, k: q @ W @ k),
    "additive": (
        lambda q, k: additive(q, k, _like(W_Q, q), _like(W_K, q), _like(W_OUT, q)),
        lambda q, k: W_OUT @ np.tanh(W_Q.T @ q + W_K.T @ k),
    ),
    "gaussian": (lambda q, k: gaussian(q, k, bandwidth=0.7), lambda q, k: -sum((q - k) ** 2) / (2 * 0.7**2)),
    "squared_distance": (squared_distance, lambda q, k: sum((q - k) ** 2)),
}


def _like(w, q):
    return torch.tensor(w) if isinstance(q, torch.Tensor) else w


@pytest.mark.parametrize("name", ONE_PAIR)
@pytest.mark.parametrize("library", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_every_entry_is_the_score_of_one_pair(name, library):
    score, pair = ONE_PAIR[name]
    got = np.asarray(score(library(Q), library(K)))
    assert got.shape == (2, 5, 3, 6)
    for b, c, i, j in np.ndindex(got.shape):
        assert got[b, c, i, j] == pytest.approx(pair(Q[b, 0, i], K[c, j]), abs=1e-12)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0, 1e8))
@settings(deadline=None, max_examples=40)
def test_distances_keep_their_digits_far_from_the_origin(d, seed, offset):
    rng = np.random.default_rng(seed)
    q, k = offset + rng.normal(size=(3, d)), offset + rng.normal(size=(4, d))
    exact = ((q[:, None] - k) ** 2).sum(axis=-1)
    np.testing.assert_allclose(squared_distance(q, k), exact, rtol=1e-13)


def test_gradients_at_distance_zero_are_finite():
    x = torch.zeros(2, 3, requires_grad=True)
    gaussian(x, x).sum().backward()
    assert torch.isfinite(x.grad).all()


BAD = {
    "bandwidth zero": (lambda: gaussian(Q, K, bandwidth=0.0), ValueError, "bandwidth must be positive.*0.0"),
    "bandwidth negative": (
        lambda: gaussian(Q, K, bandwidth=-1),
        ValueError,
        "bandwidth must be positive.*-1",
    ),
    "bandwidth NaN": (
        lambda: gaussian(Q, K, bandwidth=np.nan),
        ValueError,
        "bandwidth must be positive.*nan",
    ),
    "bandwidth text": (
        lambda: gaussian(Q, K, bandwidth="wide"),
        TypeError,
        "bandwidth must be a number; got str",
    ),
    "w of another size": (
        lambda: bilinear(Q, K, W[:, :3]),
        ValueError,
        r"w must have shape.*\(4, 4\); got \(4, 3\)",
    ),
    "w of another dtype": (lambda: bilinear(Q, K, W.astype("f4")), TypeError, "float64 and float32"),
    "w_k of another width": (
        lambda: additive(Q, K, W_Q, W_K[:, :3], W_OUT),
        ValueError,
        r"w_k must have shape \(d_k, d_hidden\) = \(4, 7\); got \(4, 3\)",
    ),
    "w_q of another depth": (
        lambda: additive(Q, K, W_Q[:2], W_K, W_OUT),
        ValueError,
        r"w_q must have shape \(d_q, d_hidden\) = \(4, any\); got \(2, 7\)",
    ),
    "w as a matrix": (
        lambda: additive(Q, K, W_Q, W_K, W_OUT[None]),
        ValueError,
        r"w must have shape \(d_hidden,\)",
    ),
    "other d": (lambda: dot(Q, K[..., :2]), ValueError, "same last axis d"),
    "a list": (
        lambda: scaled_dot([[1.0]], K),
        TypeError,
        "q must be a NumPy array or a torch tensor.*; got list",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name):
    call, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call()
