"""A decoder's step for one new position, with everything looked up beforehand: why writing is fast.

In a small model most of a step's time goes into finding modules and weights and into checking what the step before has
checked. `stepper` finds them once. What it computes is what `attnlib.layers` computes; where it cannot vouch for that
(a hook, a module that was exchanged, training, numbers that are none) it gives None, and the layers have to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from attnlib._cache import Cache
from attnlib._unchanged import is_plain, watch
from attnlib.heads import MultiHeadAttention
from attnlib.layers import DecoderLayer, FeedForward, Residual

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Caches = Sequence[tuple[Cache, Cache]]
    Stepper = Callable[..., Float[Tensor, "batch 1 d_model"] | None]

__all__ = ["stepper"]


def stepper(decoder: nn.Module) -> Stepper | None:
    """A function of a row for each sequence and of the caches, which gives what ``decoder`` gives; None if it cannot.

    The function itself gives None when the decoder it is told is another or no longer what it was, and where an
    attention may have met NaN or infinite scores: that shows in an output that is not finite or, with some kernels, in
    a row of zeros.

    >>> from attnlib.transformer import Decoder, TransformerConfig
    >>> decoder = Decoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2)).eval()
    >>> step, memory, row = stepper(decoder), torch.randn(1, 5, 8), torch.randn(1, 1, 8)
    >>> with torch.no_grad():
    ...     caches = [layer.remember(memory, n_max=3) for layer in decoder.layers]
    ...     torch.allclose(step(decoder, row, caches), decoder(row, memory)[0], atol=1e-6)
    True
    """
    from attnlib.transformer import Decoder

    modules = list(decoder.modules())
    if type(decoder) is not Decoder or "forward" in vars(decoder) or not is_plain(modules[1:]):
        return None
    unchanged = watch(modules)
    steps, norm = [_layer(layer) for layer in decoder.layers], _norm(decoder.norm)

    def run(
        x: Float[Tensor, "batch 1 d_model"],
        caches: Caches,
        *,
        memory_mask: Bool[Tensor, "batch 1 n_memory"] | None = None,
        bias: Float[Tensor, "n_heads 1 n_k"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
    ) -> Tensor | None:
        real, seen = None if memory_mask is None else memory_mask[:, None], []
        for (attend, cross, feed), (own, remembered) in zip(steps, caches, strict=True):
            x = feed(cross(attend(x, seen, own, bias, rotate), seen, remembered, real))
        first, out = torch.cat(seen, dim=1), norm(x)
        return out if isfinite(out.sum().item()) and int(first.count_nonzero()) == first.numel() else None

    def step(told: nn.Module, x: Tensor, caches: Caches, **options: Any) -> Tensor | None:
        if told is not decoder or not unchanged():
            return None
        with torch.inference_mode():  # which saves a seventh of the time, and nobody sees what is made in it
            out = run(x, caches, **options)
        return None if out is None else out.clone()

    return step


def _layer(layer: DecoderLayer) -> tuple[Callable[..., Tensor], ...]:
    pairs = (layer.around_attend, _attend(layer.attend)), (layer.around_cross, _attend(layer.cross))
    return tuple(_around(*pair) for pair in (*pairs, (layer.around_feed, _feed(layer.feed))))


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


def _feed(feed: FeedForward) -> Callable[[Tensor], Tensor]:
    enter, leave = ((part.weight, part.bias) for part in (feed.enter, feed.leave))
    activation, gated = feed.activation, feed.gated

    def run(x: Tensor) -> Tensor:
        hidden = linear(x, *enter)
        if gated:
            gate, hidden = hidden.chunk(2, dim=-1)
            return linear(activation(gate) * hidden, *leave)
        return linear(activation(hidden), *leave)

    return run


def _attend(layer: MultiHeadAttention) -> Callable[..., Tensor]:
    """The layer for one row and its cache. A row needs no causal mask, and its heads no change of axes."""
    project, leave = (layer.project.weight, layer.project.bias), (layer.out.weight, layer.out.bias)
    queries = tuple(None if w is None else w[: layer.sizes[0]] for w in project)
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
            q, k, v = linear(x, *project).view(batch, total, 1, d).split_with_sizes(heads, 1)
            if rotate is not None:
                q, k = rotate(q, start=cache.length), rotate(k, start=cache.length)
            k, v = cache.extend(k, v)
            added = added if added is None else added[None]
        out = scaled_dot_product_attention(q, k, v, attn_mask=added, enable_gqa=grouped)
        seen.append(out[..., 0])
        return linear(out.reshape(batch, 1, n_heads * d), *leave)

    return run
