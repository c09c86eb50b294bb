"""The choices that make the models that read pictures, checked."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib._base.checks import check_positive
from attnlib.nn.feed_forward import ACTIVATIONS
from attnlib.nn.settings import check_choices, check_divides, check_sizes, check_special_tokens, fill

__all__ = ["CLIPConfig", "DETRConfig", "ViTConfig"]


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
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model)
        check_sizes(self, "n_classes", "image_size", "patch_size", "channels", "n_heads", "n_layers", "d_ff")
        check_divides(self, n_heads="d_model", patch_size="image_size")
        check_choices(self, activation=ACTIVATIONS, position=("learned", "none"))
        check_positive("std", self.std)

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
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model)
        check_sizes(self, "n_classes", "channels", "n_queries", "n_heads", "d_ff")
        check_sizes(self, "n_encoder_layers", "n_decoder_layers")
        check_divides(self, n_heads="d_model")
        check_choices(self, activation=ACTIVATIONS)
        if self.d_model % 4:
            raise ValueError(f"d_model must be a multiple of 4; got {self.d_model}")


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
        check_sizes(self, "d_model")
        fill(self, d_ff=4 * self.d_model, d_text_ff=4 * self.d_text)
        check_sizes(self, "n_tokens", "n_max", "n_channels", "side", "patch", "n_heads", "n_layers", "d_ff")
        check_sizes(self, "d_text", "n_text_heads", "n_text_layers", "d_text_ff", "d_shared")
        check_divides(self, n_heads="d_model", n_text_heads="d_text", patch="side")
        check_choices(self, activation=ACTIVATIONS, text_activation=ACTIVATIONS)
        check_special_tokens(self, "n_tokens", optional=("end",))
        check_positive("scale", self.scale)

    @property
    def n_patches(self) -> int:
        """How many patches a picture has."""
        return (self.side // self.patch) ** 2
