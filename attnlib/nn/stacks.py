"""Encoder and decoder: layers one upon the other."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from attnlib.nn.cache import Cache
from attnlib.nn.config import TransformerConfig
from attnlib.nn.from_torch import check_module
from attnlib.nn.layers import NORMS, DecoderLayer, DecoderLayerOutput, EncoderLayer

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Decoder", "Encoder"]


class Encoder(nn.Module):
    r"""Encoder layers one upon the other, and a normalisation where ``config.final_norm`` says so.

    .. math:: x_{l+1} = \text{EncoderLayer}_l(x_l)

    Source: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> encoder = Encoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> encoder(torch.randn(2, 5, 8))[0].shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(**config.layer) for _ in range(config.n_encoder_layers))
        self.norm = NORMS[config.norm](config.d_model, eps=config.eps) if config.final_norm else nn.Identity()

    def forward(self, x: Float[Tensor, "... n d_model"], **options: Any) -> tuple[Tensor, list[Tensor | None]]:
        """The last layer's output and the weights of each, if asked for. Options are those of `EncoderLayer`."""
        weights = []
        for layer in self.layers:
            x, alpha = layer(x, **options)
            weights.append(alpha)
        return self.norm(x), weights

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoder) -> Encoder:
        """The same stack with the weights of torch's.

        >>> import torch
        >>> one = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        >>> theirs, x = nn.TransformerEncoder(one, 2, enable_nested_tensor=False), torch.randn(1, 3, 8)
        >>> torch.allclose(Encoder.from_torch(theirs)(x)[0], theirs(x), atol=1e-6)
        True
        """
        return _stack_from_torch(cls, module, nn.TransformerEncoder, EncoderLayer)


class Decoder(nn.Module):
    r"""Decoder layers one upon the other, and a normalisation where ``config.final_norm`` says so.

    .. math:: y_{l+1} = \text{DecoderLayer}_l(y_l, \text{memory})

    Source: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> decoder = Decoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> decoder(torch.randn(2, 5, 8), torch.randn(2, 7, 8))[0].shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(**config.layer) for _ in range(config.n_decoder_layers))
        self.norm = NORMS[config.norm](config.d_model, eps=config.eps) if config.final_norm else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        memory: Float[Tensor, "... n_memory d_model"] | None = None,
        *,
        caches: Sequence[tuple[Cache, Cache]] | None = None,
        **options: Any,
    ) -> tuple[Tensor, list[DecoderLayerOutput]]:
        """The last layer's output and what each layer returned. Options are those of `DecoderLayer`."""
        decoded = []
        for i, layer in enumerate(self.layers):
            decoded.append(layer(x, memory, caches=None if caches is None else caches[i], **options))
            x = decoded[-1].out
        return self.norm(x), decoded

    @classmethod
    def from_torch(cls, module: nn.TransformerDecoder) -> Decoder:
        """The same stack with the weights of torch's.

        >>> import torch
        >>> one = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        >>> theirs, x, memory = nn.TransformerDecoder(one, 2), torch.randn(1, 3, 8), torch.randn(1, 4, 8)
        >>> torch.allclose(Decoder.from_torch(theirs)(x, memory)[0], theirs(x, memory), atol=1e-6)
        True
        """
        return _stack_from_torch(cls, module, nn.TransformerDecoder, DecoderLayer)


def _stack_from_torch(cls: type, module: nn.Module, kind: type, layer: type) -> nn.Module:
    check_module(module, kind)
    stack = cls.__new__(cls)
    nn.Module.__init__(stack)
    stack.layers = nn.ModuleList(map(layer.from_torch, module.layers))
    stack.norm = nn.Identity() if module.norm is None else deepcopy(module.norm)
    return stack.train(module.training)
