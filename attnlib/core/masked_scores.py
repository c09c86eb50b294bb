"""Scores, with minus infinity where a query may not attend: where a mask meets a score.

Shortcuts that make no array of scores say so to others: `attnlib.core.fused` to torch's kernel, `attnlib.core.sparse`
tile by tile, `attnlib.nn.fast_decode` for one new position.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from attnlib._arrays import Array, namespace
from attnlib.core.arguments import check_scores
from attnlib.patterns import Pattern

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["causal_tile", "masked_scores"]


def masked_scores(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    score: Callable[[Array, Array], Array],
    mask: Bool[Array, "... n_q n_k"] | Pattern | None = None,
    causal: bool = False,
    bias: Float[Array, "... n_q n_k"] | None = None,
    start: int | None = None,
) -> Float[Array, "... n_q n_k"]:
    r"""The scores of queries and keys, with ``bias`` added, and minus infinity at what is hidden.

    .. math:: s_{ij} = s(q_i, k_j) + b_{ij} \quad\text{where}\quad m_{ij} = 1, \qquad s_{ij} = -\infty
              \quad\text{elsewhere}

    A bias of minus infinity hides a key too, even one whose score is plus infinity. With ``causal``, the first query
    stands at the key ``start``; unless given, the last query stands at the last key.

    >>> import numpy as np
    >>> masked_scores(np.ones((2, 1)), np.ones((2, 1)), lambda q, k: q @ k.mT, causal=True)
    array([[  1., -inf],
           [  1.,   1.]])
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    scores = getattr(score, "unchecked", score)(q, k)  # (..., n_q, n_k); ours would check q and k again
    check_scores(scores, n_q, n_k)
    if bias is not None:
        xp, hidden = namespace(bias), bias == -inf  # beside a score of plus infinity, a sum would be NaN
        scores = xp.where(hidden, bias, scores + xp.where(hidden, xp.zeros_like(bias), bias))
    if isinstance(mask, Pattern):
        mask = mask.dense(n_q, n_k, like=q)
    seen = causal_tile(n_q, n_k, n_k - n_q if start is None else start, like=q) if causal else None
    if mask is not None:
        seen = mask if seen is None else seen & mask
    return scores if seen is None else namespace(scores).where(seen, scores, -inf)


def causal_tile(n_q: int, n_k: int, start: int, like: Array) -> Bool[Array, "n_q n_k"] | None:
    """The causal mask of queries that stand at the keys from ``start`` on; None where it hides nothing.

    >>> import numpy as np
    >>> causal_tile(2, 2, start=0, like=np.zeros(1)).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    if n_k - 1 <= start:  # the first query already sees the last key
        return None
    xp = namespace(like)
    query, key = (xp.arange(n, device=like.device) for n in (n_q, n_k))
    return key[None, :] <= query[:, None] + start  # (n_q, n_k)
