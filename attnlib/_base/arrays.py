"""The array library of the arguments, what may be asked of their numbers, and what shapes broadcast to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array, is_torch_array

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array: TypeAlias = np.ndarray | torch.Tensor
else:
    Array = Any

__all__ = [
    "Array",
    "Library",
    "Shape",
    "at",
    "autocasts",
    "broadcast_shapes",
    "is_array",
    "is_boolean",
    "is_float_dtype",
    "is_floating",
    "is_torch",
    "library_name",
    "library_of",
    "namespace",
    "readable",
    "split_rows",
    "tracing",
    "transforms",
]

Shape = tuple[int, ...]
_NAMESPACES: dict[type, ModuleType] = {}  # looked up once for each type


class Library(NamedTuple):
    """Whose an array is: the functions that go with it, and whether its numbers may be looked at.

    Asked once at the boundary, by `library_of`, and handed on.
    """

    xp: ModuleType
    readable: bool


def is_array(x: object) -> bool:
    """Is ``x`` an array of a library that speaks the array API, NumPy's or torch's? None is imported to find out.

    What JAX traces, to compile or to differentiate, is none: it lies on no device, and has no numbers to look at.

    >>> is_array([1.0, 2.0])
    False
    """
    return is_numpy_array(x) or is_torch_array(x) or (is_array_api_obj(x) and hasattr(x, "device"))


def is_torch(x: object) -> bool:
    """Is ``x`` a torch tensor?

    >>> import numpy as np
    >>> is_torch(np.zeros(3))
    False
    """
    return is_torch_array(x)


def autocasts(x: Array) -> bool:
    """Is ``x`` a torch tensor under ``torch.autocast``, which makes one dtype of several, but of double precision?

    >>> import torch
    >>> with torch.autocast("cpu"):
    ...     autocasts(torch.zeros(3)), autocasts(torch.zeros(3).double())
    (True, False)
    """
    if not is_torch_array(x):
        return False
    torch = sys.modules["torch"]
    return torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64


def library_of(x: Array) -> Library:
    """Whose array ``x`` is.

    >>> import numpy as np
    >>> library_of(np.zeros(3)).readable
    True
    """
    return Library(namespace(x), readable(x))


def library_name(x: Array) -> str:
    """The name of the array library of ``x``, for a message.

    >>> import numpy as np
    >>> library_name(np.zeros(3))
    'NumPy'
    """
    name = namespace(x).__name__.removeprefix("array_api_compat.").partition(".")[0]
    return "NumPy" if name == "numpy" else name


def is_floating(x: Array) -> bool:
    """Does ``x`` hold real floating-point numbers, of whatever width?

    >>> import numpy as np
    >>> is_floating(np.arange(3))
    False
    """
    return is_float_dtype(x.dtype)


@lru_cache(typed=True)  # dtypes of two libraries can have one hash, and must not be compared
def is_float_dtype(dtype: Any) -> bool:
    """Is this the dtype of real floating-point numbers, in either library?

    >>> import numpy as np
    >>> is_float_dtype(np.dtype("float16"))
    True
    """
    return _name(dtype).startswith(("float", "bfloat"))


def is_boolean(x: Array) -> bool:
    """Does ``x`` hold truth values?

    >>> import numpy as np
    >>> is_boolean(np.arange(3) > 1)
    True
    """
    return _is_boolean_dtype(x.dtype)


@lru_cache(typed=True)
def _is_boolean_dtype(dtype: Any) -> bool:
    return _name(dtype) == "bool"


def _name(dtype: Any) -> str:
    """The name without the library's, before a point, if at all (torch.float32), and without the order of bytes."""
    return getattr(dtype, "name", str(dtype)).rpartition(".")[2]


def namespace(x: Array) -> ModuleType:
    """The functions (``exp``, ``sum``, ``where``, …) that go with ``x``, under their array-API names.

    Source: the Python array API standard, 2024.12; ``array-api-compat`` supplies it for both libraries. Of another
    library it may be any since 2022.12.

    >>> import numpy as np
    >>> xp = namespace(np.zeros(3))
    >>> float(xp.sum(xp.exp(np.zeros(3))))
    3.0
    """
    found = _NAMESPACES.get(type(x))
    if found is None:
        found = array_namespace(x)
        if not (is_numpy_array(x) or is_torch_array(x)):
            found = _newer(found)
        _NAMESPACES[type(x)] = found
    return found


def _newer(xp: ModuleType) -> ModuleType:
    """The functions of a library that may not have what came to the standard after 2022.12, and is used here."""

    def where(condition: Any, a: Any, b: Any) -> Any:  # numbers came with 2024.12
        if not hasattr(b, "dtype"):
            b = xp.asarray(b, dtype=a.dtype, device=a.device)
        return xp.where(condition, a, b)

    newer = ModuleType(xp.__name__)
    newer.__getattr__ = lambda name: getattr(xp, name)
    newer.where = where
    newer.maximum = lambda a, b: xp.where(a > b, a, b)  # with 2023.12
    return newer


def tracing() -> bool:
    """Is torch tracing a graph, to compile or to export it? Then sizes may be symbols, and numbers are not there.

    >>> tracing()
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def readable(x: Array) -> bool:
    """May the numbers in ``x`` be looked at? Where not, checks step aside.

    That is while torch traces a graph, under its vmap, and of its meta and fake tensors, which have none.

    >>> import numpy as np
    >>> readable(np.zeros(3))
    True
    """
    if not is_torch_array(x):
        return True
    is_fake = type(x) is not sys.modules["torch"].Tensor and hasattr(x, "fake_mode")
    return not (x.is_meta or is_fake or tracing() or "Vmap" in transforms())


def transforms() -> list[str]:
    """Under which transformations of ``torch.func`` are we, the outermost first?

    >>> transforms()
    []
    """
    torch = sys.modules.get("torch")
    if torch is None or torch._C._functorch.peek_interpreter_stack() is None:
        return []
    from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters

    return [one.key().name for one in retrieve_all_functorch_interpreters()]


def at(x: Array, places: slice | np.ndarray, axis: int) -> Array:
    """What stands at ``places`` along an axis. Indexing with an array of NumPy's is not in the standard.

    >>> import numpy as np
    >>> at(np.eye(3), np.array([2, 0]), axis=-1)
    array([[0., 1.],
           [0., 0.],
           [1., 0.]])
    """
    if isinstance(places, slice):
        return x[(..., places) + (slice(None),) * (-1 - axis)]
    xp = namespace(x)
    return xp.take(x, xp.asarray(places, device=x.device), axis=axis)


def split_rows(x: Array, block: int, lacking: int = 0) -> list[Array]:
    """``x`` ``(..., n, d)`` in blocks of rows, of which the first has ``lacking`` rows less; none are one block.

    By torch's own function, whose gradient is one concatenation; that of many slices would be as many whole arrays.

    >>> import numpy as np
    >>> [len(rows) for rows in split_rows(np.zeros((9, 2)), 4, lacking=1)]
    [3, 4, 2]
    """
    n = x.shape[-2]
    ends = [0, *range(block - lacking, n, block), n]
    if is_torch(x):
        return list(x.split([stop - start for start, stop in pairwise(ends)], dim=-2))
    return [x[..., start:stop, :] for start, stop in pairwise(ends)]


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that ``shapes`` broadcast to, or a ``ValueError``.

    >>> broadcast_shapes((8, 1), (3,))
    (8, 3)
    """
    return (_broadcast if tracing() else _broadcast_once)(*map(tuple, shapes))


def _broadcast(*shapes: Shape) -> Shape:
    longest = max([0, *map(len, shapes)])
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        others = [size for size in sizes if size != 1]
        if any(size != others[0] for size in others):
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(others[0] if others else 1)
    return tuple(result)


_broadcast_once = lru_cache(_broadcast)  # in decoding, always the same; a symbol of a graph cannot be looked up
