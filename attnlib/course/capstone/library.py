"""The same model from the library's layers, to be held against an assembled one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnlib.data.text import PAD
from attnlib.nn.heads import MultiHeadAttention
from attnlib.nn.layers import DecoderLayer, EncoderLayer
from attnlib.nn.tokens import shift_right
from attnlib.positions import sinusoidal
from attnlib.training.label_smoothing import smoothed_cross_entropy

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Beside", "beside"]


class Beside(nn.Module):
    """Pre-norm layers that read and post-norm layers that write, as the parts of lessons 10 and 11 have them."""

    def __init__(self, n_source: int, n_target: int, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> None:
        super().__init__()
        self.source_rows = nn.Embedding(n_source, d_model)
        self.target_rows = nn.Embedding(n_target, d_model)
        sizes = d_model, n_heads, d_ff
        self.encoder = nn.ModuleList(EncoderLayer(*sizes, norm_first=True) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes, norm_first=False) for _ in range(n_layers))
        for layer in (*self.encoder, *self.decoder):
            layer.self_attention = MultiHeadAttention(d_model, n_heads, bias=False)
        for layer in self.encoder:
            layer.feed_forward_residual.norm = layer.self_attention_residual.norm  # one serves both places
        for layer in self.decoder:
            layer.cross_attention = MultiHeadAttention(d_model, n_heads, bias=False)
        self.norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, n_target, bias=False)

    def forward(
        self, source: Int[Tensor, "batch n_source"], target: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n n_target"]:
        """Log-probabilities of what follows each token of ``target``."""
        real = (source != PAD)[:, None]
        x, y = self._with_places(self.source_rows(source)), self._with_places(self.target_rows(target))
        for layer in self.encoder:
            x = layer(x, mask=real).out
        memory = self.norm(x)
        for layer in self.decoder:
            y = layer(y, memory, causal=True, memory_mask=real).out
        return self.out(y).log_softmax(dim=-1)

    def loss(self, source: Int[Tensor, "batch n_source"], target: Int[Tensor, "batch n"]) -> Float[Tensor, ""]:
        """The mean loss of a token of ``target``, without smoothing."""
        total, count = smoothed_cross_entropy(self(source, shift_right(target)), target, 0.0)
        return total / count

    def _with_places(self, rows: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        n, d = rows.shape[-2:]
        code = sinusoidal(n, d)  # sines and cosines in turn
        halves = torch.cat([torch.as_tensor(code[:, 0::2]), torch.as_tensor(code[:, 1::2])], dim=1)
        return rows + halves.to(rows)


@torch.no_grad()
def beside(model: nn.Module) -> Beside:
    """The library's layers with the weights that an assembled model has now."""
    first = model.encoder[0]
    theirs = Beside(
        model.source_rows.num_embeddings,
        model.target_rows.num_embeddings,
        model.d_model,
        first.attention.n_heads,
        first.network[0].out_features,
        len(model.encoder),
    ).to(model.out.weight.dtype)
    for name in ("source_rows", "target_rows", "norm", "out"):
        getattr(theirs, name).load_state_dict(getattr(model, name).state_dict())
    for ours, layer in zip(model.encoder, theirs.encoder, strict=True):
        _copy_attention(layer.self_attention, ours.attention)
        _copy_network(layer.feed_forward, ours.network)
        layer.self_attention_residual.norm.load_state_dict(ours.norm.state_dict())
    for ours, layer in zip(model.decoder, theirs.decoder, strict=True):
        _copy_attention(layer.self_attention, ours.attention)
        _copy_attention(layer.cross_attention, ours.cross)
        _copy_network(layer.feed_forward, ours.network)
        residuals = (layer.self_attention_residual, layer.cross_attention_residual, layer.feed_forward_residual)
        for residual, norm in zip(residuals, ours.norms, strict=True):
            residual.norm.load_state_dict(norm.state_dict())
    return theirs


def _copy_attention(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.in_proj.weight.copy_(torch.cat([ours.W_Q, ours.W_K, ours.W_V], dim=1).T)
    theirs.out_proj.weight.copy_(ours.W_O.T)


def _copy_network(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.linear1.load_state_dict(ours[0].state_dict())
    theirs.linear2.load_state_dict(ours[2].state_dict())
