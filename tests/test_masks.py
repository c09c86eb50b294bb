"""Masks: True means may attend."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import attention, causal, padding


@given(st.integers(0, 6), st.integers(0, 6))
def test_causal_is_the_lower_triangle_seen_from_the_end(n_q, extra):
    want = np.tril(np.ones((n_q, n_q + extra), bool), k=extra)
    np.testing.assert_array_equal(
        causal(n_q, n_q + extra),
        want,
        err_msg="causal must allow key <= query, the diagonal included: see attnlib/masks.py",
    )


def test_a_padded_batch_equals_its_sentences_one_by_one():
    rng = np.random.default_rng(0)
    lengths = [4, 1, 3]
    x = rng.normal(size=(3, 4, 2))
    batch = attention(x, x, x, mask=padding(lengths)).out
    for row, length in enumerate(lengths):
        alone = x[row, :length]
        np.testing.assert_allclose(batch[row, :length], attention(alone, alone, alone).out, atol=1e-14)


def test_the_library_of_like():
    q = torch.zeros(2, 3)
    assert isinstance(causal(2, like=q), torch.Tensor)
    assert isinstance(padding([1, 2], like=q), torch.Tensor)
    assert isinstance(padding(torch.tensor([1, 2])), torch.Tensor)
    assert padding([2, 0], 3).tolist() == [[[True, True, False]], [[False, False, False]]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: causal(3, 2), ValueError, "n_q must not exceed n_k.*3 > 2"),
        (lambda: causal(-1), ValueError, "n_q must not be negative; got -1"),
        (lambda: causal(2.0), TypeError, "n_q must be an integer; got float"),
        (lambda: padding([2, 5], 4), ValueError, "lengths must not exceed n_k = 4; got 5"),
        (lambda: padding([1.5]), TypeError, r"lengths\[0\] must be an integer"),
        (lambda: padding([1, -2]), ValueError, r"lengths\[1\] must not be negative; got -2"),
        (lambda: padding([]), ValueError, "lengths must name at least one"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
