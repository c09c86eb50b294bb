"""Masks: True means may attend."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import attention, causal, padding
from attnlib.masks import block_banded, combine, from_torch, prefix, to_torch, window


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


@given(st.integers(1, 7), st.integers(0, 5), st.integers(0, 4), st.integers(0, 4), st.integers(1, 4))
def test_every_mask_is_its_formula(n_q, extra, back, ahead, block):
    n_k = n_q + extra
    i, j = np.arange(n_q)[:, None] + extra, np.arange(n_k)[None]
    np.testing.assert_array_equal(window(n_q, n_k, back=back, ahead=ahead), (j >= i - back) & (j <= i + ahead))
    np.testing.assert_array_equal(prefix(n_q, n_k, length=back), (j < back) | (j <= i))
    rows, columns = np.arange(n_k)[:, None] // block, np.arange(n_k)[None] // block
    banded = block_banded(n_k, block, back=back, ahead=ahead)
    np.testing.assert_array_equal(banded, (columns >= rows - back) & (columns <= rows + ahead))
    np.testing.assert_array_equal(combine(None, banded, causal(n_k)), banded & causal(n_k))


def test_combine_of_nothing_is_nothing():
    assert combine() is None
    assert combine(None, None) is None


@pytest.mark.parametrize("floats", [False, True])
def test_torch_modules_understand_the_converted_mask(floats):
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(4, 1, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    mask, lengths = causal(5, like=x), padding([5, 3], like=x)
    theirs = to_torch(mask)
    theirs = torch.zeros(5, 5, dtype=x.dtype).masked_fill(theirs, -torch.inf) if floats else theirs
    keys = to_torch(lengths[:, 0])
    keys = torch.zeros(2, 5, dtype=x.dtype).masked_fill(keys, -torch.inf) if floats else keys
    _, want = module(x, x, x, attn_mask=theirs, key_padding_mask=keys)
    q, k, v = (x @ w.T for w in module.in_proj_weight.chunk(3))
    back = combine(from_torch(theirs), from_torch(keys)[:, None])
    np.testing.assert_allclose(attention(q, k, v, mask=back).weights.detach(), want.detach(), atol=1e-12)


@pytest.mark.parametrize("like", [None, torch.zeros(1)])
def test_a_window_wider_than_all_numbers_hides_nothing(like):
    assert window(2, 3, back=10**20, ahead=10**20, like=like).all()
    assert block_banded(3, 1, back=10**20, ahead=10**20, like=like).all()
    assert block_banded(3, 10**20, back=0, like=like).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: causal(3, 2), ValueError, "n_q must not exceed n_k.*3 > 2"),
        (lambda: causal(-1), ValueError, "n_q must not be negative; got -1"),
        (lambda: causal(2.0), TypeError, "n_q must be an integer; got float"),
        (lambda: padding([2, 5], 4), ValueError, "lengths must not exceed n_k = 4; got 5"),
        (lambda: padding([1.5]), TypeError, r"lengths\[0\] must be an integer"),
        (lambda: padding([1, -2]), ValueError, r"lengths\[1\] must not be negative; got -2"),
        (lambda: window(3, back=-1), ValueError, "back must not be negative; got -1"),
        (lambda: prefix(3, length=1.5), TypeError, "length must be an integer; got float"),
        (lambda: block_banded(4, 0), ValueError, "block must be at least 1; got 0"),
        (lambda: combine(causal(2), np.ones((2, 2))), TypeError, r"masks\[1\] must be boolean.*float64"),
        (lambda: combine(causal(2), causal(3)), ValueError, r"masks\[0\] \(2, 2\), masks\[1\] \(3, 3\)"),
        (lambda: combine(causal(2), torch.ones(2, 2) > 0), TypeError, r"from one library; got masks\[0\] of NumPy"),
        (lambda: to_torch(causal(2)), TypeError, "mask must be a torch tensor; got a NumPy array"),
        (lambda: from_torch(torch.tensor([[0.0, 0.5]])), ValueError, "0 and minus infinity only"),
        (lambda: from_torch(torch.tensor([[0, 1]])), TypeError, "mask must be boolean.*int64"),
        (lambda: padding([]), ValueError, "lengths must name at least one"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
