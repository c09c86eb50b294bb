"""How a published CLIP becomes ours: its settings, and the names of its weights."""

from __future__ import annotations

from collections.abc import Collection
from math import exp
from typing import Any

from attnlib.models.loading import Blueprint, Part
from attnlib.models.picture_configs import CLIPConfig
from attnlib.models.published import activation_of, both

__all__ = ["clip"]

# The settings that are left out of a file are those of the smallest published one.
TEXT = {"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12}
TEXT |= {"num_attention_heads": 8, "max_position_embeddings": 77, "eos_token_id": 49407}
PICTURES = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
PICTURES |= {"num_channels": 3, "image_size": 224, "patch_size": 32}
EITHER = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "attention_dropout": 0.0}


def clip(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """CLIP, both encoders, their projections and the scale.

    A caption's row is that of its end token; where files of 2022 and before say that this is 2, it is the token with
    the largest number, as those were read.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    text = EITHER | TEXT | (settings.get("text_config") or {})
    pictures = EITHER | PICTURES | (settings.get("vision_config") or {})
    for name in ("layer_norm_eps", "attention_dropout"):
        if text[name] != pictures[name]:
            raise ValueError(f"{name} must be one for text and pictures; got {text[name]} and {pictures[name]}")
    config = CLIPConfig(
        n_tokens=text["vocab_size"],
        n_max=text["max_position_embeddings"],
        end=None if text["eos_token_id"] == 2 else text["eos_token_id"],
        n_channels=pictures["num_channels"],
        side=pictures["image_size"],
        patch=pictures["patch_size"],
        d_model=pictures["hidden_size"],
        n_heads=pictures["num_attention_heads"],
        n_layers=pictures["num_hidden_layers"],
        d_ff=pictures["intermediate_size"],
        d_text=text["hidden_size"],
        n_text_heads=text["num_attention_heads"],
        n_text_layers=text["num_hidden_layers"],
        d_text_ff=text["intermediate_size"],
        d_shared=settings.get("projection_dim") or 512,
        scale=exp(settings.get("logit_scale_init_value") or 2.6592),
        activation=activation_of(pictures["hidden_act"]),
        text_activation=activation_of(text["hidden_act"]),
        eps=text["layer_norm_eps"],
        dropout=text["attention_dropout"],
    )
    parts = {
        "log_scale": Part(("logit_scale",)),
        "text.token_embedding.weight": Part(("text_model.embeddings.token_embedding.weight",)),
        "text.positions.weight": Part(("text_model.embeddings.position_embedding.weight",)),
        "text.project.weight": Part(("text_projection.weight",)),
        "pictures.first": Part(("vision_model.embeddings.class_embedding",)),
        "pictures.stem.weight": Part(("vision_model.embeddings.patch_embedding.weight",)),
        "pictures.positions.weight": Part(("vision_model.embeddings.position_embedding.weight",)),
        "pictures.project.weight": Part(("visual_projection.weight",)),
    }
    parts |= both("text.norm", "text_model.final_layer_norm") | both("pictures.norm", "vision_model.post_layernorm")
    parts |= both("pictures.norm_before", "vision_model.pre_layrnorm")  # as it is spelled
    for ours, theirs, depth in (("text", "text", config.n_text_layers), ("pictures", "vision", config.n_layers)):
        for i in range(depth):
            parts |= _layer(f"{ours}.layers.{i}", f"{theirs}_model.encoder.layers.{i}")
    return Blueprint(config, parts, copies={".position_ids": None})


def _layer(ours: str, theirs: str) -> dict[str, Part]:
    query_key_value = (f"{theirs}.self_attn.{x}_proj" for x in "qkv")
    return (
        both(f"{ours}.self_attention.in_proj", *query_key_value)
        | both(f"{ours}.self_attention.out_proj", f"{theirs}.self_attn.out_proj")
        | both(f"{ours}.self_attention_residual.norm", f"{theirs}.layer_norm1")
        | both(f"{ours}.feed_forward.linear1", f"{theirs}.mlp.fc1")
        | both(f"{ours}.feed_forward.linear2", f"{theirs}.mlp.fc2")
        | both(f"{ours}.feed_forward_residual.norm", f"{theirs}.layer_norm2")
    )
