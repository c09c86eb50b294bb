"""Checks that arguments of every kind need, so that the functions that use them stay as short as their equations.

A message says which argument, what came and what was expected. What is asked at a public function is not asked again
by what that function calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from numbers import Real
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.arrays import (
    Array,
    Shape,
    autocasts,
    broadcast_shapes,
    is_array,
    is_boolean,
    is_floating,
    library_name,
)

if TYPE_CHECKING:
    from jaxtyping import Bool

OURS = {  # our words for arguments of torch and of transformers
    "attn_mask": "mask, True where a query may attend (attnlib.masks.from_torch makes it of one of torch.nn)",
    "batch_first": "always so, (batch, n, d_model)",
    "do_sample": "attnlib.decoding.sample",
    "dropout_p": "dropout",
    "is_causal": "causal",
    "key_padding_mask": "mask, which attnlib.padding makes of lengths",
    "need_weights": "weights",
    "num_beams": "the width of attnlib.decoding.beam",
    "scale": "score, a function of queries and keys: lambda q, k: scale * attnlib.dot(q, k)",
}
PADDED = "Fill it up with nested.to_padded_tensor(0.0), and hide what was filled up with attnlib.masks.padding"
ARRAY = "a NumPy array or a torch tensor, or an array of another library that speaks the array API"


def check_floats(**arrays: Array) -> None:
    """Raise unless all are floating-point arrays of one library, dtype and device; autocast makes dtypes one."""
    (first, a), *rest = arrays.items()
    for name, x in arrays.items():
        check_array(name, x)
        if isinstance(x, np.matrix | np.ma.MaskedArray):  # whose rules are their own
            raise TypeError(f"{name} must be {ARRAY}; got {type(x).__name__}")
        check_one_block(name, x)
        if not is_floating(x):
            raise TypeError(f"{name} must hold floating-point numbers; got dtype {x.dtype}")
    for name, x in rest:
        if type(x) is not type(a) and library_name(x) != library_name(a):
            got = f"{library_name(a)} and {library_name(x)}"
            raise TypeError(f"{first} and {name} must come from one library; got {got}")
        if x.dtype != a.dtype and not (autocasts(x) and autocasts(a)):
            raise TypeError(f"{first} and {name} must have one dtype; got {a.dtype} and {x.dtype}")
        if x.device != a.device:
            raise ValueError(f"{first} and {name} must be on one device; got {a.device} and {x.device}")


def check_array(name: str, x: object) -> None:
    """Raise unless ``x`` is an array of a library that is known here."""
    if not is_array(x):
        raise TypeError(f"{name} must be {ARRAY}; got {type(x).__name__}")


def check_one_block(name: str, x: Array) -> None:
    """Raise where ``x`` is one of torch's nested tensors, whose rows differ in length."""
    if getattr(x, "is_nested", False):
        raise TypeError(f"{name} must be one block of numbers; got a nested tensor. {PADDED}")


def check_rows(name: str, x: Array, d_model: int) -> None:
    """Raise unless ``x`` is a tensor of torch's, in one block, whose last axis is ``d_model``."""
    if not hasattr(x, "is_nested"):
        raise TypeError(
            f"{name} must be a torch tensor of shape (..., n, d_model = {d_model}); got {type(x).__name__}"
        )
    check_one_block(name, x)
    check_width(name, x, d_model)


def check_width(name: str, x: Array, d_model: int, n_axes: int = 1) -> None:
    """Raise unless ``x`` has at least ``n_axes`` axes, the last of them ``d_model`` wide."""
    if x.ndim < n_axes or x.shape[-1] != d_model:
        raise ValueError(f"{name} must have shape (..., n, d_model = {d_model}); got {tuple(x.shape)}")


def check_words(function: str, others: Mapping[str, object]) -> None:
    """Raise where there are ``others``, keyword arguments that a function does not have, and say our word for one.

    >>> check_words("attention", {"is_causal": True})
    Traceback (most recent call last):
    TypeError: attention() got an unexpected keyword argument 'is_causal'; here it is causal
    """
    for name in others:
        ours = f"; here it is {OURS[name]}" if name in OURS else ""
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{ours}")


def no_generate(model: object, *_: object, **_options: object) -> None:
    """Stands in a model as ``generate``, and says who writes with it."""
    name = type(model).__name__
    raise AttributeError(f"{name} has no generate; attnlib.decoding has greedy(model, source, n_max), beam and sample")


def check_rank(shape_words: str, **arrays: Array) -> None:
    """Raise unless each array has at least two axes; ``shape_words`` says what they are."""
    for name, x in arrays.items():
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape {shape_words}; got {tuple(x.shape)}")


def check_pair(q: Array, k: Array, *, same_d: bool = True) -> None:
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


def check_leading(**arrays: Array) -> None:
    """Raise unless the axes before the last two broadcast."""
    try:
        broadcast_shapes(*(x.shape[:-2] for x in arrays.values()))
    except ValueError:
        got = ", ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ValueError(f"the leading (batch) axes of {', '.join(arrays)} must broadcast; got {got}") from None


def check_broadcast(name: str, x: Array, scores_shape: Sequence[int]) -> None:
    """Raise unless ``x`` broadcasts to scores of ``scores_shape`` (batch, n_q, n_k), and may add batch axes."""
    *lead, n_q, n_k = scores_shape
    rows, columns = (1, 1, *x.shape)[-2:]
    try:
        broadcast_shapes(x.shape[:-2], lead)
    except ValueError:
        fits = False
    else:
        fits = rows in (1, n_q) and columns in (1, n_k)
    if not fits:
        raise ValueError(
            f"{name} must broadcast to the scores, (..., n_q, n_k) = {tuple(scores_shape)}; got {tuple(x.shape)}"
        )


def check_mask(mask: Bool[Array, ...], scores_shape: Sequence[int], like: Array) -> None:
    """Raise unless ``mask`` is boolean and broadcasts to scores of ``scores_shape`` (batch, n_q, n_k)."""
    check_boolean("mask", mask)
    if type(mask) is not type(like) and library_name(mask) != library_name(like):
        ours, theirs = library_name(like), library_name(mask)
        advice = "Masks of attnlib take like=, as causal(n, like=q)"
        raise TypeError(f"mask must come from the library of the scores, {ours}; got {theirs}. {advice}")
    if mask.device != like.device:
        raise ValueError(f"mask must be on the device of the scores, {like.device}; got {mask.device}")
    check_broadcast("mask", mask, scores_shape)


def check_boolean(name: str, mask: object) -> None:
    """Raise unless ``mask`` is an array of booleans."""
    check_array(name, mask)
    if not is_boolean(mask):
        raise TypeError(
            f"{name} must be boolean, True where a query may attend; got dtype {mask.dtype}. "
            "Where 1 means may attend, write mask != 0"
        )


def check_weight(name: str, w: Array, shape: Shape, words: str, like: Array) -> None:
    """Raise unless the parameter ``w`` has the shape that the queries and keys ask for (-1 fits any size)."""
    check_floats(q=like, **{name: w})
    fits = w.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, w.shape, strict=True))
    if not fits:
        expected = tuple("any" if size == -1 else size for size in shape)
        raise ValueError(f"{name} must have shape {words} = {expected}; got {tuple(w.shape)}".replace("'", ""))


def check_number(name: str, value: object) -> float:
    """``value`` as it is; raise unless it is a real number (True and False are not)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}")
    return value


def check_positive(name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number above zero."""
    if not 0 < check_number(name, value) < inf:
        raise ValueError(f"{name} must be positive and finite; got {value}")


def check_not_negative(name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number, zero or above."""
    if not 0 <= check_number(name, value) < inf:
        raise ValueError(f"{name} must be finite and not negative; got {value}")


def check_share(name: str, value: float) -> None:
    """Raise unless ``value`` is a number from 0 up to, but not including, 1."""
    if not 0 <= check_number(name, value) < 1:
        raise ValueError(f"{name} must be at least 0 and below 1; got {value}")


def check_size(name: str, n: int) -> int:
    """``n`` as a Python integer; raise unless it is one and not negative."""
    if type(n).__name__ == "SymInt":  # a size in a graph that torch traces: not known yet, and not to be fixed
        return n
    try:
        whole = n if type(n) is int else index(n)
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


def check_integers(name: str, values: Iterable[int]) -> list[int]:
    """``values``, of a tensor or an array too, as a list of Python integers; raise unless they are a sequence of such.

    >>> check_integers("numbers", np.array([3, 4]))
    [3, 4]
    """
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of integers; got {type(values).__name__}")
    values = list(values)
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name} must hold integers; got {type(value).__name__}")
    return [int(value) for value in values]


def check_one_of(name: str, value: object, known: Iterable[object]) -> None:
    """Raise unless ``value`` is one of ``known``: words, numbers or None."""
    known = tuple(known)
    comparable = value is None or (isinstance(value, str | Real) and not isinstance(value, bool))
    if not comparable or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")


def check_folder(name: str, folder: object) -> Path:
    """The path of a folder that is there; raises ``TypeError`` or ``FileNotFoundError``.

    >>> check_folder("folder", "nowhere")
    Traceback (most recent call last):
    FileNotFoundError: folder must be there; there is no folder nowhere
    """
    if not isinstance(folder, str | PathLike):
        raise TypeError(f"{name} must be a path, as a string is one; got {type(folder).__name__}")
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"{name} must be there; there is no folder {path}")
    return path
