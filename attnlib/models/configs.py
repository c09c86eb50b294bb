"""The choices that make each model, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attnlib._checks import check_at_least_one, check_one_of, check_positive, check_share
from attnlib.nn.config import TransformerConfig
from attnlib.nn.layers import ACTIVATIONS
from attnlib.nn.positional import KINDS

__all__ = ["BERTConfig", "CLIPConfig", "GPTConfig", "T5Config"]


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
        _fill(self, d_ff=4 * self.d_model)
        _check_sizes(self, "n_tokens", "n_max", "d_model", "n_heads", "n_layers", "d_ff")
        _check_choices(self, activation=ACTIVATIONS, position=KINDS)
        _check_words(self, "end", "pad")

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
        _fill(self, d_ff=4 * self.d_model, d_embedding=self.d_model)
        if self.d_embedding != self.d_model:
            object.__setattr__(self, "widens", True)
        _check_sizes(self, "n_tokens", "n_max", "n_segments", "d_model", "d_embedding", "n_heads", "n_layers", "d_ff")
        _check_choices(self, activation=ACTIVATIONS)
        _check_words(self, "pad")
        check_positive("std", self.std)
        if self.sentence_head and not self.pooler:
            raise ValueError("pooler must be True where sentence_head is, which reads what it gives; got False")


@dataclass(frozen=True, kw_only=True)
class CLIPConfig:
    """Every choice that makes a `CLIP`; unless given, those of the smallest published one.

    ``n_tokens`` is the size of the vocabulary, ``n_max`` the longest caption, ``end`` the token whose row stands for a
    caption, the largest of all unless given. A picture has ``n_channels`` and ``side`` pixels in height and width, and
    is cut into patches of ``patch``. ``d_model``, ``n_heads``, ``n_layers`` and ``d_ff`` are sizes of the pictures'
    encoder, ``d_text`` and so on those of the captions'; ``d_shared`` is the size of the rows that are compared, and
    ``scale`` what their cosines are multiplied by at first.

    Raises ``ValueError`` for a size below one, heads that do not divide, patches that do not fill a picture, an
    unknown word, a token outside the vocabulary, or a scale that is not positive.

    >>> CLIPConfig().n_patches
    49
    """

    n_tokens: int = 49408
    n_max: int = 77
    end: int | None = None
    n_channels: int = 3
    side: int = 224
    patch: int = 32
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 0
    d_text: int = 512
    n_text_heads: int = 8
    n_text_layers: int = 12
    d_text_ff: int = 0
    d_shared: int = 512
    scale: float = 1 / 0.07
    activation: str = "quick_gelu"
    text_activation: str = "quick_gelu"
    eps: float = 1e-5
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _fill(self, d_ff=4 * self.d_model, d_text_ff=4 * self.d_text)
        _check_sizes(
            self, "n_tokens", "n_max", "n_channels", "side", "patch", "d_model", "n_heads", "n_layers", "d_ff"
        )
        _check_sizes(self, "d_text", "n_text_heads", "n_text_layers", "d_text_ff", "d_shared")
        if self.d_text % self.n_text_heads:
            raise ValueError(f"n_text_heads must divide d_text = {self.d_text}; got {self.n_text_heads}")
        if self.side % self.patch:
            raise ValueError(f"patch must divide side = {self.side}; got {self.patch}")
        _check_choices(self, activation=ACTIVATIONS, text_activation=ACTIVATIONS)
        _check_words(self, "end")
        check_positive("scale", self.scale)

    @property
    def n_patches(self) -> int:
        """How many patches a picture has."""
        return (self.side // self.patch) ** 2


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
        _fill(self, n_source=self.n_tokens, n_target=self.n_tokens)
        super().__post_init__()


def _fill(config: object, **sizes: int) -> None:
    """What was left at 0 is as large as this."""
    for name, size in sizes.items():
        if getattr(config, name) == 0:
            object.__setattr__(config, name, size)


def _check_sizes(config: object, *names: str) -> None:
    for name in names:
        check_at_least_one(name, getattr(config, name))
    if config.d_model % config.n_heads:
        raise ValueError(f"n_heads must divide d_model = {config.d_model}; got {config.n_heads}")


def _check_choices(config: object, **known: Iterable[str]) -> None:
    check_share("dropout", config.dropout)
    for name, words in known.items():
        check_one_of(name, getattr(config, name), words)


def _check_words(config: object, *names: str) -> None:
    for name in names:
        token = getattr(config, name)
        if token is not None and not 0 <= token < config.n_tokens:
            raise ValueError(f"{name} must be a token below n_tokens = {config.n_tokens}; got {token}")
