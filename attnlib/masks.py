"""Masks: which query may attend to which key. True means may attend, everywhere in this package.

A mask is NumPy's unless ``like`` is a torch tensor, and then it is torch's, on that tensor's device.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from attnlib._backend import Array, is_array, namespace

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

__all__ = ["causal", "padding"]


def causal(n_q: int, n_k: int | None = None, *, like: Array | None = None) -> Bool[Array, "n_q n_k"]:
    r"""Each position may attend to itself and to what came before it.

    .. math:: m_{ij} = [\, j \le i + n_k - n_q \,]

    With fewer queries than keys (``n_q < n_k``, the keys of earlier steps being cached) the last query
    stands at the last key.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when one is negative or ``n_q > n_k``.

    Source: Vaswani et al. (2017), section 3.2.3.

    >>> causal(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    >>> causal(1, 4)
    array([[ True,  True,  True,  True]])
    """
    n_q = _size("n_q", n_q)
    n_k = n_q if n_k is None else _size("n_k", n_k)
    if n_q > n_k:
        raise ValueError(f"n_q must not exceed n_k, since a query stands at one of the keys; got {n_q} > {n_k}")
    query = _arange(n_q, like)[:, None] + (n_k - n_q)
    key = _arange(n_k, like)[None, :]
    return key <= query


def padding(
    lengths: Sequence[int] | Int[Array, " batch"], n_k: int | None = None, *, like: Array | None = None
) -> Bool[Array, "batch 1 n_k"]:
    r"""Sequences of different lengths in one batch: keys beyond a sequence's end may not be attended to.

    .. math:: m_{b \cdot j} = [\, j < \text{length}_b \,]

    The middle axis is 1, so that the mask broadcasts over queries. With heads, ``(batch, n_heads, n_q, n_k)``,
    write ``padding(lengths)[:, None]``. ``n_k`` is the padded length, by default the longest of ``lengths``.

    Raises ``TypeError`` when lengths are not integers, ``ValueError`` when one is negative or beyond ``n_k``.

    >>> padding([3, 1])
    array([[[ True,  True,  True]],
    <BLANKLINE>
           [[ True, False, False]]])
    """
    like = lengths if like is None and is_array(lengths) else like
    whole = [_size(f"lengths[{i}]", n) for i, n in enumerate(lengths)]
    if not whole:
        raise ValueError("lengths must name at least one sequence; got none")
    n_k = max(whole) if n_k is None else _size("n_k", n_k)
    if max(whole) > n_k:
        raise ValueError(f"lengths must not exceed n_k = {n_k}; got {max(whole)}")
    key = _arange(n_k, like)[None, None, :]
    ends = namespace(key).stack([key[0, 0, :1] * 0 + n for n in whole])
    return key < ends[:, :, None]


def _arange(n: int, like: Array | None) -> Array:
    if like is None:
        import numpy as np

        return np.arange(n)
    return namespace(like).arange(n, device=like.device)


def _size(name: str, n: int) -> int:
    try:
        n = index(n)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {type(n).__name__}") from None
    if n < 0:
        raise ValueError(f"{name} must not be negative; got {n}")
    return n
