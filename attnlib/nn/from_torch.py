"""The weights of torch's own modules, copied into ours: what every ``from_torch`` is made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["attention_arguments", "check_module", "copy_feed_forward", "copy_linear", "copy_norm", "layer_arguments"]


def check_module(module: object, kind: type[nn.Module]) -> None:
    """Raise unless ``module`` is of the class of torch that is expected.

    >>> check_module(nn.Linear(1, 1), nn.Linear)
    """
    if not isinstance(module, kind):
        raise TypeError(f"module must be a torch.nn.{kind.__name__}; got {type(module).__name__}")


def attention_arguments(module: nn.MultiheadAttention) -> dict[str, Any]:
    """The arguments of our attention that torch's has; raise for what has no counterpart here.

    >>> attention_arguments(nn.MultiheadAttention(8, 2))
    {'d_model': 8, 'n_heads': 2, 'bias': True, 'dropout': 0.0}
    """
    check_module(module, nn.MultiheadAttention)
    if module.in_proj_weight is None:
        raise ValueError(f"module must have kdim = vdim = embed_dim; got {module.kdim}, {module.vdim}")
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError("module must be without add_bias_kv and add_zero_attn, which add a position")
    bias = module.in_proj_bias is not None
    return {"d_model": module.embed_dim, "n_heads": module.num_heads, "bias": bias, "dropout": module.dropout}


def layer_arguments(module: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> dict[str, Any]:
    """The arguments of our layer that torch's has; raise for an activation that has no counterpart here.

    >>> layer_arguments(nn.TransformerEncoderLayer(8, 2, 16))["d_ff"]
    16
    """
    activation = {F.relu: "relu", F.gelu: "gelu"}.get(module.activation)
    if activation is None:
        raise ValueError(f"module must have relu or gelu as its activation; got {module.activation}")
    return {
        "d_model": module.self_attn.embed_dim,
        "n_heads": module.self_attn.num_heads,
        "d_ff": module.linear1.out_features,
        "activation": activation,
        "norm_first": module.norm_first,
        "dropout": module.dropout.p,
        "bias": module.linear1.bias is not None,
    }


@torch.no_grad()
def copy_linear(ours: nn.Linear, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Take over the numbers of a linear layer.

    >>> copy_linear(nn.Linear(2, 1), torch.ones(1, 2), None)
    """
    ours.weight.copy_(weight)
    if bias is not None:
        ours.bias.copy_(bias)


def copy_feed_forward(ours: nn.Module, module: nn.Module) -> None:
    """Take over the two linear layers of a layer of torch, into a `FeedForward`."""
    for mine, theirs in ((ours.linear1, module.linear1), (ours.linear2, module.linear2)):
        copy_linear(mine, theirs.weight, theirs.bias)


def copy_norm(ours: nn.Module, norm: nn.LayerNorm) -> None:
    """Take over a normalisation, into a `Residual`."""
    ours.norm.load_state_dict(norm.state_dict(), strict=False)
    ours.norm.eps = norm.eps
