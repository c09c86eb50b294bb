"""`attention` and `masked_softmax`: against torch, against the formula, and at the edges."""

from __future__ import annotations

from functools import partial
from math import inf

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes

from attnlib import attention, causal, dot, gaussian, masked_softmax, scaled_dot

sizes = st.integers(1, 5)
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def numbers(rng, *shape):
    return rng.normal(size=shape)


def naive(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


@st.composite
def problems(draw):
    """Queries, keys, values and a mask whose every query keeps at least one key, of any batch shape."""
    n_q, n_k, d, d_v = (draw(sizes) for _ in range(4))
    lead = draw(mutually_broadcastable_shapes(num_shapes=4, max_dims=3, max_side=3)).input_shapes
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q, k, v = (
        numbers(rng, *shape, *last) for shape, last in zip(lead, [(n_q, d), (n_k, d), (n_k, d_v)], strict=False)
    )
    mask = rng.uniform(size=(*lead[3], n_q, n_k)) < 0.6
    mask[..., 0] = True
    return q, k, v, mask


@given(problems())
@settings(deadline=None, max_examples=80)
def test_agrees_with_the_formula_for_any_shape(problem):
    q, k, v, mask = problem
    out, weights = attention(q, k, v, mask=mask)
    np.testing.assert_allclose(out, naive(q, k, v, mask), atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert np.all(weights[~np.broadcast_to(mask, weights.shape)] == 0)


@given(problems())
@settings(deadline=None, max_examples=80)
def test_numpy_torch_and_the_fused_kernel_agree(problem):
    q, k, v, mask = problem
    tensors = [torch.tensor(x) for x in problem[:3]]
    with_weights = attention(*tensors, mask=torch.tensor(mask))
    fused = attention(*tensors, mask=torch.tensor(mask), weights=False)
    assert fused.weights is None
    np.testing.assert_allclose(with_weights.out, attention(q, k, v, mask=mask).out, atol=1e-12)
    np.testing.assert_allclose(fused.out, with_weights.out, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", [True, False])
def test_torch_dtypes_gradients_and_a_fully_masked_row(dtype, weights):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, d) for n, d in [(4, 8), (6, 8), (6, 5)])
    mask = torch.rand(2, 3, 4, 6) < 0.7
    mask[..., 0] = True
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
    mask[1, 2, 3] = False
    inputs = [x.to(dtype).requires_grad_() for x in (q, k, v)]
    out = attention(*inputs, mask=mask, weights=weights).out
    assert out.dtype == dtype
    assert torch.all(out[1, 2, 3] == 0)
    keep = mask.any(-1)
    assert (out.double() - want)[keep].abs().max() < TOLERANCE[dtype]
    out.float().pow(2).sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in inputs)
    assert torch.all(inputs[0].grad[1, 2, 3] == 0)


def test_gradients_of_both_paths_are_those_of_torch():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5))
    want = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v).sin().sum(), (q, k, v))
    for weights in (True, False):
        got = torch.autograd.grad(attention(q, k, v, weights=weights).out.sin().sum(), (q, k, v))
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(got, want, strict=True))
    assert torch.autograd.gradcheck(lambda *x: attention(*x).out, (q, k, v))


def test_without_the_root_the_scores_would_be_wrong():
    q, k, v = np.array([[3.0, 0, 0, 0]]), np.array([[2.0, 0, 0, 0], [0, 0, 0, 0]]), np.eye(2)
    odds = attention(q, k, v).weights[0]
    assert np.log(odds[0] / odds[1]) == pytest.approx(3 * 2 / np.sqrt(4)), (
        "attention must divide the dot products by √d (d = 4 here): see scaled_dot in attnlib/scores.py"
    )


def test_a_causal_mask_lets_each_position_see_itself_and_the_past():
    rng = np.random.default_rng(0)
    q, k, v = (numbers(rng, 5, 3) for _ in range(3))
    before = attention(q, k, v, mask=causal(5))
    assert np.all(np.diag(before.weights) > 0), (
        "a position must see itself: the diagonal of `causal` is True (key <= query, in attnlib/masks.py)"
    )
    for future in range(1, 5):
        changed = k.copy(), v.copy()
        for x in changed:
            x[future:] += 1
        after = attention(q, *changed, mask=causal(5)).out
        np.testing.assert_array_equal(after[:future], before.out[:future])


@pytest.mark.parametrize("make", [np.array, partial(torch.tensor, dtype=torch.float64)], ids=["numpy", "torch"])
def test_extreme_scores_have_their_limits(make):
    rows = [
        ([inf, 1.0, -inf], [1, 0, 0]),
        ([inf, inf, 0.0], [0.5, 0.5, 0]),
        ([-inf, -inf, -inf], [0, 0, 0]),
        ([1e4, -1e4, 1e4], [0.5, 0, 0.5]),
        ([-1e4, -1e4 - 800, -inf], [1, 0, 0]),
        ([1e308, -1e308, 0.0], [1, 0, 0]),
    ]
    with np.errstate(over="ignore"):
        got = masked_softmax(make([scores for scores, _ in rows]))
    np.testing.assert_array_equal(np.asarray(got), [want for _, want in rows])


@pytest.mark.parametrize("weights", [True, False])
def test_an_infinite_score_takes_all_the_weight_on_both_paths(weights):
    q, k, v = torch.tensor([[inf], [1.0]]), torch.tensor([[1.0], [-1.0]]), torch.tensor([[1.0], [2.0]])
    out = attention(q, k, v, weights=weights).out
    assert out[0].item() == 1
    assert 1 < out[1].item() < 1.5


def test_half_precision_scores_do_not_overflow_where_the_scaled_score_fits():
    q = torch.full((1, 64), 60.0, dtype=torch.float16)
    scores = scaled_dot(q, q)
    assert torch.isfinite(scores).all(), "60 · 60 · 64 overflows float16, divided by 8 it fits"


def test_no_keys_give_zeros():
    for make in (np.zeros, torch.zeros):
        out, weights = attention(make((2, 3)), make((0, 3)), make((0, 4)))
        assert out.shape == (2, 4)
        assert weights.shape == (2, 0)
        assert np.all(np.asarray(out) == 0)


def test_inputs_are_never_modified():
    rng = np.random.default_rng(0)
    q, k, v, mask = numbers(rng, 2, 3), numbers(rng, 4, 3), numbers(rng, 4, 2), rng.uniform(size=(2, 4)) < 0.5
    copies = [x.copy() for x in (q, k, v, mask)]
    stored = dot(q, k)
    kept = stored.copy()
    attention(q, k, v, mask=mask)
    attention(q, k, v, mask=mask, score=lambda q, k: stored)
    for x, copy in zip((q, k, v, mask, stored), [*copies, kept], strict=True):
        np.testing.assert_array_equal(x, copy)


def test_attention_is_a_kernel_smoother_and_does_not_mind_the_order_of_the_keys():
    rng = np.random.default_rng(0)
    q, k, v = numbers(rng, 3, 2), numbers(rng, 6, 2), numbers(rng, 6, 2)
    order = rng.permutation(6)
    for score in (scaled_dot, dot, gaussian):
        a, b = attention(q, k, v, score=score), attention(q, k[order], v[order], score=score)
        np.testing.assert_allclose(a.out, b.out, atol=1e-14)
        np.testing.assert_allclose(a.weights[:, order], b.weights, atol=1e-14)


Z = np.zeros
BAD = {
    "q is a list": (dict(q=[[1.0]], k=Z((2, 1)), v=Z((2, 1))), TypeError, r"q must be a NumPy array.*list"),
    "q of integers": (
        dict(q=Z((1, 2), int), k=Z((2, 2)), v=Z((2, 1))),
        TypeError,
        "q must hold floating.*int64",
    ),
    "two dtypes": (
        dict(q=Z((1, 2), "f4"), k=Z((2, 2)), v=Z((2, 1))),
        TypeError,
        "q and k .*float32 and float64",
    ),
    "two libraries": (
        dict(q=Z((1, 2)), k=torch.zeros(2, 2), v=Z((2, 1))),
        TypeError,
        "q and k .*NumPy and torch",
    ),
    "one axis": (
        dict(q=Z(3), k=Z((2, 3)), v=Z((2, 1))),
        ValueError,
        r"q must have shape \(\.\.\., n_q, d\).*\(3,\)",
    ),
    "other d": (dict(q=Z((1, 3)), k=Z((2, 4)), v=Z((2, 1))), ValueError, r"last axis d.*\(1, 3\).*\(2, 4\)"),
    "other n_k": (dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((3, 1))), ValueError, r"same n_k.*\(2, 3\).*\(3, 1\)"),
    "batches": (
        dict(q=Z((2, 1, 3)), k=Z((3, 2, 3)), v=Z((2, 1))),
        ValueError,
        r"leading .*\(2, 1, 3\).*\(3, 2, 3\)",
    ),
    "NaN": (dict(q=Z((1, 3)), k=Z((2, 3)), v=np.full((2, 1), np.nan)), ValueError, "v holds NaN or infinity in 2"),
    "NaN key": (dict(q=Z((1, 1)), k=np.array([[0], [np.nan]]), v=Z((2, 1))), ValueError, "k holds NaN in 1 of 2"),
    "infinite value": (
        dict(q=Z((1, 1)), k=Z((2, 1)), v=np.array([[0], [inf]])),
        ValueError,
        "v holds NaN or infinity in 1 of 2",
    ),
    "no score": (dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), score=None), TypeError, "score must be a function"),
    "a masked array": (
        dict(q=np.ma.array([[1.0]]), k=Z((2, 1)), v=Z((2, 1))),
        TypeError,
        "q must be.*got MaskedArray",
    ),
    "no features": (
        dict(q=Z((1, 0)), k=Z((2, 0)), v=Z((2, 1))),
        ValueError,
        "q must have at least one feature",
    ),
    "mask shape": (
        dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), mask=np.ones((2, 2), bool)),
        ValueError,
        r"mask must broadcast.*\(1, 2\); got \(2, 2\)",
    ),
    "mask batch": (
        dict(q=Z((4, 1, 3)), k=Z((4, 2, 3)), v=Z((4, 2, 1)), mask=np.ones((3, 1, 2), bool)),
        ValueError,
        r"mask must broadcast.*\(4, 1, 2\); got \(3, 1, 2\)",
    ),
    "mask of numbers": (
        dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), mask=np.ones((1, 2))),
        TypeError,
        "mask must be boolean.*float64",
    ),
    "mask a list": (
        dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), mask=[[True, True]]),
        TypeError,
        "mask must be a NumPy",
    ),
    "mask of torch": (
        dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), mask=torch.ones(1, 2, dtype=torch.bool)),
        TypeError,
        "mask must come from the library",
    ),
    "score": (
        dict(q=Z((1, 3)), k=Z((2, 3)), v=Z((2, 1)), score=lambda q, k: Z((2, 1))),
        ValueError,
        r"score must return shape .*\(\.\.\., 1, 2\); got \(2, 1\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name):
    arguments, error, words = BAD[name]
    with pytest.raises(error, match=words):
        attention(**arguments)


@pytest.mark.parametrize("name", ["one axis", "other d", "other n_k", "batches", "NaN", "no features", "mask shape"])
def test_the_fused_path_names_them_too(name):
    arguments, error, words = BAD[name]
    with pytest.raises(error, match=words):
        attention(**{key: torch.tensor(x) for key, x in arguments.items()}, weights=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_infinite_scores_keep_the_dtype(dtype):
    assert masked_softmax(np.array([[inf, 1.0]], dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", [True, False])
def test_scores_that_overflow_share_the_weight(dtype, weights):
    q, k, v = torch.full((1, 64), 150.0), torch.full((2, 64), 150.0), torch.tensor([[1.0], [3.0]])
    out = attention(*(x.to(dtype) for x in (q, k, v)), weights=weights).out
    assert out.dtype == dtype
    assert out.item() == 2


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 1, 3)])
def test_an_infinite_score_on_the_fused_path_keeps_the_shape_and_the_mask(lead):
    q, k, v = torch.full((*lead, 1, 1), inf), torch.tensor([[1.0], [2.0], [3.0]]), torch.eye(3)
    mask = torch.tensor([[True, False, True]])
    out = attention(q, k, v, mask=mask, weights=False).out
    assert torch.equal(out, torch.tensor([0.5, 0, 0.5]).expand(*lead, 1, 3))


@pytest.mark.filterwarnings("error")
def test_legal_extremes_raise_no_warning():
    attention(np.array([[inf]]), np.array([[1.0], [-1.0]]), np.array([[1e308], [1e308]]))
    attention(np.ones((1, 1), np.float16), np.ones((3, 1), np.float16), np.full((3, 1), 3e4, np.float16))


def test_softmax_of_a_vector():
    np.testing.assert_array_equal(masked_softmax(np.zeros(3), np.array([True, False, True])), [0.5, 0, 0.5])
    with pytest.raises(ValueError, match="scores must have at least one axis"):
        masked_softmax(np.array(1.0))
    with pytest.raises(ValueError, match="scores holds NaN in 1 of 2"):
        masked_softmax(np.array([0.0, np.nan]))


@given(arrays(np.float64, (3, 4), elements=st.floats(-50, 50)))
@settings(deadline=None, max_examples=50)
def test_adding_a_number_to_a_row_of_scores_changes_nothing(scores):
    np.testing.assert_allclose(masked_softmax(scores + 7), masked_softmax(scores), atol=1e-12)


def _with_bias():
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2), (3, 4, 6)]]


def test_a_bias_is_added_to_the_scores_in_both_libraries_and_fused_or_not():
    q, k, v, bias = _with_bias()
    mask = np.random.default_rng(1).uniform(size=(2, 1, 4, 6)) < 0.5
    mask[0, 0, 1] = False
    want = masked_softmax(scaled_dot(q, k) + bias, mask) @ v
    np.testing.assert_allclose(attention(q, k, v, bias=bias, mask=mask).out, want)
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v, bias)]
    outs = [attention(*tensors[:3], bias=tensors[3], mask=torch.tensor(mask), weights=w).out for w in (True, False)]
    for out in outs:
        np.testing.assert_allclose(out.detach(), want, atol=1e-12)
    grads = [torch.autograd.grad(out.sin().sum(), tensors) for out in outs]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_dropout_keeps_the_mean_and_leaves_the_weights_that_are_shown():
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4), torch.randn(3, 4), torch.randn(3, 2)
    still = attention(q, k, v)
    for weights in (True, False):
        outs = torch.stack([attention(q, k, v, dropout=0.5, weights=weights).out for _ in range(2000)])
        assert outs.std() > 0.1
        torch.testing.assert_close(outs.mean(0), still.out, atol=0.1, rtol=0)
    assert torch.equal(attention(q, k, v, dropout=0.5).weights, still.weights)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bias": np.zeros((4, 5))}, ValueError, r"bias must broadcast to the scores.*got \(4, 5\)"),
        ({"bias": np.full((4, 6), np.nan)}, ValueError, "bias holds NaN"),
        ({"bias": np.zeros((4, 6), bool)}, TypeError, "bias must hold floating-point numbers"),
        ({"dropout": 0.1}, TypeError, "dropout needs torch tensors"),
        ({"dropout": 1}, ValueError, "dropout must be at least 0 and below 1; got 1"),
        ({"dropout": "0.1"}, TypeError, "dropout must be a number; got str"),
    ],
)
def test_a_bad_bias_or_dropout_is_named(options, error, words):
    with pytest.raises(error, match=words):
        attention(*_with_bias()[:3], **options)


@pytest.mark.parametrize("shape", [(), (6,)])
def test_a_mask_or_a_bias_without_queries_is_one_for_all(shape):
    q, k, v, bias = (torch.tensor(x).reshape(-1, *x.shape[-2:])[0] for x in _with_bias())
    mask = torch.arange(6) < 4 if shape else torch.tensor(True)
    for options in ({"mask": mask}, {"bias": bias[0] if shape else bias[0, 0]}):
        fused = attention(q, k, v, **options, weights=False)
        torch.testing.assert_close(fused.out, attention(q, k, v, **options).out)


@pytest.mark.parametrize(
    ("made", "got"),
    [
        (lambda q, k: torch.zeros(4, 6), "torch of dtype torch.float32"),
        (lambda q, k: np.ones((4, 6), bool), "NumPy of dtype bool"),
        (lambda q, k: np.ones((4, 6), complex), "NumPy of dtype complex128"),
    ],
)
def test_a_score_of_other_numbers_is_named(made, got):
    with pytest.raises(TypeError, match=f"score must return floating-point numbers of NumPy; got {got}"):
        attention(np.zeros((4, 3)), np.zeros((6, 3)), np.zeros((6, 2)), score=made)


@pytest.mark.filterwarnings("ignore:overflow")
def test_minus_infinity_hides_whatever_the_score():
    q, k = np.full((1, 1), 1e200), np.full((2, 1), 1e200)
    out, weights = attention(q, k, np.array([[1.0], [2.0]]), bias=np.array([[-np.inf, 0.0]]))
    assert out.item() == 2
    assert weights.tolist() == [[0.0, 1.0]]


def test_half_precision_does_not_overflow_before_the_division():
    k = torch.zeros(100, 1, dtype=torch.float16)
    v = torch.full((100, 1), 1000.0, dtype=torch.float16)
    assert attention(k[:1], k, v, score=dot, weights=False).out.item() == pytest.approx(1000, rel=1e-2)


def _problem(problem, extra_keys):
    """Queries, keys and values of the drawn problem, with no more queries than keys, for a causal mask."""
    q, k, v, mask = problem
    n_k = k.shape[-2]
    n_q = max(1, min(q.shape[-2], n_k - extra_keys))
    return q[..., :n_q, :], k, v, mask[..., :n_q, :]


@given(problems(), st.integers(0, 2), st.booleans())
@settings(deadline=None, max_examples=60)
def test_causal_is_the_causal_mask_on_every_path(problem, extra_keys, masked):
    q, k, v, mask = _problem(problem, extra_keys)
    triangle = causal(q.shape[-2], k.shape[-2])
    want = attention(q, k, v, mask=triangle & mask if masked else triangle)
    given = {"mask": mask} if masked else {}
    got = attention(q, k, v, causal=True, **given)
    np.testing.assert_array_equal(got.weights, want.weights)
    tensors = [torch.tensor(x) for x in (q, k, v)]
    given = {"mask": torch.tensor(mask)} if masked else {}
    for options in ({"weights": True}, {"weights": False}, {"weights": False, "block": 2}):
        out = attention(*tensors, causal=True, **given, **options).out
        np.testing.assert_allclose(out, np.broadcast_to(want.out, out.shape), atol=1e-12)


@given(problems(), st.integers(1, 7), st.sampled_from([scaled_dot, gaussian]), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=120)
def test_block_by_block_is_all_at_once(problem, block, score, biased, from_torch):
    q, k, v, mask = problem
    mask = mask.copy()
    mask[..., 0, :] = False  # nothing to attend to
    rng = np.random.default_rng(0)
    bias = rng.normal(size=mask.shape[-2:]) if biased else None
    if biased:
        bias[:, -1] = -inf
    options = {"score": score, "mask": mask, "bias": bias}
    want = attention(q, k, v, **options).out
    if from_torch:
        q, k, v = (torch.tensor(x) for x in (q, k, v))
        options |= {"mask": torch.tensor(mask), "bias": None if bias is None else torch.tensor(bias)}
    got = attention(q, k, v, weights=False, block=block, **options)
    assert got.weights is None
    assert isinstance(got.out, type(q))
    np.testing.assert_allclose(got.out, want, atol=1e-12)
    assert np.all(np.asarray(got.out)[..., 0, :] == 0)


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize("make", [np.array, partial(torch.tensor, dtype=torch.float64)], ids=["numpy", "torch"])
def test_infinite_scores_have_their_limits_block_by_block(make, block):
    q, k = make([[inf], [-inf], [1.0], [2.0]]), make([[1.0], [-1.0], [1.0], [-inf], [3.0]])
    v = make(np.eye(5).tolist())
    with np.errstate(invalid="ignore"):
        want = attention(q[:, None], k, v, score=dot).out
        got = attention(q[:, None], k, v, score=dot, weights=False, block=block).out
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), atol=1e-15)
    assert np.asarray(want)[0, 0].tolist() == pytest.approx([1 / 3, 0, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_block_by_block_in_every_precision_with_gradients_and_dropout(dtype):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 8, dtype=torch.float64, requires_grad=True) for n in (60, 90, 90))
    want = attention(q, k, v, causal=True).out
    inputs = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
    out = attention(*inputs, causal=True, weights=False, block=16).out
    assert out.dtype == dtype
    assert (out.double() - want).abs().max() < TOLERANCE[dtype]
    got = torch.autograd.grad(out.double().sin().sum(), inputs)
    for a, b in zip(got, torch.autograd.grad(want.sin().sum(), (q, k, v)), strict=True):
        assert (a.double() - b).abs().max() < 4 * TOLERANCE[dtype]
    drawn = [attention(*inputs, dropout=0.5, weights=False, block=16).out.double() for _ in range(150)]
    assert torch.stack(drawn).std(0).mean() > 0.01
    torch.testing.assert_close(torch.stack(drawn).mean(0), attention(q, k, v).out, atol=0.3, rtol=0)


@pytest.mark.parametrize(("n_q", "n_k"), [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_no_queries_or_no_keys_block_by_block(make, n_q, n_k):
    out = attention(make((2, n_q, 3)), make((n_k, 3)), make((n_k, 4)), weights=False, block=2).out
    assert out.shape == (2, n_q, 4)
    assert np.all(np.asarray(out) == 0)


def test_tiles_that_are_hidden_are_not_looked_at():
    seen = []

    def counted(q, k):
        seen.append((q.shape[-2], k.shape[-2]))
        return scaled_dot(q, k)

    x = np.random.default_rng(0).normal(size=(64, 4))
    attention(x, x, x, score=counted, causal=True, weights=False, block=16)
    assert seen == [(16, 16)] * (1 + 2 + 3 + 4)


def test_memory_of_blocks_does_not_grow_with_the_square():
    import tracemalloc

    x = np.random.default_rng(0).normal(size=(4096, 16)).astype(np.float32)
    peaks = []
    for options in ({}, {"block": 128}):
        tracemalloc.start()
        attention(x, x, x, weights=False, **options)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] > 100 * peaks[1]


@pytest.mark.parametrize("where", [0, 4, 8])
@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("hidden", ["nothing", "causal", "mask", "both", "block", "all"])
def test_a_nan_is_named_wherever_it_stands_and_whatever_hides_it(name, where, hidden):
    inputs = {x: torch.randn(9, 4) for x in "qkv"}
    inputs[name][where, 1] = torch.nan
    mask = torch.ones(9, 9, dtype=torch.bool)
    mask[:, where] = False
    kinds = {"nothing": {}, "causal": {"causal": True}, "mask": {"mask": mask}, "block": {"causal": True, "block": 2}}
    kinds["all"] = {"mask": torch.zeros(9, 9, dtype=torch.bool)}
    options = kinds.get(hidden, {"causal": True, "mask": mask})
    with pytest.raises(ValueError, match=f"{name} holds NaN.* in 1 of 36"):
        attention(**inputs, weights=False, **options)


@pytest.mark.parametrize("lead", [(2, 3), (4, 2, 3), (3,)])
@pytest.mark.parametrize("kind", ["none", "causal", "keys", "rows", "one group", "each head"])
def test_keys_that_serve_a_group_of_heads_are_broadcast(lead, kind):
    torch.manual_seed(0)
    q, (k, v) = torch.randn(*lead, 5, 8), torch.randn(2, *lead[:-1], 1, 5, 8)
    shapes = {"keys": (1, 1, 1, 5), "rows": (5, 1), "one group": (1, lead[-1], 5, 5), "each head": (*lead, 5, 5)}
    mask = torch.rand(shapes[kind]) < 0.6 if kind in shapes else None
    options = {"mask": mask, "causal": kind == "causal"}
    got = attention(q, k, v, weights=False, **options).out
    want = attention(q, k, v, **options).out
    assert got.shape == want.shape
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"causal": np.ones((4, 6), bool)}, TypeError, "causal must be True or False; got ndarray. A mask goes to"),
        ({"causal": 1}, TypeError, "causal must be True or False; got int"),
        ({"block": 0, "weights": False}, ValueError, "block must be at least 1; got 0"),
        ({"block": 2.0, "weights": False}, TypeError, "block must be an integer; got float"),
        ({"block": 2}, ValueError, "weights must be False with block"),
    ],
)
def test_a_bad_causal_or_block_is_named(options, error, words):
    with pytest.raises(error, match=words):
        attention(*_with_bias()[:3], **options)


@pytest.mark.parametrize("options", [{}, {"weights": False}, {"weights": False, "block": 2}])
@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_causal_needs_a_key_for_each_query(make, options):
    with pytest.raises(ValueError, match=r"n_q must not exceed n_k.*3 > 2"):
        attention(make((3, 4)), make((2, 4)), make((2, 4)), causal=True, **options)


@pytest.mark.parametrize("weights", [True, False])
def test_nan_is_named_where_it_is_all_there_is(weights):
    alone = torch.full((1, 1, 1, 4), torch.nan)
    for inputs in ((alone, alone.nan_to_num(), alone.nan_to_num()), (alone.nan_to_num(), alone, alone.nan_to_num())):
        with pytest.raises(ValueError, match="holds NaN in 4 of 4"):
            attention(*inputs, weights=weights)
    with pytest.raises(ValueError, match="k holds NaN"):
        attention(torch.zeros(0, 4), alone[0, 0], torch.zeros(1, 0), weights=weights)


@pytest.mark.parametrize("options", [{}, {"weights": False}, {"weights": False, "block": 2}])
@pytest.mark.parametrize("make", [np.ones, torch.ones])
def test_a_score_that_is_no_number_is_named(make, options):
    x, hidden = make((3, 4)), make((3, 3)) < 0

    def score(q, k):
        scores = q @ k.T
        scores[..., :1, -1] = np.nan
        return scores

    with pytest.raises(ValueError, match="score must return numbers; got NaN for 1 of "):
        attention(x, x, x, score=score, **options)
    assert not attention(x, x, x, score=score, mask=hidden, **options).out.any()


# Where there are no numbers, or more of them than a type can count


def test_shapes_come_out_where_there_are_no_numbers():
    from torch._subclasses.fake_tensor import FakeTensorMode

    from attnlib.nn import EncoderLayer

    def shapes(device):
        with torch.device(device):
            x, layer = torch.zeros(2, 5, 8), EncoderLayer(8, 2, 16)
        outs = [attention(x, x, x), attention(x, x, x, weights=False), attention(x, x, x, weights=False, block=2)]
        return {tuple(found.out.shape) for found in [*outs, layer(x)]}

    assert shapes("meta") == {(2, 5, 8)}
    with FakeTensorMode():
        assert shapes("cpu") == {(2, 5, 8)}


def test_what_is_written_has_a_shape_where_there_are_no_numbers():
    from attnlib.models import GPT, GPTConfig
    from attnlib.nn import Transformer, TransformerConfig

    with torch.device("meta"):
        tokens = torch.zeros(2, 4, dtype=torch.long)
        gpt = GPT(GPTConfig(n_tokens=9, n_max=8, d_model=8, n_heads=2, n_layers=1, pad=0)).eval()
        translator = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2)).eval()
    for model in (gpt, translator):
        assert model.step(tokens[:, -1:], model.prefill(tokens, 4)).shape == (2, 1, 9)


@pytest.mark.parametrize("to", [np.asarray, torch.as_tensor], ids=["NumPy", "torch"])
def test_half_precision_counts_more_keys_than_it_has_numbers(to):
    k, q, v = (to(np.full((n, 2), x, dtype=np.float16)) for n, x in ((65_520, 0), (1, 0), (65_520, 1)))
    for options in ({}, {"weights": False}):
        out = attention(q, k, v, **options).out
        assert out.dtype == v.dtype
        np.testing.assert_allclose(np.asarray(out), 1, rtol=1e-2)


@pytest.mark.parametrize("options", [{}, {"weights": False}, {"weights": False, "block": 2}])
@pytest.mark.parametrize("to", [np.asarray, torch.as_tensor], ids=["NumPy", "torch"])
def test_the_mean_of_the_largest_numbers_is_one_of_them(to, options):
    q, k, v = (to(np.full((n, 1), x, dtype=np.float32)) for n, x in ((1, 0), (5, 0), (5, 3e38)))
    with np.errstate(all="raise"):  # a sum that overflows on the way is nobody's concern
        out = attention(q, k, v, **options).out
    np.testing.assert_allclose(np.asarray(out), 3e38, rtol=1e-6)


def test_numbers_in_another_order_of_bytes_are_numbers():
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_array_equal(attention(*[x.astype(">f8")] * 3).out, attention(x, x, x).out)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_a_nested_tensor_is_refused_with_what_to_do(layout):
    from attnlib import MultiHeadAttention
    from attnlib.models import GPT, GPTConfig
    from attnlib.nn import DecoderLayer, EncoderLayer

    x = torch.nested.nested_tensor([torch.zeros(3, 8), torch.zeros(5, 8)], layout=layout)
    tokens = torch.nested.nested_tensor([torch.tensor([1, 2, 3]), torch.tensor([4])], layout=layout)
    for name, call in {
        "q": lambda: attention(x, x, x),
        "x_q": lambda: MultiHeadAttention(8, 2)(x),
        "x": lambda: EncoderLayer(8, 2, 16)(x),
        "^x": lambda: DecoderLayer(8, 2, 16)(x, x),
        "tokens": lambda: GPT(GPTConfig(n_tokens=9, n_max=9, d_model=8, n_heads=2, n_layers=1))(tokens),
    }.items():
        with pytest.raises(TypeError, match=rf"{name} must be one block of numbers; got a nested tensor\. Fill it up"):
            call()


def test_under_vmap_nothing_is_said_and_the_numbers_are_those_of_a_loop(recwarn):
    from torch.func import functional_call, stack_module_state, vmap

    from attnlib.nn import EncoderLayer

    layers, x = [EncoderLayer(8, 2, 16).eval() for _ in range(3)], torch.randn(2, 5, 8)
    weights, buffers = stack_module_state(layers)
    found = vmap(lambda w, b: functional_call(layers[0], (w, b), (x,)).out)(weights, buffers)
    torch.testing.assert_close(found, torch.stack([layer(x).out for layer in layers]))
    assert [str(one.message) for one in recwarn] == []


def test_heads_name_what_is_no_tensor():
    from attnlib import MultiHeadAttention

    with pytest.raises(TypeError, match=r"x_q must be .*; got NoneType"):
        MultiHeadAttention(8, 2)(None)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("bad", [None, [1.0], np.zeros((2, 3, 8), dtype=np.float32)])
def test_layers_name_what_is_no_tensor(bad, norm_first):
    from attnlib.nn import DecoderLayer, EncoderLayer

    memory, kind = torch.zeros(2, 4, 8), type(bad).__name__
    for call in (EncoderLayer(8, 2, 16, norm_first=norm_first), lambda x: DecoderLayer(8, 2, 16)(x, memory)):
        with pytest.raises(TypeError, match=rf"x must be a torch tensor of shape \(..., n, d_model = 8\); got {kind}"):
            call(bad)
