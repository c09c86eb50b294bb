r"""CLIP: an encoder for pictures and one for captions, so trained that what belongs together points one way.

.. math:: s_{ij} = \tau \cos(p_i, c_j), \qquad
          \text{loss} = \tfrac12 \big(\text{CE}(s, \text{own caption}) + \text{CE}(s^\top, \text{own picture})\big)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib._base.checks import check_floats
from attnlib._base.renamed import RenamedWeights
from attnlib.models.loading import FromHuggingFace
from attnlib.models.picture_configs import CLIPConfig
from attnlib.models.published_clip import clip
from attnlib.nn.layers import EncoderLayer
from attnlib.nn.positional import LearnedPositions
from attnlib.nn.settings import check_config
from attnlib.nn.tokens import check_tokens

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CLIP", "PictureEncoder", "TextEncoder", "contrastive_loss"]


def contrastive_loss(scores: Float[Tensor, "n n"]) -> Float[Tensor, ""]:
    r"""How badly pictures (rows) find their captions (columns) and captions their pictures; pairs on the diagonal.

    .. math:: -\frac{1}{2n} \sum_i \log \frac{e^{s_{ii}} e^{s_{ii}}}{\sum_j e^{s_{ij}} \sum_j e^{s_{ji}}}

    Raises ``ValueError`` when there are not as many captions as pictures.

    Source: Radford et al. (2021), *Learning Transferable Visual Models From Natural Language Supervision*, figure 3.

    >>> contrastive_loss(torch.zeros(4, 4)).exp()
    tensor(4.)
    """
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"scores must be (n, n), a caption for each picture; got {tuple(scores.shape)}")
    own = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


class PictureEncoder(nn.Module):
    r"""A Vision Transformer without its classes: patches are tokens, and a learned first row becomes the picture's.

    .. math:: \text{norm}\big(\text{EncoderLayer}^L(\text{norm}([f; \text{stem}(x)] + P))_0\big) W

    ``stem`` makes patches into rows, (batch, d_model, rows, columns); another module may take its place.

    Source: Radford et al. (2021), section 2.4; Dosovitskiy et al. (2021), *ViT*.

    >>> PictureEncoder(CLIPConfig(side=16, patch=4, d_model=8, n_heads=2, n_layers=1))(torch.zeros(5, 3, 16, 16)).shape
    torch.Size([5, 512])
    """

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__()
        d = config.d_model
        self.shape = (config.n_channels, config.side, config.side)
        options = {"activation": config.activation, "eps": config.eps, "dropout": config.dropout}
        self.stem = nn.Conv2d(config.n_channels, d, config.patch, stride=config.patch, bias=False)
        self.first = nn.Parameter(d**-0.5 * torch.randn(d))
        self.positions = LearnedPositions(config.n_patches + 1, d)
        self.norm_before = nn.LayerNorm(d, eps=config.eps)
        self.norm = nn.LayerNorm(d, eps=config.eps)
        self.layers = nn.ModuleList(
            EncoderLayer(d, config.n_heads, config.d_ff, **options) for _ in range(config.n_layers)
        )
        self.project = nn.Linear(d, config.d_shared, bias=False)

    def rows(self, pictures: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch n d_model"]:
        """The last layer's rows: the picture's, then one for each patch, line by line.

        Raises ``TypeError`` for anything but floats, ``ValueError`` for another shape.
        """
        check_floats(pictures=pictures)
        if tuple(pictures.shape[1:]) != self.shape:
            raise ValueError(f"pictures must be (batch, *{self.shape}); got {tuple(pictures.shape)}")
        patches = self.stem(pictures).flatten(2).mT  # (batch, n_patches, d_model)
        x = torch.cat([self.first.expand(len(patches), 1, -1), patches], dim=1)
        x = self.norm_before(x + self.positions(x.shape[1]))
        for layer in self.layers:
            x = layer(x).out
        return x

    def forward(self, pictures: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch d_shared"]:
        """A row for each picture. Raises as `rows`."""
        return self.project(self.norm(self.rows(pictures)[:, 0]))


class TextEncoder(RenamedWeights, nn.Module):
    r"""The layers of a GPT over a caption; the row of its end token, which has read all others, becomes the caption's.

    .. math:: \text{norm}\big(\text{EncoderLayer}^L_\text{causal}(x E + P)\big)_\text{end}\, W

    Source: Radford et al. (2021), section 2.4.

    >>> config = CLIPConfig(n_tokens=9, d_text=16, n_text_heads=2, n_text_layers=1, d_shared=7)
    >>> TextEncoder(config)(torch.tensor([[3, 4, 8], [5, 8, 0]])).shape
    torch.Size([2, 7])
    """

    renamed_weights: ClassVar[dict[str, str]] = {"table": "token_embedding"}

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__()
        self.n_tokens = config.n_tokens
        self.end = config.end
        d = config.d_text
        options = {"activation": config.text_activation, "eps": config.eps, "dropout": config.dropout}
        self.token_embedding = nn.Embedding(config.n_tokens, d)
        self.positions = LearnedPositions(config.n_max, d)
        nn.init.normal_(self.token_embedding.weight, std=0.02)
        self.layers = nn.ModuleList(
            EncoderLayer(d, config.n_text_heads, config.d_text_ff, **options) for _ in range(config.n_text_layers)
        )
        self.norm = nn.LayerNorm(d, eps=config.eps)
        self.project = nn.Linear(d, config.d_shared, bias=False)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch d_shared"]:
        """A row for each caption: that of its first end token (its largest token, where ``config.end`` is None).

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary.
        """
        check_tokens("tokens", tokens, self.n_tokens)
        x = self.token_embedding(tokens) + self.positions(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, causal=True).out
        last = (tokens if self.end is None else (tokens == self.end).int()).argmax(dim=1)
        return self.project(self.norm(x[torch.arange(len(x)), last]))


class CLIP(FromHuggingFace, nn.Module):
    r"""Scores for how well each picture and each caption go together: cosines times a learned number.

    .. math:: s_{ij} = e^t \, \frac{p_i \cdot c_j}{\lVert p_i \rVert \lVert c_j \rVert}

    Other modules that give rows of one size may take the place of ``pictures`` and ``text``.

    Source: Radford et al. (2021), *CLIP*, section 2.

    >>> model = CLIP(CLIPConfig(side=64, n_layers=1, n_text_layers=1))
    >>> model(torch.zeros(2, 3, 64, 64), torch.zeros(5, 4, dtype=torch.int64)).shape
    torch.Size([2, 5])
    """

    architectures: ClassVar[dict[str, Any]] = {"clip": clip}

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__()
        check_config(config, CLIPConfig)
        self.config = config
        self.pictures = PictureEncoder(config)
        self.text = TextEncoder(config)
        self.log_scale = nn.Parameter(torch.tensor(config.scale).log())

    def forward(self, pictures: Float[Tensor, "n c s s"], tokens: Int[Tensor, "m length"]) -> Float[Tensor, "n m"]:
        """A score for every picture with every caption. Errors are those of the encoders."""
        p = F.normalize(self.pictures(pictures), dim=-1)
        c = F.normalize(self.text(tokens), dim=-1)
        return self.log_scale.exp() * p @ c.T
