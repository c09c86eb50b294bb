"""What `attnlib.core.attention` makes sure of, once, before it begins."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.arrays import (
    Array,
    Library,
    broadcast_shapes,
    is_float_dtype,
    is_torch,
    library_name,
    library_of,
)
from attnlib._base.checks import (
    check_at_least_one,
    check_broadcast,
    check_features,
    check_floats,
    check_leading,
    check_mask,
    check_rank,
    check_share,
    check_words,
)
from attnlib.patterns import Pattern

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["check_arguments", "check_numbers", "check_softmax", "count_true"]

NUMPY = library_of(np.empty(0))
PLAIN: set[type] = {np.ndarray}  # types of arrays that need no second look; torch's join them when they come


def check_arguments(
    q: Array,
    k: Array,
    v: Array,
    score: object,
    mask: Array | Pattern | None,
    causal: bool = False,
    bias: Array | None = None,
    dropout: float = 0.0,
    weights: bool = True,
    block: int | None = None,
    **others: object,
) -> Library:
    """Whose arrays these are; raise unless they are arguments for attention.

    Of the numbers themselves, only those of the bias are looked at: see `check_numbers`.
    """
    if others:
        check_words("attention", others)
    if not callable(score):
        raise TypeError(f"score must be a function of q and k, as in attnlib.scores; got {score!r}")
    library = _check_arrays(q, k, v)
    if not q.shape[-1] == k.shape[-1] > 0 and hasattr(score, "unchecked"):  # one of ours, called without its checks
        check_features(q, k)
    if mask is not None or bias is not None:
        lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        shape = (*lead, q.shape[-2], k.shape[-2])  # of the scores
        if isinstance(mask, Pattern):
            _check_pattern(mask, shape, q, block)
        elif mask is not None:
            check_mask(mask, shape, like=q)
        if bias is not None:
            check_floats(q=q, bias=bias)
            _no_nan(library, bias=bias)
            check_broadcast("bias", bias, shape)
    if type(weights) is not bool:
        raise TypeError(f"weights must be True or False; got {type(weights).__name__}")
    if causal is not False:
        _check_causal(causal, q.shape[-2], k.shape[-2])
    if dropout != 0.0 or type(dropout) is bool:
        check_share("dropout", dropout)
        if not is_torch(q):
            raise TypeError(f"dropout needs torch tensors; got arrays of {library_name(q)}")
    if block is not None and check_at_least_one("block", block) and weights:
        raise ValueError("weights must be False with block, which never holds them all; got True")
    return library


def _check_arrays(q: Array, k: Array, v: Array) -> Library:
    """Whose arrays these are; raise unless queries, keys and values are of one kind, and their shapes fit."""
    plain = type(q) is type(k) is type(v) and type(q) in PLAIN
    if not (plain and q.dtype == k.dtype == v.dtype and is_float_dtype(q.dtype) and q.device == k.device == v.device):
        check_floats(q=q, k=k, v=v)  # which finds that it fits all the same, or names what does not
        PLAIN.add(type(q))
    library = NUMPY if type(q) is np.ndarray else library_of(q)
    try:
        plain = q.ndim == k.ndim >= 2 and k.shape == v.shape and q.shape[:-2] == k.shape[:-2]
    except RuntimeError:  # torch's old nested tensors have no shape
        check_floats(q=q, k=k, v=v)
        raise
    if plain:
        return library
    check_rank("(..., n_q, d)", q=q)
    check_rank("(..., n_k, d)", k=k)
    check_rank("(..., n_k, d_v)", v=v)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"k and v must have one row for each position, the same n_k; got k {tuple(k.shape)} and v {tuple(v.shape)}"
        )
    check_leading(q=q, k=k, v=v)
    return library


def check_numbers(q: Array, k: Array, v: Array, library: Library) -> None:
    """Raise where queries or keys hold NaN, or values anything but finite numbers.

    A NaN spreads over every output it enters; and no weight, not even zero, makes a number of an infinity. That is
    what happens, unsaid, where numbers cannot be looked at.
    """
    xp, readable = library
    if not readable:
        return
    with np.errstate(all="ignore"):
        try:
            total = q.sum() + k.sum() + v.sum()  # one cheap pass: a NaN or an infinity shows in the sum
        except AttributeError:  # the standard has it as a function alone, which takes longer
            total = sum(map(xp.sum, (q, k, v)))
        if total - total == 0:  # not so for NaN, nor for an infinity
            return
    _no_nan(library, q=q, k=k)
    _refuse("v", "NaN or infinity", ~xp.isfinite(v), xp)


def check_softmax(scores: Array, mask: Array | None) -> Library:
    """Whose scores these are; raise unless ``masked_softmax`` can take these arguments."""
    check_floats(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores must have at least one axis, the keys; got a single number")
    library = library_of(scores)
    _no_nan(library, scores=scores)
    if mask is not None:
        check_mask(mask, (1, *scores.shape)[-max(scores.ndim, 2) :], like=scores)  # of two axes at least
    return library


def _no_nan(library: Library, **arrays: Array) -> None:
    xp, readable = library
    for name, x in arrays.items() if readable else ():
        _refuse(name, "NaN", xp.isnan(x), xp)


def count_true(found: Array, xp: ModuleType) -> int:
    """How many of them are true, in integers that every library has: JAX's default ones are no longer."""
    return int(xp.sum(xp.astype(found, xp.int32)))


def _refuse(name: str, what: str, found: Array, xp: ModuleType) -> None:
    count = count_true(found, xp)
    if count:
        raise ValueError(f"{name} holds {what} in {count} of {prod(found.shape)} entries; expected numbers")


def _check_causal(causal: bool, n_q: int, n_k: int) -> None:
    if causal is not True:
        raise TypeError(f"causal must be True or False; got {type(causal).__name__}. A mask goes to mask=")
    if n_q > n_k:
        raise ValueError(f"n_q must not exceed n_k, since a query stands at one of the keys; got {n_q} > {n_k}")


def _check_pattern(pattern: Pattern, shape: tuple[int, ...], like: Array, block: int | None) -> None:
    pattern.check(*shape[-2:])
    if pattern.beside is not None:
        check_mask(pattern.beside, shape, like=like)
    if block is not None:
        raise ValueError(f"block must be None with a pattern as mask, which has blocks of its own; got {block}")
