"""Names by which `torch.export.save` writes what modules return, and `torch.export.load` finds it again."""

from __future__ import annotations

from torch.utils import _pytree as pytree

from attnlib.core.attention import Attended

__all__ = ["named"]


def named(cls: type) -> type:
    """The class of tuples as it is; a graph that returns such a tuple can be saved, and loaded by whoever knows it.

    >>> named(Attended).__name__
    'Attended'
    """
    if cls not in pytree.SUPPORTED_NODES:
        pytree._register_namedtuple(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
    return cls


named(Attended)  # which knows no torch
