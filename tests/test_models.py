"""The models of Part IV against Hugging Face's, in memory and from folders."""

import json
import re
import shutil
from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertModel,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.t5.modeling_t5 import T5LayerNorm

import attnlib
from attnlib import decoding
from attnlib.models import BERT, GPT, T5, BERTConfig, GPTConfig, folder_of, tokenizer_of
from attnlib.models.shipping import SHIPPED
from attnlib.pretraining import byte_pairs

SMALL = dict(n_tokens=50, n_max=40, d_model=24, n_heads=3, n_layers=2)


def shaken(model, dtype=torch.float32):
    """Away from where weights begin: biases of zero and norms of one would hide what is exchanged."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.to(dtype).eval()


def gpt2(seed=0, dtype=torch.float32, **options):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=50, n_positions=32, n_embd=24, n_head=3, n_layer=3, bos_token_id=0, eos_token_id=0)
    return shaken(GPT2LMHeadModel(GPT2Config(**sizes | options)), dtype)


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
        (ours.token_embedding.weight.grad, theirs.transformer.wte.weight.grad),
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
    together = model.prefill(source, n_max=4)
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


@pytest.mark.parametrize("pad", [49, 0], ids=["its own", "the end"])
def test_padding_is_that_of_hugging_face_and_is_kept(pad, tmp_path):
    theirs = gpt2(pad_token_id=pad)
    ours, tokens = GPT.from_huggingface(theirs), torch.randint(1, 49, (3, 9))
    real = torch.ones_like(tokens, dtype=torch.bool)
    real[0, :5] = real[1, :2] = False
    tokens[~real] = pad
    wanted = theirs.generate(tokens, attention_mask=real.long(), max_new_tokens=12, do_sample=False)[:, 9:]
    assert torch.equal(decoding.greedy(ours, tokens, 12), wanted)
    ours.save_published(tmp_path)
    assert GPT.from_pretrained(tmp_path).config == ours.config
    assert torch.equal(decoding.greedy(GPT.from_pretrained(tmp_path), tokens, 12), wanted)
    assert GPT2LMHeadModel.from_pretrained(tmp_path).config.pad_token_id == pad


def test_the_end_alone_begins_a_text_though_it_is_the_padding_too():
    theirs = gpt2(pad_token_id=0)
    tokens = torch.zeros(2, 1, dtype=torch.long)
    wanted = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False)[:, 1:]
    assert torch.equal(decoding.greedy(GPT.from_huggingface(theirs), tokens, 8), wanted)


def test_what_cannot_be_published_or_taken_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"activation must be one that GPT-2 has, .*; got swiglu"):
        GPT(GPTConfig(**SMALL, activation="swiglu")).save_published(tmp_path)
    with pytest.raises(ValueError, match=r"dtype must be one of floating-point numbers; got torch\.int64"):
        GPT(GPTConfig(**SMALL)).save_published(tmp_path, dtype=torch.int64)
    several = gpt2()
    several.config.eos_token_id = [0, 7]
    with pytest.raises(ValueError, match=r"eos_token_id must be one token, .*; got \[0, 7\]"):
        GPT.from_huggingface(several)
    several.config.eos_token_id = [7]
    assert GPT.from_huggingface(several).config.end == 7


def test_without_an_end_it_goes_on():
    theirs = gpt2(seed=2, eos_token_id=50256)
    ours, source = GPT.from_huggingface(theirs), torch.randint(1, 50, (2, 5))
    assert ours.config.end is None
    for written in (decoding.greedy(ours, source, 8), decoding.beam(ours, source, 8, width=3).tokens[:, 0]):
        assert written.shape == (2, 8)


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
    again, tokenizer = GPT.from_pretrained(tmp_path), tokenizer_of(tmp_path)
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
    model = GPT.from_pretrained(folder)
    tokens = torch.randint(50, (2, 7))
    torch.testing.assert_close(model(tokens).logits, gpt2()(tokens).logits, atol=1e-5, rtol=0)
    assert not model.training
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json must hold the tokenizer"):
        tokenizer_of(folder)


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
        tokenizer_of(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="must hold all weights"):
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
        model.prefill(torch.zeros(1, 5, dtype=torch.int64), n_max=40)
    with pytest.raises(ValueError, match="mask must have the shape of tokens"):
        model(torch.zeros(1, 4, dtype=torch.int64), mask=torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="pad must be a token below n_tokens = 50; got 50"):
        GPTConfig(**SMALL, pad=50)
    with pytest.raises(ValueError, match="n_heads must divide d_model = 24; got 5"):
        GPTConfig(**SMALL | {"n_heads": 5})


PRECISIONS = [(torch.float32, 1e-5), (torch.float64, 1e-10)]
BERTS = [BertForPreTraining, BertForMaskedLM, BertModel, AlbertForPreTraining, AlbertForMaskedLM, AlbertModel]


def bert(kind, dtype=torch.float32, seed=0, **options):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=50, hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=30)
    return shaken(kind(kind.config_class(**sizes | {"max_position_embeddings": 32} | options)), dtype)


@pytest.mark.parametrize(("dtype", "atol"), PRECISIONS)
@pytest.mark.parametrize("kind", BERTS)
def test_bert_and_albert_equal_hugging_face(kind, dtype, atol):
    theirs = bert(kind, dtype, attn_implementation="eager", layer_norm_eps=1e-6)
    ours, tokens, real = BERT.from_huggingface(theirs), torch.randint(1, 50, (3, 11)), padded(left=False)
    segments = (torch.arange(11) > 5).long().expand(3, -1)
    wanted = theirs(tokens, attention_mask=real.long(), token_type_ids=segments, output_attentions=True)
    read = ours.encode(tokens, mask=real, segments=segments, weights=True)
    found = {}
    if ours.config.masked_head:
        found["prediction_logits" if "prediction_logits" in wanted else "logits"] = ours.mlm_logits(read.out)
    else:
        found["last_hidden_state"] = read.out
    if ours.config.pooler and not ours.config.masked_head:
        found["pooler_output"] = ours.pooled(read.out)
    if ours.config.sentence_head:
        found["sop_logits" if "sop_logits" in wanted else "seq_relationship_logits"] = ours.next_sentence_logits(
            read.out
        )
    for name, value in found.items():
        theirs_value, rows = wanted[name], real if value.ndim == 3 else slice(None)
        torch.testing.assert_close(value[rows], theirs_value[rows], atol=atol, rtol=0, msg=name)
    for alpha, other in zip(read.weights, wanted.attentions, strict=True):
        torch.testing.assert_close(alpha.transpose(1, 2)[real], other.transpose(1, 2)[real], atol=atol, rtol=0)
    name, value = next(iter(found.items()))
    direction = torch.randn_like(value[real])
    (value[real] * direction).sum().backward()
    (wanted[name][real] * direction).sum().backward()
    embeddings = theirs.get_input_embeddings().weight
    torch.testing.assert_close(ours.token_embedding.weight.grad, embeddings.grad, atol=10 * atol, rtol=atol)
    pairs = dict(theirs.named_parameters())
    norm = next(x for name, x in pairs.items() if name.endswith("embeddings.LayerNorm.weight"))
    torch.testing.assert_close(ours.norm.weight.grad, norm.grad, atol=10 * atol, rtol=atol)


def test_the_old_names_of_bert_are_read(tmp_path):
    theirs = bert(BertForPreTraining)
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    spelled = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for old, new in spelled.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    model, tokens = BERT.from_pretrained(tmp_path), torch.randint(50, (2, 7))
    torch.testing.assert_close(model(tokens), theirs(tokens).prediction_logits, atol=1e-5, rtol=0)


def test_a_copy_that_is_none_is_named(tmp_path):
    bert(BertForMaskedLM).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["cls.predictions.decoder.weight"] = torch.zeros(50, 24)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    said = "cls.predictions.decoder.weight must be as embeddings.word_embeddings.weight, of which it is a copy here"
    with pytest.raises(ValueError, match=re.escape(said)):
        BERT.from_pretrained(tmp_path)


def test_a_head_that_was_not_published_is_named():
    model, tokens = BERT.from_huggingface(bert(BertModel)), torch.randint(50, (2, 7))
    with pytest.raises(ValueError, match=r"config\.masked_head must be True"):
        model(tokens)
    with pytest.raises(ValueError, match=r"config\.sentence_head must be True"):
        model.next_sentence_logits(model.encode(tokens).out)
    with pytest.raises(ValueError, match="pooler must be True where sentence_head is"):
        BERTConfig(n_tokens=50, pooler=False)
    with pytest.raises(ValueError, match=r"segments must have the shape of tokens, \(2, 7\); got \(7,\)"):
        model.encode(tokens, segments=torch.zeros(7, dtype=torch.int64))


def t5(dtype=torch.float32, seed=0, **options):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=50, d_model=24, d_kv=6, d_ff=30, num_layers=2, num_heads=3, decoder_start_token_id=0)
    return shaken(T5ForConditionalGeneration(T5Config(**sizes | options)), dtype)


def source_and_target():
    source, target = torch.randint(3, 50, (3, 11)), torch.randint(3, 50, (3, 9))
    source[1, 7:], target[:, 0] = 0, 0
    return source, target


VARIANTS = [
    {},
    {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    {"num_decoder_layers": 1, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20},
]


@pytest.mark.parametrize(("dtype", "atol"), PRECISIONS)
@pytest.mark.parametrize("options", VARIANTS, ids=["first", "1.1", "other distances"])
def test_t5_equals_hugging_face(dtype, atol, options, monkeypatch):
    def in_its_own_precision(self, x):  # theirs squares in float32 always, which leaves seven digits
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    if dtype == torch.float64:
        monkeypatch.setattr(T5LayerNorm, "forward", in_its_own_precision)
    theirs = t5(dtype, **options)
    ours, (source, target) = T5.from_huggingface(theirs), source_and_target()
    wanted = theirs(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
    found = ours(source, target).logits
    torch.testing.assert_close(found, wanted, atol=atol, rtol=atol)
    direction = torch.randn_like(wanted)
    (found * direction).sum().backward()
    (wanted * direction).sum().backward()
    parts = theirs.encoder.block[0].layer[0].SelfAttention
    pairs = [
        (ours.lm_head.weight.grad, theirs.shared.weight.grad),
        (ours.source_embedding.positional.relative.weight.grad, parts.relative_attention_bias.weight.grad),
        (ours.decoder.norm.weight.grad, theirs.decoder.final_layer_norm.weight.grad),
    ]
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, atol=100 * atol, rtol=10 * atol)


def test_t5_writes_as_hugging_face_does():
    theirs = t5(seed=3)
    ours, (source, _) = T5.from_huggingface(theirs), source_and_target()
    options = {"attention_mask": (source != 0).long(), "max_new_tokens": 8, "do_sample": False}
    assert torch.equal(decoding.greedy(ours, source, 8), theirs.generate(source, **options)[:, 1:])
    wanted = theirs.generate(source, num_beams=3, length_penalty=0.0, **options)[:, 1:]
    found = decoding.beam(ours, source, 8, width=3).tokens[:, 0]
    assert torch.equal(found[:, : wanted.shape[1]], wanted[:, : found.shape[1]])


def test_a_folder_of_t5_with_two_tables(tmp_path):
    theirs = t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.pop("scale_decoder_outputs")  # as version 1.1 was published
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    tensors = load_file(tmp_path / "model.safetensors")
    other = torch.randn(50, 24)
    save_file(tensors | {"lm_head.weight": other}, tmp_path / "model.safetensors", {"format": "pt"})
    model, (source, target) = T5.from_pretrained(tmp_path), source_and_target()
    theirs.lm_head.weight = torch.nn.Parameter(other)
    wanted = theirs(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
    torch.testing.assert_close(model(source, target).logits, wanted, atol=1e-4, rtol=1e-5)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5", "vocab_size": 50}))
    with pytest.raises(ValueError, match=r"config\.json must say what 'd_model' is; it does not"):
        T5.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_bit_that_flipped_in_what_is_shipped_is_found(name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(folder_of(name), folder)
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1000] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match=r"model\.safetensors must hold what was written; its checksum is"):
        SHIPPED[name].from_pretrained(folder)


def test_all_weights_that_are_shipped_have_a_checksum():
    files = list((Path(attnlib.__file__).parent / "models" / "shipped").rglob("*.safetensors"))
    assert len(files) >= 4
    for file in files:
        with safetensors.safe_open(file, framework="pt") as opened:
            assert "crc32" in opened.metadata(), file
