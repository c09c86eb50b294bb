"""The weights of every attention in a model, against what the models say themselves."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from attnlib import plotting
from attnlib.models import BERT, GPT, BERTConfig
from attnlib.probes import attention_maps


def test_ours_and_hugging_faces_maps_are_the_same():
    torch.manual_seed(0)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=24, n_head=3, n_layer=2))
    ours, tokens = GPT.from_huggingface(theirs).train(), torch.randint(50, (2, 7))
    found, wanted = attention_maps(ours, tokens), attention_maps(theirs, tokens)
    assert list(found) == ["layers.0.self_attention", "layers.1.self_attention"]
    assert list(wanted) == ["layer 0", "layer 1"]
    for mine, other in zip(found.values(), wanted.values(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=0)
    assert ours.training
    assert theirs.config._attn_implementation == "sdpa"
    assert not ours.layers[0].self_attention._forward_hooks


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
        **{f"encoder layer {i}": (6, 6) for i in range(2)},
        **{f"decoder layer {i}": (4, 4) for i in range(2)},
        **{f"cross layer {i}": (4, 6) for i in range(2)},
    }
    bert = BertModel(BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=1, num_attention_heads=3))
    assert plotting.attention_sheet([m[0] for m in attention_maps(bert, tokens).values()], title="One layer")


def test_what_has_no_attention_is_named():
    with pytest.raises(ValueError, match="none has run"):
        attention_maps(nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module; got function"):
        attention_maps(lambda x: x, torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"a key for each token; got \(2, 3, 3\) for layer 0"):
        plotting.attention_sheet([torch.ones(2, 3, 3)], title="Wrong", tokens="abcd")
