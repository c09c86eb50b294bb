r"""The layers of a Transformer: attention and a small network, each with a residual connection and a normalisation.

.. math:: \text{pre-norm: } x + f(\text{norm}(x)), \qquad \text{post-norm: } \text{norm}(x + f(x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from attnlib._base.checks import check_not_negative, check_one_of, check_rows, check_share
from attnlib._base.renamed import moved, renamed
from attnlib.core.attention import Attended
from attnlib.nn.cache import Cache
from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.from_torch import check_module, copy_feed_forward, copy_norm, layer_arguments
from attnlib.nn.heads import MultiHeadAttention
from attnlib.nn.saving import named
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["NORMS", "DecoderLayer", "DecoderLayerOutput", "EncoderLayer", "Residual"]

__getattr__ = moved(__name__, {"Decoded": f"{__name__}.DecoderLayerOutput"})
NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class Residual(nn.Module):
    r"""What stands around a sublayer: a normalisation `before` or `after` it, dropout, and the input added.

    .. math:: \text{pre-norm: } x + f(\text{norm}(x)), \qquad \text{post-norm: } \text{norm}(x + f(x))

    ``norm`` is one of `NORMS`, ``eps`` what it adds to the variance.

    Raises ``ValueError`` for another word.

    Source: Vaswani et al. (2017), section 3.1, for post-norm; Xiong et al. (2020) for both.

    >>> import torch
    >>> residual, x = Residual(4, norm_first=True), torch.randn(2, 4)
    >>> torch.equal(residual.after(x, torch.zeros(2, 4)), x)
    True
    """

    def __init__(
        self, d_model: int, *, norm: str = "layer", norm_first: bool = True, dropout: float = 0.0, eps: float = 1e-5
    ) -> None:
        super().__init__()
        check_one_of("norm", norm, NORMS)
        self.norm = NORMS[norm](d_model, eps=eps)
        self.norm_first = norm_first
        self.drop = nn.Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the sublayer gets."""
        return self.norm(x) if self.norm_first else x

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """What leaves, given what came in and what the sublayer made of it."""
        x = x + (self.drop(y) if self.training else y)
        return x if self.norm_first else self.norm(x)


class _Layer(nn.Module):
    """What both kinds of layer are made of; with ``crosses`` there is attention to a memory between the two."""

    crosses = False

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        d_head: int | None = None,
        n_kv_heads: int | None = None,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = True,
        eps: float = 1e-5,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        activation_dropout: float | None = None,
        bias: bool = True,
        score: Callable[[Tensor, Tensor], Tensor] = scaled_dot,
    ) -> None:
        super().__init__()
        check_not_negative("eps", eps)
        self.d_model = d_model
        heads = {"d_head": d_head, "n_kv_heads": n_kv_heads, "bias": bias, "score": score}
        heads["dropout"] = dropout
        if attention_dropout is not None:
            check_share("attention_dropout", attention_dropout)
            heads["dropout"] = attention_dropout
        hidden = {"activation": activation, "bias": bias, "dropout": dropout}
        if activation_dropout is not None:
            check_share("activation_dropout", activation_dropout)
            hidden["dropout"] = activation_dropout
        around = {"norm": norm, "norm_first": norm_first, "dropout": dropout, "eps": eps}
        self.self_attention = MultiHeadAttention(d_model, n_heads, **heads)
        if self.crosses:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, **heads)
        self.feed_forward = FeedForward(d_model, d_ff, **hidden)
        self.self_attention_residual = Residual(d_model, **around)
        if self.crosses:
            self.cross_attention_residual = Residual(d_model, **around)
        self.feed_forward_residual = Residual(d_model, **around)

    def __call__(self, x: Float[Tensor, "... n d_model"], *others: Any, **options: Any) -> Any:
        """One layer; what is no tensor of rows is refused here, before a normalisation does so in words of its own."""
        check_rows("x", x, self.d_model)
        return super().__call__(x, *others, **options)

    def _feed_forward_block(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        residual = self.feed_forward_residual
        return residual.after(x, self.feed_forward(residual.before(x)))

    @classmethod
    def _from_torch(cls, module: nn.Module, kind: type[nn.Module]) -> _Layer:
        check_module(module, kind)
        ours = cls(**layer_arguments(module)).to(module.linear1.weight)
        ours.self_attention = MultiHeadAttention.from_torch(module.self_attn)
        copy_norm(ours.self_attention_residual, module.norm1)
        if cls.crosses:
            ours.cross_attention = MultiHeadAttention.from_torch(module.multihead_attn)
            copy_norm(ours.cross_attention_residual, module.norm2)
        copy_feed_forward(ours.feed_forward, module)
        copy_norm(ours.feed_forward_residual, module.norm3 if cls.crosses else module.norm2)
        return ours.train(module.training)


class EncoderLayer(_Layer):
    r"""Self-attention, then a feed-forward network, each in a `Residual`.

    .. math:: h = x + \text{MHA}(\text{norm}(x)), \qquad y = h + \text{FFN}(\text{norm}(h)) \quad\text{(pre-norm)}

    ``d_model`` is the size of a row, ``d_ff`` that of the network's hidden layer; ``n_heads``, ``d_head``,
    ``n_kv_heads`` and ``score`` are those of `MultiHeadAttention`, ``activation`` that of `FeedForward`, ``norm``,
    ``norm_first``, ``dropout`` and ``eps`` those of `Residual`. ``attention_dropout`` is that of the weights and
    ``activation_dropout`` that of the hidden layer, both as ``dropout`` unless given.

    Raises as these three.

    Source: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> layer = EncoderLayer(8, 2, 32)
    >>> layer(torch.randn(2, 5, 8)).out.shape
    torch.Size([2, 5, 8])
    """

    __call__: Callable[..., Attended[Tensor, Tensor | None]]

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        *,
        mask: Bool[Tensor, "... n n"] | None = None,
        causal: bool = False,
        bias: Float[Tensor, "... n_heads n n"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
        cache: Cache | None = None,
        weights: bool = False,
    ) -> Attended:
        """The layer's output, and the weights of its heads if asked for. The options are those of the attention."""
        options = {"mask": mask, "causal": causal, "bias": bias, "rotate": rotate, "cache": cache}
        h = self.self_attention_residual.before(x)
        attended = self.self_attention(h, weights=weights, **options)
        x = self.self_attention_residual.after(x, attended.out)
        return Attended(self._feed_forward_block(x), attended.weights)

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoderLayer) -> EncoderLayer:
        """The same layer with the weights of torch's.

        Raises ``TypeError`` when it is no `torch.nn.TransformerEncoderLayer`, ``ValueError`` for another activation
        than relu and gelu.

        >>> import torch
        >>> theirs, x = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(1, 3, 8)
        >>> torch.allclose(EncoderLayer.from_torch(theirs)(x).out, theirs(x), atol=1e-6)
        True
        """
        return cls._from_torch(module, nn.TransformerEncoderLayer)


@named
class DecoderLayerOutput(NamedTuple):
    """What `DecoderLayer` returns: ``out`` ``(..., n, d_model)``, and the weights of both attentions or None.

    >>> DecoderLayerOutput._fields
    ('out', 'weights', 'cross_weights')
    """

    out: Tensor
    weights: Tensor | None
    cross_weights: Tensor | None


class DecoderLayer(_Layer):
    r"""Self-attention, attention to a memory, then a feed-forward network, each in a `Residual`.

    .. math:: g = x + \text{MHA}(\text{norm}(x)), \qquad h = g + \text{MHA}(\text{norm}(g), \text{memory}), \quad
              y = h + \text{FFN}(\text{norm}(h)) \quad\text{(pre-norm)}

    In the second attention, the *cross-attention*, the queries are the decoder's, keys and values the encoder's.
    Arguments and errors are those of `EncoderLayer`.

    Source: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> layer, memory = DecoderLayer(8, 2, 32), torch.randn(2, 7, 8)
    >>> layer(torch.randn(2, 5, 8), memory).out.shape
    torch.Size([2, 5, 8])
    """

    crosses = True

    __call__: Callable[..., DecoderLayerOutput]

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        memory: Float[Tensor, "... n_memory d_model"] | None = None,
        *,
        mask: Bool[Tensor, "... n n_k"] | None = None,
        causal: bool = False,
        memory_mask: Bool[Tensor, "... n n_memory"] | None = None,
        bias: Float[Tensor, "... n_heads n n_k"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
        caches: tuple[Cache, Cache] | None = None,
        weights: bool = False,
    ) -> DecoderLayerOutput:
        """One layer. ``caches`` are the growing one of its self-attention and that of the memory, from `prefill`.

        With them ``x`` holds the new positions only, and ``memory`` is left out.

        Raises ``ValueError`` when neither or both are given; otherwise as `MultiHeadAttention`.
        """
        if (memory is None) == (caches is None):
            raise ValueError(
                f"memory must be given, or caches in its place; got {'neither' if memory is None else 'both'}"
            )
        cache, memory_cache = caches or (None, None)
        options = {"mask": mask, "causal": causal, "bias": bias, "rotate": rotate}
        h = self.self_attention_residual.before(x)
        attended = self.self_attention(h, cache=cache, weights=weights, **options)
        x = self.self_attention_residual.after(x, attended.out)
        h = self.cross_attention_residual.before(x)
        crossed = self.cross_attention(h, memory, mask=memory_mask, cache=memory_cache, weights=weights)
        x = self.cross_attention_residual.after(x, crossed.out)
        return DecoderLayerOutput(self._feed_forward_block(x), attended.weights, crossed.weights)

    def prefill(self, memory: Float[Tensor, "batch n_memory d_model"], n_max: int) -> tuple[Cache, Cache]:
        """The caches for decoding up to ``n_max`` positions from ``memory``."""
        own = self.self_attention.new_cache(tuple(memory.shape[:-2]), n_max)
        return own, self.cross_attention.prefill(memory)

    remember = renamed("prefill")

    @classmethod
    def from_torch(cls, module: nn.TransformerDecoderLayer) -> DecoderLayer:
        """The same layer with the weights of torch's.

        Raises ``TypeError`` when it is no `torch.nn.TransformerDecoderLayer`, ``ValueError`` for another activation
        than relu and gelu.

        >>> import torch
        >>> theirs = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        >>> x, memory = torch.randn(1, 3, 8), torch.randn(1, 4, 8)
        >>> torch.allclose(DecoderLayer.from_torch(theirs)(x, memory).out, theirs(x, memory), atol=1e-6)
        True
        """
        return cls._from_torch(module, nn.TransformerDecoderLayer)
