"""A cut must close what it names and nothing else; a patch must put in what it names and nothing else."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    BloomConfig,
    BloomModel,
    GPT2Config,
    GPT2LMHeadModel,
    RoFormerConfig,
    RoFormerModel,
    T5Config,
    T5ForConditionalGeneration,
)

from attnlib import MultiHeadAttention, causal
from attnlib.interventions import cut, patch
from attnlib.models import GPT
from attnlib.nn import EncoderLayer, Transformer, TransformerConfig
from attnlib.probes import attention_maps


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return MultiHeadAttention(16, 4).double()


@pytest.fixture
def x():
    return torch.randn(3, 6, 16, dtype=torch.float64)


def test_it_equals_a_mask_given_by_hand(layer, x):
    mask = causal(6, like=x).expand(3, 1, 6, 6).repeat(1, 4, 1, 1)
    for b, (q, k) in enumerate([(4, 1), (5, 5), (3, 0)]):
        mask[b, :, q, k] = False
    with cut(layer, [4, 5, 3], torch.tensor([1, 5, 0])):
        got = layer(x, mask=causal(6, like=x), weights=True)
    want = layer(x, mask=mask, weights=True)
    assert torch.equal(got.weights, want.weights)
    assert torch.equal(got.out, want.out)
    assert not torch.equal(layer(x, mask=causal(6, like=x)).out, want.out)  # the hook is gone


def test_heads_and_lists_and_all(layer, x):
    with cut(layer, None, [[0, 2], [], [5]], heads=[1, 3]):
        weights = layer(x, weights=True).weights
    shut = weights == 0
    assert shut[0, [1, 3]][:, :, [0, 2]].all()
    assert shut[2, [1, 3]][:, :, 5].all()
    assert shut.sum() == 2 * 6 * 2 + 2 * 6
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 6, dtype=torch.float64))


def test_cross_attention_and_masks_of_three_axes(layer, x):
    memory, mask = torch.randn(3, 9, 16, dtype=torch.float64), torch.ones(3, 1, 9, dtype=torch.bool)
    mask[0, :, 7:] = False
    with cut(layer, [0, 1, 2], [6, 8, 0]):
        weights = layer(x, memory, mask=mask, weights=True).weights
    assert (weights == 0).sum() == 4 * (6 * 2 + 3)
    assert (weights[0, :, 0, 6] == 0).all()
    assert (weights[2, :, 2, 0] == 0).all()


def test_several_cuts_add_up_and_leave_with_their_with(layer, x):
    before = layer(x).out
    with cut(layer, [0] * 3, [1] * 3), cut(layer, [0] * 3, [2] * 3):
        weights = layer(x, weights=True).weights
        assert (weights[:, :, 0, 1:3] == 0).all()
        assert (weights == 0).sum() == 3 * 4 * 2
    with pytest.raises(RuntimeError, match="stop"), cut(layer, [0] * 3, [1] * 3):
        raise RuntimeError("stop")
    assert torch.equal(layer(x).out, before)


def test_in_a_whole_model_only_what_comes_after_changes():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_source=12, n_target=12, d_model=16)).eval()
    source, target = torch.randint(4, 12, (2, 5)), torch.randint(4, 12, (2, 6))
    with torch.no_grad():
        before = model(source, target).logits
        with cut([layer.cross_attention for layer in model.decoder.layers], [3, 4], [0, 2]):
            change = (model(source, target).logits - before).abs().amax(-1) > 1e-6
    assert change[0].tolist() == [False] * 3 + [True] * 3
    assert change[1].tolist() == [False] * 4 + [True] * 2


def test_a_patch_moves_rows_and_keeps_the_kind_of_output(x):
    layer = EncoderLayer(16, 2, 32).double()
    other, own = layer(torch.randn_like(x)).out, layer(x)
    with patch(layer, [[0, 1], [], [5]], other):
        got = layer(x)
    assert type(got) is type(own)
    same_as_other = (got.out == other).all(-1)
    assert same_as_other.nonzero().tolist() == [[0, 0], [0, 1], [2, 5]]
    assert torch.equal(got.out[~same_as_other], own.out[~same_as_other])


def test_bad_arguments_are_named(layer, x):
    with (
        pytest.raises(TypeError, match=r"attentions must be MultiHeadAttention of attnlib.*; got Linear"),
        cut(nn.Linear(2, 2), [0], [0]),
    ):
        pass
    for wrong in ("x", ["x"], 3, {"x": layer}):
        with pytest.raises(TypeError, match=r"attentions must be .*; got (str|int), which"), cut(wrong, [0], [0]):
            pass
    sizes = dict(vocab_size=50, hidden_size=24, num_hidden_layers=1, n_layer=1, num_attention_heads=4, n_head=4)
    for kind in (BloomModel(BloomConfig(**sizes)), RoFormerModel(RoFormerConfig(**sizes))):
        fixed = next(module for module in kind.modules() if "Attention" in type(module).__name__)
        words = rf"transformers that look up .* in its AttentionInterface.*; got {type(fixed).__name__}, which is none"
        with pytest.raises(TypeError, match=words), cut(fixed, None, [0]):
            pass
    with pytest.raises(ValueError, match="attentions must hold at least one; got none"), cut([], [0], [0]):
        pass
    with pytest.raises(ValueError, match="heads must lie between 0 and 3; got 4"), cut(layer, [0], [0], heads=[4]):
        pass
    with cut(layer, [0, 0], [0, 0]), pytest.raises(ValueError, match="query must hold an entry for each of the 3"):
        layer(x)
    with (
        cut(layer, [0, 0, 6], [0, 0, 0]),
        pytest.raises(ValueError, match="query must hold positions from 0 to 5; got 6"),
    ):
        layer(x)
    with (
        cut(layer, None, [0, 0, 0]),
        pytest.raises(ValueError, match="run the model without a cache"),
        torch.no_grad(),
    ):
        layer(x, cache=layer.new_cache(3, 8))
    plain = nn.Identity()
    with patch(plain, [0, 0, 0], x[:, :2]), pytest.raises(ValueError, match="rows and the output must have one shape"):
        plain(x)


@pytest.mark.parametrize("key", [torch.tensor([[False, True]] * 3), [True] * 3, [[0.5]] * 3])
def test_positions_are_integers(layer, x, key):
    with cut(layer, None, key), pytest.raises(TypeError, match="key must hold integers"):
        layer(x)


def test_inputs_have_one_batch_axis_and_heads_may_come_once(layer, x):
    with cut(layer, None, [0, 0, 0], heads=iter([2])):
        assert (layer(x, weights=True).weights[:, 2, :, 0] == 0).all()
    with cut(layer, None, [0]), pytest.raises(ValueError, match=r"cut needs inputs of shape \(batch, n, d_model\)"):
        layer(x[None])
    plain = nn.Identity()
    with patch(plain, [0] * 6, x[0]), pytest.raises(ValueError, match="rows and the output must have one shape"):
        plain(x[0])


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mask", ["none", "boolean", "added", "of each head", "padding", "added padding", "hint"])
def test_torchs_attention_is_cut_as_ours_is(x, mask, batch_first):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, 4, batch_first=batch_first).double().eval()
    ours, see = MultiHeadAttention.from_torch(theirs), causal(6, like=x)
    real = torch.arange(6) < torch.tensor([6, 5, 4])[:, None]
    added = torch.zeros(6, 6, dtype=x.dtype).masked_fill(~see, -torch.inf)
    options, mine = {
        "none": ({}, None),
        "boolean": ({"attn_mask": ~see}, see),
        "added": ({"attn_mask": added}, see),
        "of each head": ({"attn_mask": ~see.repeat(12, 1, 1)}, see),
        "padding": ({"key_padding_mask": ~real}, real[:, None, None]),
        "added padding": (
            {"key_padding_mask": torch.zeros_like(real, dtype=x.dtype).masked_fill(~real, -torch.inf)},
            real[:, None, None],
        ),
        "hint": ({"attn_mask": ~see, "is_causal": True, "need_weights": False}, see),
    }[mask]
    rows = x if batch_first else x.transpose(0, 1)
    with cut([theirs, ours], [4, [3, 5], 5], [1, 2, [0, 3]], heads=[0, 2]):
        got, weights = theirs(rows, rows, rows, **options)
        want = ours(x, mask=mine, weights=True)
    torch.testing.assert_close(got if batch_first else got.transpose(0, 1), want.out, atol=1e-12, rtol=0)
    assert weights is None or not torch.equal(want.weights, ours(x, mask=mine, weights=True).weights)


def test_torchs_layers_are_cut_whatever_their_road(x):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dtype=x.dtype).eval()
    stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad(), cut([layer.self_attn for layer in stack.layers], None, [0, 0, 0]):
        before, after = stack(x), stack(torch.cat([torch.randn_like(x[:, :1]), x[:, 1:]], 1))
        torch.testing.assert_close(before[:, 1:], after[:, 1:], atol=1e-12, rtol=0)
        assert not torch.equal(before[:, 0], after[:, 0])
    torch.testing.assert_close(stack(x)[:, 1:] == before[:, 1:], torch.zeros(3, 5, 16, dtype=torch.bool))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_torch_answers_with_nan_is_refused(x):
    theirs = nn.MultiheadAttention(16, 4, batch_first=True).double()
    words = "cut leaves query 2 of sequence 1 nothing to read, for which torch's MultiheadAttention gives NaN"
    with cut(theirs, [1, 2, 1], [[0], [0, 1, 2], [0]]), pytest.raises(ValueError, match=words):
        theirs(x, x, x, attn_mask=~causal(6, like=x))
    nested = torch.nested.nested_tensor([x[0], x[1, :3]])
    with cut(theirs, None, [0, 0]), pytest.raises(ValueError, match="enable_nested_tensor=False"):
        theirs.eval()(nested, nested, nested)


def hugging_faces(kind, implementation):
    torch.manual_seed(0)
    if kind == "bert":
        sizes = dict(vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=30)
        model = BertModel(BertConfig(**sizes), add_pooling_layer=False)
        attentions = [layer.attention.self for layer in model.encoder.layer]
    elif kind == "gpt":
        sizes = dict(vocab_size=50, n_positions=32, n_embd=24, n_head=3, n_layer=2)
        model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None))
        attentions = [block.attn for block in model.transformer.h]
    else:
        model = T5ForConditionalGeneration(
            T5Config(vocab_size=50, d_model=24, d_kv=6, d_ff=30, num_layers=2, num_heads=3, decoder_start_token_id=0)
        ).get_encoder()
        attentions = [block.layer[0].SelfAttention for block in model.block]
    model.set_attn_implementation(implementation)
    return model.eval(), attentions


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["bert", "gpt", "t5"])
@pytest.mark.parametrize("padded", [False, True])
def test_the_attentions_of_hugging_face_are_cut(kind, implementation, padded):
    model, attentions = hugging_faces(kind, implementation)
    tokens = torch.randint(50, (2, 6))
    real = torch.arange(6) < torch.tensor([6, 4])[:, None]
    options = {"attention_mask": real.long()} if padded else {}

    def answer(tokens):
        with torch.no_grad():
            return model(tokens, **options)[0]

    before = answer(tokens)
    with cut(attentions, None, [2, 2]):
        other = tokens.clone()
        other[:, 2] = (other[:, 2] + 1) % 50
        change = (answer(tokens) - answer(other)).abs().amax(-1) > 1e-6
        maps = attention_maps(model, tokens, **options)
    assert change.nonzero().tolist() == [[0, 2], [1, 2]]
    assert len(maps) == 2
    for weights in maps.values():
        assert (weights[..., 2] == 0).all()
        assert not padded or (weights[1, :, 3:, 4:] < 1e-6).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 6))
    with cut(attentions[0], [1, 1], [[0, 1], []], heads=[2]):
        weights = next(iter(attention_maps(model, tokens, **options).values()))
    assert (weights[0, 2, 1, :2] == 0).all()
    assert (weights[1] > 0).sum() == (attention_maps(model, tokens, **options)[next(iter(maps))][1] > 0).sum()
    assert torch.equal(answer(tokens), before)  # every configuration is back
    assert all(attention.config._attn_implementation == implementation for attention in attentions)


def test_a_cut_in_hugging_faces_gpt_is_that_in_ours():
    theirs, attentions = hugging_faces("gpt", "sdpa")
    ours, tokens = GPT.from_huggingface(theirs).eval(), torch.randint(50, (2, 6))
    places = dict(query=[[3, 5], [0]], key=[[0, 1, 2], [0]])  # query 0 of the second sequence has nothing left
    with torch.no_grad(), cut(attentions, **places), cut([layer.self_attention for layer in ours.layers], **places):
        torch.testing.assert_close(theirs(tokens).logits, ours(tokens).logits, atol=1e-5, rtol=0)
    with cut(attentions, **places):
        theirs(tokens).logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in theirs.parameters())
    cache = theirs(tokens, use_cache=True).past_key_values
    with cut(attentions, None, [0, 0]), pytest.raises(ValueError, match="run the model without a cache"):
        theirs(tokens[:, :1], past_key_values=cache)
    with cut(attentions, None, [0, 0]):
        copy = deepcopy(theirs)
    torch.testing.assert_close(copy(tokens).logits, theirs(tokens).logits, atol=1e-5, rtol=0)
    with pytest.raises(TypeError, match="got GPT2Block"), cut(theirs.transformer.h[0], None, [0, 0]):
        pass
