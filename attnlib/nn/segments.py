r"""Transformer-XL: a long text is read segment by segment, each attending to what the one before left behind.

.. math:: \tilde h_\tau = [\, \text{SG}(h_{\tau-1}) \,;\, h_\tau \,], \qquad
          h'_\tau = \text{layer}(\text{queries from } h_\tau, \text{keys and values from } \tilde h_\tau)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.checks import check_at_least_one, check_floats, check_share, check_size, check_width
from attnlib.core.attention import Attended, attention
from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.heads import KEYS_VALUES, QUERIES, project_heads
from attnlib.nn.layers import Residual
from attnlib.positions import sinusoidal

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["RelativeAttention", "SegmentLayer", "SegmentStack", "Segments"]


class RelativeAttention(nn.Module):
    r"""Causal multi-head attention to a memory and to itself, with positions that say how far, not where.

    .. math:: s_{ij} = \frac{1}{\sqrt{d_\text{head}}} \big( q_i \cdot k_j + q_i \cdot r_{i'-j} + u \cdot k_j
              + v \cdot r_{i'-j} \big), \qquad r_t = \text{PE}_t\, W_R, \qquad i' = i + n_\text{memory}

    Keys and values come from memory and input together. Written as `attnlib.attention` does it, the queries are
    :math:`q_i + u`, and the bias is :math:`(q_i + v) \cdot r_{i'-j} / \sqrt{d_\text{head}}`. The position of a key is
    not in the key, and so the memory stays right when the text moves on.

    Parameters
    ----------
    d_model, n_heads, d_head, dropout, bias
        As in `attnlib.MultiHeadAttention`; ``d_model`` is even, for `attnlib.positions.sinusoidal`.

    Raises
    ------
    ValueError
        Sizes below one, an odd ``d_model``, heads that do not divide it, a dropout outside [0, 1).

    Notes
    -----
    The projections are ``in_proj``, ``position_proj`` (:math:`W_R`) and ``out_proj``; ``u`` and ``v`` are
    ``(n_heads, 1, d_head)`` and start at zero.

    Source: Dai et al. (2019), section 3.3, where the equation stands without the root, which their code has.

    Examples
    --------
    >>> layer = RelativeAttention(d_model=8, n_heads=2)
    >>> x, memory = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    >>> out, weights = layer(x, memory, weights=True)
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 9]))
    """

    def __init__(
        self, d_model: int, n_heads: int, *, d_head: int | None = None, dropout: float = 0.0, bias: bool = False
    ) -> None:
        super().__init__()
        check_at_least_one("d_model", d_model)
        check_at_least_one("n_heads", n_heads)
        if d_model % 2:
            raise ValueError(f"d_model must be even, for the codes of the distances; got {d_model}")
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}, or d_head be given; got {n_heads}")
        check_share("dropout", dropout)
        self.d_model = d_model
        self.n_heads = n_heads
        self.dropout = dropout
        self.d_head = check_at_least_one("d_head", d_model // n_heads if d_head is None else d_head)
        width = n_heads * self.d_head
        self.in_proj = nn.Linear(d_model, 3 * width, bias=bias)
        self.position_proj = nn.Linear(d_model, width, bias=False)
        self.out_proj = nn.Linear(width, d_model, bias=bias)
        self.u, self.v = (nn.Parameter(torch.zeros(n_heads, 1, self.d_head)) for _ in range(2))
        for w in (*self.in_proj.weight.split(width), self.position_proj.weight, self.out_proj.weight):
            nn.init.xavier_uniform_(w)

    def forward(
        self,
        x: Float[Tensor, "... n d_model"],
        memory: Float[Tensor, "... n_memory d_model"] | None = None,
        *,
        weights: bool = False,
    ) -> Attended:
        """Attend from ``x`` to ``memory`` and to what came before in ``x``.

        The weights, if asked for, are ``(..., n_heads, n, n_memory + n)``. Raises ``ValueError`` when a last axis is
        not ``d_model``.
        """
        _check(self.d_model, self.out_proj.weight, x=x, memory=memory)
        context = x if memory is None else torch.cat([memory, x], dim=-2)
        sizes = [self.n_heads * self.d_head] * 3
        (q,) = project_heads(self.in_proj, sizes, self.d_head, x, QUERIES)  # (..., heads, n, d_head)
        k, v = project_heads(self.in_proj, sizes, self.d_head, context, KEYS_VALUES)
        codes = sinusoidal(context.shape[-2], self.d_model, like=x)  # row t is that of distance t
        r = self.position_proj(codes).view(-1, self.n_heads, self.d_head)
        r = r.transpose(0, 1)  # (n_memory + n, heads, d_head) -> (heads, n_memory + n, d_head)
        bias = _by_pair((q + self.v) @ r.mT / self.d_head**0.5)
        options = {"dropout": self.dropout if self.training else 0.0, "weights": weights}
        out, alpha = attention(q + self.u, k, v, causal=True, bias=bias, **options)
        out = out.transpose(-3, -2).flatten(-2)  # (..., heads, n, d_head) -> (..., n, heads * d_head)
        return Attended(self.out_proj(out), alpha)

    def extra_repr(self) -> str:
        """The sizes, for `print`."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, d_head={self.d_head}, dropout={self.dropout}"


class SegmentLayer(nn.Module):
    r"""`RelativeAttention`, then a feed-forward network, each in a `Residual`: the layer of a `SegmentStack`.

    .. math:: g = x + \text{attention}(\text{norm}(x), \text{norm}(\text{SG}(\text{memory}))), \qquad
              y = g + \text{FFN}(\text{norm}(g))

    SG says that the memory is a constant: no gradient enters it.

    ``d_ff`` is the size of the hidden layer; ``options`` are those of `Residual` but for the dropout.

    Source: Dai et al. (2019), section 3.3, who normalise afterwards (``norm_first=False``).

    >>> SegmentLayer(8, 2, 16)(torch.randn(3, 5, 8), memory=torch.randn(3, 4, 8)).out.shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, dropout: float = 0.0, **options: object) -> None:
        super().__init__()
        self.self_attention = RelativeAttention(d_model, n_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.self_attention_residual = Residual(d_model, dropout=dropout, **options)
        self.feed_forward_residual = Residual(d_model, dropout=dropout, **options)

    def forward(self, x: Tensor, memory: Tensor | None = None, *, weights: bool = False) -> Attended:
        """The layer's output, and the weights of its heads if asked for."""
        before, after = self.self_attention_residual.before, self.self_attention_residual.after
        memory = None if memory is None else before(memory.detach())
        attended = self.self_attention(before(x), memory, weights=weights)
        x = after(x, attended.out)
        residual = self.feed_forward_residual
        return Attended(residual.after(x, self.feed_forward(residual.before(x))), attended.weights)


class Segments(NamedTuple):
    """What `SegmentStack` returns: ``out`` ``(..., n, d_model)``, and for each layer ``(..., n_memory, d_model)``.

    >>> Segments._fields
    ('out', 'memory')
    """

    out: Tensor
    memory: tuple[Tensor, ...]


class SegmentStack(nn.Module):
    r"""Layers that remember: each keeps what came into it, and attends to that when the next segment comes.

    .. math:: h^{n}_\tau = \text{layer}_n\big( h^{n-1}_\tau, \text{SG}(h^{n-1}_{\tau-1}) \big)

    What a layer remembers of the segment before was made with the memory of the one before that, a layer below. So
    the reach grows by a memory with each layer: with one as long as a segment, to :math:`n_\text{layers}` segments
    before this one. No gradient goes further than the segment itself.

    Parameters
    ----------
    d_model, n_heads, d_ff, options
        Those of `SegmentLayer`.
    n_layers
        Number of layers.
    n_memory
        How many positions each layer remembers, as many as a segment has if it is to see the whole one before.

    Raises
    ------
    ValueError
        Sizes below one, or a memory below zero; otherwise as `SegmentLayer`.

    Notes
    -----
    Source: Dai et al. (2019), section 3.2.

    Examples
    --------
    >>> stack = SegmentStack(d_model=8, n_heads=2, d_ff=16, n_layers=3, n_memory=4)
    >>> out, memory = stack(torch.randn(2, 4, 8))
    >>> out, memory = stack(torch.randn(2, 4, 8), memory)
    >>> out.shape, len(memory), memory[0].shape
    (torch.Size([2, 4, 8]), 3, torch.Size([2, 4, 8]))
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, *, n_layers: int, n_memory: int, **options: object
    ) -> None:
        super().__init__()
        check_at_least_one("n_layers", n_layers)
        self.d_model = d_model
        self.n_memory = check_size("n_memory", n_memory)
        self.layers = nn.ModuleList(SegmentLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers))

    def forward(self, x: Float[Tensor, "... n d_model"], memory: tuple[Tensor, ...] | None = None) -> Segments:
        """One segment, given what the one before left behind, and what this one leaves: constants, both.

        Raises ``ValueError`` when the memory is not one for each layer, or a shape does not fit.
        """
        if memory is not None and len(memory) != len(self.layers):
            raise ValueError(f"memory must hold one tensor for each of {len(self.layers)} layers; got {len(memory)}")
        _check(self.d_model, next(self.parameters()), x=x)
        left = []
        for layer, before in zip(self.layers, memory or [None] * len(self.layers), strict=True):
            seen = x if before is None else torch.cat([before, x], dim=-2)
            left.append(seen[..., max(seen.shape[-2] - self.n_memory, 0) :, :].detach())
            x = layer(x, before).out
        return Segments(x, tuple(left))

    def read(self, x: Float[Tensor, "... n d_model"], segment: int) -> Float[Tensor, "... n d_model"]:
        """A whole text, ``segment`` positions at a time.

        >>> stack = SegmentStack(8, 2, 16, n_layers=1, n_memory=4)
        >>> stack.read(torch.randn(2, 10, 8), segment=4).shape
        torch.Size([2, 10, 8])
        """
        check_at_least_one("segment", segment)
        outs, memory = [], None
        for part in x.split(segment, dim=-2):
            out, memory = self(part, memory)
            outs.append(out)
        return torch.cat(outs, dim=-2)


def _by_pair(scores: Float[Tensor, "... n n_k"]) -> Float[Tensor, "... n n_k"]:
    """From one number for each query and distance to one for each query and key; after the query, that of itself."""
    n_q, n_k = scores.shape[-2:]
    query, key = torch.arange(n_k - n_q, n_k, device=scores.device)[:, None], torch.arange(n_k, device=scores.device)
    return scores.gather(-1, (query - key).clamp(min=0).expand(scores.shape))


def _check(d_model: int, weights: Tensor, **inputs: Tensor | None) -> None:
    for name, x in inputs.items():
        if x is None:
            continue
        check_floats(weights=weights, **{name: x})
        check_width(name, x, d_model, n_axes=2)
