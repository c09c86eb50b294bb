"""The models of Part IV against Hugging Face's, in memory and from folders."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from attnlib import decoding
from attnlib.models import GPT, GPTConfig
from attnlib.pretraining import byte_pairs

SMALL = dict(n_tokens=50, n_max=40, d_model=24, n_heads=3, n_layers=2)


def gpt2(seed=0, dtype=torch.float32, **options):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=50, n_positions=32, n_embd=24, n_head=3, n_layer=3, bos_token_id=0, eos_token_id=0)
    theirs = GPT2LMHeadModel(GPT2Config(**sizes | options)).to(dtype).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return theirs


def padded(*, left, n=11):
    real = torch.ones(3, n, dtype=torch.bool)
    real[0, :4] = not left
    real[0, 4:] = left or torch.arange(4, n) < 7
    return real


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("padding", [None, "left", "right"])
@pytest.mark.parametrize("options", [{}, {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-3}])
def test_gpt_equals_hugging_face(dtype, atol, padding, options):
    theirs = gpt2(dtype=dtype, **options)
    ours, tokens = GPT.from_huggingface(theirs), torch.randint(50, (3, 11))
    real = None if padding is None else padded(left=padding == "left")
    wanted = theirs(tokens, attention_mask=None if real is None else real.long()).logits
    found = ours(tokens, mask=real).logits
    real = torch.ones_like(tokens, dtype=torch.bool) if real is None else real
    torch.testing.assert_close(found[real], wanted[real], atol=atol, rtol=0)
    direction = torch.randn_like(wanted[real])
    (found[real] * direction).sum().backward()
    (wanted[real] * direction).sum().backward()
    pairs = [
        (ours.table.weight.grad, theirs.transformer.wte.weight.grad),
        (ours.positional.learned.weight.grad, theirs.transformer.wpe.weight.grad),
        (ours.layers[1].self_attention.in_proj.weight.grad, theirs.transformer.h[1].attn.c_attn.weight.grad.T),
        (ours.layers[2].feed_forward.linear2.weight.grad, theirs.transformer.h[2].mlp.c_proj.weight.grad.T),
    ]
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, atol=10 * atol, rtol=atol)


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "relative", "none"])
def test_a_text_that_begins_later_goes_on_the_same(position):
    torch.manual_seed(0)
    model = GPT(GPTConfig(**SMALL, position=position, pad=49)).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    texts = [torch.randint(49, (n,)) for n in (3, 6, 5)]
    source = torch.full((3, 6), 49)
    for row, text in zip(source, texts, strict=True):
        row[-len(text) :] = text
    together = model.remember(source, n_max=4)
    logits = model.step(source[:, -1:], together)[:, 0]
    for i, text in enumerate(texts):
        torch.testing.assert_close(logits[i], model(text[None]).logits[0, -1], atol=1e-4, rtol=1e-4)
    written = decoding.greedy(model, source, 4)
    for row, text in zip(written, texts, strict=True):
        assert row.tolist() == [*decoding.greedy(model, text[None], 4)[0].tolist(), *[49] * 4][:4]


def test_every_strategy_writes_as_hugging_face_does():
    theirs = gpt2(seed=1)
    ours, source = GPT.from_huggingface(theirs), torch.randint(1, 50, (2, 5))
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(source)}
    wanted = theirs.generate(source, **options)[:, 5:]
    found = decoding.greedy(ours, source, 8)
    assert torch.equal(found, wanted)
    wanted = theirs.generate(source, num_beams=4, length_penalty=0.0, early_stopping=False, **options)[:, 5:]
    found = decoding.beam(ours, source, 8, width=4).tokens[:, 0]
    assert torch.equal(found[:, : wanted.shape[1]], wanted[:, : found.shape[1]])
    drawn = decoding.sample(ours, source, 8, seed=3, top_k=5)
    assert torch.equal(drawn, decoding.sample(ours, source, 8, seed=3, top_k=5))
    assert torch.equal(torch.stack(list(decoding.stream(ours, source, 8)), dim=1), decoding.greedy(ours, source, 8))


def test_a_prompt_is_counted_and_goes_on():
    model = GPT(GPTConfig(**SMALL)).eval()
    source = torch.randint(1, 50, (1, 4))
    whole = decoding.greedy(model, source, 5)
    assert torch.equal(decoding.greedy(model, source, 5, prompt=whole[:, :2]), whole)


def test_it_can_be_read_again_and_by_hugging_face(tmp_path):
    torch.manual_seed(0)
    model, tokens = GPT(GPTConfig(**SMALL)).eval(), torch.randint(50, (2, 7))
    model.save_published(tmp_path)
    byte_pairs(["a b c"], 260).save(str(tmp_path / "tokenizer.json"))
    again, tokenizer = GPT.from_pretrained(tmp_path)
    assert tokenizer.encode("a").tokens == ["a"]
    assert torch.equal(again(tokens).logits, model(tokens).logits)
    with pytest.raises(ValueError, match=r"as gpt2 is published; it differs in positional\.learned\.weight"):
        GPT(GPTConfig(**SMALL, position="rotary")).save_published(tmp_path / "other")
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(theirs(tokens).logits, model(tokens).logits, atol=1e-5, rtol=0)


@pytest.fixture
def folder(tmp_path):
    gpt2().save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_that_hugging_face_wrote_is_read(folder):
    model, tokenizer = GPT.from_pretrained(folder)
    tokens = torch.randint(50, (2, 7))
    torch.testing.assert_close(model(tokens).logits, gpt2()(tokens).logits, atol=1e-5, rtol=0)
    assert tokenizer is None
    assert not model.training


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x.pop("transformer.h.1.ln_2.bias"), "h.1.ln_2.bias is missing"),
        (lambda x: x.update({"transformer.h.3.ln_2.bias": torch.ones(24)}), "h.3.ln_2.bias is not of this model"),
        (
            lambda x: x.update({"transformer.h.0.attn.c_attn.weight": torch.ones(24, 71)}),
            "h.0.attn.c_attn.weight must be (24, 72) in all; got (24, 71)",
        ),
        (lambda x: x.update({"transformer.wte.weight": torch.ones(49, 24)}), "wte.weight must be (50, 24)"),
    ],
)
def test_wrong_tensors_are_named(folder, change, said):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=re.escape(said)):
        GPT.from_pretrained(folder)


def test_wrong_folders_are_named(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(ValueError, match=r"config.json must say that model_type is gpt2, for a GPT; got llama"):
        GPT.from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config | {"scale_attn_by_inverse_layer_idx": True}))
    with pytest.raises(ValueError, match="scale_attn_by_inverse_layer_idx must be False"):
        GPT.from_pretrained(folder)
    (folder / "config.json").write_text("no JSON")
    with pytest.raises(ValueError, match="must be JSON"):
        GPT.from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"must be a tokenizer\.json"):
        GPT.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="must hold the weights"):
        GPT.from_pretrained(folder)
    with pytest.raises(FileNotFoundError):
        GPT.from_pretrained(folder / "none")
    with pytest.raises(TypeError, match="module must be a model of transformers; got Linear"):
        GPT.from_huggingface(torch.nn.Linear(1, 1))


def test_bad_arguments_are_named():
    model = GPT(GPTConfig(**SMALL))
    with pytest.raises(ValueError, match=r"n_max = 40 in all; got 41"):
        model(torch.zeros(1, 41, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"n_max = 40 in all; got 44"):
        model.remember(torch.zeros(1, 5, dtype=torch.int64), n_max=40)
    with pytest.raises(ValueError, match="mask must have the shape of tokens"):
        model(torch.zeros(1, 4, dtype=torch.int64), mask=torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="pad must be a token below n_tokens = 50; got 50"):
        GPTConfig(**SMALL, pad=50)
    with pytest.raises(ValueError, match="n_heads must divide d_model = 24; got 5"):
        GPTConfig(**SMALL | {"n_heads": 5})
