r"""ViT: a picture cut into patches, which an encoder reads as BERT reads words.

.. math:: x = [c,\; p_1 E,\; \ldots,\; p_n E] + P, \qquad \text{logits} = \text{norm}(\text{Encoder}(x))_0\, W + b
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.checks import check_floats
from attnlib._base.renamed import moved
from attnlib.models.loading import FromHuggingFace
from attnlib.models.picture_configs import ViTConfig
from attnlib.models.published_pictures import vit
from attnlib.nn.layers import EncoderLayer
from attnlib.nn.settings import check_config

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Patches", "ViT", "ViTOutput", "check_pictures"]

__getattr__ = moved(__name__, {"Seen": f"{__name__}.ViTOutput"})


class ViTOutput(NamedTuple):
    """What `ViT.encode` returns: ``out`` ``(batch, 1 + n, d_model)``, the class token's row first, and the weights.

    >>> ViTOutput._fields
    ('out', 'weights')
    """

    out: Tensor
    weights: list[Tensor | None]


def check_pictures(pictures: Tensor, channels: int, size: int | None = None) -> None:
    """Raise unless these are ``(batch, channels, height, width)`` floats, with ``size`` of this height and width."""
    check_floats(pictures=pictures)
    wanted = (channels, *(() if size is None else (size, size)))
    if pictures.ndim != 4 or pictures.shape[1 : 1 + len(wanted)] != wanted:
        words = ", ".join(map(str, wanted if size else (channels, "height", "width")))
        raise ValueError(f"pictures must have shape (batch, {words}); got {tuple(pictures.shape)}")


class Patches(nn.Module):
    r"""A row for each patch of a picture, the class token's row before them, and to all of them their positions.

    .. math:: x_0 = c + P_0, \qquad x_i = p_i E + b + P_i

    The product with :math:`E` is a convolution whose kernel is as large as its stride: a patch. With ``position``
    "none" there is no :math:`P`.

    >>> config = ViTConfig(n_classes=10, image_size=8, patch_size=2, channels=1, d_model=24)
    >>> Patches(config)(torch.rand(3, 1, 8, 8)).shape
    torch.Size([3, 17, 24])
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        d, side = config.d_model, config.patch_size
        self.config = config
        self.project = nn.Conv2d(config.channels, d, kernel_size=side, stride=side)
        self.class_token = nn.Parameter(config.std * torch.randn(1, 1, d))
        if config.position == "learned":
            self.positions = nn.Parameter(config.std * torch.randn(1, 1 + config.n_patches, d))

    def forward(self, pictures: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch n d_model"]:
        """The rows. Raises ``TypeError`` or ``ValueError`` for pictures of another shape than ``config`` says."""
        check_pictures(pictures, self.config.channels, self.config.image_size)
        rows = self.project(pictures).flatten(2).mT  # (batch, d, rows, columns) -> (batch, n_patches, d)
        rows = torch.cat([self.class_token.expand(len(rows), 1, -1), rows], dim=1)
        return rows + self.positions if self.config.position == "learned" else rows


class ViT(FromHuggingFace, nn.Module):
    r"""A picture in, logits of its classes out: patches as tokens, pre-norm encoder layers, a class token to read.

    .. math:: z = \text{EncoderLayer}^L([c, p_1 E, \ldots, p_n E] + P), \qquad \text{logits} = \text{norm}(z)_0 W + b

    Source: Dosovitskiy et al. (2021), *An Image is Worth 16x16 Words*, section 3.1.

    >>> model = ViT(ViTConfig(n_classes=10, image_size=8, patch_size=2, channels=1, d_model=16, n_heads=4, n_layers=2))
    >>> model(torch.rand(3, 1, 8, 8)).shape
    torch.Size([3, 10])
    """

    architectures: ClassVar[dict[str, Any]] = {"vit": vit}

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        check_config(config, ViTConfig)
        self.config = config
        d = config.d_model
        self.patches = Patches(config)
        self.drop = nn.Dropout(config.dropout)
        options = {"activation": config.activation, "eps": config.eps, "dropout": config.dropout}
        self.layers = nn.ModuleList(
            EncoderLayer(d, config.n_heads, config.d_ff, **options) for _ in range(config.n_layers)
        )
        self.norm = nn.LayerNorm(d, eps=config.eps)
        self.out = nn.Linear(d, config.n_classes)

    def encode(self, pictures: Float[Tensor, "batch channels height width"], *, weights: bool = False) -> ViTOutput:
        """The rows after the last normalisation, and the weights of every layer if asked for.

        Raises ``TypeError`` or ``ValueError`` for pictures of another shape than ``config`` says.
        """
        x, alphas = self.drop(self.patches(pictures)), []
        for layer in self.layers:
            x, alpha = layer(x, weights=weights)
            alphas.append(alpha)
        return ViTOutput(self.norm(x), alphas)

    def forward(self, pictures: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes, from the class token's row; errors are those of `encode`."""
        return self.out(self.encode(pictures).out[:, 0])
