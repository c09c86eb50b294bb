"""Every choice that makes a Transformer, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlib._base.checks import check_share
from attnlib.data.text import END, PAD, START
from attnlib.nn.feed_forward import ACTIVATIONS
from attnlib.nn.layers import NORMS
from attnlib.nn.positional import KINDS
from attnlib.nn.settings import check_choices, check_divides, check_sizes, check_special_tokens, fill
from attnlib.scores import dot, scaled_dot

__all__ = ["TransformerConfig"]

TIES = ("none", "inputs", "output", "all")
SCORES = {"scaled_dot": scaled_dot, "dot": dot}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Every choice that makes a `Transformer`.

    ``n_source`` and ``n_target`` are the sizes of the vocabularies, ``n_max`` the number of learned positions.
    ``tie`` says which tables are one: "none", the two "inputs", the target's embedding and the "output", or "all"
    three. ``position`` is one of none, sinusoidal, learned, relative, alibi, rotary; ``norm`` "layer" or "rms", with
    ``eps``; ``activation`` relu, gelu, gelu_tanh, silu, swiglu or geglu; ``score`` "scaled_dot" or "dot".
    ``dropout`` is the share of a row's numbers that training drops, ``attention_dropout`` that of the weights,
    ``activation_dropout`` that of the feed-forward's hidden layer, the same unless given. ``scale_embeddings``
    multiplies embeddings by the root of ``d_model``, ``scale_logits`` divides by it what the output's table is
    multiplied with, ``norm_embeddings`` normalises embeddings, ``final_norm`` is a normalisation after the last layer
    (of a pre-norm model unless given). ``n_buckets`` and ``max_distance`` are those of relative positions.

    Raises ``ValueError`` for a size below one, heads that do not divide ``d_model``, an unknown word, a special token
    outside the vocabulary, or one table for two vocabularies.

    >>> TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4).d_ff
    64
    """

    n_source: int
    n_target: int
    d_model: int = 64
    n_heads: int = 4
    d_head: int | None = None
    n_kv_heads: int | None = None
    n_encoder_layers: int = 2
    n_decoder_layers: int = 2
    d_ff: int = 0
    dropout: float = 0.0
    attention_dropout: float | None = None
    activation_dropout: float | None = None
    activation: str = "relu"
    norm: str = "layer"
    eps: float = 1e-5
    norm_first: bool = True
    final_norm: bool | None = None
    score: str = "scaled_dot"
    position: str = "sinusoidal"
    n_max: int = 512
    n_buckets: int = 32
    max_distance: int = 128
    tie: str = "output"
    scale_embeddings: bool = True
    scale_logits: bool = False
    norm_embeddings: bool = False
    bias: bool = True
    pad: int = PAD
    start: int = START
    end: int = END

    def __post_init__(self) -> None:
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model)
        if self.final_norm is None:
            object.__setattr__(self, "final_norm", self.norm_first)
        check_sizes(self, "n_source", "n_target", "n_heads", "d_ff", "n_max")
        check_sizes(self, "n_encoder_layers", "n_decoder_layers")
        if self.d_head is None:
            check_divides(self, n_heads="d_model")
        else:
            check_sizes(self, "d_head")
        if self.n_kv_heads is not None:
            check_sizes(self, "n_kv_heads")
            check_divides(self, n_kv_heads="n_heads")
        for name in ("attention_dropout", "activation_dropout"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        check_choices(self, activation=ACTIVATIONS, norm=NORMS, position=KINDS, tie=TIES, score=SCORES)
        if self.tie in ("all", "inputs") and self.n_source != self.n_target:
            raise ValueError(f'tie="{self.tie}" needs one vocabulary; got {self.n_source} and {self.n_target} tokens')
        for kind, size in {"sinusoidal": self.d_model, "rotary": self.d_head or self.d_model // self.n_heads}.items():
            if self.position == kind and size % 2:
                raise ValueError(f"{kind} positions need pairs of numbers; got an odd size, {size}")
        check_special_tokens(self, "n_target", "pad", "start", "end")
        if self.pad == self.end or self.pad >= self.n_source:
            raise ValueError(f"pad must be a token of the source, and not the end; got {self.pad}")

    @property
    def layer(self) -> dict[str, Any]:
        """The options of a layer."""
        names = ("d_model", "n_heads", "d_head", "n_kv_heads", "d_ff", "activation", "norm", "eps", "norm_first")
        names += ("dropout", "attention_dropout", "activation_dropout", "bias")
        options = {name: getattr(self, name) for name in names}
        return options | {"score": SCORES[self.score]}
