r"""The layers of a Transformer: attention and a small network, each with a residual connection and a normalisation.

.. math:: \text{pre-norm: } x + f(\text{norm}(x)), \qquad \text{post-norm: } \text{norm}(x + f(x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib._cache import Cache
from attnlib._checks import check_at_least_one, check_dropout
from attnlib.core import Attended
from attnlib.heads import MultiHeadAttention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["ACTIVATIONS", "NORMS", "DecoderLayer", "EncoderLayer", "FeedForward", "Residual"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "swiglu": F.silu}
NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class FeedForward(nn.Module):
    r"""The same two-layer network at every position; with ``"swiglu"``, one whose hidden layer is gated.

    .. math:: f(x) = a(x W_1 + b_1)\, W_2 + b_2, \qquad
              f_\text{SwiGLU}(x) = \big(\text{silu}(x W_1) \odot x W_3\big) W_2

    ``activation`` is one of `ACTIVATIONS`; ``d_ff`` is the size of the hidden layer.

    Raises ``ValueError`` for a size below one, another word, or a dropout outside [0, 1).

    Source: Vaswani et al. (2017), section 3.3; Shazeer (2020) for SwiGLU.

    >>> FeedForward(8, 32)(torch.randn(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        check_at_least_one("d_model", d_model)
        check_at_least_one("d_ff", d_ff)
        check_dropout(dropout, like=torch.empty(0))
        check_word("activation", activation, ACTIVATIONS)
        self.activation, self.gated = ACTIVATIONS[activation], activation == "swiglu"
        self.enter = nn.Linear(d_model, d_ff * (2 if self.gated else 1), bias=bias)
        self.leave, self.drop = nn.Linear(d_ff, d_model, bias=bias), nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """The network, position by position."""
        hidden = self.enter(x)
        if self.gated:
            gate, hidden = hidden.chunk(2, dim=-1)
            hidden = self.activation(gate) * hidden
        else:
            hidden = self.activation(hidden)
        return self.leave(self.drop(hidden) if self.training else hidden)


class Residual(nn.Module):
    r"""What stands around a sublayer: a normalisation `before` or `after` it, dropout, and the input added.

    .. math:: \text{pre-norm: } x + f(\text{norm}(x)), \qquad \text{post-norm: } \text{norm}(x + f(x))

    ``norm`` is one of `NORMS`.

    Raises ``ValueError`` for another word.

    Source: Vaswani et al. (2017), section 3.1, for post-norm; Xiong et al. (2020) for both.

    >>> around, x = Residual(4, norm_first=True), torch.randn(2, 4)
    >>> torch.equal(around.after(x, torch.zeros(2, 4)), x)
    True
    """

    def __init__(self, d_model: int, *, norm: str = "layer", norm_first: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        check_word("norm", norm, NORMS)
        self.norm, self.norm_first, self.drop = NORMS[norm](d_model, eps=1e-5), norm_first, nn.Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the sublayer gets."""
        return self.norm(x) if self.norm_first else x

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """What leaves, given what came in and what the sublayer made of it."""
        x = x + (self.drop(y) if self.training else y)
        return x if self.norm_first else self.norm(x)


class EncoderLayer(nn.Module):
    r"""Self-attention, then a feed-forward network, each in a `Residual`.

    .. math:: h = x + \text{MHA}(\text{norm}(x)), \qquad y = h + \text{FFN}(\text{norm}(h)) \qquad\text{(pre-norm)}

    Raises as `MultiHeadAttention`, `FeedForward` and `Residual`.

    Source: Vaswani et al. (2017), section 3.1.

    >>> layer = EncoderLayer(8, 2, 32)
    >>> layer(torch.randn(2, 5, 8)).out.shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_kv_heads: int | None = None,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = True,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        around = {"norm": norm, "norm_first": norm_first, "dropout": dropout}
        self.attend = MultiHeadAttention(d_model, n_heads, n_kv_heads=n_kv_heads, bias=bias, dropout=dropout)
        self.feed = FeedForward(d_model, d_ff, activation=activation, dropout=dropout, bias=bias)
        self.around_attend, self.around_feed = Residual(d_model, **around), Residual(d_model, **around)

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        *,
        mask: Bool[Tensor, "... n n"] | None = None,
        causal: bool = False,
        bias: Float[Tensor, "... n_heads n n"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
        weights: bool = False,
    ) -> Attended:
        """The layer's output, and the weights of its heads if asked for. The options are those of the attention."""
        h = self.around_attend.before(x)
        attended = self.attend(h, mask=mask, causal=causal, bias=bias, rotate=rotate, weights=weights)
        x = self.around_attend.after(x, attended.out)
        return Attended(self.around_feed.after(x, self.feed(self.around_feed.before(x))), attended.weights)

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoderLayer) -> EncoderLayer:
        """The same layer with the weights of torch's.

        Raises ``TypeError`` when it is no `torch.nn.TransformerEncoderLayer`, ``ValueError`` for another activation
        than relu and gelu.

        >>> theirs, x = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(1, 3, 8)
        >>> torch.allclose(EncoderLayer.from_torch(theirs)(x).out, theirs(x), atol=1e-6)
        True
        """
        _check_module(module, nn.TransformerEncoderLayer)
        ours = cls(*_sizes(module), **_options(module)).to(module.linear1.weight)
        ours.attend = MultiHeadAttention.from_torch(module.self_attn)
        _copy_feed(ours.feed, module)
        for mine, theirs in ((ours.around_attend, module.norm1), (ours.around_feed, module.norm2)):
            _copy_norm(mine, theirs)
        return ours.train(module.training)


class Decoded(NamedTuple):
    """What `DecoderLayer` returns: ``out`` ``(..., n, d_model)``, and the weights of both attentions or None.

    >>> Decoded._fields
    ('out', 'weights', 'cross_weights')
    """

    out: Tensor
    weights: Tensor | None
    cross_weights: Tensor | None


class DecoderLayer(nn.Module):
    r"""Self-attention, attention to a memory, then a feed-forward network, each in a `Residual`.

    .. math:: g = x + \text{MHA}(\text{norm}(x)), \qquad h = g + \text{MHA}(\text{norm}(g), \text{memory}), \qquad
              y = h + \text{FFN}(\text{norm}(h)) \qquad\text{(pre-norm)}

    In the second attention the queries are the decoder's, keys and values the encoder's.

    Raises as `EncoderLayer`.

    Source: Vaswani et al. (2017), section 3.1.

    >>> layer, memory = DecoderLayer(8, 2, 32), torch.randn(2, 7, 8)
    >>> layer(torch.randn(2, 5, 8), memory).out.shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_kv_heads: int | None = None,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = True,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        around = {"norm": norm, "norm_first": norm_first, "dropout": dropout}
        heads = {"n_kv_heads": n_kv_heads, "bias": bias, "dropout": dropout}
        self.attend, self.cross = (MultiHeadAttention(d_model, n_heads, **heads) for _ in range(2))
        self.feed = FeedForward(d_model, d_ff, activation=activation, dropout=dropout, bias=bias)
        self.around_attend, self.around_cross, self.around_feed = (Residual(d_model, **around) for _ in range(3))

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
    ) -> Decoded:
        """One layer. ``caches`` are the growing one of its self-attention and the remembered memory, from `remember`.

        With them ``x`` holds the new positions only, and ``memory`` is left out.

        Raises ``ValueError`` when neither or both are given; otherwise as `MultiHeadAttention`.
        """
        if (memory is None) == (caches is None):
            raise ValueError(
                f"memory must be given, or caches in its place; got {'neither' if memory is None else 'both'}"
            )
        own, remembered = caches or (None, None)
        h = self.around_attend.before(x)
        options = {"mask": mask, "causal": causal, "bias": bias, "rotate": rotate}
        attended = self.attend(h, cache=own, weights=weights, **options)
        x = self.around_attend.after(x, attended.out)
        h = self.around_cross.before(x)
        crossed = self.cross(h, memory, mask=memory_mask, cache=remembered, weights=weights)
        x = self.around_cross.after(x, crossed.out)
        out = self.around_feed.after(x, self.feed(self.around_feed.before(x)))
        return Decoded(out, attended.weights, crossed.weights)

    def remember(self, memory: Float[Tensor, "batch n_memory d_model"], n_max: int) -> tuple[Cache, Cache]:
        """The caches for decoding up to ``n_max`` positions from ``memory``."""
        return self.attend.new_cache(tuple(memory.shape[:-2]), n_max), self.cross.remember(memory)

    @classmethod
    def from_torch(cls, module: nn.TransformerDecoderLayer) -> DecoderLayer:
        """The same layer with the weights of torch's.

        Raises ``TypeError`` when it is no `torch.nn.TransformerDecoderLayer`, ``ValueError`` for another activation
        than relu and gelu.

        >>> theirs = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        >>> x, memory = torch.randn(1, 3, 8), torch.randn(1, 4, 8)
        >>> torch.allclose(DecoderLayer.from_torch(theirs)(x, memory).out, theirs(x, memory), atol=1e-6)
        True
        """
        _check_module(module, nn.TransformerDecoderLayer)
        ours = cls(*_sizes(module), **_options(module)).to(module.linear1.weight)
        ours.attend, ours.cross = map(MultiHeadAttention.from_torch, (module.self_attn, module.multihead_attn))
        _copy_feed(ours.feed, module)
        norms = (ours.around_attend, module.norm1), (ours.around_cross, module.norm2), (ours.around_feed, module.norm3)
        for mine, theirs in norms:
            _copy_norm(mine, theirs)
        return ours.train(module.training)


def check_word(name: str, word: str, known: dict[str, object]) -> None:
    """Raise unless ``word`` is one of ``known``.

    >>> check_word("norm", "batch", NORMS)
    Traceback (most recent call last):
    ...
    ValueError: norm must be one of layer, rms; got 'batch'
    """
    if word not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {word!r}")


def _check_module(module: object, kind: type[nn.Module]) -> None:
    if not isinstance(module, kind):
        raise TypeError(f"module must be a torch.nn.{kind.__name__}; got {type(module).__name__}")


def _sizes(module: nn.Module) -> tuple[int, int, int]:
    return module.self_attn.embed_dim, module.self_attn.num_heads, module.linear1.out_features


def _options(module: nn.Module) -> dict[str, object]:
    name = {F.relu: "relu", F.gelu: "gelu"}.get(module.activation)
    if name is None:
        raise ValueError(f"module must have relu or gelu as its activation; got {module.activation}")
    bias = module.linear1.bias is not None
    return {"activation": name, "norm_first": module.norm_first, "dropout": module.dropout.p, "bias": bias}


@torch.no_grad()
def _copy_feed(feed: FeedForward, module: nn.Module) -> None:
    feed.enter.load_state_dict(module.linear1.state_dict())
    feed.leave.load_state_dict(module.linear2.state_dict())


def _copy_norm(around: Residual, norm: nn.LayerNorm) -> None:
    around.norm.load_state_dict(norm.state_dict(), strict=False)
    around.norm.eps = norm.eps
