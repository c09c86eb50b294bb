"""Torch's kernel under `torch.func`, with the rule for vmap that it lacks: the axis that vmap adds joins the batch.

Without a rule torch loops over that axis, and warns. Booleans as a mask, and no dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["batched"]


def batched(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, causal: bool, grouped: bool) -> Tensor:
    """What the kernel gives for ``(batch, heads, rows, columns)``, under any number of vmaps and one gradient."""
    return _Kernel.apply(q, k, v, allowed, causal, grouped)


class _Kernel(Function):
    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, causal: bool, grouped: bool) -> Tensor:
        return scaled_dot_product_attention(q, k, v, attn_mask=allowed, is_causal=causal, enable_gqa=grouped)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *arrays, ctx.causal, ctx.grouped = inputs
        ctx.save_for_backward(*arrays)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return (*_Gradient.apply(slope, *ctx.saved_tensors, ctx.causal, ctx.grouped), None, None, None)

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _Kernel.apply(*_folded(info.batch_size, axes, inputs)).unflatten(0, (info.batch_size, -1)), 0


class _Gradient(Function):
    @staticmethod
    def forward(slope: Tensor, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            return torch.autograd.grad(_Kernel.forward(*leaves, *rest), leaves, slope)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Nothing is kept: it has no gradient of its own, as the kernel has none of second order."""

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        slopes = _Gradient.apply(*_folded(info.batch_size, axes, inputs))
        return tuple(x.unflatten(0, (info.batch_size, -1)) for x in slopes), (0, 0, 0)


def _folded(n: int, axes: tuple[int | None, ...], inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs, each with vmap's axis of ``n`` in its batch: ``(n * batch, heads, rows, columns)``."""
    first = [
        x if not isinstance(x, Tensor) else x.movedim(axis, 0) if axis is not None else x.expand(n, *x.shape)
        for x, axis in zip(inputs, axes, strict=True)
    ]
    batch = max(x.shape[1] for x in first if isinstance(x, Tensor))
    return [x.expand(n, batch, *x.shape[2:]).flatten(0, 1) if isinstance(x, Tensor) else x for x in first]
