"""Memory of segments: equal to the paper's formula term by term, and as far as its layers reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlib import masked_softmax, probes
from attnlib.nn import RelativeAttention, SegmentLayer, SegmentStack
from attnlib.positions import sinusoidal


def layer_of(d_head=None, **options):
    torch.manual_seed(0)
    layer = RelativeAttention(12, 3, d_head=d_head, **options).double()
    with torch.no_grad():
        layer.u.normal_()
        layer.v.normal_()
    return layer


def by_formula(layer, x, memory):
    """One sequence, head by head and pair by pair: terms (a) to (d) of section 3.3."""
    context = x if memory is None else np.concatenate([memory, x])
    n, n_k, d = len(x), len(context), layer.d_head
    in_proj, w_r, w_o = (p.weight.detach().numpy().T for p in (layer.in_proj, layer.position_proj, layer.out_proj))
    u, v = layer.u.detach().numpy()[:, 0], layer.v.detach().numpy()[:, 0]
    width, heads, alphas = layer.n_heads * d, [], []
    codes = sinusoidal(n_k, x.shape[1])
    for h in range(layer.n_heads):
        w_q, w_k, w_v = (in_proj[:, part * width + h * d :][:, :d] for part in range(3))
        scores = np.full((n, n_k), -np.inf)
        for i in range(n):
            place = i + n_k - n
            for j in range(place + 1):
                q, k, r = x[i] @ w_q, context[j] @ w_k, codes[place - j] @ w_r[:, h * d : (h + 1) * d]
                scores[i, j] = (q @ k + q @ r + u[h] @ k + v[h] @ r) / np.sqrt(d)
        alphas.append(masked_softmax(scores))
        heads.append(alphas[-1] @ (context @ w_v))
    return np.concatenate(heads, axis=1) @ w_o, np.array(alphas)


@pytest.mark.parametrize("n_memory", [None, 0, 1, 7])
@pytest.mark.parametrize("d_head", [None, 5])
def test_it_is_the_papers_formula(n_memory, d_head):
    layer, rng = layer_of(d_head), np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 12))
    memory = None if n_memory is None else rng.normal(size=(2, n_memory, 12))
    given = None if memory is None else torch.tensor(memory)
    out, weights = layer(torch.tensor(x), given, weights=True)
    fast = layer(torch.tensor(x), given).out
    for b in range(2):
        want, alphas = by_formula(layer, x[b], None if memory is None else memory[b])
        np.testing.assert_allclose(out[b].detach(), want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(fast[b].detach(), want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights[b].detach(), alphas, rtol=0, atol=1e-12)


def test_only_distances_count_so_that_a_memory_need_not_know_where_it_stood():
    layer, x = layer_of(), torch.randn(1, 9, 12, dtype=torch.float64)
    late = layer(x[:, 4:], x[:, :4]).out  # the last five of nine, or the same five with fewer before them
    torch.testing.assert_close(late, layer(x).out[:, 4:], atol=1e-12, rtol=0)
    torch.testing.assert_close(layer(x[:, 6:], x[:, 2:6]).out, layer(x[:, 2:]).out[:, 4:], atol=1e-12, rtol=0)


def test_no_gradient_enters_the_memory_and_all_parameters_get_one():
    layer = SegmentLayer(12, 3, 16).double()
    x, memory = torch.randn(2, 2, 5, 12, dtype=torch.float64).unbind()
    memory.requires_grad_()
    layer(x, memory).out.sin().sum().backward()
    assert memory.grad is None
    norm, mine = layer.self_attention_residual.norm, layer.self_attention_residual.norm.weight.grad
    attended = layer.self_attention(norm(x), norm(memory))  # the memory is a constant, its normalisation is not
    out = layer.self_attention_residual.after(x, attended.out)
    out = layer.feed_forward_residual.after(out, layer.feed_forward(layer.feed_forward_residual.before(out)))
    torch.testing.assert_close(mine, torch.autograd.grad(out.sin().sum(), norm.weight)[0])
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
    stack = SegmentStack(12, 3, 16, n_layers=2, n_memory=5).double()
    assert not any(left.requires_grad for left in stack(x).memory)


@pytest.mark.parametrize("norm_first", [True, False])
def test_with_room_for_all_one_layer_reads_segments_as_it_reads_the_whole(norm_first):
    torch.manual_seed(0)
    stack = SegmentStack(12, 3, 16, n_layers=3, n_memory=20, norm_first=norm_first).double()
    x = torch.randn(2, 20, 12, dtype=torch.float64)
    whole = stack(x).out
    for segment in (1, 4, 7):
        torch.testing.assert_close(stack.read(x, segment), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("n_layers", "n_memory", "segment"), [(1, 3, 3), (2, 3, 3), (3, 3, 3), (2, 2, 4), (2, 6, 3)])
def test_it_reaches_as_many_memories_back_as_it_has_layers(n_layers, n_memory, segment):
    torch.manual_seed(0)
    stack = SegmentStack(8, 2, 16, n_layers=n_layers, n_memory=n_memory).double()
    x = torch.randn(1, 5 * segment, 8, dtype=torch.float64)
    report = probes.causality(lambda x: stack.read(x, segment), x)
    assert report
    reads = np.asarray(report.matrix)
    for t in range(x.shape[1]):
        first = t
        for _ in range(n_layers):  # what stands there read all of its segment up to there, and a memory more
            first = max(first // segment * segment - n_memory, 0)
        if n_memory % segment == 0:
            assert first == max(t // segment * segment - n_layers * n_memory, 0)
        assert reads[t].nonzero()[0].tolist() == list(range(first, t + 1))


def test_without_memory_a_segment_stands_alone():
    stack = SegmentStack(8, 2, 16, n_layers=2, n_memory=0)
    x = torch.randn(1, 6, 8)
    torch.testing.assert_close(stack.read(x, 3)[:, 3:], stack(x[:, 3:]).out)


X = torch.ones(2, 3, 12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: RelativeAttention(9, 3), ValueError, "d_model must be even.*got 9"),
        (lambda: RelativeAttention(12, 5), ValueError, "n_heads must divide d_model = 12"),
        (lambda: RelativeAttention(12, 3, dropout=1), ValueError, "dropout must be at least 0 and below 1"),
        (lambda: RelativeAttention(12, 0), ValueError, "n_heads must be at least 1"),
        (lambda: RelativeAttention(12, 3)(X[..., :4]), ValueError, r"x must have shape \(..., n, d_model = 12\)"),
        (lambda: RelativeAttention(12, 3)(X, X[..., :4]), ValueError, "memory must have shape .* got .2, 3, 4"),
        (lambda: RelativeAttention(12, 3)(X.int()), TypeError, "x must hold floating-point numbers"),
        (lambda: SegmentStack(12, 3, 16, n_layers=0, n_memory=1), ValueError, "n_layers must be at least 1"),
        (lambda: SegmentStack(12, 3, 16, n_layers=1, n_memory=-1), ValueError, "n_memory must not be negative"),
        (lambda: SegmentStack(12, 3, 16, n_layers=2, n_memory=1)(X, (X,)), ValueError, "one tensor for each of 2 la"),
        (lambda: SegmentStack(12, 3, 16, n_layers=2, n_memory=1).read(X, 0), ValueError, "segment must be at least 1"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
