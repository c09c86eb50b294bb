"""How the models that others have published become ours: their settings, and the names of their weights."""

from __future__ import annotations

from typing import Any

from attnlib.models.configs import GPTConfig
from attnlib.models.loading import Blueprint, Part

__all__ = ["activation_of", "gpt2", "gpt2_settings", "require"]

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation_of(name: str) -> str:
    """Our word for an activation of theirs.

    >>> activation_of("gelu_new")
    'gelu_tanh'
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {name}")
    return ACTIVATIONS[name]


def require(settings: dict[str, Any], **wanted: Any) -> None:
    """Raise unless the settings are these, where they are given: others have no counterpart here."""
    for name, value in wanted.items():
        if settings.get(name, value) != value:
            raise ValueError(f"{name} must be {value}, which is all that there is here; got {settings[name]}")


def both(ours: str, *theirs: str, transposed: bool = False) -> dict[str, Part]:
    """A linear layer, or a norm: weight and bias."""
    return {f"{ours}.{end}": Part(tuple(f"{name}.{end}" for name in theirs), transposed) for end in ("weight", "bias")}


def gpt2(settings: dict[str, Any]) -> Blueprint:
    """GPT-2. Its linear layers keep their weights the other way round, in the row convention.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    require(
        settings,
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        reorder_and_upcast_attn=False,
        add_cross_attention=False,
        tie_word_embeddings=True,
    )
    config = GPTConfig(
        n_tokens=settings["vocab_size"],
        n_max=settings["n_positions"],
        d_model=settings["n_embd"],
        n_heads=settings["n_head"],
        n_layers=settings["n_layer"],
        d_ff=settings.get("n_inner") or 0,
        dropout=settings.get("resid_pdrop", 0.1),
        activation=activation_of(settings.get("activation_function", "gelu_new")),
        eps=settings.get("layer_norm_epsilon", 1e-5),
        end=settings.get("eos_token_id") or 0,
    )
    parts = {"table.weight": Part(("wte.weight",)), "positional.learned.weight": Part(("wpe.weight",))}
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}", f"h.{i}"
        parts |= both(f"{ours}.self_attention_residual.norm", f"{theirs}.ln_1")
        parts |= both(f"{ours}.self_attention.in_proj", f"{theirs}.attn.c_attn", transposed=True)
        parts |= both(f"{ours}.self_attention.out_proj", f"{theirs}.attn.c_proj", transposed=True)
        parts |= both(f"{ours}.feed_forward_residual.norm", f"{theirs}.ln_2")
        parts |= both(f"{ours}.feed_forward.linear1", f"{theirs}.mlp.c_fc", transposed=True)
        parts |= both(f"{ours}.feed_forward.linear2", f"{theirs}.mlp.c_proj", transposed=True)
    parts |= both("norm", "ln_f")
    return Blueprint(config, parts, "transformer.", copies=("lm_head.weight", ".attn.bias", ".attn.masked_bias"))


def gpt2_settings(config: GPTConfig) -> dict[str, Any]:
    """The settings of a `GPT`, as those of GPT-2 are published."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.n_tokens,
        "n_positions": config.n_max,
        "n_embd": config.d_model,
        "n_head": config.n_heads,
        "n_layer": config.n_layers,
        "n_inner": config.d_ff,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "activation_function": {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}[config.activation],
        "layer_norm_epsilon": config.eps,
        "bos_token_id": config.end,
        "eos_token_id": config.end,
        "tie_word_embeddings": True,
    }
