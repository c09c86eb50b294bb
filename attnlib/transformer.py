r"""The encoder–decoder Transformer, assembled from `attnlib.layers`.

.. math:: \text{memory} = \text{Encoder}(x), \qquad
          \text{logits}_t = \text{Decoder}(y_{<t}, \text{memory})\, W_\text{out}
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._cache import Cache
from attnlib._config import TransformerConfig
from attnlib._places import Places
from attnlib._state import State
from attnlib._stepping import stepper
from attnlib.layers import NORMS, Decoded, DecoderLayer, EncoderLayer

if TYPE_CHECKING:
    from jaxtyping import Float, Int


__all__ = ["Decoder", "Encoder", "State", "Transformer", "TransformerConfig", "Translated"]


class Embedding(nn.Module):
    """Rows for tokens, with their positions."""

    def __init__(self, n_tokens: int, config: TransformerConfig, *, bidirectional: bool) -> None:
        super().__init__()
        d = config.d_model
        self.table = nn.Embedding(n_tokens, d)
        nn.init.normal_(self.table.weight, std=d**-0.5)
        self.scale = d**0.5 if config.scale_embeddings else 1.0
        self.places = Places(
            config.position, d_model=d, n_heads=config.n_heads, n_max=config.n_max, bidirectional=bidirectional
        )
        self.norm = NORMS[config.norm](d, eps=1e-5) if config.norm_embeddings else nn.Identity()
        self.drop = nn.Dropout(config.dropout)

    def forward(self, tokens: Int[Tensor, "batch n"], start: int = 0) -> Float[Tensor, "batch n d_model"]:
        """The rows of ``tokens``, of which the first stands at position ``start``."""
        x = self.norm(self.places.added(self.scale * self.table(tokens), start))
        return self.drop(x) if self.training else x


class Encoder(nn.Module):
    r"""Encoder layers one upon the other, and a normalisation where ``config.final_norm`` says so.

    .. math:: x_{l+1} = \text{EncoderLayer}_l(x_l)

    Source: Vaswani et al. (2017), section 3.1.

    >>> encoder = Encoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> encoder(torch.randn(2, 5, 8))[0].shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(**config.layer) for _ in range(config.n_encoder_layers))
        self.norm = NORMS[config.norm](config.d_model, eps=1e-5) if config.final_norm else nn.Identity()

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

    >>> decoder = Decoder(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> decoder(torch.randn(2, 5, 8), torch.randn(2, 7, 8))[0].shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(**config.layer) for _ in range(config.n_decoder_layers))
        self.norm = NORMS[config.norm](config.d_model, eps=1e-5) if config.final_norm else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        memory: Float[Tensor, "... n_memory d_model"] | None = None,
        *,
        caches: Sequence[tuple[Cache, Cache]] | None = None,
        **options: Any,
    ) -> tuple[Tensor, list[Decoded]]:
        """The last layer's output and what each layer returned. Options are those of `DecoderLayer`."""
        decoded = []
        for i, layer in enumerate(self.layers):
            decoded.append(layer(x, memory, caches=None if caches is None else caches[i], **options))
            x = decoded[-1].out
        return self.norm(x), decoded

    @classmethod
    def from_torch(cls, module: nn.TransformerDecoder) -> Decoder:
        """The same stack with the weights of torch's.

        >>> one = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        >>> theirs, x, memory = nn.TransformerDecoder(one, 2), torch.randn(1, 3, 8), torch.randn(1, 4, 8)
        >>> torch.allclose(Decoder.from_torch(theirs)(x, memory)[0], theirs(x, memory), atol=1e-6)
        True
        """
        return _stack_from_torch(cls, module, nn.TransformerDecoder, DecoderLayer)


class Translated(NamedTuple):
    """What `Transformer` returns: ``logits`` ``(batch, n, n_target)``, and the weights of every layer if asked for.

    >>> Translated._fields
    ('logits', 'encoder', 'decoder', 'cross')
    """

    logits: Tensor
    encoder: list[Tensor | None]
    decoder: list[Tensor | None]
    cross: list[Tensor | None]


class Transformer(nn.Module):
    r"""The encoder–decoder model: tokens in, a distribution over the next target token out, at every position.

    .. math:: p(y_t \mid y_{<t}, x) = \text{softmax}(z_t W_\text{out}), \qquad
              z_t = \text{Decoder}(y_{<t}, \text{Encoder}(x))_t

    Where the source equals ``config.pad`` it is padding, which nothing attends to; the target's padding stands behind
    all that is real, where the causal mask hides it. The target goes in shifted right: its first token is
    ``config.start``, and the logits at position ``t`` are for the token after it.

    Source: Vaswani et al. (2017), section 3.

    >>> model = Transformer(TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4))
    >>> model(torch.randint(4, 20, (2, 7)), torch.randint(4, 30, (2, 5))).logits.shape
    torch.Size([2, 5, 30])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.source = Embedding(config.n_source, config, bidirectional=True)
        self.target = Embedding(config.n_target, config, bidirectional=False)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.out = nn.Linear(config.d_model, config.n_target, bias=False)
        if config.tie != "none":
            self.out.weight = self.target.table.weight
        if config.tie == "all":
            self.source.table.weight = self.target.table.weight

    def forward(
        self, source: Int[Tensor, "batch n_source"], target: Int[Tensor, "batch n"], *, weights: bool = False
    ) -> Translated:
        """Logits for every position of ``target``, all at once, each from the source and what stands before it.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, the
        batches differ or a position was not learned.
        """
        self._check(source=source, target=target)
        memory, real, encoder_weights = self._encode(source, weights)
        n = target.shape[1]
        x = self.target(target)
        told = self.target.places.told(n, n, like=x)
        x, layers = self.decoder(x, memory, causal=True, memory_mask=real, weights=weights, **told)
        own, cross = [layer.weights for layer in layers], [layer.cross_weights for layer in layers]
        return Translated(self.out(x), encoder_weights, own, cross)

    @torch.no_grad()
    def remember(self, source: Int[Tensor, "batch n_source"], n_max: int) -> State:
        """Read the source once, and make room for ``n_max`` target positions, for `step`.

        Raises as `forward`, and ``ValueError`` when so many positions were not learned.
        """
        self._check(source=source)
        self.target.places.check(n_max)
        memory, real, _ = self._encode(source, weights=False)
        caches = [layer.remember(memory, n_max) for layer in self.decoder.layers]
        return State(caches, real, stepper(self.decoder))

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "batch n"], state: State) -> Float[Tensor, "batch n n_target"]:
        """Logits after each of the next ``tokens``, which join those of earlier calls in ``state``.

        Raises ``ValueError`` when ``state`` has no room left; otherwise as `forward`.

        >>> model = Transformer(TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4)).eval()
        >>> source, target = torch.randint(4, 20, (2, 7)), torch.randint(4, 30, (2, 5))
        >>> state = model.remember(source, n_max=5)
        >>> logits = torch.cat([model.step(tokens, state) for tokens in target.split(1, dim=1)], dim=1)
        >>> torch.allclose(logits, model(source, target).logits, atol=1e-5)
        True
        """
        self._check(target=tokens)
        if not isinstance(state, State):
            raise TypeError(f"state must be what `remember` returned; got {type(state).__name__}")
        n, start = tokens.shape[1], state.length
        try:
            x = self.target(tokens, start)
            options = {"memory_mask": state.real} | self.target.places.told(n, start + n, like=x)
            y = state.stepper(self.decoder, x, state.caches, **options) if n == 1 and state.stepper else None
            if y is None:  # the layers can do more, or name what is wrong
                state.rewind(start)
                y, _ = self.decoder(x, causal=True, caches=state.caches, **options)
            return self.out(y)
        except BaseException:
            state.rewind(start)  # a step that failed was not made
            raise

    def _encode(self, source: Tensor, weights: bool) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
        real = (source != self.config.pad)[:, None]
        real = None if real.all() else real  # a mask that hides nothing would cost as much as one that does
        x = self.source(source)
        told = self.source.places.told(source.shape[1], source.shape[1], like=x)
        memory, alphas = self.encoder(x, mask=real, weights=weights, **told)
        return memory, real, alphas

    def _check(self, **tokens: Tensor) -> None:
        for name, x in tokens.items():
            if not isinstance(x, Tensor) or x.is_floating_point() or x.dtype == torch.bool:
                got = x.dtype if isinstance(x, Tensor) else type(x).__name__
                raise TypeError(f"{name} must be a tensor of token numbers; got {got}")
            if x.ndim != 2 or 0 in x.shape:
                raise ValueError(f"{name} must have shape (batch, n), neither of them 0; got {tuple(x.shape)}")
            size = self.config.n_source if name == "source" else self.config.n_target
            low, high = (int(end) for end in x.aminmax())
            if low < 0 or high >= size:
                raise ValueError(f"{name} must hold tokens from 0 to {size - 1}; got {low if low < 0 else high}")
        if len({len(x) for x in tokens.values()}) > 1:
            raise ValueError(f"source and target must be one batch; got {[len(x) for x in tokens.values()]} sequences")


def _stack_from_torch(cls: type, module: nn.Module, kind: type, layer: type) -> nn.Module:
    if not isinstance(module, kind):
        raise TypeError(f"module must be a torch.nn.{kind.__name__}; got {type(module).__name__}")
    stack = cls.__new__(cls)
    nn.Module.__init__(stack)
    stack.layers = nn.ModuleList(map(layer.from_torch, module.layers))
    stack.norm = nn.Identity() if module.norm is None else deepcopy(module.norm)
    return stack.train(module.training)
