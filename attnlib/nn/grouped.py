"""Attention by heads of which several share keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnlib.core.attention import Attended, attention
from attnlib.patterns import mapped

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from attnlib.patterns import Pattern

__all__ = ["grouped_attention"]


def grouped_attention(
    q: Float[Tensor, "... n_heads n_q d"],
    k: Float[Tensor, "... n_kv_heads n_k d"],
    v: Float[Tensor, "... n_kv_heads n_k d_v"],
    *,
    mask: Bool[Tensor, "... n_heads n_q n_k"] | Pattern | None = None,
    bias: Float[Tensor, "... n_heads n_q n_k"] | None = None,
    attend: Callable[..., Attended] = attention,
    **options: Any,
) -> Attended:
    r"""`attnlib.attention` for ``n_heads`` heads of queries and ``n_kv_heads`` of keys and values, a group for each.

    .. math:: \text{head}_h = \text{Attention}(Q_h, K_{\lfloor h / g \rfloor}, V_{\lfloor h / g \rfloor}), \qquad
              g = n_\text{heads} / n_\text{kv heads}

    Keys and values are not copied: they get an axis of one for the group, and broadcast. ``attend`` is what takes
    them, with the ``options``.

    Source: Ainslie et al. (2023), section 2.2.

    >>> import torch
    >>> q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8)
    >>> grouped_attention(q, k, k).weights.shape
    torch.Size([2, 4, 5, 7])
    """
    n_heads, n_kv_heads = q.shape[-3], k.shape[-3]
    if n_heads == n_kv_heads:
        return attend(q, k, v, mask=mask, bias=bias, **options)
    groups = (n_kv_heads, n_heads // n_kv_heads)

    def grouped(x: Tensor | None) -> Tensor | None:  # (..., n_heads, n, n) -> (..., n_kv_heads, group, n, n)
        if x is None or x.ndim < 3:
            return x
        return x.unflatten(-3, groups) if x.shape[-3] == n_heads else x.unsqueeze(-3)

    q, mask, bias = grouped(q), mapped(grouped, mask), grouped(bias)
    k, v = k.unsqueeze(-3), v.unsqueeze(-3)  # (..., n_kv_heads, 1, n_k, d)
    out, alpha = attend(q, k, v, mask=mask, bias=bias, **options)
    # (..., n_kv_heads, group, n_q, d) -> (..., n_heads, n_q, d)
    return Attended(out.flatten(-4, -3), None if alpha is None else alpha.flatten(-4, -3))
