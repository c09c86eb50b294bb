"""The array library of the arguments. Nothing else in the package knows that there is more than one."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from array_api_compat import array_namespace, is_numpy_array, is_torch_array

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array: TypeAlias = np.ndarray | torch.Tensor
else:
    Array = Any

__all__ = ["Array", "is_array", "is_boolean", "is_floating", "is_torch", "namespace"]


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
    return _is_floating(type(x), x.dtype)


def is_boolean(x: Array) -> bool:
    """Does ``x`` hold truth values?

    >>> import numpy as np
    >>> is_boolean(np.arange(3) > 1)
    True
    """
    return _is_boolean(x.dtype)


def namespace(*arrays: Array) -> ModuleType:
    """The functions (``exp``, ``sum``, ``where``, …) that go with ``arrays``, under their array-API names.

    Source: the Python array API standard, 2024.12; ``array-api-compat`` supplies it for both libraries.

    >>> import numpy as np
    >>> xp = namespace(np.zeros(3))
    >>> float(xp.sum(xp.exp(np.zeros(3))))
    3.0
    """
    return array_namespace(*arrays)


@lru_cache
def _is_boolean(dtype: Any) -> bool:
    return str(dtype).endswith("bool")


@lru_cache  # asked several times in every call of `attention`
def _is_floating(library: type, dtype: Any) -> bool:
    return dtype.is_floating_point if hasattr(dtype, "is_floating_point") else dtype.kind == "f"
