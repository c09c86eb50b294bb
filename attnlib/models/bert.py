r"""BERT: encoder layers that see both sides, trained to say what was hidden. ALBERT is the same with shared layers.

.. math:: z = \text{Encoder}(\text{norm}(x E + P + S)), \qquad
          p(x_t \mid \text{the rest}) = \text{softmax}(\text{norm}(a(z_t W))\, E^\top + b)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.renamed import RenamedWeights, moved, renamed
from attnlib.models.configs import BERTConfig
from attnlib.models.loading import FromHuggingFace
from attnlib.models.published import albert, bert
from attnlib.nn.feed_forward import ACTIVATIONS
from attnlib.nn.layers import EncoderLayer
from attnlib.nn.positional import LearnedPositions
from attnlib.nn.saving import named
from attnlib.nn.settings import check_config
from attnlib.nn.tokens import check_beside, check_tokens

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["BERT", "EncoderOutput"]

__getattr__ = moved(__name__, {"Read": f"{__name__}.EncoderOutput"})


@named
class EncoderOutput(NamedTuple):
    """What `BERT.encode` returns: ``out`` ``(batch, n, d_model)``, and the weights of every layer if asked for.

    >>> EncoderOutput._fields
    ('out', 'weights')
    """

    out: Tensor
    weights: list[Tensor | None]


class MLMHead(nn.Module):
    """From a row to logits for what stood there; the table of embeddings is the last layer's, but for its bias."""

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_embedding)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = nn.LayerNorm(config.d_embedding, eps=config.eps)
        self.decoder = nn.Linear(config.d_embedding, config.n_tokens)

    def forward(self, out: Float[Tensor, "... d_model"]) -> Float[Tensor, "... n_tokens"]:
        """The logits."""
        return self.decoder(self.norm(self.activation(self.dense(out))))


class BERT(FromHuggingFace, RenamedWeights, nn.Module):
    r"""A masked language model: a text with gaps in, a distribution over the vocabulary out, at every position.

    .. math:: z = \text{EncoderLayer}^L(\text{norm}(x E + P + S) W_\text{in}), \qquad
              \text{logits} = \text{norm}(a(z W)) E^\top + b

    Post-norm layers; :math:`S` says to which of two texts a token belongs, and :math:`W_\text{in}` is there where
    ``d_embedding`` is not ``d_model``. With ``share_layers`` all layers are one, as in ALBERT. What a model needs for
    a task of its own, it takes from `encode`, or from `pooled`, the first position's row.

    Source: Devlin et al. (2019), *BERT*; Lan et al. (2020), *ALBERT*.

    >>> model = BERT(BERTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2))
    >>> model(torch.randint(20, (2, 7))).shape
    torch.Size([2, 7, 20])
    """

    architectures: ClassVar[dict[str, Any]] = {"bert": bert, "albert": albert}
    renamed_weights: ClassVar[dict[str, str]] = {
        "table": "token_embedding",
        "widen": "embedding_projection",
        "pool": "pooler",
        "relate": "next_sentence_head",
        "transform": "mlm_head.dense",
        "transform_norm": "mlm_head.norm",
        "out": "mlm_head.decoder",
    }

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        check_config(config, BERTConfig)
        self.config = config
        d, e = config.d_model, config.d_embedding
        options = {"activation": config.activation, "eps": config.eps, "dropout": config.dropout, "norm_first": False}
        n_layers = 1 if config.share_layers else config.n_layers

        self.token_embedding = nn.Embedding(config.n_tokens, e)
        self.positions = LearnedPositions(config.n_max, e)
        self.segments = nn.Embedding(config.n_segments, e)
        self.norm = nn.LayerNorm(e, eps=config.eps)
        self.drop = nn.Dropout(config.dropout)
        self.embedding_projection = nn.Linear(e, d) if config.widens else nn.Identity()
        self.layers = nn.ModuleList(EncoderLayer(d, config.n_heads, config.d_ff, **options) for _ in range(n_layers))
        if config.pooler:
            self.pooler = nn.Linear(d, d)
        if config.sentence_head:
            self.next_sentence_head = nn.Linear(d, 2)
        if config.masked_head:
            self.mlm_head = MLMHead(config)
            self.mlm_head.decoder.weight = self.token_embedding.weight
        self.init_weights()

    def init_weights(self) -> None:
        """Normal numbers of the size ``config.std``, and biases of zero."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=self.config.std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def encode(
        self,
        tokens: Int[Tensor, "batch n"],
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        segments: Int[Tensor, "batch n"] | None = None,
        weights: bool = False,
    ) -> EncoderOutput:
        """A row for each token, from all of them. ``mask`` is True where a token is real, False where it fills up.

        ``segments`` says to which text a token belongs, all of them to the first unless given.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, there
        are more than ``n_max``, or the mask or the segments have another shape.
        """
        check_tokens("tokens", tokens, self.config.n_tokens)
        check_beside(tokens, mask=mask, segments=segments)
        if segments is None:
            segments = torch.zeros_like(tokens)
        else:
            check_tokens("segments", segments, self.config.n_segments)
        x = self.token_embedding(tokens) + self.positions(tokens.shape[1]) + self.segments(segments)
        x = self.embedding_projection(self.drop(self.norm(x)))
        alphas = []
        for i in range(self.config.n_layers):
            layer = self.layers[0 if self.config.share_layers else i]
            x, alpha = layer(x, mask=None if mask is None else mask[:, None], weights=weights)
            alphas.append(alpha)
        return EncoderOutput(x, alphas)

    def forward(
        self,
        tokens: Int[Tensor, "batch n"],
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        segments: Int[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n n_tokens"]:
        """Logits for what stood at each position; arguments and errors are those of `encode`."""
        return self.mlm_logits(self.encode(tokens, mask=mask, segments=segments).out)

    if TYPE_CHECKING:
        __call__ = forward  # torch's takes and gives anything

    def mlm_logits(self, out: Float[Tensor, "... d_model"]) -> Float[Tensor, "... n_tokens"]:
        """Logits for what stood at positions of which `encode` gave the rows ``out``: all, or chosen ones.

        >>> model = BERT(BERTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2))
        >>> model.mlm_logits(torch.zeros(5, 16)).shape
        torch.Size([5, 20])
        """
        self._needs("masked_head")
        return self.mlm_head(out)

    fill = renamed("mlm_logits")

    def pooled(self, out: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch d_model"]:
        """A row for each text: that of its first position, through a layer and tanh."""
        self._needs("pooler")
        return self.pooler(out[:, 0]).tanh()

    def next_sentence_logits(self, out: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch 2"]:
        """Logits for "the second text follows the first" and "it does not" (of ALBERT: "they are exchanged")."""
        self._needs("sentence_head")
        return self.next_sentence_head(self.pooled(out))

    follows = renamed("next_sentence_logits")

    def _needs(self, part: str) -> None:
        if not getattr(self.config, part):
            raise ValueError(f"config.{part} must be True for this; the model was made, or published, without it")
