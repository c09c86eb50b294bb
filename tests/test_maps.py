"""The weights of every attention in a model, against what the models say themselves."""

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    BloomConfig,
    BloomModel,
    FalconConfig,
    FalconForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LongformerConfig,
    LongformerModel,
    MistralConfig,
    MistralForCausalLM,
    SqueezeBertConfig,
    SqueezeBertModel,
    T5Config,
    T5ForConditionalGeneration,
    XLNetConfig,
    XLNetModel,
)

from attnlib import MultiHeadAttention, plotting
from attnlib.models import BERT, GPT, BERTConfig
from attnlib.probes import attention_maps


def test_ours_and_hugging_faces_maps_are_the_same():
    torch.manual_seed(0)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=24, n_head=3, n_layer=2))
    ours, tokens = GPT.from_huggingface(theirs).train(), torch.randint(50, (2, 7))
    found, wanted = attention_maps(ours, tokens), attention_maps(theirs, tokens)
    assert list(found) == ["layers.0.self_attention", "layers.1.self_attention"]
    assert list(wanted) == ["transformer.h.0.attn", "transformer.h.1.attn"]
    torch.testing.assert_close(wanted.output.logits, theirs.eval()(tokens).logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.output.logits, ours.eval()(tokens).logits, atol=1e-6, rtol=0)
    for mine, other in zip(found.values(), wanted.values(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=0)
    assert theirs.config._attn_implementation == "sdpa"
    assert not ours.layers[0].self_attention._forward_hooks


def test_modes_are_those_of_before():
    model = nn.Sequential(MultiHeadAttention(8, 2).eval(), nn.Identity())
    attention_maps(model, torch.randn(1, 3, 8))
    assert [module.training for module in model.modules()][:2] == [True, False]


def test_a_shared_layer_has_a_map_for_each_time():
    model = BERT(BERTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=3, share_layers=True))
    maps = attention_maps(model, torch.randint(20, (2, 7)))
    assert list(maps) == [f"layers.0.self_attention, time {i}" for i in range(3)]
    assert not torch.equal(*list(maps.values())[:2])


def test_the_maps_of_torch_and_of_encoder_and_decoder():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    (weights,) = attention_maps(layer, torch.randn(3, 5, 8)).values()
    assert weights.shape == (3, 2, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    t5 = T5ForConditionalGeneration(T5Config(vocab_size=50, d_model=24, d_kv=6, d_ff=30, num_layers=2, num_heads=3))
    tokens = torch.randint(2, 50, (1, 6))
    maps = attention_maps(t5, input_ids=tokens, decoder_input_ids=tokens[:, :4])
    assert {name: tuple(m.shape[-2:]) for name, m in maps.items()} == {
        **{f"encoder.block.{i}.layer.0.SelfAttention": (6, 6) for i in range(2)},
        **{f"decoder.block.{i}.layer.0.SelfAttention": (4, 4) for i in range(2)},
        **{f"decoder.block.{i}.layer.1.EncDecAttention": (4, 6) for i in range(2)},
    }
    t5.eval().set_attn_implementation("eager")
    said = t5(input_ids=tokens, decoder_input_ids=tokens[:, :4], output_attentions=True)
    wanted = (*said.encoder_attentions, *said.decoder_attentions, *said.cross_attentions)
    found = [maps[name] for name in sorted(maps, key=lambda name: ("decoder" in name, "EncDec" in name, name))]
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)
    bert = BertModel(BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=1, num_attention_heads=3))
    assert plotting.attention_sheet([m[0] for m in attention_maps(bert, tokens).values()], title="One layer")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("nested", [True, False])
def test_torchs_stack_keeps_its_weights_off_its_fast_road(nested):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()
    x, padded = torch.randn(3, 5, 8), torch.arange(5) >= torch.tensor([5, 3, 2])[:, None]
    maps = attention_maps(model, x, src_key_padding_mask=padded)
    assert list(maps) == ["layers.0.self_attn", "layers.1.self_attn"]
    assert model.use_nested_tensor == nested
    with torch.no_grad():
        said = model(x, src_key_padding_mask=padded)
    torch.testing.assert_close(maps.output[~padded], said[~padded], atol=1e-6, rtol=0)
    first = MultiHeadAttention.from_torch(model.layers[0].self_attn)
    torch.testing.assert_close(
        maps["layers.0.self_attn"], first(x, mask=~padded[:, None, None], weights=True).weights, atol=1e-6, rtol=0
    )
    alone = nn.MultiheadAttention(8, 2)
    (weights,) = attention_maps(alone, x[0], x[0], x[0], None, False).values()  # need_weights=False, by place
    assert weights.shape == (1, 2, 5, 5)


def test_one_attention_of_hugging_face_alone_or_inside_another_model():
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(
                BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=1, num_attention_heads=3)
            )
            self.top = MultiHeadAttention(24, 2)

        def forward(self, tokens):
            return self.top(self.bert(tokens).last_hidden_state).out

    model = Inside()
    maps = attention_maps(model, torch.randint(50, (2, 6)))
    assert {name: m.shape[1] for name, m in maps.items()} == {"bert.encoder.layer.0.attention.self": 3, "top": 2}
    alone, x = model.bert.encoder.layer[0].attention.self.eval(), torch.randn(2, 6, 24)
    (weights,) = attention_maps(alone, x).values()
    values = alone.value(x).view(2, 6, 3, 8).transpose(1, 2)  # (batch, heads, n, d_head)
    torch.testing.assert_close((weights @ values).transpose(1, 2).reshape(2, 6, 24), alone(x)[0], atol=1e-6, rtol=0)


def test_a_model_whose_attention_cannot_be_exchanged_returns_its_weights():
    model = BloomModel(BloomConfig(vocab_size=50, hidden_size=24, n_layer=2, n_head=4)).eval()
    tokens = torch.randint(50, (2, 6))
    maps = attention_maps(model, tokens)
    assert list(maps) == ["layer 0", "layer 1"]
    assert torch.equal(maps["layer 1"], model(tokens, output_attentions=True).attentions[1])


PADDED = {"right": torch.tensor([[1] * 6, [1] * 4 + [0] * 2]), "left": torch.tensor([[1] * 6, [0] * 2 + [1] * 4])}
SMALL = dict(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=4)


def falcon(**options):
    torch.manual_seed(0)
    return FalconForCausalLM(FalconConfig(**SMALL, bos_token_id=1, eos_token_id=2, **options)).eval()


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("padded", PADDED)
def test_falcons_maps_are_those_of_its_own_mask(implementation, padded):
    model, tokens, real = falcon(attn_implementation=implementation), torch.randint(3, 50, (2, 6)), PADDED[padded]
    maps = attention_maps(model, tokens, attention_mask=real)
    with torch.no_grad():
        plain = model(tokens, attention_mask=real)
    torch.testing.assert_close(maps.output.logits[real > 0], plain.logits[real > 0], atol=1e-6, rtol=0)
    seen = torch.ones(6, 6).tril().bool() & (real[:, None, None] > 0)  # (batch, 1, n, n)
    hidden = ~seen & (real[:, None, :, None] > 0)
    assert (maps["layer 0"].masked_select(hidden) == 0).all()
    assert model.config._attn_implementation == implementation


def test_weights_of_another_pass_are_refused():
    tokens = torch.randint(3, 50, (2, 6))
    with pytest.raises(ValueError, match=r"FalconForCausalLM gives no maps: .*is another one, by up to .*'eager'"):
        attention_maps(falcon(alibi=True, attn_implementation="sdpa"), tokens, output_attentions=True)
    eager = falcon(alibi=True, attn_implementation="eager")
    assert attention_maps(eager, tokens, attention_mask=PADDED["right"])["layer 0"].shape == (2, 4, 6, 6)
    cache = eager(tokens, use_cache=True).past_key_values
    maps = attention_maps(eager, tokens[:, :1], past_key_values=cache, output_attentions=False)
    assert maps["layer 0"].shape == (2, 4, 1, 7)  # one pass has written into the cache, not two


@pytest.mark.parametrize("n", [5, 6])
def test_what_is_no_map_is_refused_by_name(n):
    tokens, real = torch.randint(3, 50, (2, n)), PADDED["right"][:, :n]
    raw = SqueezeBertModel(SqueezeBertConfig(**SMALL, embedding_size=16, intermediate_size=16))
    with pytest.raises(ValueError, match=r"no map of layer 0: expected rows of weights .* row at \[0, 0, 0\] sums"):
        attention_maps(raw, tokens, attention_mask=real)
    band = LongformerModel(LongformerConfig(**SMALL, intermediate_size=16, attention_window=[4]))
    with pytest.raises(ValueError, match=rf"no map of layer 0: .*got \(2, 4, {n}, 5\), a part of the keys only"):
        attention_maps(band, tokens, attention_mask=real)


def test_two_streams_are_no_map_of_one():
    model, tokens = XLNetModel(XLNetConfig(vocab_size=50, d_model=16, n_layer=1, n_head=4)), torch.randint(50, (2, 6))
    assert attention_maps(model, tokens)["layer 0"].shape == (2, 4, 6, 6)
    last = torch.eye(6)[None, -1:].expand(2, 1, 6)
    with pytest.raises(ValueError, match=r"no map of layer 0: expected \(batch, heads, n_q, n_k\); got tuple"):
        attention_maps(model, tokens, perm_mask=last.expand(2, 6, 6), target_mapping=last)


def test_a_torch_layer_of_another_kind_must_give_shares_too():
    class Raw(nn.MultiheadAttention):
        def forward(self, query, *args, **options):
            return query, query @ query.mT

    with pytest.raises(ValueError, match="Raw gives no map of attention: expected rows of weights"):
        attention_maps(Raw(8, 2), torch.randn(1, 3, 8), None, None)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_grouped_heads_and_windows_of_others(implementation):
    sizes = dict(vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    model = MistralForCausalLM(MistralConfig(**sizes, num_key_value_heads=2, sliding_window=3)).eval()
    tokens = torch.randint(50, (2, 6))
    model.set_attn_implementation("eager")
    wanted = model(tokens, output_attentions=True).attentions
    model.set_attn_implementation(implementation)
    for mine, theirs in zip(attention_maps(model, tokens).values(), wanted, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)


def test_what_has_no_attention_is_named():
    with pytest.raises(ValueError, match="none has run"):
        attention_maps(nn.Linear(2, 2), torch.ones(1, 2))

    class SomeAttention(nn.Module):
        def forward(self, x):
            return (x @ x.mT).softmax(-1) @ x

    with pytest.raises(ValueError, match="SomeAttention can be probed, but not watched"):
        attention_maps(nn.Sequential(SomeAttention()), torch.ones(1, 2, 2))
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module; got function"):
        attention_maps(lambda x: x, torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"a key for each token; got \(2, 3, 3\) for layer 0"):
        plotting.attention_sheet([torch.ones(2, 3, 3)], title="Wrong", tokens="abcd")
