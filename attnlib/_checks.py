"""Every check of an argument, so that the functions that use them stay as short as their equations.

A message says which argument, what came and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod
from numbers import Real
from operator import index
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from attnlib._backend import Array, is_array, is_boolean, is_floating, is_torch, namespace
from attnlib._shapes import Shape, broadcast_shapes, check_broadcast, check_leading

if TYPE_CHECKING:
    from jaxtyping import Bool


def check_floats(**arrays: Array) -> None:
    """Raise unless all are floating-point arrays of one library, dtype and device."""
    (first, a), *rest = arrays.items()
    for name, x in arrays.items():
        if x is not a and type(x) is type(a) and x.dtype == a.dtype:
            continue  # as good as the first
        if not is_array(x) or isinstance(x, np.matrix | np.ma.MaskedArray):  # whose rules are their own
            raise TypeError(f"{name} must be a NumPy array or a torch tensor; got {type(x).__name__}")
        if not is_floating(x):
            raise TypeError(f"{name} must hold floating-point numbers; got dtype {x.dtype}")
    for name, x in rest:
        if type(x) is not type(a) and is_torch(x) != is_torch(a):
            raise TypeError(f"{first} and {name} must come from one library; got {_library(a)} and {_library(x)}")
        if x.dtype != a.dtype:
            raise TypeError(f"{first} and {name} must have one dtype; got {a.dtype} and {x.dtype}")
        if x.device != a.device:
            raise ValueError(f"{first} and {name} must be on one device; got {a.device} and {x.device}")


def check_rank(shape_words: str, **arrays: Array) -> None:
    """Raise unless each array has at least two axes; ``shape_words`` says what they are."""
    for name, x in arrays.items():
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape {shape_words}; got {tuple(x.shape)}")


def check_no_nan(**arrays: Array) -> None:
    """Raise where an array holds NaN, which a weighted mean would spread over every output it enters."""
    _check_entries(arrays, "NaN", lambda xp, x: xp.isnan(x))


def check_finite(**arrays: Array) -> None:
    """Raise where an array holds NaN or infinity; no weight, not even zero, makes a number of them."""
    _check_entries(arrays, "NaN or infinity", lambda xp, x: ~xp.isfinite(x))


def _check_entries(arrays: dict[str, Array], what: str, find: Callable[[ModuleType, Array], Array]) -> None:
    for name, x in arrays.items():
        with np.errstate(all="ignore"):
            total = x.sum()  # one cheap pass: a NaN or an infinity shows in the sum
            if total - total == 0:
                continue
        xp = namespace(x)
        count = int(xp.sum(xp.astype(find(xp, x), xp.int64)))
        if count:
            raise ValueError(f"{name} holds {what} in {count} of {prod(x.shape)} entries; expected numbers")


def check_pair(q: Array, k: Array, *, same_d: bool) -> None:
    """Raise unless queries ``(..., n_q, d)`` and keys ``(..., n_k, d)`` can be scored against each other."""
    check_floats(q=q, k=k)
    check_rank("(..., n_q, d)", q=q)
    check_rank("(..., n_k, d)", k=k)
    check_features(q, k, same_d=same_d)
    check_leading(q=q, k=k)


def check_features(q: Array, k: Array, *, same_d: bool = True) -> None:
    """Raise unless queries and keys have features, and, with ``same_d``, as many."""
    if same_d and q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must have the same last axis d; got q {tuple(q.shape)} and k {tuple(k.shape)}")
    if q.shape[-1] == 0:
        raise ValueError(f"q must have at least one feature; got shape {tuple(q.shape)}")


def check_weight(name: str, w: Array, shape: Shape, words: str, like: Array) -> None:
    """Raise unless the parameter ``w`` has the shape that the queries and keys ask for (-1 fits any size)."""
    check_floats(q=like, **{name: w})
    fits = w.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, w.shape, strict=True))
    if not fits:
        expected = tuple("any" if size == -1 else size for size in shape)
        raise ValueError(f"{name} must have shape {words} = {expected}; got {tuple(w.shape)}".replace("'", ""))


def check_positive(name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}")
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite; got {value}")


def check_size(name: str, n: int) -> int:
    """``n`` as a Python integer; raise unless it is one and not negative."""
    try:
        whole = index(n)
    except TypeError:
        whole = None
    if whole is None or isinstance(n, bool):  # True is 1 to Python, and a slip to whoever gave it
        raise TypeError(f"{name} must be an integer; got {type(n).__name__}")
    if whole < 0:
        raise ValueError(f"{name} must not be negative; got {whole}")
    return whole


def check_at_least_one(name: str, n: int) -> int:
    """``n`` as a Python integer; raise unless it is one and positive."""
    n = check_size(name, n)
    if n == 0:
        raise ValueError(f"{name} must be at least 1; got 0")
    return n


def check_attention(q: Array, k: Array, v: Array, score: object, mask: Array | None) -> None:
    """Raise unless these are arguments for attention; whether ``q`` and ``k`` fit is for the score to say."""
    check_shapes(q, k, v, score, mask)
    check_numbers(q, k, v)


def check_shapes(q: Array, k: Array, v: Array, score: object, mask: Array | None, causal: bool = False) -> None:
    """What `check_attention` asks, but for the numbers themselves: a pass over each array."""
    if not callable(score):
        raise TypeError(f"score must be a function of q and k, as in attnlib.scores; got {score!r}")
    _check_three(q, k, v)
    if mask is not None:
        lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        check_mask(mask, (*lead, q.shape[-2], k.shape[-2]), like=q)
    if causal is not False:
        check_causal(causal, q.shape[-2], k.shape[-2])


def _check_three(q: Array, k: Array, v: Array) -> None:
    check_floats(q=q, k=k, v=v)
    if q.ndim == k.ndim >= 2 and k.shape == v.shape and q.shape[:-2] == k.shape[:-2]:
        return
    check_rank("(..., n_q, d)", q=q)
    check_rank("(..., n_k, d)", k=k)
    check_rank("(..., n_k, d_v)", v=v)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"k and v must have one row for each position, the same n_k; got k {tuple(k.shape)} and v {tuple(v.shape)}"
        )
    check_leading(q=q, k=k, v=v)


def check_numbers(q: Array, k: Array, v: Array) -> None:
    """Raise where queries or keys hold NaN, or values anything but finite numbers."""
    check_no_nan(q=q, k=k)
    check_finite(v=v)


def check_causal(causal: bool, n_q: int, n_k: int) -> None:
    """Raise unless ``causal`` is a truth value, and each query stands at one of the keys."""
    if causal is not True and causal is not False:
        raise TypeError(f"causal must be True or False; got {type(causal).__name__}. A mask goes to mask=")
    if causal and n_q > n_k:
        raise ValueError(f"n_q must not exceed n_k, since a query stands at one of the keys; got {n_q} > {n_k}")


def check_block(block: int | None, weights: bool) -> None:
    """Raise unless ``block`` is a size, if given, and nobody asks for weights that are never all there."""
    if block is not None and check_at_least_one("block", block) and weights:
        raise ValueError("weights must be False with block, which never holds them all; got True")


def check_bias(bias: Array | None, q: Array, k: Array, v: Array) -> None:
    """Raise unless ``bias`` can be added to the scores of ``q`` and ``k``."""
    if bias is None:
        return
    check_floats(q=q, bias=bias)
    check_no_nan(bias=bias)
    lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    check_broadcast("bias", bias, (*lead, q.shape[-2], k.shape[-2]))


def check_dropout(dropout: float, like: Array) -> None:
    """Raise unless ``dropout`` is a chance below one, and zero where there is no torch to draw it."""
    if type(dropout) is not float and (isinstance(dropout, bool) or not isinstance(dropout, Real)):
        raise TypeError(f"dropout must be a number; got {type(dropout).__name__}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1; got {dropout}")
    if dropout and not is_torch(like):
        raise TypeError("dropout needs torch tensors; got NumPy arrays")


def check_boolean(name: str, mask: object) -> None:
    """Raise unless ``mask`` is an array of booleans."""
    if not is_array(mask):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor; got {type(mask).__name__}")
    if not is_boolean(mask):
        raise TypeError(
            f"{name} must be boolean, True where a query may attend; got dtype {mask.dtype}. "
            "Where 1 means may attend, write mask != 0"
        )


def check_softmax(scores: Array, mask: Array | None) -> None:
    """Raise unless ``masked_softmax`` can take these arguments."""
    check_floats(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores must have at least one axis, the keys; got a single number")
    check_no_nan(scores=scores)
    if mask is not None:
        check_mask(mask, (1, *scores.shape)[-max(scores.ndim, 2) :], like=scores)


def check_mask(mask: Bool[Array, ...], scores_shape: Sequence[int], like: Array) -> None:
    """Raise unless ``mask`` is boolean and broadcasts to scores of ``scores_shape`` (batch, n_q, n_k)."""
    check_boolean("mask", mask)
    if is_torch(mask) != is_torch(like):
        raise TypeError(f"mask must come from the library of the scores, {_library(like)}; got {_library(mask)}")
    if mask.device != like.device:
        raise ValueError(f"mask must be on the device of the scores, {like.device}; got {mask.device}")
    check_broadcast("mask", mask, scores_shape)


def check_scores(scores: Array, n_q: int, n_k: int) -> None:
    """Raise unless a score function gave one number for every query and key."""
    if not is_array(scores) or tuple(scores.shape[-2:]) != (n_q, n_k):
        got = tuple(scores.shape) if is_array(scores) else type(scores).__name__
        raise ValueError(f"score must return shape (..., n_q, n_k) = (..., {n_q}, {n_k}); got {got}")


def check_largest(top: Array) -> None:
    """Raise where a query's largest score is NaN, which it is when any of its scores is."""
    xp = namespace(top)
    count = int(xp.sum(xp.astype(xp.isnan(top), xp.int64)))
    if count:
        raise ValueError(f"score must return numbers; got NaN for {count} of {prod(top.shape)} queries")


def _library(x: Array) -> str:
    return "torch" if is_torch(x) else "NumPy"
