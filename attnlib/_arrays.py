"""The array library of the arguments, and what shapes broadcast to. Nothing else knows that there are two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from array_api_compat import array_namespace, is_numpy_array, is_torch_array

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array: TypeAlias = np.ndarray | torch.Tensor
else:
    Array = Any

__all__ = [
    "Array",
    "Shape",
    "broadcast_shapes",
    "is_array",
    "is_boolean",
    "is_float_dtype",
    "is_floating",
    "is_torch",
    "namespace",
    "split_rows",
]

Shape = tuple[int, ...]
_NAMESPACES: dict[type, ModuleType] = {}  # asked at every call of `attention`: looked up once for each type


def is_array(x: object) -> bool:
    """Is ``x`` a NumPy array or a torch tensor? Neither library is imported to find out.

    >>> is_array([1.0, 2.0])
    False
    """
    return is_numpy_array(x) or is_torch_array(x)


def is_torch(x: object) -> bool:
    """Is ``x`` a torch tensor?

    >>> import numpy as np
    >>> is_torch(np.zeros(3))
    False
    """
    return is_torch_array(x)


def is_floating(x: Array) -> bool:
    """Does ``x`` hold real floating-point numbers, of whatever width?

    >>> import numpy as np
    >>> is_floating(np.arange(3))
    False
    """
    return is_float_dtype(x.dtype)


@lru_cache
def is_float_dtype(dtype: Any) -> bool:
    """Is this the dtype of real floating-point numbers, in either library?

    >>> import numpy as np
    >>> is_float_dtype(np.dtype("float16"))
    True
    """
    return dtype.is_floating_point if hasattr(dtype, "is_floating_point") else getattr(dtype, "kind", "") == "f"


def is_boolean(x: Array) -> bool:
    """Does ``x`` hold truth values?

    >>> import numpy as np
    >>> is_boolean(np.arange(3) > 1)
    True
    """
    return _is_boolean_dtype(x.dtype)


@lru_cache
def _is_boolean_dtype(dtype: Any) -> bool:
    return str(dtype).endswith("bool")


def namespace(x: Array) -> ModuleType:
    """The functions (``exp``, ``sum``, ``where``, …) that go with ``x``, under their array-API names.

    Source: the Python array API standard, 2024.12; ``array-api-compat`` supplies it for both libraries.

    >>> import numpy as np
    >>> xp = namespace(np.zeros(3))
    >>> float(xp.sum(xp.exp(np.zeros(3))))
    3.0
    """
    found = _NAMESPACES.get(type(x))
    if found is None:
        found = _NAMESPACES[type(x)] = array_namespace(x)
    return found


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
    return _broadcast(*map(tuple, shapes))


@lru_cache  # in decoding, always the same
def _broadcast(*shapes: Shape) -> Shape:
    longest = max(map(len, shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(others.pop() if others else 1)
    return tuple(result)
