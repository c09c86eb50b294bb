"""The choices that make each model of language, checked."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib._base.checks import check_positive
from attnlib.nn.config import TransformerConfig
from attnlib.nn.feed_forward import ACTIVATIONS
from attnlib.nn.positional import KINDS
from attnlib.nn.settings import check_choices, check_divides, check_sizes, check_special_tokens, fill

__all__ = ["BERTConfig", "GPTConfig", "T5Config"]


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Every choice that makes a `GPT`; unless given, those of GPT-2's smallest.

    ``n_tokens`` is the size of the vocabulary, ``n_max`` the longest text, ``end`` the token that ends one and
    ``pad`` the one that fills up, if there are such. ``position`` is one of those of `attnlib.nn.Positional`.

    Raises ``ValueError`` for a size below one, heads that do not divide ``d_model``, an unknown word, or a token
    outside the vocabulary.

    >>> GPTConfig(n_tokens=50257).d_ff
    3072
    """

    n_tokens: int
    n_max: int = 1024
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 0
    dropout: float = 0.0
    activation: str = "gelu_tanh"
    position: str = "learned"
    eps: float = 1e-5
    end: int | None = 0
    pad: int | None = None

    def __post_init__(self) -> None:
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model)
        check_sizes(self, "n_tokens", "n_max", "n_heads", "n_layers", "d_ff")
        check_divides(self, n_heads="d_model")
        check_choices(self, activation=ACTIVATIONS, position=KINDS)
        check_special_tokens(self, "n_tokens", optional=("end", "pad"))

    @property
    def start(self) -> None:
        """No token: a text goes on after its last one."""


@dataclass(frozen=True, kw_only=True)
class BERTConfig:
    """Every choice that makes a `BERT`; unless given, those of the smaller published one.

    ``n_tokens`` is the size of the vocabulary, ``n_max`` the longest text, ``n_segments`` how many texts may stand in
    one row, ``pad`` the token that fills up. ``d_embedding`` is the size of an embedding, ``d_model`` unless given.
    ``std`` is the standard deviation of the weights at first: narrow models want more. ``share_layers`` makes all
    layers one. ``pooler``, ``sentence_head`` and ``masked_head`` say what stands upon the last layer.

    Raises ``ValueError`` for a size below one, heads that do not divide ``d_model``, an unknown word, a token outside
    the vocabulary, or a sentence head without the pooler, of which it reads.

    >>> BERTConfig(n_tokens=30522).d_ff
    3072
    """

    n_tokens: int
    n_max: int = 512
    n_segments: int = 2
    d_model: int = 768
    d_embedding: int = 0
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 0
    dropout: float = 0.0
    activation: str = "gelu"
    eps: float = 1e-12
    std: float = 0.02
    share_layers: bool = False
    widens: bool = False
    pooler: bool = True
    sentence_head: bool = True
    masked_head: bool = True
    pad: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model, d_embedding=self.d_model)
        if self.d_embedding != self.d_model:
            object.__setattr__(self, "widens", True)
        check_sizes(self, "n_tokens", "n_max", "n_segments", "d_embedding", "n_heads", "n_layers", "d_ff")
        check_divides(self, n_heads="d_model")
        check_choices(self, activation=ACTIVATIONS)
        check_special_tokens(self, "n_tokens", "pad")
        check_positive("std", self.std)
        if self.sentence_head and not self.pooler:
            raise ValueError("pooler must be True where sentence_head is, which reads what it gives; got False")


@dataclass(frozen=True, kw_only=True)
class T5Config(TransformerConfig):
    """Every choice that makes a `T5`: those of a `TransformerConfig`, with T5's where nothing is given.

    ``n_tokens`` is the size of the one vocabulary. Raises as `TransformerConfig`.

    >>> T5Config(n_tokens=32128, d_model=512, n_heads=8).n_target
    32128
    """

    n_tokens: int
    n_source: int = 0
    n_target: int = 0
    bias: bool = False
    norm: str = "rms"
    eps: float = 1e-6
    score: str = "dot"
    position: str = "relative"
    tie: str = "all"
    scale_embeddings: bool = False
    scale_logits: bool = True
    pad: int = 0
    start: int = 0
    end: int = 1

    def __post_init__(self) -> None:
        fill(self, n_source=self.n_tokens, n_target=self.n_tokens)
        super().__post_init__()
