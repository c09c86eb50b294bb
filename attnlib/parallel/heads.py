r"""Heads and hidden units over processes: each computes its own, and what they make is added up.

.. math:: Y = \sum_p [\text{head}_h]_{h \in p}\, W_O^{(p)}, \qquad
          \text{FFN}(x) = \sum_p \sigma(x W_1^{(p)}) W_2^{(p)} + b_2
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["gather_heads", "shard_heads"]


def shard_heads(model: nn.Module, mesh: DeviceMesh | None = None) -> nn.Module:
    r"""Leave in this process its share of the heads and hidden units of every layer in ``model``; the same model.

    .. math:: Y = \sum_p Y_p, \qquad Y_p = [\text{head}_h]_{h \in p}\, W_O^{(p)}

    What goes into a layer and what comes out is whole in every process: torch's `ColwiseParallel` cuts the first
    product by columns, `RowwiseParallel` the second by rows and adds up, once forward and once backward for each
    sublayer. Normalisations and embeddings stay whole. ``mesh`` has one dimension, all processes unless given.

    Raises ``ValueError`` when heads or hidden units do not divide by the processes, or for dropout, which would drop
    other places in each; ``RuntimeError`` without a process group.

    Source: Shoeybi et al. (2019), section 3. `attnlib.parallel.steps` has a whole step:

    >>> from attnlib.models import GPT, GPTConfig
    >>> from attnlib.parallel import run, steps
    >>> model, tokens = GPT(GPTConfig(n_tokens=9, n_max=8, d_model=8, n_heads=2, n_layers=1)), torch.randint(9, (2, 9))
    >>> [step.held < steps.alone(model, tokens).held for step in run(steps.heads, 2, model, tokens)]
    [True, True]
    """
    if not dist.is_initialized():
        raise RuntimeError("shard_heads needs a process group: call it in attnlib.parallel.run, or under torchrun")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),)) if mesh is None else mesh
    _check(model, mesh.size())
    for part, first, second in _pairs(model):
        with torch.no_grad():
            for parameter in getattr(part, first).parameters():
                parameter.copy_(parameter[_order(_sizes(part), mesh.size())])
        parallelize_module(part, mesh, {first: ColwiseParallel(), second: RowwiseParallel()})
        if isinstance(part, MultiHeadAttention):
            part.sizes = [size // mesh.size() for size in part.sizes]
            part.n_heads, part.n_kv_heads = part.n_heads // mesh.size(), part.n_kv_heads // mesh.size()
            part.register_forward_pre_hook(_no_bias, with_kwargs=True)
    return model


def gather_heads(model: nn.Module, of: str = "weights") -> dict[str, Float[Tensor, ...]]:
    """The weights of a model that `shard_heads` cut, or their gradients, whole and as they were; for all to call.

    ``of`` is "weights" or "gradients". What was not cut is handed on.

    >>> sorted(gather_heads(nn.Linear(2, 1)))
    ['bias', 'weight']
    """
    found = {name: p if of == "weights" else p.grad for name, p in model.named_parameters()}
    modules = dict(model.named_modules())
    for name, tensor in found.items():
        if isinstance(tensor, DTensor):
            n, found[name] = tensor.device_mesh.size(), tensor.full_tensor()
            where, product, _ = name.rsplit(".", 2)
            if product in ("in_proj", "linear1"):
                found[name] = found[name][_order(_sizes(modules[where], n), n).argsort()]
    return {name: tensor.detach() for name, tensor in found.items()}


def _pairs(model: nn.Module) -> Iterator[tuple[Any, str, str]]:
    """Modules with two products, the first of which is cut by columns and the second by rows."""
    for part in list(model.modules()):
        if isinstance(part, MultiHeadAttention):
            yield part, "in_proj", "out_proj"
        elif isinstance(part, FeedForward):
            yield part, "linear1", "linear2"


def _sizes(part: MultiHeadAttention | FeedForward, cut: int = 1) -> list[int]:
    """What stands side by side in the first product, times ``cut``: queries, keys and values, or gate and hidden."""
    if isinstance(part, MultiHeadAttention):
        return [size * cut for size in part.sizes]
    return [part.linear2.in_features] * (2 if part.gated else 1)


def _order(sizes: Sequence[int], n: int) -> Tensor:
    """Rows of the first weight, so that a contiguous share of them is one share of each part.

    >>> _order([4, 2, 2], 2)
    tensor([0, 1, 4, 6, 2, 3, 5, 7])
    """
    parts = torch.arange(sum(sizes)).split(list(sizes))
    return torch.cat([part.chunk(n)[rank] for rank in range(n) for part in parts])


def _check(model: nn.Module, n: int) -> None:
    for name, part in model.named_modules():
        if isinstance(part, nn.Dropout | MultiHeadAttention):
            rate = part.p if isinstance(part, nn.Dropout) else part.dropout
            if rate:
                raise ValueError(f"dropout must be 0 where processes share heads; got {rate} in {name}")
        counts = {}
        if isinstance(part, MultiHeadAttention):
            counts = {"n_heads": part.n_heads, "n_kv_heads": part.n_kv_heads}
        elif isinstance(part, FeedForward):
            counts = {"d_ff": part.linear2.in_features}
        for what, count in counts.items():
            if count % n:
                raise ValueError(f"{what} must be a multiple of the {n} processes; got {count} in {name}")


def _no_bias(_: nn.Module, __: tuple[Any, ...], options: dict[str, Any]) -> None:
    if options.get("bias") is not None:
        raise ValueError("bias must be None where processes share heads: it has all of them; use rotary positions")
