"""The Transformer and its layers against torch's and Hugging Face's, and against itself step by step."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

from attnlib import probes
from attnlib.decoding import greedy
from attnlib.masks import causal, padding, to_torch
from attnlib.nn import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Residual,
    Transformer,
    TransformerConfig,
)
from attnlib.nn.feed_forward import ACTIVATIONS

BOUND = {torch.float64: 1e-12, torch.float32: 1e-6}
MASKS = ["none", "causal", "padding", "both"]


def _masks(kind, x, lengths=(6, 4, 1)):
    """Ours, and the options that say the same to torch's layers."""
    mask = causal(x.shape[1], like=x) if kind in ("causal", "both") else None
    real = padding(list(lengths), x.shape[1], like=x) if kind in ("padding", "both") else None
    both = mask if real is None else real if mask is None else mask & real
    return both, None if mask is None else to_torch(mask), None if real is None else to_torch(real[:, 0])


def _agree(ours, theirs, out, want, inputs, dtype):
    torch.testing.assert_close(out, want, atol=BOUND[dtype], rtol=0)
    mine, other = (torch.autograd.grad(y.square().mean(), inputs, retain_graph=True) for y in (out, want))
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a, b, atol=BOUND[dtype], rtol=0)
    mine, other = (torch.autograd.grad(y.square().mean(), w) for y, w in ((out, ours), (want, theirs)))
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a, b, atol=BOUND[dtype], rtol=0)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_encoder_layer_is_torchs(dtype, kind, norm_first, activation):
    torch.manual_seed(0)
    options = {"dropout": 0.0, "batch_first": True, "dtype": dtype}
    theirs = nn.TransformerEncoderLayer(16, 4, 24, norm_first=norm_first, activation=activation, **options)
    ours, x = EncoderLayer.from_torch(theirs), torch.randn(3, 6, 16, dtype=dtype, requires_grad=True)
    mask, src_mask, keys = _masks(kind, x)
    out, want = ours(x, mask=mask).out, theirs(x, src_mask=src_mask, src_key_padding_mask=keys)
    weights = [
        ours.self_attention.in_proj.weight,
        ours.feed_forward.linear1.weight,
        ours.self_attention_residual.norm.weight,
    ]
    _agree(
        weights, [theirs.self_attn.in_proj_weight, theirs.linear1.weight, theirs.norm1.weight], out, want, [x], dtype
    )


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_decoder_layer_is_torchs(dtype, kind, norm_first):
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(16, 4, 24, 0.0, norm_first=norm_first, batch_first=True, dtype=dtype)
    ours = DecoderLayer.from_torch(theirs)
    x, memory = (torch.randn(3, n, 16, dtype=dtype, requires_grad=True) for n in (6, 5))
    mask, tgt_mask, keys = _masks(kind, x)
    seen, _, hidden = _masks("padding", memory, (5, 2, 3))
    out = ours(x, memory, mask=mask, memory_mask=seen).out
    options = {"tgt_key_padding_mask": keys, "memory_key_padding_mask": hidden}
    want = theirs(x, memory, tgt_mask=tgt_mask, **options)
    weights = [ours.cross_attention.in_proj.weight, ours.feed_forward.linear2.weight]
    _agree(weights, [theirs.multihead_attn.in_proj_weight, theirs.linear2.weight], out, want, [x, memory], dtype)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_stacks_are_torchs_transformer(dtype, norm_first):
    torch.manual_seed(0)
    theirs = nn.Transformer(16, 4, 2, 2, 24, 0.0, norm_first=norm_first, batch_first=True, dtype=dtype)
    encoder, decoder = Encoder.from_torch(theirs.encoder), Decoder.from_torch(theirs.decoder)
    source, target = (torch.randn(3, n, 16, dtype=dtype, requires_grad=True) for n in (5, 6))
    seen, _, hidden = _masks("padding", source, (5, 2, 3))
    mask, tgt_mask, _ = _masks("causal", target)
    options = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden, "tgt_mask": tgt_mask}
    want = theirs(source, target, **options)
    out = decoder(target, encoder(source, mask=seen)[0], mask=mask, memory_mask=seen)[0]
    weights = [encoder.layers[0].self_attention.in_proj.weight, decoder.layers[1].feed_forward.linear1.weight]
    others = [theirs.encoder.layers[0].self_attn.in_proj_weight, theirs.decoder.layers[1].linear1.weight]
    _agree(weights, others, out, want, [source, target], dtype)


def _bart():
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers = pytest.importorskip("transformers", reason="pip install transformers")
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes |= {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 20}
    tokens = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.BartConfig(vocab_size=30, dropout=0.0, forced_eos_token_id=None, **sizes, **tokens)
    torch.manual_seed(0)
    bart = transformers.BartForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in bart.parameters():  # from random weights as small as theirs nothing can be told
            parameter.add_(0.2 * torch.randn_like(parameter))
    return bart


def _attention_from_bart(mine, theirs):
    names = ("q_proj", "k_proj", "v_proj")
    mine.in_proj.weight.copy_(torch.cat([getattr(theirs, name).weight for name in names]))
    mine.in_proj.bias.copy_(torch.cat([getattr(theirs, name).bias for name in names]))
    mine.out_proj.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def _from_bart(bart):
    options = {"tie": "all", "position": "learned", "n_max": 20, "norm_first": False, "activation": "gelu"}
    options |= {"scale_embeddings": False, "norm_embeddings": True, "pad": 1, "start": 2, "end": 2}
    ours = Transformer(TransformerConfig(n_source=30, n_target=30, d_model=16, d_ff=32, **options)).eval()
    ours.target_embedding.token_embedding.weight.copy_(bart.model.shared.weight)
    for mine, theirs in ((ours.source_embedding, bart.model.encoder), (ours.target_embedding, bart.model.decoder)):
        mine.positional.learned.weight.copy_(theirs.embed_positions.weight[2:])  # Bart leaves two rows unused
        mine.norm.load_state_dict(theirs.layernorm_embedding.state_dict())
    stacks = (ours.encoder, bart.model.encoder), (ours.decoder, bart.model.decoder)
    for mine, theirs in ((a, b) for one, two in stacks for a, b in zip(one.layers, two.layers, strict=True)):
        pairs = [
            (mine.self_attention_residual.norm, theirs.self_attn_layer_norm),
            (mine.feed_forward_residual.norm, theirs.final_layer_norm),
        ]
        pairs += [(mine.feed_forward.linear1, theirs.fc1), (mine.feed_forward.linear2, theirs.fc2)]
        _attention_from_bart(mine.self_attention, theirs.self_attn)
        if isinstance(mine, DecoderLayer):
            _attention_from_bart(mine.cross_attention, theirs.encoder_attn)
            pairs += [(mine.cross_attention_residual.norm, theirs.encoder_attn_layer_norm)]
        for a, b in pairs:
            a.load_state_dict(b.state_dict())
    return ours


def test_it_is_hugging_faces_bart():
    bart = _bart()
    ours = _from_bart(bart)
    source, target = torch.randint(3, 30, (3, 7)), torch.randint(3, 30, (3, 6))
    source[1, 5:], source[2, 2:] = 1, 1
    with torch.no_grad():
        want = bart(input_ids=source, attention_mask=(source != 1).long(), decoder_input_ids=target).logits
        torch.testing.assert_close(ours(source, target).logits, want, atol=1e-5, rtol=0)


POSITIONS = ["none", "sinusoidal", "learned", "relative", "alibi", "rotary"]


def _model(**options):
    torch.manual_seed(0)
    return Transformer(TransformerConfig(n_source=20, n_target=25, d_model=16, **options)).double().eval()


def _tokens():
    source, target = torch.randint(4, 20, (3, 7)), torch.randint(4, 25, (3, 6))
    source[1, 5:], source[2, 1:] = 0, 0
    return source, target


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(
    "options", [{}, {"norm": "rms", "activation": "swiglu", "n_kv_heads": 2, "norm_first": False}]
)
def test_step_by_step_is_all_at_once(position, options):
    model, (source, target) = _model(position=position, n_max=8, **options), _tokens()
    state, pieces = model.prefill(source, n_max=6), target.split([1, 3, 1, 1], dim=1)
    logits = torch.cat([model.step(piece, state) for piece in pieces], dim=1)
    torch.testing.assert_close(logits, model(source, target).logits)


@pytest.mark.parametrize("position", POSITIONS)
def test_it_behaves(position):
    model, (source, target) = _model(position=position), _tokens()
    assert probes.causality(lambda y: model(source, y).logits, target, n_tokens=25)
    assert probes.batch_independence(lambda x: model(x, x.clamp(max=19)).logits, source.clamp(min=1), n_tokens=20)
    alone = model(source[2:, :1], target[2:]).logits
    torch.testing.assert_close(model(source, target).logits[2:], alone)


def test_every_parameter_is_trained():
    for position in POSITIONS:
        model, (source, target) = _model(position=position, tie="none"), _tokens()
        model(source, target).logits.sin().sum().backward()
        idle = [name for name, p in model.named_parameters() if p.grad is None]
        assert idle == []


def test_tied_tables_are_one():
    model = _model(tie="output")
    assert model.lm_head.weight is model.target_embedding.token_embedding.weight
    one = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2, tie="all"))
    assert (
        one.source_embedding.token_embedding.weight
        is one.target_embedding.token_embedding.weight
        is one.lm_head.weight
    )


def test_weights_on_request():
    source, target = _tokens()
    said = _model()(source, target, weights=True)
    assert [w.shape for w in said.cross] == [(3, 4, 6, 7)] * 2
    for w in (*said.encoder, *said.decoder, *said.cross):
        torch.testing.assert_close(w.sum(-1), torch.ones(w.shape[:-1], dtype=w.dtype))
    assert said.cross[0][2, :, :, 1:].abs().max() == 0


def test_geglu_and_the_approximate_gelu_are_their_equations():
    feed, x = FeedForward(4, 6, activation="geglu", bias=False).double(), torch.randn(5, 4, dtype=torch.float64)
    gate, hidden = (x @ feed.linear1.weight.T).chunk(2, dim=-1)
    curve = gate * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3))) / 2
    torch.testing.assert_close(feed(x), (curve * hidden) @ feed.linear2.weight.T)
    torch.testing.assert_close(ACTIVATIONS["gelu_tanh"](gate), curve)


def test_swiglu_is_its_equation():
    feed, x = FeedForward(4, 6, activation="swiglu", bias=False).double(), torch.randn(5, 4, dtype=torch.float64)
    w1, w3 = feed.linear1.weight.T.chunk(2, dim=1)
    torch.testing.assert_close(feed(x), (torch.nn.functional.silu(x @ w1) * (x @ w3)) @ feed.linear2.weight.T)
    assert set(ACTIVATIONS) == {"relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "swiglu", "geglu"}


@pytest.mark.parametrize("own", [None, 0.0, 0.2])
@pytest.mark.parametrize("name", ["attention_dropout", "activation_dropout"])
def test_weights_and_hidden_layers_may_have_a_dropout_of_their_own(name, own):
    parts = list(Transformer(_config(dropout=0.3, **{name: own})).modules())
    shares = {
        "attention_dropout": {part.dropout for part in parts if isinstance(part, MultiHeadAttention)},
        "activation_dropout": {part.drop.p for part in parts if isinstance(part, FeedForward)},
        "dropout": {part.drop.p for part in parts if isinstance(part, Residual)},
    }
    assert shares == {key: {0.3} for key in shares} | {name: {0.3 if own is None else own}}


def _config(**options):
    return TransformerConfig(**({"n_source": 9, "n_target": 9, "d_model": 8, "n_heads": 2} | options))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: _config(n_heads=3), ValueError, "n_heads must divide d_model = 8; got 3"),
        (lambda: _config(d_model=0), ValueError, "d_model must be at least 1; got 0"),
        (lambda: _config(position="rope"), ValueError, "position must be one of 'none', 'sinusoidal'.*got 'rope'"),
        (lambda: _config(norm="batch"), ValueError, "norm must be one of 'layer', 'rms'; got 'batch'"),
        (lambda: _config(tie="all", n_source=8), ValueError, 'tie="all" needs one vocabulary; got 8 and 9'),
        (lambda: _config(n_target=2), ValueError, "end must be a token below n_target = 2; got 2"),
        (lambda: _config(pad=0.5), TypeError, "pad must be an integer; got float"),
        (lambda: _config(bias="False"), TypeError, "bias must be True or False; got 'False'"),
        (lambda: _config(d_model=None), TypeError, "d_model must be an integer; got NoneType"),
        (
            lambda: _config(attention_dropout=1.0),
            ValueError,
            "attention_dropout must be at least 0 and below 1; got 1",
        ),
        (
            lambda: _config(activation_dropout="0.1"),
            TypeError,
            "activation_dropout must be a number; got str",
        ),
        (lambda: EncoderLayer(8, 2, 16, attention_dropout=-1), ValueError, "attention_dropout must be at least 0"),
        (lambda: EncoderLayer(8, 2, 16)(torch.ones(3, 7)), ValueError, r"x must have shape \(..., n, d_model = 8\)"),
        (lambda: FeedForward(8, 16)(torch.ones(3, 7)), ValueError, r"x must have shape \(..., n, d_model = 8\)"),
        (lambda: FeedForward(8, 16)(None), TypeError, "x must be a torch tensor of shape.*got NoneType"),
        (lambda: FeedForward(4, 8, activation="tanh"), ValueError, "activation must be one of 'relu'"),
        (lambda: Residual(4, norm="group"), ValueError, "norm must be one of"),
        (lambda: EncoderLayer.from_torch(nn.Linear(2, 2)), TypeError, "torch.nn.TransformerEncoderLayer; got Linear"),
        (lambda: Encoder.from_torch(nn.Linear(2, 2)), TypeError, "torch.nn.TransformerEncoder; got Linear"),
        (lambda: _model()(*(x.float() for x in _tokens())), TypeError, "source must hold integers"),
        (lambda: _model()(_tokens()[0] + 20, _tokens()[1]), ValueError, "source must hold tokens from 0 to 19; got"),
        (
            lambda: _model()(_tokens()[0][:0], _tokens()[1]),
            ValueError,
            r"source must have shape \(batch, n\).*\(0, 7\)",
        ),
        (lambda: _model()(_tokens()[0][:2], _tokens()[1]), ValueError, "one batch; got"),
        (lambda: _model(position="learned", n_max=5)(*_tokens()), ValueError, "must not exceed n_max = 5"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_decoder_layer_needs_a_memory():
    layer, x = DecoderLayer(8, 2, 16), torch.randn(1, 3, 8)
    with pytest.raises(ValueError, match="memory must be given, or caches in its place; got neither"):
        layer(x)
    with pytest.raises(ValueError, match="got both"):
        layer(x, x, caches=layer.prefill(x, 4))


def test_it_writes_what_bart_writes():
    bart = _bart()
    ours, source = _from_bart(bart), torch.randint(3, 30, (5, 7))
    source[1, 5:] = 1
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": 12, "min_length": 0, "no_repeat_ngram_size": 0}
    want = bart.generate(input_ids=source, attention_mask=(source != 1).long(), **options)[:, 1:]
    assert torch.equal(greedy(ours, source, 12), want)
