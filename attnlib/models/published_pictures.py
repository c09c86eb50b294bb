"""How published models that read pictures become ours: their settings, and the names of their weights."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from attnlib.models.loading import Blueprint, Part
from attnlib.models.picture_configs import DETRConfig, ViTConfig
from attnlib.models.published import activation_of, both, require

__all__ = ["detr", "vit"]


def vit(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """ViT, with a classifier upon its class token.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    require(settings, qkv_bias=True)
    config = ViTConfig(
        n_classes=len(settings.get("id2label") or (0, 1)),
        image_size=settings["image_size"],
        patch_size=settings["patch_size"],
        channels=settings["num_channels"],
        d_model=settings["hidden_size"],
        n_heads=settings["num_attention_heads"],
        n_layers=settings["num_hidden_layers"],
        d_ff=settings["intermediate_size"],
        dropout=settings.get("hidden_dropout_prob", 0.0),
        activation=activation_of(settings.get("hidden_act", "gelu")),
        eps=settings.get("layer_norm_eps", 1e-12),
    )
    parts = {
        "patches.class_token": Part(("embeddings.cls_token",)),
        "patches.positions": Part(("embeddings.position_embeddings",)),
    }
    parts |= both("patches.project", "embeddings.patch_embeddings.projection")
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}", f"layers.{i}"
        parts |= both(f"{ours}.self_attention_residual.norm", f"{theirs}.layernorm_before")
        parts |= _attention(f"{ours}.self_attention", f"{theirs}.attention")
        parts |= both(f"{ours}.feed_forward_residual.norm", f"{theirs}.layernorm_after")
        parts |= _network(f"{ours}.feed_forward", f"{theirs}.mlp")
    parts |= both("norm", "layernorm") | both("out", "classifier")
    renamed = {"encoder.layer.": "layers."}  # names in files; transformers has others in memory
    renamed |= {f"attention.attention.{name}": f"attention.{name[0]}_proj" for name in ("query", "key", "value")}
    renamed |= {"attention.output.dense": "attention.o_proj"}
    renamed |= {"intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2"}
    return Blueprint(config, parts, "vit.", renamed=renamed)


def detr(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """DETR without its backbone: what reads the backbone's features.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    require(settings, position_embedding_type="sine", auxiliary_loss=False)
    for side in ("attention_heads", "ffn_dim"):
        require(settings, **{f"decoder_{side}": settings[f"encoder_{side}"]})
    config = DETRConfig(
        n_classes=len(settings.get("id2label") or (0, 1)),
        channels=_channels(settings),
        n_queries=settings["num_queries"],
        d_model=settings["d_model"],
        n_heads=settings["encoder_attention_heads"],
        n_encoder_layers=settings["encoder_layers"],
        n_decoder_layers=settings["decoder_layers"],
        d_ff=settings["encoder_ffn_dim"],
        dropout=settings.get("dropout", 0.1),
        activation=activation_of(settings.get("activation_function", "relu")),
    )
    parts = both("project", "model.input_projection") | both("norm", "model.decoder.layernorm")
    parts["queries.weight"] = Part(("model.query_position_embeddings.weight",))
    for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        for i in range(n_layers):
            ours, theirs = f"{side}.{i}", f"model.{side}.layers.{i}"
            parts |= _attention(f"{ours}.self_attention", f"{theirs}.self_attn")
            parts |= both(f"{ours}.self_attention_residual.norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                parts |= _attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn")
                parts |= both(f"{ours}.cross_attention_residual.norm", f"{theirs}.encoder_attn_layer_norm")
            parts |= _network(f"{ours}.feed_forward", f"{theirs}.mlp")
            parts |= both(f"{ours}.feed_forward_residual.norm", f"{theirs}.final_layer_norm")
    parts |= both("kind", "class_labels_classifier")
    for i in range(3):
        parts |= both(f"box.{2 * i}", f"bbox_predictor.layers.{i}")  # an activation stands between two of them
    renamed = {"attn.out_proj": "attn.o_proj"}  # names in files, as above
    for i in range(max(config.n_encoder_layers, config.n_decoder_layers)):
        renamed |= {f"layers.{i}.fc{n}": f"layers.{i}.mlp.fc{n}" for n in (1, 2)}
    return Blueprint(config, parts, renamed=renamed, outside="model.backbone.")


def _channels(settings: dict[str, Any]) -> int:
    """How many channels the last features of the backbone have, as its settings say."""
    backbone = settings.get("backbone_config") or {}
    return (backbone.get("hidden_sizes") or [2048])[-1]


def _attention(ours: str, theirs: str) -> dict[str, Part]:
    projections = [f"{theirs}.{name}_proj" for name in "qkv"]
    return both(f"{ours}.in_proj", *projections) | both(f"{ours}.out_proj", f"{theirs}.o_proj")


def _network(ours: str, theirs: str) -> dict[str, Part]:
    return both(f"{ours}.linear1", f"{theirs}.fc1") | both(f"{ours}.linear2", f"{theirs}.fc2")
