"""A decoder's step for one new position, planned when a text begins: why the `Transformer` writes fast.

In a small model most of the time of a step goes into finding modules and weights, and into checking what the step
before has checked. `plan_decoding` finds them once, and what it finds holds for that text. The plan computes what
`attnlib.nn.layers` computes; where it cannot (a module of another kind, a hook, another score, dropout) there is none,
and where an attention met numbers that are none, a step of it gives None: then the layers run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.nn.modules import module as torch_module

from attnlib._base.arrays import readable
from attnlib.nn.cache import Cache
from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.heads import MultiHeadAttention
from attnlib.nn.layers import DecoderLayer, Residual
from attnlib.nn.stacks import Decoder
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Caches = Sequence[tuple[Cache, Cache]]
    Plan = Callable[..., Float[Tensor, "batch 1 d_model"] | None]

__all__ = ["plan_decoding"]

KNOWN = {
    Decoder,
    DecoderLayer,
    MultiHeadAttention,
    FeedForward,
    Residual,
    nn.LayerNorm,
    nn.RMSNorm,
    nn.Linear,
    nn.Dropout,
}
KNOWN |= {nn.Identity, nn.ModuleList}


def plan_decoding(decoder: nn.Module) -> Plan | None:
    """A function of a row for each sequence, and of the caches, which gives what ``decoder`` gives; None if it cannot.

    The function gives None where an attention may have met NaN or infinite scores: that shows in an output that is not
    finite or, with some kernels, in a row of zeros.

    >>> from attnlib.nn import Decoder, TransformerConfig
    >>> decoder = Decoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2)).eval()
    >>> plan, memory, row = plan_decoding(decoder), torch.randn(1, 5, 8), torch.randn(1, 1, 8)
    >>> with torch.no_grad():
    ...     caches = [layer.prefill(memory, n_max=3) for layer in decoder.layers]
    ...     torch.allclose(plan(row, caches), decoder(row, memory)[0], atol=1e-6)
    True
    """
    if type(decoder) is not Decoder or not all(map(_is_plain, decoder.modules())):
        return None
    layers, norm = [_layer(layer) for layer in decoder.layers], _norm(decoder.norm)

    @torch.inference_mode()  # which saves a seventh of the time, and nobody sees what is made in it
    def run(
        x: Float[Tensor, "batch 1 d_model"],
        caches: Caches,
        memory_mask: Bool[Tensor, "batch 1 n_memory"] | None,
        bias: Float[Tensor, "n_heads 1 n_k"] | None,
        rotate: Callable[..., Tensor] | None,
    ) -> Tensor | None:
        mask = None if memory_mask is None else memory_mask[:, None]  # (batch, 1, 1, n_memory)
        seen: list[Tensor] = []
        for (attend, cross, feed), (cache, memory_cache) in zip(layers, caches, strict=True):
            x = feed(cross(attend(x, seen, cache, bias, rotate), seen, memory_cache, mask))
        first, out = torch.cat(seen, dim=1), norm(x)
        if not readable(out):
            return out
        return out if isfinite(out.sum().item()) and int(first.count_nonzero()) == first.numel() else None

    def plan(
        x: Float[Tensor, "batch 1 d_model"],
        caches: Caches,
        *,
        memory_mask: Bool[Tensor, "batch 1 n_memory"] | None = None,
        bias: Float[Tensor, "n_heads 1 n_k"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
    ) -> Float[Tensor, "batch 1 d_model"] | None:
        out = run(x, caches, memory_mask, bias, rotate)
        return None if out is None else out.clone()  # a tensor that others may compute with

    return plan


def _is_plain(module: nn.Module) -> bool:
    """May a plan stand for ``module``? Not where a hook, dropout or a method of its own would have a say."""
    hooks = [torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks]
    if any([*hooks, module._forward_hooks, module._forward_pre_hooks, module.training]):
        return False
    if type(module) not in KNOWN or _own_methods(module):
        return False
    return not isinstance(module, MultiHeadAttention) or module.score is scaled_dot


def _own_methods(module: nn.Module) -> bool:
    """Does this instance bring methods that its class does not know?"""
    return any(callable(getattr(type(module), name, None)) for name in vars(module))


def _layer(layer: DecoderLayer) -> tuple[Callable[..., Tensor], ...]:
    return (
        _around(layer.self_attention_residual, _attend(layer.self_attention)),
        _around(layer.cross_attention_residual, _attend(layer.cross_attention)),
        _around(layer.feed_forward_residual, _feed_forward(layer.feed_forward)),
    )


def _around(residual: Residual, sublayer: Callable[..., Tensor]) -> Callable[..., Tensor]:
    norm = _norm(residual.norm)
    if residual.norm_first:
        return lambda x, *rest: x + sublayer(norm(x), *rest)
    return lambda x, *rest: norm(x + sublayer(x, *rest))


def _norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    if isinstance(norm, nn.LayerNorm):
        options = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, *options)
    if isinstance(norm, nn.RMSNorm):
        options = norm.normalized_shape, norm.weight, norm.eps
        return lambda x: torch.rms_norm(x, *options)
    return lambda x: x


def _feed_forward(feed_forward: FeedForward) -> Callable[[Tensor], Tensor]:
    first, second = ((part.weight, part.bias) for part in (feed_forward.linear1, feed_forward.linear2))
    activation, gated = feed_forward.activation, feed_forward.gated

    def run(x: Tensor) -> Tensor:
        hidden = linear(x, *first)
        if gated:
            gate, hidden = hidden.chunk(2, dim=-1)
            return linear(activation(gate) * hidden, *second)
        return linear(activation(hidden), *second)

    return run


def _attend(layer: MultiHeadAttention) -> Callable[..., Tensor]:
    """The layer for one row and its cache. A row needs no causal mask, and its heads no change of axes."""
    in_proj, out_proj = ((part.weight, part.bias) for part in (layer.in_proj, layer.out_proj))
    queries = tuple(None if w is None else w[: layer.sizes[0]] for w in in_proj)
    heads, d = [layer.n_heads, layer.n_kv_heads, layer.n_kv_heads], layer.d_head
    n_heads, total, grouped = layer.n_heads, sum(heads), layer.n_heads != layer.n_kv_heads

    def run(
        x: Tensor,
        seen: list[Tensor],
        cache: Cache,
        added: Tensor | None = None,
        rotate: Callable[..., Tensor] | None = None,
    ) -> Tensor:
        batch = x.shape[0]
        if cache.frozen:
            q, k, v = linear(x, *queries).view(batch, n_heads, 1, d), cache.k, cache.v
        else:
            q, k, v = linear(x, *in_proj).view(batch, total, 1, d).split_with_sizes(heads, 1)  # (batch, heads, 1, d)
            if rotate is not None:
                q, k = rotate(q, start=cache.length), rotate(k, start=cache.length)
            k, v = cache.extend(k, v)  # (batch, heads, n_k, d)
            added = added if added is None else added[None]
        out = scaled_dot_product_attention(q, k, v, attn_mask=added, enable_gqa=grouped)
        seen.append(out[..., 0])
        return linear(out.reshape(batch, 1, n_heads * d), *out_proj)  # (batch, heads, 1, d) -> (batch, 1, d_model)

    return run
