"""Attention as tutorials write it, and models of other libraries, dressed alike."""

from __future__ import annotations

import os
import warnings
from math import log, sqrt

import torch
from torch import Tensor, nn

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here is downloaded: all weights are random


def plain_attention(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Three lines. ``hidden`` is True where a query may not attend."""
    scores = q @ k.transpose(-2, -1) / sqrt(q.shape[-1])
    scores = scores if hidden is None else scores.masked_fill(hidden, -1e9)
    return scores.softmax(dim=-1) @ v


class HandWritten(nn.Module):
    """Multi-head attention around the three lines: four projections, a split, a dropout, a merge."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Attend from ``x`` to itself."""
        batch, n, d = x.shape
        q, k, v = (
            w(x).view(batch, n, self.n_heads, d // self.n_heads).transpose(1, 2)
            for w in (self.w_q, self.w_k, self.w_v)
        )
        scores = q @ k.transpose(-2, -1) / sqrt(q.shape[-1])
        if hidden is not None:
            scores = scores.masked_fill(hidden, -1e9)
        out = self.drop(scores.softmax(dim=-1)) @ v
        return self.w_o(out.transpose(1, 2).contiguous().view(batch, n, d))


def hand_written_like(module: nn.MultiheadAttention) -> HandWritten:
    """The hand-written layer with the weights of torch's."""
    layer = HandWritten(module.embed_dim, module.num_heads)
    with torch.no_grad():
        for mine, w, b in zip(
            (layer.w_q, layer.w_k, layer.w_v),
            module.in_proj_weight.chunk(3),
            module.in_proj_bias.chunk(3),
            strict=True,
        ):
            mine.weight.copy_(w)
            mine.bias.copy_(b)
    layer.w_o.load_state_dict(module.out_proj.state_dict())
    return layer


def gpt2_attention(d_model: int, n_heads: int, *, causal: bool) -> nn.Module:
    """Hugging Face's attention of GPT-2, on torch's fused kernel."""
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    config = GPT2Config(n_embd=d_model, n_head=n_heads, attn_pdrop=0.0, resid_pdrop=0.0)
    config._attn_implementation = "sdpa"
    layer = GPT2Attention(config, layer_idx=0)
    layer.is_causal = causal
    return layer


def x_attention(d_model: int, n_heads: int, *, causal: bool) -> nn.Module:
    """The attention of x-transformers, on torch's fused kernel."""
    from x_transformers.x_transformers import Attention

    return Attention(dim=d_model, heads=n_heads, dim_head=d_model // n_heads, causal=causal, flash=True)


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` between embeddings with sinusoidal positions and a tied output."""

    def __init__(self, n_tokens: int, d_model: int, n_heads: int, d_ff: int, n_max: int = 64) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(n_tokens, d_model), nn.Embedding(n_tokens, d_model)
        with warnings.catch_warnings(action="ignore"):  # of nested tensors, which pre-norm does without
            self.body = nn.Transformer(d_model, n_heads, 2, 2, d_ff, 0.0, batch_first=True, norm_first=True)
        angles = torch.arange(n_max)[:, None] * torch.exp(-torch.arange(0, d_model, 2) * log(1e4) / d_model)
        self.register_buffer("codes", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits for every position of ``target``; 0 is padding."""
        x, y = (
            table(tokens) * table.embedding_dim**0.5 + self.codes[: tokens.shape[1]]
            for table, tokens in ((self.source, source), (self.target, target))
        )
        hidden, future = source == 0, nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        options = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
        out = self.body(x, y, tgt_mask=future, tgt_is_causal=True, **options)
        return out @ self.target.weight.T


def bart(n_tokens: int, d_model: int, n_heads: int, d_ff: int, n_max: int = 512) -> nn.Module:
    """Hugging Face's Bart, of two and two layers, on torch's fused kernel."""
    from transformers import BartConfig, BartForConditionalGeneration

    heads, widths = ({f"{side}_{what}": n for side in ("encoder", "decoder")} for what, n in _sizes(n_heads, d_ff))
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = BartConfig(
        vocab_size=n_tokens, d_model=d_model, encoder_layers=2, decoder_layers=2, max_position_embeddings=n_max,
        dropout=0.0, forced_eos_token_id=None, **heads, **widths, **tokens,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    return BartForConditionalGeneration(config)


def _sizes(n_heads: int, d_ff: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("attention_heads", n_heads), ("ffn_dim", d_ff)
