r"""DETR: object queries ask the picture, all at the same time, and each says one object or none.

.. math:: z = \text{Decoder}\big(Q,\; \text{Encoder}(f W_f, P), P\big), \qquad
          p = \text{softmax}(z W_c), \quad b = \sigma(\text{MLP}(z))
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.renamed import moved
from attnlib.models.loading import FromHuggingFace
from attnlib.models.picture_configs import DETRConfig
from attnlib.models.published_pictures import detr
from attnlib.models.vit import check_pictures
from attnlib.nn.layers import DecoderLayer, DecoderLayerOutput, EncoderLayer
from attnlib.nn.settings import check_config

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DETR", "DETROutput", "grid_codes"]

__getattr__ = moved(__name__, {"Detected": f"{__name__}.DETROutput"})


class DETROutput(NamedTuple):
    """What `DETR` returns: ``logits`` of each query, "no object" last, its ``boxes``, and the weights of the decoder.

    A box is the middle, to the right and down, then width and height, all as shares of the picture.

    >>> DETROutput._fields
    ('logits', 'boxes', 'weights')
    """

    logits: Tensor
    boxes: Tensor
    weights: list[Tensor | None]


def grid_codes(height: int, width: int, d: int, *, like: Tensor) -> Float[Tensor, "height_times_width d"]:
    r"""A code for each place of a grid: half of it is the row's sines and cosines, half the column's.

    .. math:: P_{r, c} = \big[\text{PE}(2\pi r / h),\; \text{PE}(2\pi c / w)\big], \qquad r = 1..h, \; c = 1..w

    Of ``d``, which must be a multiple of 4; dtype and device are those of ``like``.

    Source: Carion et al. (2020), section A.4; their code counts rows and columns up to :math:`2\pi`.

    >>> grid_codes(2, 3, 8, like=torch.zeros(1)).shape
    torch.Size([6, 8])
    """
    speeds = 10000 ** -(torch.arange(0, d // 2, 2).to(like) / (d // 2))

    def code(n: int) -> Tensor:
        angles = 2 * pi * torch.arange(1, n + 1).to(like)[:, None] / (n + 1e-6) * speeds
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (n, d / 2)

    rows, columns = code(height)[:, None].expand(-1, width, -1), code(width)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=-1).flatten(0, 1)


class PlacedEncoderLayer(EncoderLayer):
    r"""An encoder layer that adds positions to queries and keys, and not to values.

    .. math:: h = \text{norm}\big(x + \text{MHA}(x + P,\; x + P,\; x)\big), \qquad y = \text{norm}(h + \text{FFN}(h))

    >>> PlacedEncoderLayer(8, 2, 16)(torch.randn(1, 6, 8), torch.randn(6, 8)).shape
    torch.Size([1, 6, 8])
    """

    def forward(self, x: Float[Tensor, "... n d"], places: Float[Tensor, "n d"]) -> Float[Tensor, "... n d"]:
        """One layer; ``places`` are the rows of P."""
        h = self.self_attention_residual.before(x)
        attended = self.self_attention(h + places, h + places, h)
        return self._feed_forward_block(self.self_attention_residual.after(x, attended.out))


class PlacedDecoderLayer(DecoderLayer):
    r"""A decoder layer in which the queries add what tells them apart, and the memory's keys where they are.

    .. math:: g = \text{norm}\big(x + \text{MHA}(x + Q, x + Q, x)\big), \qquad
              h = \text{norm}\big(g + \text{MHA}(g + Q,\; m + P,\; m)\big), \qquad y = \text{norm}(h + \text{FFN}(h))

    >>> layer, m = PlacedDecoderLayer(8, 2, 16), torch.randn(1, 6, 8)
    >>> layer(torch.zeros(1, 3, 8), m, queries=torch.randn(3, 8), places=torch.randn(6, 8)).out.shape
    torch.Size([1, 3, 8])
    """

    def forward(
        self, x: Tensor, memory: Tensor, *, queries: Tensor, places: Tensor, weights: bool = False
    ) -> DecoderLayerOutput:
        """One layer; ``queries`` are the rows of Q, ``places`` those of P."""
        h = self.self_attention_residual.before(x)
        attended = self.self_attention(h + queries, h + queries, h, weights=weights)
        x = self.self_attention_residual.after(x, attended.out)
        h = self.cross_attention_residual.before(x)
        crossed = self.cross_attention(h + queries, memory + places, memory, weights=weights)
        x = self.cross_attention_residual.after(x, crossed.out)
        return DecoderLayerOutput(self._feed_forward_block(x), attended.weights, crossed.weights)


class DETR(FromHuggingFace, nn.Module):
    r"""Pictures in; for each of ``n_queries`` object queries what it found, or that it found nothing, and its box.

    .. math:: z = \text{norm}\big(\text{DecoderLayer}^N(0, \text{EncoderLayer}^M(f W_f, P), Q, P)\big)

    ``backbone`` makes features ``(batch, channels, height, width)`` of pictures; unless given, features come in.
    There is no order and no mask among the queries: all answer in one pass, and differ by the rows of Q only.
    `from_huggingface` leaves the backbone out: give it afterwards, as ``model.backbone = …``.

    Source: Carion et al. (2020), *End-to-End Object Detection with Transformers*, section 3.2.

    >>> sizes = dict(d_model=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, d_ff=32)
    >>> model = DETR(DETRConfig(n_classes=4, channels=1, n_queries=5, **sizes), nn.AvgPool2d(4))
    >>> found = model(torch.rand(2, 1, 24, 24))
    >>> found.logits.shape, found.boxes.shape
    (torch.Size([2, 5, 5]), torch.Size([2, 5, 4]))
    """

    architectures: ClassVar[dict[str, Any]] = {"detr": detr}

    def __init__(self, config: DETRConfig, backbone: nn.Module | None = None) -> None:
        super().__init__()
        check_config(config, DETRConfig)
        self.config = config
        d = config.d_model
        self.backbone = nn.Identity() if backbone is None else backbone
        self.project = nn.Conv2d(config.channels, d, kernel_size=1)
        self.queries = nn.Embedding(config.n_queries, d)
        sizes = (d, config.n_heads, config.d_ff)
        options = {"activation": config.activation, "dropout": config.dropout, "norm_first": False}
        self.encoder = nn.ModuleList(PlacedEncoderLayer(*sizes, **options) for _ in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(PlacedDecoderLayer(*sizes, **options) for _ in range(config.n_decoder_layers))
        self.norm = nn.LayerNorm(d)
        self.kind = nn.Linear(d, config.n_classes + 1)
        self.box = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 4))

    def forward(self, pictures: Float[Tensor, "batch channels height width"], *, weights: bool = False) -> DETROutput:
        """What each query says, and with ``weights`` how each decoder layer weighed the places of the picture.

        Raises ``TypeError`` or ``ValueError`` when the features are not floats ``(batch, channels, height, width)``.
        """
        features = self.backbone(pictures)
        check_pictures(features, self.config.channels)
        places = grid_codes(*features.shape[2:], self.config.d_model, like=features)
        memory = self.project(features).flatten(2).mT  # (batch, n, d_model)
        for layer in self.encoder:
            memory = layer(memory, places)
        x, alphas = memory.new_zeros(len(memory), *self.queries.weight.shape), []
        for layer in self.decoder:
            x, _, alpha = layer(x, memory, queries=self.queries.weight, places=places, weights=weights)
            alphas.append(alpha)
        z = self.norm(x)
        return DETROutput(self.kind(z), self.box(z).sigmoid(), alphas)
