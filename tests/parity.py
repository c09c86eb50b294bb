"""Where the library meets somebody else's: what is compared, with what, and how far apart they may be.

``python tests/parity.py`` (``make parity``) measures the differences and writes ``notebooks/PARITY.md``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import ceil, log10
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
import torch.nn.functional as F
from scipy.spatial.distance import cdist
from scipy.special import softmax

from attnlib import (
    MultiHeadAttention,
    NadarayaWatson,
    attention,
    causal,
    gaussian,
    masked_softmax,
    merge_heads,
    padding,
    scaled_dot,
    split_heads,
)
from attnlib.masks import Band, BigBird, combine, to_torch
from attnlib.models import BERT, CLIP, DETR, GPT, T5, ViT
from attnlib.models.clip import contrastive_loss
from attnlib.models.matching import set_loss
from attnlib.nn import DecoderLayer, EncoderLayer, RelativeBias
from attnlib.positions import alibi, relative_buckets, rotary, sinusoidal

with warnings.catch_warnings(action="ignore"):
    from statsmodels.nonparametric.kernel_regression import KernelReg

PAGE = Path(__file__).parents[1] / "notebooks" / "PARITY.md"


@dataclass(frozen=True)
class Parity:
    """Two computations of the same thing. ``difference()`` is the largest absolute difference between them."""

    ours: str
    theirs: str
    bound: float
    difference: Callable[[], float]


def apart(a: object, b: object) -> float:
    """The largest absolute difference of two arrays or tensors."""
    return float(np.max(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))))


def _fused(dtype: torch.dtype, masked: bool, gradients: bool) -> float:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 16, generator=generator).to(dtype).requires_grad_() for n in (7, 7, 7))
    mask = causal(7, like=q) & padding([7, 4], like=q)[:, None] if masked else None
    ours, theirs = attention(q, k, v, mask=mask).out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if not gradients:
        return apart(ours.detach().float(), theirs.detach().float())
    a, b = (torch.autograd.grad(out.sin().sum(), (q, k, v)) for out in (ours, theirs))
    return max(apart(x, y) for x, y in zip(a, b, strict=True))


def _regression(reg_type: str, d: int) -> float:
    rng = np.random.default_rng(d)
    X, queries, h = rng.normal(size=(150, d)), rng.normal(size=(60, d)), [0.6] * d
    y = np.sin(X).sum(axis=1)
    with warnings.catch_warnings(action="ignore"):
        theirs = KernelReg(y, X, "c" * d, bw=h, reg_type=reg_type).fit(queries)[0]
    ours = NadarayaWatson(bandwidth=h, degree=int(reg_type == "ll")).fit(X, y).predict(queries)
    return apart(ours, theirs)


def _heads(dtype: torch.dtype, gradients: bool) -> float:
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(32, 4, batch_first=True, dtype=dtype)
    ours, x = MultiHeadAttention.from_torch(theirs), torch.randn(3, 9, 32, dtype=dtype)
    mask, real = causal(9, like=x), padding([9, 6, 2], like=x)
    out, weights = ours(x, mask=mask & real, weights=True)
    hidden = {"attn_mask": to_torch(mask), "key_padding_mask": to_torch(real[:, 0])}
    want, want_weights = theirs(x, x, x, average_attn_weights=False, **hidden)
    if not gradients:
        return max(apart(out.detach(), want.detach()), apart(weights.detach(), want_weights.detach()))
    mine = torch.autograd.grad(out.sin().sum(), ours.in_proj.weight)[0]
    return apart(mine, torch.autograd.grad(want.sin().sum(), theirs.in_proj_weight)[0])


def _layers(dtype: torch.dtype, norm_first: bool, decoder: bool) -> float:
    torch.manual_seed(0)
    kind, ours = (
        (torch.nn.TransformerDecoderLayer, DecoderLayer)
        if decoder
        else (torch.nn.TransformerEncoderLayer, EncoderLayer)
    )
    theirs = kind(32, 4, 64, 0.0, batch_first=True, norm_first=norm_first, dtype=dtype)
    x, memory = (torch.randn(3, n, 32, dtype=dtype) for n in (9, 7))
    mask, real = causal(9, like=x), padding([7, 4, 1], like=x)
    hidden = to_torch(real[:, 0])
    if decoder:
        want = theirs(x, memory, tgt_mask=to_torch(mask), memory_key_padding_mask=hidden)
        return apart(ours.from_torch(theirs)(x, memory, mask=mask, memory_mask=real).out.detach(), want.detach())
    want = theirs(memory, src_key_padding_mask=hidden)
    return apart(ours.from_torch(theirs)(memory, mask=real).out.detach(), want.detach())


def _arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 5)), rng.normal(size=(9, 5)), rng.normal(size=(9, 3))


def _scipy_softmax() -> float:
    q, k, _ = _arrays()
    return apart(masked_softmax(scaled_dot(q, k)), softmax(q @ k.T / np.sqrt(5), axis=-1))


def _scipy_distance() -> float:
    q, k, _ = _arrays()
    return apart(gaussian(q, k, bandwidth=0.5), -cdist(q, k, "sqeuclidean") / (2 * 0.5**2))


def _two_libraries() -> float:
    arrays = _arrays()
    return apart(attention(*arrays).out, attention(*map(torch.tensor, arrays)).out)


# The models of `transformers` are imported where they are used: that takes seconds.


def _models(name: str) -> ModuleType:
    os.environ["HF_HUB_OFFLINE"] = "1"
    return import_module(f"transformers.models.{name}.modeling_{name}")


def _sinusoidal() -> float:
    theirs = _models("gptj").create_sinusoidal_positions(50, 16)  # all sines, then all cosines
    return apart(sinusoidal(50, 16), theirs.view(50, 2, 8).mT.flatten(1))


def _rotary_halves(name: str, fraction: float) -> float:
    from transformers import GPTNeoXConfig, LlamaConfig

    model, q = _models(name), torch.randn(2, 3, 20, 16, generator=torch.Generator().manual_seed(0))
    rope = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": fraction}
    config = {"llama": LlamaConfig, "gpt_neox": GPTNeoXConfig}[name](
        hidden_size=48, num_attention_heads=3, rope_parameters=rope
    )
    turn = model.LlamaRotaryEmbedding if name == "llama" else model.GPTNeoXRotaryEmbedding
    cos, sin = turn(config)(q, torch.arange(7, 27)[None])
    ours = rotary(q, start=7, base=500.0, d_rotary=int(16 * fraction))
    return apart(ours, model.apply_rotary_pos_emb(q, q, cos, sin)[0])


def _rotary_pairs() -> float:
    model, q = _models("gptj"), torch.randn(2, 3, 20, 16, generator=torch.Generator().manual_seed(0))
    sin, cos = model.create_sinusoidal_positions(27, 16)[None, 7:].chunk(2, dim=-1)
    theirs = model.apply_rotary_pos_emb(q.transpose(1, 2), sin, cos).transpose(1, 2)
    return apart(rotary(q, start=7, layout="pairs"), theirs)


def _alibi(n_heads: int) -> float:
    theirs = _models("bloom").build_alibi_tensor(torch.ones(1, 9), n_heads, torch.float64)  # slope times key position
    ours = alibi(n_heads, 4, 9)
    return apart(masked_softmax(ours, causal(4, 9)), masked_softmax(theirs.expand(-1, 4, -1).numpy(), causal(4, 9)))


def _buckets(bidirectional: bool) -> float:
    offset = torch.arange(600)[None] - torch.arange(600)[:, None]
    theirs = _models("t5").T5Attention._relative_position_bucket(offset, bidirectional)
    return apart(relative_buckets(600, bidirectional=bidirectional), theirs)


def _relative_bias(bidirectional: bool) -> float:
    from transformers import T5Config

    config = T5Config(d_model=8, d_kv=4, num_heads=3, is_decoder=not bidirectional)
    layer = _models("t5").T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = RelativeBias(3, bidirectional=bidirectional)
    with torch.no_grad():
        ours.weight.copy_(layer.relative_attention_bias.weight.normal_())
        return apart(ours(40, 200), layer.compute_bias(40, 200, past_seen_tokens=160)[0])


def _positions() -> Iterator[Parity]:
    yield Parity("`sinusoidal`", "`transformers`, GPT-J's table, columns reordered", 1e-5, _sinusoidal)
    yield Parity("`rotary`, halves", "`transformers`, Llama", 1e-5, partial(_rotary_halves, "llama", 1.0))
    words = "`rotary`, halves of a quarter of the dimensions"
    yield Parity(words, "`transformers`, GPT-NeoX", 1e-5, partial(_rotary_halves, "gpt_neox", 0.25))
    yield Parity("`rotary`, pairs", "`transformers`, GPT-J", 1e-5, _rotary_pairs)
    for n_heads in (8, 12):
        words = f"`alibi`, {n_heads} heads, weights under a causal mask"
        yield Parity(words, "`transformers`, Bloom", 1e-6, partial(_alibi, n_heads))
    for both, name in [(True, "both directions"), (False, "one direction")]:
        yield Parity(f"`relative_buckets`, {name}", "`transformers`, T5", 0.0, partial(_buckets, both))
        yield Parity(f"`RelativeBias`, {name}", "`transformers`, T5", 0.0, partial(_relative_bias, both))


def _published(ours: type, theirs: str, dtype: torch.dtype, **options: object) -> float:
    """Logits of a small model of theirs and of ours that has taken over its weights, at tokens that are real."""
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, theirs)
    module = kind(kind.config_class(vocab_size=50, **options)).to(dtype).eval()
    tokens, real = torch.randint(1, 50, (3, 11)), torch.ones(3, 11, dtype=torch.bool)
    real[1, 7:] = False
    with torch.no_grad():
        model = ours.from_huggingface(module)
        if ours is T5:
            found = model(tokens.where(real, 0), tokens).logits
            output = module(input_ids=tokens, attention_mask=real.long(), decoder_input_ids=tokens)
            return apart(found, output.logits)
        output, found = module(tokens, attention_mask=real.long()), model(tokens, mask=real)
        return apart(getattr(found, "logits", found)[real], output.logits[real])


def _pictures(part: str, dtype: torch.dtype) -> float:
    """Logits of ViT, or of DETR what ``part`` says; DETR reads the features of their backbone, a small ResNet."""
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig, ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 3, "intermediate_size": 30}
    if part == "vit":
        module = ViTForImageClassification(ViTConfig(**sizes, image_size=12, patch_size=3)).to(dtype).eval()
        pictures = torch.rand(3, 3, 12, 12, dtype=dtype)
        return apart(ViT.from_huggingface(module)(pictures).detach(), module(pictures).logits.detach())
    stages = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "out_features": ["stage2"]}
    sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in (("ffn_dim", 30), ("layers", 2))}
    sides |= {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "d_model": 24, "num_queries": 7}
    config = DetrConfig(backbone_config=ResNetConfig(**stages), use_timm_backbone=False, **sides)
    module, pictures = DetrForObjectDetection(config).to(dtype).eval(), torch.rand(2, 3, 48, 64, dtype=dtype)
    kinds, boxes = torch.tensor([[1, 0, 2], [0, 2, 2]]), torch.rand(2, 3, 4, dtype=dtype) / 2 + 0.2
    labels = [{"class_labels": k[k < 2], "boxes": b[k < 2]} for k, b in zip(kinds, boxes, strict=True)]
    with torch.no_grad():
        want = module(pictures, labels=labels if part == "loss" else None)
        ours, features = DETR.from_huggingface(module), module.model.backbone.model(pictures).feature_maps[-1]
        found = ours(features)
    if part == "loss":
        return apart(set_loss(found.logits, found.boxes, kinds, boxes), want.loss)
    return max(apart(found.logits, want.logits), apart(found.boxes, want.pred_boxes))


def _longformer(chosen: tuple[int, ...]) -> float:
    """Their layer and ours, with their weights; a global position asks, and is asked, by projections of its own."""
    from transformers import LongformerConfig

    torch.manual_seed(0)
    options = {"hidden_size": 24, "num_attention_heads": 3, "attention_window": [8]}
    theirs = _models("longformer").LongformerSelfAttention(LongformerConfig(**options), layer_id=0).eval()
    x, kinds = torch.randn(2, 48, 24), torch.zeros(2, 48)
    kinds[1, 40:], kinds[:, list(chosen)] = -1e4, 1e4  # nobody there, and global
    with torch.no_grad():
        hidden = {"is_index_masked": kinds < 0, "is_index_global_attn": kinds > 0, "is_global_attn": bool(chosen)}
        want = theirs(x, attention_mask=kinds, **hidden)[0]
        q, k, v = (split_heads(f(x), 3) for f in (theirs.query, theirs.key, theirs.value))
        real = padding([48, 40], like=x)[:, None]
        mask = combine(Band(4, 4, global_positions=chosen), real)
        out = attention(q, k, v, mask=mask, weights=False).out
        q, k, v = (split_heads(f(x), 3) for f in (theirs.query_global, theirs.key_global, theirs.value_global))
        out[..., chosen, :] = attention(q[..., chosen, :], k, v, mask=real).out
    there = kinds >= 0
    return apart(merge_heads(out)[there], want[there])


def _big_bird(n_random: int, n_blocks: int) -> float:
    """Their layer and ours, with their weights and our random blocks; theirs are all block 0 outside training."""
    from transformers import BigBirdConfig

    torch.manual_seed(0)
    module, bird = _models("big_bird"), BigBird(4, n_random=n_random, seed=3)
    config = BigBirdConfig(hidden_size=24, num_attention_heads=3, block_size=4, num_random_blocks=n_random)
    theirs, n = module.BigBirdBlockSparseAttention(config).eval(), 4 * n_blocks
    drawn = np.array(bird.random_blocks(n_blocks)[1:-1])
    theirs._bigbird_block_rand_mask_with_head = lambda **_: [drawn] * 3
    x, real = torch.randn(2, n, 24), torch.ones(2, n)
    real[1, n - 6 :] = 0
    with torch.no_grad():
        blocked, band, rows, columns = module.BigBirdModel.create_masks_for_block_sparse_attn(real, 4)
        given = {"from_mask": rows, "to_mask": columns, "from_blocked_mask": blocked, "to_blocked_mask": blocked}
        want = theirs(x, band_mask=band, **given)[0]
        q, k, v = (split_heads(f(x), 3) for f in (theirs.query, theirs.key, theirs.value))
        mask = combine(bird, padding([n, n - 6], like=x)[:, None])
        out = merge_heads(attention(q, k, v, mask=mask, weights=False).out)
    return apart(out[real > 0], want[real > 0])


def _long_sequences() -> Iterator[Parity]:
    for chosen, name in [((), "padded"), ((0, 17), "global positions, padded")]:
        words = f"`attention` within a `Band`, {name}"
        yield Parity(words, "`transformers`, `LongformerSelfAttention`", 1e-5, partial(_longformer, chosen))
    for n_random in (1, 3):
        words = f"`attention` within `BigBird`, {n_random} random, padded"
        yield Parity(words, "`transformers`, `BigBirdBlockSparseAttention`", 1e-5, partial(_big_bird, n_random, 16))


def _models_of_part_four() -> Iterator[Parity]:
    wide = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 3, "intermediate_size": 30}
    t5 = {"d_model": 24, "d_kv": 6, "d_ff": 30, "num_layers": 2, "num_heads": 3}
    rows = [
        ("GPT`", GPT, "GPT2LMHeadModel", {"n_positions": 32, "n_embd": 24, "n_head": 3, "n_layer": 3}),
        ("BERT`", BERT, "BertForMaskedLM", wide),
        ("BERT`, one layer for all", BERT, "AlbertForMaskedLM", wide),
        ("T5`", T5, "T5ForConditionalGeneration", t5),
        ("T5`, gated", T5, "T5ForConditionalGeneration", t5 | {"feed_forward_proj": "gated-gelu"}),
    ]
    for name, ours, theirs, options in rows:
        run = partial(_published, ours, theirs, torch.float32, **options)
        bound = 1e-4 if "gated" in name else 1e-5  # version 1.1 does not scale its logits, which are larger
        yield Parity(f"`{name}, padded", f"`transformers`, `{theirs}`", bound, run)


def _models_of_pictures() -> Iterator[Parity]:
    for dtype, bound in [(torch.float64, 1e-10), (torch.float32, 1e-5)]:
        name, vit = str(dtype).removeprefix("torch."), "`transformers`, `ViTForImageClassification`"
        yield Parity(f"`ViT`, {name}", vit, bound, partial(_pictures, "vit", dtype))
        detr = "`transformers`, `DetrForObjectDetection`"
        yield Parity(f"`DETR` on a backbone's features, {name}", detr, bound, partial(_pictures, "boxes", dtype))
    loss = partial(_pictures, "loss", torch.float32)
    yield Parity("`set_loss` and `match`, float32", "`transformers`, the loss of `DetrForObjectDetection`", 1e-5, loss)


def _clip(gradients: bool) -> float:
    """Scores, and the loss's gradient with respect to the projections, of both encoders with their weights."""
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    layers = {"num_hidden_layers": 2, "intermediate_size": 30, "hidden_size": 24, "num_attention_heads": 3}
    text = layers | {"vocab_size": 50, "eos_token_id": 49, "bos_token_id": 0, "max_position_embeddings": 12}
    pictures = layers | {"image_size": 12, "patch_size": 4}
    theirs = CLIPModel(CLIPConfig(text_config=text, vision_config=pictures, projection_dim=20)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    ours, shown, tokens = CLIP.from_huggingface(theirs), torch.rand(5, 3, 12, 12), torch.randint(1, 49, (5, 9))
    tokens[range(5), [8, 4, 6, 3, 8]] = 49
    scores, want = ours(shown, tokens), theirs(input_ids=tokens, pixel_values=shown, return_loss=True)
    if not gradients:
        return apart(scores.detach(), want.logits_per_image.detach())
    pairs = [(ours.text, theirs.text_projection), (ours.pictures, theirs.visual_projection)]
    mine = torch.autograd.grad(contrastive_loss(scores), [encoder.project.weight for encoder, _ in pairs])
    their = torch.autograd.grad(want.loss, [projection.weight for _, projection in pairs])
    return max(map(apart, mine, their))


def _pictures_and_words() -> Iterator[Parity]:
    for gradients, words in [(False, "scores"), (True, "gradients of the loss")]:
        yield Parity(f"`CLIP`, {words}", "`transformers`, `CLIPModel`", 1e-5, partial(_clip, gradients))


def _all() -> Iterator[Parity]:
    sdpa, kernel_reg = "`torch.nn.functional.scaled_dot_product_attention`", "`statsmodels` `KernelReg`"
    for dtype, bound in [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.float16, 1e-2), (torch.bfloat16, 1e-1)]:
        name = f"`attention`, {str(dtype).removeprefix('torch.')}"
        yield Parity(f"{name}, causal and padded", sdpa, bound, partial(_fused, dtype, True, False))
        if dtype.itemsize > 2:
            yield Parity(f"{name}, gradients", sdpa, 10 * bound, partial(_fused, dtype, True, True))
    yield Parity("`attention`, NumPy", "the same, torch", 1e-12, _two_libraries)
    for dtype, bound in [(torch.float64, 1e-12), (torch.float32, 1e-6)]:
        name = f"`MultiHeadAttention`, {str(dtype).removeprefix('torch.')}"
        module = "`torch.nn.MultiheadAttention`"
        yield Parity(f"{name}, outputs and weights, causal and padded", module, bound, partial(_heads, dtype, False))
        yield Parity(f"{name}, gradients", module, 10 * bound, partial(_heads, dtype, True))
    for decoder, name in [(False, "EncoderLayer"), (True, "DecoderLayer")]:
        for norm_first, order in [(True, "pre-norm"), (False, "post-norm")]:
            for dtype, bound in [(torch.float64, 1e-12), (torch.float32, 1e-5)]:
                words = f"`{name}`, {order}, {str(dtype).removeprefix('torch.')}, masked"
                module = f"`torch.nn.Transformer{name}`"
                yield Parity(words, module, bound, partial(_layers, dtype, norm_first, decoder))
    yield Parity("`masked_softmax`", "`scipy.special.softmax`", 1e-14, _scipy_softmax)
    yield Parity("`gaussian`", "`scipy.spatial.distance.cdist`", 1e-12, _scipy_distance)
    for reg_type, name in [("lc", "local mean"), ("ll", "local line")]:
        for d in (1, 3):
            words = f"`NadarayaWatson`, {name}, {d} {'feature' if d == 1 else 'features'}"
            yield Parity(words, f"{kernel_reg}, `{reg_type}`", 1e-8, partial(_regression, reg_type, d))
    yield from _positions()
    yield from _models_of_part_four()
    yield from _long_sequences()
    yield from _models_of_pictures()
    yield from _pictures_and_words()


ALL = tuple(_all())


def row(parity: Parity) -> str:
    """What the page says of a comparison before its measurement; the test looks for it."""
    return f"| {parity.ours} | {parity.theirs} | {_power_of_ten(parity.bound)} |"


def _power_of_ten(difference: float) -> str:
    return "0" if difference == 0 else f"1e{ceil(log10(difference))}"


def page() -> str:
    """The parity page, with differences measured now and rounded up to a power of ten."""
    head = [
        "# Parity",
        "",
        "What the library computes, beside what others compute. `make parity` measures; the bound is what a test "
        "enforces, and the difference, rounded up to a power of ten, is what one machine saw.",
        "",
        "| here | there | bound | difference |",
        "| --- | --- | ---: | ---: |",
    ]
    return "\n".join([*head, *(f"{row(p)} {_power_of_ten(p.difference())} |" for p in ALL)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name} written")
