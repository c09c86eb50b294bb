"""Old names, which work for one version more and say the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["moved", "renamed", "say_renamed"]


def say_renamed(old: str, new: str) -> None:
    """Tell whoever used the name ``old``, two calls from here, that it is ``new`` now."""
    warnings.warn(f"{old} is now {new}; the old name works until version 0.3", DeprecationWarning, stacklevel=3)


class renamed:  # noqa: N801: it is written like a decorator
    """An attribute of a class, or of its instances, by its old name.

    >>> class Model:
    ...     def prefill(self):
    ...         return "read"
    ...     remember = renamed("prefill")
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     Model().remember(), str(said[0].message)
    ('read', 'Model.remember is now Model.prefill; the old name works until version 0.3')
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, old: str) -> None:
        self.old = old

    def __get__(self, instance: object, owner: type) -> Any:
        say_renamed(f"{owner.__name__}.{self.old}", f"{owner.__name__}.{self.new}")
        return getattr(owner if instance is None else instance, self.new)


def moved(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose names were given new places, ``package.module.name``.

    >>> moved("here", {"old": "math.pi"})("other")
    Traceback (most recent call last):
    AttributeError: module 'here' has no attribute 'other'
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        say_renamed(f"{module}.{name}", places[name])
        home, _, new = places[name].rpartition(".")
        return getattr(import_module(home), new)

    return __getattr__
