"""How the models that others have published become ours: their settings, and the names of their weights."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from attnlib.models.configs import BERTConfig, GPTConfig, T5Config
from attnlib.models.loading import Blueprint, Part

__all__ = ["activation_of", "albert", "bert", "both", "gpt2", "gpt2_settings", "require", "t5"]

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "quick_gelu": "quick_gelu",
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


def bert(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """BERT, with as many of its heads as there are ``names`` of weights for.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    require(settings, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    heads = {"pooler": "pooler.dense.", "sentence_head": "cls.seq_relationship.", "masked_head": "cls.predictions."}
    config = BERTConfig(**_bert_sizes(settings), **_there(heads, names))
    parts = _bert_embeddings("embeddings")
    for i in range(config.n_layers):
        layer = f"encoder.layer.{i}"
        query_key_value = [f"{layer}.attention.self.{name}" for name in ("query", "key", "value")]
        ends = ("attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense")
        parts |= _post_norm_layer(i, query_key_value, *(f"{layer}.{end}" for end in (*ends, "output.LayerNorm")))
    if config.pooler:
        parts |= both("pooler", "pooler.dense")
    if config.sentence_head:
        parts |= both("next_sentence_head", "cls.seq_relationship")
    if config.masked_head:
        parts |= both("mlm_head.dense", "cls.predictions.transform.dense")
        parts |= both("mlm_head.norm", "cls.predictions.transform.LayerNorm")
        parts["mlm_head.decoder.bias"] = Part(("cls.predictions.bias",))
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    return Blueprint(config, parts, "bert.", _bert_copies("cls.predictions"), renamed)


def albert(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """ALBERT, with as many of its heads as there are ``names`` of weights for.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    require(settings, num_hidden_groups=1, inner_group_num=1, position_embedding_type="absolute")
    heads = {"pooler": "pooler.", "sentence_head": "sop_classifier.", "masked_head": "predictions."}
    sizes = _bert_sizes(settings) | {"d_embedding": settings["embedding_size"], "share_layers": True, "widens": True}
    config = BERTConfig(**sizes, **_there(heads, names))
    layer = "encoder.albert_layer_groups.0.albert_layers.0"
    query_key_value = [f"{layer}.attention.{name}" for name in ("query", "key", "value")]
    ends = ("attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm")
    parts = _bert_embeddings("embeddings") | both("embedding_projection", "encoder.embedding_hidden_mapping_in")
    parts |= _post_norm_layer(0, query_key_value, *(f"{layer}.{end}" for end in ends))
    if config.pooler:
        parts |= both("pooler", "pooler")
    if config.sentence_head:
        parts |= both("next_sentence_head", "sop_classifier.classifier")
    if config.masked_head:
        parts |= both("mlm_head.dense", "predictions.dense") | both("mlm_head.norm", "predictions.LayerNorm")
        parts["mlm_head.decoder.bias"] = Part(("predictions.bias",))
    return Blueprint(config, parts, "albert.", _bert_copies("predictions"))


def _bert_copies(head: str) -> dict[str, str | None]:
    copies = {f"{head}.decoder.weight": "embeddings.word_embeddings.weight", f"{head}.decoder.bias": f"{head}.bias"}
    return copies | {"embeddings.position_ids": None}


def _bert_sizes(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "n_tokens": settings["vocab_size"],
        "n_max": settings["max_position_embeddings"],
        "n_segments": settings["type_vocab_size"],
        "d_model": settings["hidden_size"],
        "n_heads": settings["num_attention_heads"],
        "n_layers": settings["num_hidden_layers"],
        "d_ff": settings["intermediate_size"],
        "dropout": settings.get("hidden_dropout_prob", 0.1),
        "activation": activation_of(settings.get("hidden_act", "gelu")),
        "eps": settings.get("layer_norm_eps", 1e-12),
        "pad": settings.get("pad_token_id") or 0,
    }


def _there(heads: dict[str, str], names: Collection[str]) -> dict[str, bool]:
    """Which heads a model was published with."""
    return {head: any(start in name for name in names) for head, start in heads.items()}


def _bert_embeddings(theirs: str) -> dict[str, Part]:
    tables = {
        "token_embedding": "word_embeddings",
        "positions": "position_embeddings",
        "segments": "token_type_embeddings",
    }
    parts = {f"{ours}.weight": Part((f"{theirs}.{name}.weight",)) for ours, name in tables.items()}
    return parts | both("norm", f"{theirs}.LayerNorm")


def _post_norm_layer(
    i: int, query_key_value: list[str], out: str, norm: str, widening: str, narrowing: str, last_norm: str
) -> dict[str, Part]:
    ours = f"layers.{i}"
    parts = both(f"{ours}.self_attention.in_proj", *query_key_value) | both(f"{ours}.self_attention.out_proj", out)
    parts |= both(f"{ours}.self_attention_residual.norm", norm) | both(f"{ours}.feed_forward.linear1", widening)
    parts |= both(f"{ours}.feed_forward.linear2", narrowing)
    return parts | both(f"{ours}.feed_forward_residual.norm", last_norm)


def t5(settings: dict[str, Any], names: Collection[str]) -> Blueprint:
    """T5, the first version and 1.1: a gated network where the settings say so, one table where they say so.

    Raises ``ValueError`` for a variant that has no counterpart here.
    """
    kind = settings.get("feed_forward_proj", "relu")
    if kind not in ("relu", "gated-gelu"):
        raise ValueError(f"feed_forward_proj must be relu or gated-gelu, which is all that there is here; got {kind}")
    gated, tied = kind == "gated-gelu", settings.get("tie_word_embeddings", True)
    config = T5Config(
        n_tokens=settings["vocab_size"],
        d_model=settings["d_model"],
        d_head=settings["d_kv"],
        d_ff=settings["d_ff"],
        n_heads=settings["num_heads"],
        n_encoder_layers=settings["num_layers"],
        n_decoder_layers=settings.get("num_decoder_layers") or settings["num_layers"],
        n_buckets=settings.get("relative_attention_num_buckets", 32),
        max_distance=settings.get("relative_attention_max_distance", 128),
        dropout=settings.get("dropout_rate", 0.1),
        activation="geglu" if gated else "relu",
        eps=settings.get("layer_norm_epsilon", 1e-6),
        tie="all" if tied else "inputs",
        scale_logits=settings.get("scale_decoder_outputs", tied),
        pad=settings.get("pad_token_id") or 0,
        start=settings.get("decoder_start_token_id") or settings.get("pad_token_id") or 0,
        end=settings.get("eos_token_id", 1),
    )
    parts = {"source_embedding.token_embedding.weight": Part(("shared.weight",))}
    if not tied:
        parts["lm_head.weight"] = Part(("lm_head.weight",))
    for side, table in (("encoder", "source_embedding"), ("decoder", "target_embedding")):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        parts[f"{table}.positional.relative.weight"] = Part((first,))
        sublayers = [("self_attention", "SelfAttention"), ("cross_attention", "EncDecAttention")]
        sublayers = sublayers if side == "decoder" else sublayers[:1]
        for i in range(config.n_encoder_layers if side == "encoder" else config.n_decoder_layers):
            ours, theirs = f"{side}.layers.{i}", f"{side}.block.{i}.layer"
            for j, (mine, other) in enumerate(sublayers):
                query_key_value = tuple(f"{theirs}.{j}.{other}.{x}.weight" for x in "qkv")
                parts[f"{ours}.{mine}.in_proj.weight"] = Part(query_key_value)
                parts[f"{ours}.{mine}.out_proj.weight"] = Part((f"{theirs}.{j}.{other}.o.weight",))
                parts[f"{ours}.{mine}_residual.norm.weight"] = Part((f"{theirs}.{j}.layer_norm.weight",))
            j, wide = len(sublayers), ("wi_0", "wi_1") if gated else ("wi",)
            names_of_wide = tuple(f"{theirs}.{j}.DenseReluDense.{x}.weight" for x in wide)
            parts[f"{ours}.feed_forward.linear1.weight"] = Part(names_of_wide)
            parts[f"{ours}.feed_forward.linear2.weight"] = Part((f"{theirs}.{j}.DenseReluDense.wo.weight",))
            parts[f"{ours}.feed_forward_residual.norm.weight"] = Part((f"{theirs}.{j}.layer_norm.weight",))
        parts[f"{side}.norm.weight"] = Part((f"{side}.final_layer_norm.weight",))
    copies = dict.fromkeys(["embed_tokens.weight", "lm_head.weight"][: 1 + tied], "shared.weight")
    return Blueprint(config, parts, copies=copies)


def gpt2(settings: dict[str, Any], names: Collection[str] = ()) -> Blueprint:
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
        end=_special_token(settings, "eos_token_id"),
        pad=_special_token(settings, "pad_token_id"),
    )
    parts = {"token_embedding.weight": Part(("wte.weight",)), "positional.learned.weight": Part(("wpe.weight",))}
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}", f"h.{i}"
        parts |= both(f"{ours}.self_attention_residual.norm", f"{theirs}.ln_1")
        parts |= both(f"{ours}.self_attention.in_proj", f"{theirs}.attn.c_attn", transposed=True)
        parts |= both(f"{ours}.self_attention.out_proj", f"{theirs}.attn.c_proj", transposed=True)
        parts |= both(f"{ours}.feed_forward_residual.norm", f"{theirs}.ln_2")
        parts |= both(f"{ours}.feed_forward.linear1", f"{theirs}.mlp.c_fc", transposed=True)
        parts |= both(f"{ours}.feed_forward.linear2", f"{theirs}.mlp.c_proj", transposed=True)
    parts |= both("norm", "ln_f")
    return Blueprint(
        config,
        parts,
        "transformer.",
        copies={"lm_head.weight": "wte.weight", ".attn.bias": None, ".attn.masked_bias": None},
    )


def _special_token(settings: dict[str, Any], name: str) -> int | None:
    """One token of the vocabulary, or None; in a list of one, too. Raises ``ValueError`` for several."""
    token = settings.get(name)
    if isinstance(token, list | tuple):
        if len(token) > 1:
            raise ValueError(f"{name} must be one token, which is all that there is here; got {list(token)}")
        token = token[0] if token else None
    return token if token is not None and 0 <= token < settings["vocab_size"] else None


def gpt2_settings(config: GPTConfig) -> dict[str, Any]:
    """The settings of a `GPT`, as those of GPT-2 are published.

    Raises ``ValueError`` for an activation that GPT-2 does not have.
    """
    theirs = {ours: name for name, ours in reversed(ACTIVATIONS.items())}
    if config.activation not in theirs:
        raise ValueError(f"activation must be one that GPT-2 has, {', '.join(theirs)}; got {config.activation}")
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
        "activation_function": theirs[config.activation],
        "layer_norm_epsilon": config.eps,
        "bos_token_id": config.end,
        "eos_token_id": config.end,
        "pad_token_id": config.pad,
        "tie_word_embeddings": True,
    }
