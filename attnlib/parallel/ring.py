r"""Positions over processes: keys and values go round, and each process carries on its own queries' softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from attnlib._base.checks import check_floats, check_rank
from attnlib.core.attention import Attended
from attnlib.core.softmax import online_mean, online_update
from attnlib.nn.heads import MultiHeadAttention
from attnlib.scores import masked_scores, scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ring_attention", "shard_positions"]


def ring_attention(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    *,
    score: Callable[[Tensor, Tensor], Tensor] = scaled_dot,
    causal: bool = False,
    group: dist.ProcessGroup | None = None,
) -> Float[Tensor, "... n d_v"]:
    r"""`attnlib.attention` over ``n_processes * n`` positions, of which process p has those from ``p * n`` on.

    .. math:: \text{out}_i = \frac{\sum_p e^{m_i^{(p)} - m_i} y_i^{(p)}}{\sum_p e^{m_i^{(p)} - m_i} \ell_i^{(p)}}

    In step s, process p has the keys and values of process :math:`p - s`, adds their part (:math:`m, \ell, y` as in
    `attnlib.core.online_update`) and hands them to process :math:`p + 1`. No process ever has a row of all
    scores. Gradients go round the other way. For them the blocks of keys and values that came by are kept.

    Raises ``ValueError`` when the last axes do not fit or processes have other shapes, ``RuntimeError`` without a
    process group.

    Source: Liu, Zaharia and Abbeel (2023), section 3.

    >>> from attnlib import attention, parallel
    >>> q, k, v = torch.randn(3, 8, 4)
    >>> [out] = parallel.run(ring_attention, 1, q, k, v)  # one process has all positions
    >>> torch.allclose(out, attention(q, k, v).out, atol=1e-6)
    True
    """
    if not dist.is_initialized():
        raise RuntimeError("ring_attention needs a process group: call it in attnlib.parallel.run, or under torchrun")
    check_floats(q=q, k=k, v=v)
    check_rank("(..., n, d)", q=q, k=k, v=v)
    rank, size, n = dist.get_rank(group), dist.get_world_size(group), q.shape[-2]
    _check_shapes(q, k, v, group)
    state, pair = None, torch.cat([k, v], dim=-1)  # (..., n, d + d_v): one message instead of two
    for step in range(size):
        source = (rank - step) % size  # whose keys these are
        if not (causal and source > rank):
            keys, values = pair.split([k.shape[-1], v.shape[-1]], dim=-1)
            scores = masked_scores(q, keys, score, causal=causal, start=(rank - source) * n)  # (..., n, n)
            state = online_update(state, scores, values)
        if step < size - 1:
            pair = _Passed.apply(pair, group)
    return _Tied.apply(online_mean(state), pair)


def shard_positions(model: nn.Module, group: dist.ProcessGroup | None = None) -> nn.Module:
    """Let every self-attention in ``model`` go round the ring: each process gives it its share of the positions.

    Rotary positions are counted from the share's first. What is added to the inputs is the caller's to count, as is
    the mean of the gradients. ``ValueError`` for masks, biases, weights, caches or dropout, which do not go round.

    `attnlib.parallel.steps` has a whole step:

    >>> from attnlib.models import GPT, GPTConfig
    >>> from attnlib.parallel import run, steps
    >>> model, tokens = GPT(GPTConfig(n_tokens=9, n_max=8, d_model=8, n_heads=2, n_layers=1)), torch.randint(9, (2, 9))
    >>> abs(run(steps.positions, 2, model, tokens)[0].gradients["norm.bias"]).sum() > 0
    tensor(True)
    """
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.attend = _attend_round(group)
            part.register_forward_pre_hook(_placed(group), with_kwargs=True)
    return model


def _attend_round(group: dist.ProcessGroup | None) -> Callable[..., Attended]:
    def attend(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Attended:
        taken = {name: options.pop(name) for name in ("score", "causal")}
        for name, value in options.items():
            if value is not None and not (isinstance(value, bool | float) and not value):
                what = type(value).__name__
                raise ValueError(f"{name} must be left out where positions are shared by processes; got a {what}")
        lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # groups of heads share keys
        return Attended(ring_attention(q.expand(*lead, *q.shape[-2:]), k, v, group=group, **taken), None)

    return attend


def _placed(group: dist.ProcessGroup | None) -> Callable[..., Any]:
    def hook(_: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        rotate, rank = options.get("rotate"), dist.get_rank(group)
        if len(inputs) > 1 or options.get("x_k") is not None or options.get("cache") is not None:
            raise ValueError("x_k and cache must be left out where positions are shared by processes; got one of them")
        if rotate is not None:
            options |= {"rotate": lambda x, start: rotate(x, start=start + rank * x.shape[-2])}
        return inputs, options

    return hook


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, group: dist.ProcessGroup | None) -> None:
    if q.shape[-2:] != k.shape[-2:] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"q and k must have n rows of d, v n rows; got {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        )
    sizes = torch.tensor([k.shape[-2], k.numel(), v.numel()], device=q.device)
    found = torch.cat([sizes, -sizes])
    dist.all_reduce(found, dist.ReduceOp.MAX, group)
    most, least = found[:3], -found[3:]
    if not torch.equal(most, least):
        raise ValueError(f"every process must have as many positions; got {int(least[0])} to {int(most[0])}")


class _Passed(torch.autograd.Function):
    """To the next process, from the one before; gradients the other way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        ctx.group = group
        return _exchanged(x, 1, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _exchanged(gradient, -1, ctx.group), None


class _Tied(torch.autograd.Function):
    """``x``, as if it depended on ``y`` too: so all processes pass gradients, whether they used those keys or not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.shape = y.shape
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, gradient.new_zeros(ctx.shape)


def _exchanged(x: Tensor, ahead: int, group: dist.ProcessGroup | None) -> Tensor:
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    there, back = ((rank + sign * ahead) % size for sign in (1, -1))
    received = torch.empty_like(x, memory_format=torch.contiguous_format)
    sends = dist.P2POp(dist.isend, x.contiguous(), group=group, group_peer=there)
    receives = dist.P2POp(dist.irecv, received, group=group, group_peer=back)
    for work in dist.batch_isend_irecv([sends, receives]):
        work.wait()
    return received
