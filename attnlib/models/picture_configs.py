"""The choices that make the models that read pictures, checked."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib._checks import check_at_least_one, check_one_of, check_positive, check_share
from attnlib.nn.layers import ACTIVATIONS

__all__ = ["DETRConfig", "ViTConfig"]


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """Every choice that makes a `ViT`; unless given, those of the base model with patches of 16.

    Pictures are ``image_size`` pixels high and wide, patches ``patch_size``. ``position`` is "learned" or "none";
    ``std`` is the standard deviation of the class token and the positions at first.

    Raises ``TypeError`` or ``ValueError`` for a size below one, patches that do not tile the picture, heads that do
    not divide ``d_model``, an unknown word, or a dropout outside [0, 1).

    >>> ViTConfig(n_classes=1000).n_patches
    196
    """

    n_classes: int
    image_size: int = 224
    patch_size: int = 16
    channels: int = 3
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 0
    dropout: float = 0.0
    activation: str = "gelu"
    eps: float = 1e-12
    position: str = "learned"
    std: float = 0.02

    def __post_init__(self) -> None:
        _check(self, "n_classes", "image_size", "patch_size", "channels", "n_layers")
        check_one_of("position", self.position, ("learned", "none"))
        check_positive("std", self.std)
        if self.image_size % self.patch_size:
            raise ValueError(f"patch_size must divide image_size = {self.image_size}; got {self.patch_size}")

    @property
    def n_patches(self) -> int:
        """How many patches a picture has."""
        return (self.image_size // self.patch_size) ** 2


@dataclass(frozen=True, kw_only=True)
class DETRConfig:
    """Every choice that makes a `DETR`; unless given, those of the first published one.

    ``n_classes`` does not count "no object", which is the last class. ``channels`` is how many the features have that
    come in, ``n_queries`` how many objects can be found at most.

    Raises ``TypeError`` or ``ValueError`` for a size below one, heads that do not divide ``d_model``, a ``d_model``
    that is no multiple of 4, of which codes of rows and columns are made, an unknown word, or a dropout outside
    [0, 1).

    >>> DETRConfig(n_classes=91).n_queries
    100
    """

    n_classes: int
    channels: int = 2048
    n_queries: int = 100
    d_model: int = 256
    n_heads: int = 8
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.0
    activation: str = "relu"

    def __post_init__(self) -> None:
        _check(self, "n_classes", "channels", "n_queries", "n_encoder_layers", "n_decoder_layers")
        if self.d_model % 4:
            raise ValueError(f"d_model must be a multiple of 4; got {self.d_model}")


def _check(config: object, *sizes: str) -> None:
    if config.d_ff == 0:
        object.__setattr__(config, "d_ff", 4 * config.d_model)
    for name in ("d_model", "n_heads", "d_ff", *sizes):
        check_at_least_one(name, getattr(config, name))
    if config.d_model % config.n_heads:
        raise ValueError(f"n_heads must divide d_model = {config.d_model}; got {config.n_heads}")
    check_one_of("activation", config.activation, ACTIVATIONS)
    check_share("dropout", config.dropout)
