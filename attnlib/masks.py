"""Masks: which query may attend to which key. True means may attend, everywhere in this package.

A mask is NumPy's unless ``like`` is a torch tensor, and then it is torch's, on that tensor's device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import inf
from operator import and_
from typing import TYPE_CHECKING

from attnlib._base.arrays import (
    Array,
    broadcast_shapes,
    is_array,
    is_floating,
    is_torch,
    library_name,
    namespace,
)
from attnlib._base.checks import check_array, check_at_least_one, check_boolean, check_size
from attnlib.patterns import Band, BigBird, Pattern

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor

__all__ = [
    "Band",
    "BigBird",
    "block_banded",
    "causal",
    "combine",
    "from_torch",
    "padding",
    "prefix",
    "to_torch",
    "window",
]

FAR = 2**62  # beyond every position; arrays of integers hold it, and a position more


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
    query, key = _positions(n_q, n_k, like)
    return key <= query


def window(
    n_q: int, n_k: int | None = None, *, back: int, ahead: int = 0, like: Array | None = None
) -> Bool[Array, "n_q n_k"]:
    r"""Each position may attend to itself, to ``back`` positions before it and ``ahead`` after it.

    .. math:: m_{ij} = [\, i' - \text{back} \le j \le i' + \text{ahead} \,], \qquad i' = i + n_k - n_q

    Raises as `causal`; ``ValueError`` too when ``back`` or ``ahead`` is negative.

    Source: Beltagy, Peters, Cohan (2020), section 3.1.

    >>> window(4, back=1).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    back, ahead = check_size("back", back), check_size("ahead", ahead)
    return _within_reach(*_positions(n_q, n_k, like), back, ahead)


def prefix(n_q: int, n_k: int | None = None, *, length: int, like: Array | None = None) -> Bool[Array, "n_q n_k"]:
    r"""All may attend to the first ``length`` positions; after them, each to itself and what came before it.

    .. math:: m_{ij} = [\, j < \text{length} \;\text{or}\; j \le i + n_k - n_q \,]

    Raises as `causal`; ``ValueError`` too when ``length`` is negative.

    Source: Raffel et al. (2020), section 3.2.1, *prefix LM*.

    >>> prefix(4, length=2).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    length = check_size("length", length)
    query, key = _positions(n_q, n_k, like)
    return (key < length) | (key <= query)


def block_banded(
    n: int, block: int, *, back: int = 1, ahead: int = 0, like: Array | None = None
) -> Bool[Array, "n n"]:
    r"""Positions are cut into blocks; each may attend to its own block, ``back`` before it and ``ahead`` after it.

    .. math:: m_{ij} = [\, \lfloor i/b \rfloor - \text{back} \le \lfloor j/b \rfloor
              \le \lfloor i/b \rfloor + \text{ahead} \,]

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when one is negative or ``block`` is zero.

    Source: Zaheer et al. (2020), *Big Bird*, for the blocks.

    >>> block_banded(4, 2, back=0).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 1],
           [0, 0, 1, 1]])
    """
    block, back, ahead = check_at_least_one("block", block), check_size("back", back), check_size("ahead", ahead)
    query, key = (positions // min(block, FAR) for positions in _positions(n, None, like))
    return _within_reach(query, key, back, ahead)


def combine(*masks: Bool[Array, ...] | Pattern | None) -> Bool[Array, ...] | Pattern | None:
    r"""What all of ``masks`` allow. None allows everything, so masks that may be missing need no special case.

    .. math:: m_{ij} = \prod_l m^{(l)}_{ij}

    One of them may be a pattern, `Band` or `BigBird`; then so is the result, with the other masks beside it.

    Raises ``TypeError`` when one is not boolean or two are patterns, ``ValueError`` when shapes do not broadcast.

    >>> combine(causal(2), None, padding([1], 2)).astype(int)
    array([[[1, 0],
            [1, 0]]])
    >>> combine(Band(back=1), padding([2], 3)).dense(3).astype(int)
    array([[[1, 0, 0],
            [1, 1, 0],
            [0, 1, 0]]])
    """
    patterns = [mask for mask in masks if isinstance(mask, Pattern)]
    if len(patterns) > 1:
        raise TypeError(f"masks must hold one pattern at most; got {len(patterns)}")
    masks = [mask.beside if isinstance(mask, Pattern) else mask for mask in masks]
    given = {f"masks[{i}]": mask for i, mask in enumerate(masks) if mask is not None}
    for name, mask in given.items():
        check_boolean(name, mask)
    if len({is_torch(mask) for mask in given.values()}) > 1:
        got = ", ".join(f"{name} of {library_name(mask)}" for name, mask in given.items())
        raise TypeError(f"masks must come from one library; got {got}")
    try:
        broadcast_shapes(*(mask.shape for mask in given.values()))
    except ValueError:
        got = ", ".join(f"{name} {tuple(mask.shape)}" for name, mask in given.items())
        raise ValueError(f"masks must broadcast to one shape; got {got}") from None
    both = reduce(and_, given.values()) if given else None
    return replace(patterns[0], beside=both) if patterns else both


def to_torch(mask: Bool[Tensor, ...]) -> Bool[Tensor, ...]:
    r"""The mask as the modules of ``torch.nn`` want it, where True means may *not* attend.

    .. math:: m \mapsto 1 - m

    For ``attn_mask`` and ``key_padding_mask`` of `torch.nn.MultiheadAttention` and the layers made of it. The
    *function* `torch.nn.functional.scaled_dot_product_attention` takes our masks as they are.

    Raises ``TypeError`` when ``mask`` is not a boolean tensor.

    >>> import torch
    >>> to_torch(causal(2, like=torch.zeros(1)))
    tensor([[False,  True],
            [False, False]])
    """
    check_boolean("mask", mask)
    if not is_torch(mask):
        raise TypeError("mask must be a torch tensor; got a NumPy array. Make it with like=a_tensor")
    return ~mask


def from_torch(mask: Tensor) -> Bool[Tensor, ...]:
    r"""A mask as the modules of ``torch.nn`` take it, with True for may attend.

    .. math:: m \mapsto 1 - m, \qquad a \mapsto [\, a = 0 \,]

    A boolean mask is inverted. A mask of numbers, which torch adds to the scores, may hold 0 and minus infinity
    only: anything else is a bias, and no mask can say it.

    Raises ``TypeError`` when ``mask`` is not a tensor of booleans or floats, ``ValueError`` for other numbers.

    >>> import torch
    >>> from_torch(torch.tensor([[0.0, -torch.inf]]))
    tensor([[ True, False]])
    """
    if not is_torch(mask):
        raise TypeError(f"mask must be a torch tensor; got {type(mask).__name__}")
    if is_floating(mask):
        if not ((mask == 0) | (mask == -inf)).all():
            raise ValueError("mask must hold 0 and minus infinity only to be a mask; it holds other numbers")
        return mask == 0
    check_boolean("mask", mask)
    return ~mask


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
    if not is_array(lengths) and not isinstance(lengths, Sequence):
        raise TypeError(f"lengths must be a sequence of integers, one for each row; got {type(lengths).__name__}")
    like = lengths if like is None and is_array(lengths) else like
    whole = [check_size(f"lengths[{i}]", n) for i, n in enumerate(lengths)]
    if not whole:
        raise ValueError("lengths must name at least one sequence; got none")
    n_k = max(whole) if n_k is None else check_size("n_k", n_k)
    if max(whole) > n_k:
        raise ValueError(f"lengths must not exceed n_k = {n_k}; got {max(whole)}")
    key = _arange(n_k, like)[None, None, :]  # (1, 1, n_k)
    ends = namespace(key).stack([key[0, 0, :1] * 0 + n for n in whole])
    return key < ends[:, :, None]


def _positions(n_q: int, n_k: int | None, like: Array | None) -> tuple[Array, Array]:
    """Where queries and keys stand, as a column and a row. The last query stands at the last key."""
    n_q = check_size("n_q", n_q)
    n_k = n_q if n_k is None else check_size("n_k", n_k)
    if n_q > n_k:
        raise ValueError(f"n_q must not exceed n_k, since a query stands at one of the keys; got {n_q} > {n_k}")
    return _arange(n_q, like)[:, None] + (n_k - n_q), _arange(n_k, like)[None, :]  # (n_q, 1), (1, n_k)


def _within_reach(query: Array, key: Array, back: int, ahead: int) -> Bool[Array, "n_q n_k"]:
    """Keys from ``back`` before a query to ``ahead`` after it."""
    return (key >= query - min(back, FAR)) & (key <= query + min(ahead, FAR))


def _arange(n: int, like: Array | None) -> Array:
    if like is None:
        import numpy as np

        return np.arange(n)
    check_array("like", like)
    return namespace(like).arange(n, device=like.device)
