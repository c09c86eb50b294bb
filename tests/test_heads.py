"""Multi-head attention against torch's, head by head, cached and not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import prune

from attnlib import attention, masks
from attnlib.models import GPT, GPTConfig
from attnlib.nn import (
    EncoderLayer,
    MultiHeadAttention,
    Positional,
    Transformer,
    TransformerConfig,
    merge_heads,
    split_heads,
)
from attnlib.positions import sinusoidal

BOUND = {torch.float64: 1e-12, torch.float32: 1e-6}


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2))
def test_merging_undoes_splitting(n_heads, n, d_head, batch_axes):
    x = np.arange(2.0**batch_axes * n * n_heads * d_head).reshape(*[2] * batch_axes, n, n_heads * d_head)
    heads = split_heads(x, n_heads)
    assert heads.shape == (*[2] * batch_axes, n_heads, n, d_head)
    np.testing.assert_array_equal(merge_heads(heads), x)
    np.testing.assert_array_equal(heads[..., -1, 0, :], x[..., 0, -d_head:])


def _masks(like, n_q, n_k):
    """Name: (our mask, how torch's module takes it)."""
    padding = masks.padding([n_k, n_k - 2, 1], n_k, like=like)
    heads = torch.rand(3, 4, n_q, n_k, generator=torch.Generator().manual_seed(1)) < 0.7
    heads[..., 0] = True
    rows = {"window": masks.window(n_q, n_k, back=1, ahead=1, like=like), "causal": masks.causal(n_q, n_k, like=like)}
    rows["prefix"] = masks.prefix(n_q, n_k, length=2, like=like)
    rows |= {"banded": masks.block_banded(n_k, 2, like=like)[-n_q:]}
    kinds = {name: (mask, {"attn_mask": masks.to_torch(mask)}) for name, mask in rows.items()}
    kinds["padding"] = padding, {"key_padding_mask": masks.to_torch(padding[:, 0])}
    kinds["both"] = masks.combine(rows["causal"], padding), kinds["padding"][1] | kinds["causal"][1]
    kinds["by head"] = heads, {"attn_mask": masks.to_torch(heads.flatten(0, 1))}
    kinds["none"] = None, {}
    return kinds


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("kind", ["none", "window", "causal", "prefix", "banded", "padding", "both", "by head"])
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_it_is_torchs_multi_head_attention(dtype, kind, cross, bias, weights):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, 4, batch_first=True, bias=bias, dtype=dtype)
    if bias:
        for b in (theirs.in_proj_bias, theirs.out_proj.bias):
            nn.init.normal_(b)
    ours = MultiHeadAttention.from_torch(theirs)
    n_q, n_k = (5, 7) if cross else (7, 7)
    x, y = (torch.randn(3, n, 16, dtype=dtype, requires_grad=True) for n in (n_q, n_k))
    mask, options = _masks(x, n_q, n_k)[kind]
    inputs = (x, y) if cross else (x,)
    want, want_weights = theirs(x, inputs[-1], inputs[-1], average_attn_weights=False, **options)
    out, alpha = ours(*inputs, mask=mask, weights=weights)
    torch.testing.assert_close(out, want, atol=BOUND[dtype], rtol=0)
    if weights:
        torch.testing.assert_close(alpha, want_weights, atol=BOUND[dtype], rtol=0)
    mine = torch.autograd.grad(out.square().mean(), [*inputs, ours.in_proj.weight, ours.out_proj.weight])
    other = torch.autograd.grad(want.square().mean(), [*inputs, theirs.in_proj_weight, theirs.out_proj.weight])
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a, b, atol=BOUND[dtype], rtol=0)


def test_the_layer_is_the_equation():
    layer = MultiHeadAttention(12, 3, d_head=5).double()
    x = torch.randn(4, 12, dtype=torch.float64)
    q, k, v = (split_heads(x @ w, 3) for w in (layer.w_q, layer.w_k, layer.w_v))
    torch.testing.assert_close(layer(x).out, merge_heads(attention(q, k, v).out) @ layer.w_o)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_grouped_heads_are_heads_that_share_keys_and_values(n_kv_heads):
    torch.manual_seed(0)
    grouped = MultiHeadAttention(8, 4, n_kv_heads=n_kv_heads).double()
    full = MultiHeadAttention(8, 4).double()
    with torch.no_grad():
        full.out_proj.load_state_dict(grouped.out_proj.state_dict())
        full.w_q[:] = grouped.w_q
        for mine, theirs in ((full.w_k, grouped.w_k), (full.w_v, grouped.w_v)):
            mine[:] = theirs.reshape(8, n_kv_heads, 1, 2).expand(8, n_kv_heads, 4 // n_kv_heads, 2).reshape(8, 8)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    mask = torch.rand(2, 4, 5, 5) < 0.6
    for weights in (False, True):
        a, b = (layer(x, mask=mask, weights=weights) for layer in (grouped, full))
        torch.testing.assert_close(a.out, b.out)
    torch.testing.assert_close(a.weights, b.weights)


def _turn(x, start):
    """A rotation by position, as a stand-in for the rotary one."""
    angle = torch.arange(start, start + x.shape[-2], dtype=x.dtype)[:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


@pytest.mark.parametrize("rotate", [None, _turn])
@pytest.mark.parametrize("pieces", [[1] * 6, [4, 2], [1, 5]])
@torch.no_grad()
def test_a_cache_changes_nothing(pieces, rotate):
    torch.manual_seed(0)
    layer = MultiHeadAttention(8, 4, n_kv_heads=2).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    cache, out = layer.new_cache(3, n_max=9), []
    for piece in x.split(pieces, dim=1):
        n = piece.shape[1]
        mask = masks.causal(n, cache.length + n, like=x)
        out.append(layer(piece, cache=cache, mask=mask, rotate=rotate).out)
    torch.testing.assert_close(torch.cat(out, dim=1), layer(x, mask=masks.causal(6, like=x), rotate=rotate).out)
    assert cache.length == 6


def test_keys_and_values_can_be_remembered():
    layer = MultiHeadAttention(8, 2).double()
    x, source = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(layer(x, cache=layer.prefill(source)).out, layer(x, source).out)


def test_values_may_come_from_elsewhere():
    layer = MultiHeadAttention(8, 2).double()
    q, k, v = (torch.randn(2, n, 8, dtype=torch.float64) for n in (3, 5, 5))
    alpha = layer(q, k, v, weights=True).weights
    torch.testing.assert_close(alpha, layer(q, k, weights=True).weights)
    values = split_heads(v @ layer.w_v, 2)
    torch.testing.assert_close(layer(q, k, v).out, merge_heads(alpha @ values) @ layer.w_o)


def test_a_head_that_is_left_out_contributes_nothing():
    layer, x = MultiHeadAttention(8, 2).double(), torch.randn(5, 8, dtype=torch.float64)
    parts = layer.without(0)(x).out + layer.without(1)(x).out
    torch.testing.assert_close(parts, layer(x).out)
    assert layer.w_o.abs().min() > 0


def test_dropout_is_for_training():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(5, 8)
    for weights in (False, True):
        assert not torch.equal(layer(x, weights=weights).out, layer(x, weights=weights).out)
    torch.testing.assert_close(layer(x, weights=True).weights.sum(-1), torch.ones(2, 5))
    layer.eval()
    assert torch.equal(layer(x).out, layer(x).out)


def test_a_batch_of_any_shape():
    layer, x = MultiHeadAttention(8, 2).double(), torch.randn(2, 3, 5, 8, dtype=torch.float64)
    out = layer(x, mask=masks.causal(5, like=x)).out
    torch.testing.assert_close(out[1, 2], layer(x[1, 2], mask=masks.causal(5, like=x)).out)


def _layer():
    return MultiHeadAttention(8, 2)


def _full_cache(n_max=2, batch=1):
    cache = _layer().new_cache(batch, n_max)
    return partial(_layer(), torch.zeros(1, 3, 8), cache=cache)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: MultiHeadAttention(8, 3), ValueError, "n_heads must divide d_model = 8.*got 3"),
        (lambda: MultiHeadAttention(8, 0), ValueError, "n_heads must be at least 1; got 0"),
        (lambda: MultiHeadAttention(8, 4, n_kv_heads=3), ValueError, "n_kv_heads must divide n_heads = 4; got 3"),
        (lambda: MultiHeadAttention(8, 4, n_kv_heads=0), ValueError, "n_kv_heads must be at least 1"),
        (lambda: MultiHeadAttention(8, 2.0), TypeError, "n_heads must be an integer; got float"),
        (lambda: MultiHeadAttention(8, 2, dropout=1.0), ValueError, "dropout must be at least 0 and below 1; got 1.0"),
        (
            lambda: _layer()(torch.zeros(3, 7)),
            ValueError,
            r"x_q must have shape \(..., n, d_model = 8\); got \(3, 7\)",
        ),
        (lambda: _layer()(torch.zeros(8)), ValueError, r"x_q must have shape.*got \(8,\)"),
        (lambda: _layer()(torch.zeros(3, 8, dtype=torch.float64)), TypeError, "weights and x_q must have one dtype"),
        (lambda: _layer()(np.zeros((3, 8))), TypeError, "weights and x_q must come from one library"),
        (lambda: _layer()(torch.zeros(3, 8), mask=torch.ones(2, 2).bool()), ValueError, "mask must broadcast"),
        (lambda: _layer()(torch.zeros(3, 8), bias=torch.ones(5, 3, 3)), ValueError, "batch|bias must broadcast"),
        (lambda: _layer().without(2), ValueError, "heads must lie between 0 and 1; got 2"),
        (lambda: split_heads(np.zeros((2, 5)), 2), ValueError, "a multiple of n_heads = 2; got"),
        (lambda: merge_heads(np.zeros((2, 5))), ValueError, "x must have shape"),
        (
            lambda: torch.no_grad()(_full_cache())(),
            ValueError,
            "cache must have room: it holds 0 of 2 positions; got 3",
        ),
        (
            lambda: torch.no_grad()(_full_cache(5, 2))(),
            ValueError,
            r"cache was made for .* = \(2, 2, 4\); got \(1, 2, 4\)",
        ),
        (lambda: _full_cache(5)(), RuntimeError, "use it under torch.no_grad"),
        (lambda: MultiHeadAttention.from_torch(nn.Linear(2, 2)), TypeError, "got Linear"),
        (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, kdim=4)), ValueError, "kdim"),
        (
            lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_zero_attn=True)),
            ValueError,
            "add_zero",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_call_that_fails_leaves_the_cache_as_it_was():
    layer, x = _layer(), torch.randn(1, 2, 8)
    cache = layer.new_cache(1, n_max=4)
    with torch.no_grad(), pytest.raises(ValueError, match="mask must broadcast"):
        layer(x, cache=cache, mask=torch.ones(5, 5).bool())
    assert cache.length == 0


def test_a_mask_for_a_batch_of_keys_serves_queries_without_one():
    layer = _layer().double()
    x, source = torch.randn(5, 8, dtype=torch.float64), torch.randn(2, 6, 8, dtype=torch.float64)
    mask = torch.rand(2, 5, 6) < 0.6
    torch.testing.assert_close(layer(x, source, mask=mask).out, layer(x.expand(2, 5, 8), source, mask=mask).out)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_causal_is_the_causal_mask(n_kv_heads, padded, weights):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 4, n_kv_heads=n_kv_heads).double(), torch.randn(3, 6, 8, dtype=torch.float64)
    real = masks.padding([6, 3, 1], like=x) if padded else None
    want = layer(x, mask=masks.combine(masks.causal(6, like=x), real), weights=weights)
    got = layer(x, mask=real, causal=True, weights=weights)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("pieces", [[1] * 6, [4, 2], [1, 5]])
@torch.no_grad()
def test_causal_with_a_cache_counts_from_the_last_key(pieces, n_kv_heads):
    layer, x = MultiHeadAttention(8, 4, n_kv_heads=n_kv_heads).double(), torch.randn(2, 6, 8, dtype=torch.float64)
    cache = layer.new_cache(2, n_max=6)
    out = [layer(piece, cache=cache, causal=True).out for piece in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(out, dim=1), layer(x, causal=True).out)


@pytest.mark.parametrize("axes", ["batch", "heads", "keys"])
def test_grouped_heads_take_biases_and_masks_of_every_shape(axes):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 4, n_kv_heads=2).double(), torch.randn(3, 5, 8, dtype=torch.float64)
    shape = {"batch": (3, 1, 5, 5), "heads": (1, 4, 5, 5), "keys": (3, 1, 5)}[axes]
    options = {"mask": torch.rand(shape) < 0.7}
    if axes != "keys":
        options["bias"] = torch.randn(shape, dtype=torch.float64)
    fused, dense = (layer(x, weights=weights, **options) for weights in (False, True))
    torch.testing.assert_close(fused.out, dense.out)
    full = MultiHeadAttention(8, 4).double()
    with torch.no_grad():
        full.out_proj.load_state_dict(layer.out_proj.state_dict())
        q, k, v = layer.in_proj.weight.split(layer.sizes)
        twice = [w.unflatten(0, (2, 1, 2)).expand(2, 2, 2, 8).flatten(0, 2) for w in (k, v)]
        full.in_proj.weight.copy_(torch.cat([q, *twice]))
    torch.testing.assert_close(full(x, weights=True, **options), dense)


def test_the_table_of_positions_is_computed_once_and_is_no_part_of_the_state():
    places = Positional("sinusoidal", d_model=8, n_heads=2, n_max=4, bidirectional=False)
    x = torch.zeros(5, 8)
    with torch.inference_mode():
        places.add_to(x)
    table = places.table
    torch.testing.assert_close(places.add_to(x, start=2), sinusoidal(5, 8, start=2, like=x))
    assert places.table is table
    assert places.state_dict() == {}
    for like in (x.double(), x, torch.zeros(300, 8)):
        torch.testing.assert_close(places.add_to(like), sinusoidal(len(like), 8, like=like))
    places.add_to(x.requires_grad_()).sin().sum().backward()  # a table made in inference mode would refuse


def test_logits_of_a_step_may_be_changed_and_padding_still_counts():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2)).double()
    whole, cut = torch.tensor([[4, 5, 6]]), torch.tensor([[4, 5, 0]])
    start = torch.tensor([[1]])
    for source in (whole, cut):
        state = model.prefill(source, n_max=4)
        assert (state.mask is None) == (source is whole)
        logits = model.step(start, state)
        torch.testing.assert_close(logits, model(source, start).logits.detach())
        logits[..., 0] = -1.0
        model.step(start, state)


def test_a_pruned_projection_trains():
    layer, x, memory = MultiHeadAttention(8, 2), torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    prune.l1_unstructured(layer.in_proj, "weight", 0.5)
    for _ in range(2):
        (layer(x).out.sum() + layer(x, memory).out.sum()).backward()


class Adapted(torch.nn.Module):
    """As LoRA has it: a layer, and a little beside it."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.beside = layer, torch.nn.Linear(layer.in_features, layer.out_features)

    def forward(self, x):
        return self.layer(x) + self.beside(x)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_a_projection_that_is_more_than_its_weights_is_called(inputs):
    torch.manual_seed(0)
    layer, xs = MultiHeadAttention(8, 4, n_kv_heads=2).double(), torch.randn(3, 2, 5, 8, dtype=torch.float64)[:inputs]
    before = layer(*xs).out
    called = layer.in_proj.register_forward_hook(lambda module, args, out: out)
    torch.testing.assert_close(layer(*xs).out, before)
    called.remove()
    layer.in_proj = Adapted(layer.in_proj).double()
    beside = layer.in_proj.beside
    merged = MultiHeadAttention(8, 4, n_kv_heads=2).double()
    merged.load_state_dict(
        {
            "in_proj.weight": layer.in_proj.layer.weight + beside.weight,
            "in_proj.bias": layer.in_proj.layer.bias + beside.bias,
            **{name: p for name, p in layer.state_dict().items() if name.startswith("out")},
        }
    )
    torch.testing.assert_close(layer(*xs).out, merged(*xs).out)
    cache = layer.prefill(xs[0])
    torch.testing.assert_close(layer(xs[0], cache=cache).out, merged(xs[0], cache=merged.prefill(xs[0])).out)


class Wrapped(nn.Module):
    """What stands in place of a projection, and can be called and no more: as an adapter, or a quantised layer."""

    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, x):
        return self.base(x)


def test_a_projection_need_only_be_called():
    layer, plain = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    plain.load_state_dict(layer.state_dict())
    layer.in_proj, layer.out_proj = Wrapped(layer.in_proj), Wrapped(layer.out_proj)
    x, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    torch.testing.assert_close(layer(x).out, plain(x).out)
    torch.testing.assert_close(layer(x, memory).out, plain(x, memory).out)
    torch.testing.assert_close(layer(x, cache=layer.prefill(memory)).out, plain(x, memory).out)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, causal=True, cache=layer.new_cache(1, 3)).out, plain(x, causal=True).out)


def _hostile():
    x, layer = torch.ones(2, 3, 8), MultiHeadAttention(8, 2)
    return {
        "weights": (lambda: attention(x, x, x, weights="no"), "weights must be True or False; got str"),
        "no weights": (lambda: attention(x, x, x, weights=None), "weights must be True or False; got NoneType"),
        "like": (lambda: masks.causal(3, like="cpu"), "like must be a NumPy array or a torch tensor, .*; got str"),
        "mask": (lambda: layer(x, mask="causal"), "mask must be a NumPy array or a torch tensor, .*; got str"),
        "cache": (lambda: layer(x, cache={}), "cache must be one from new_cache or prefill; got dict"),
        "memory": (lambda: layer.prefill(None), "x_k must be a NumPy array or a torch tensor, .*; got NoneType"),
        "batch": (lambda: layer.new_cache((2, -1), 5), "batch must not be negative; got -1"),
        "heads": (lambda: layer.without("0"), "heads must hold integers; got str"),
        "split": (lambda: split_heads([[1.0, 2.0]], 2), "x must be a NumPy array or a torch tensor, .*; got list"),
        "merge": (lambda: merge_heads(None), "x must be a NumPy array or a torch tensor, .*; got NoneType"),
        "eps": (lambda: EncoderLayer(8, 2, 16, eps=-1.0), "eps must be finite and not negative; got -1.0"),
        "no eps": (lambda: EncoderLayer(8, 2, 16, eps="small"), "eps must be a number; got str"),
        "config": (lambda: GPT(None), "config must be a GPTConfig; got NoneType"),
        "other config": (lambda: Transformer(GPTConfig), "config must be a TransformerConfig; got GPTConfig"),
    }


@pytest.mark.parametrize("name", _hostile())
def test_a_hostile_call_is_told_which_argument_what_came_and_what_was_expected(name):
    call, words = _hostile()[name]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()
