"""A plugin of pytest (``-p shapes``): at every call, arrays have the shapes that signatures of attnlib say.

The package imports what it writes them with for type checkers only. So it is imported twice: once as it is, for what
it needs of others, and then as by a type checker, with jaxtyping's hook, by which beartype looks at each call.
"""

import inspect
import sys
import typing
from functools import reduce
from importlib import import_module
from operator import or_
from typing import get_args

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception
from jaxtyping import install_import_hook

PARTS = ["scores", "masks", "positions", "patterns", "core", "variants", "variants.pointer", "nn", "models"]

BROADCAST = {"mask", "memory_mask", "bias"}

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int does for a float


def _of_any_size(hint):
    """Of a mask or a bias, only the dtype and that it has two axes: its ones broadcast, as its docstring says."""
    if hasattr(hint, "dim_str"):
        return hint.dtype[hint.array_type, "... _ _"]
    return reduce(or_, map(_of_any_size, parts)) if (parts := get_args(hint)) else hint


def checked(function):
    """The function with its arguments looked at; as it is where it gives ``Self``, which is for whole classes."""
    try:
        hints = inspect.get_annotations(function, eval_str=True)
    except NameError:  # of a module that is only now being made
        hints = {}
    for name in BROADCAST & hints.keys():
        function.__annotations__[name] = _of_any_size(hints[name])
    for name in [name for name, hint in hints.items() if hint is typing.Never]:
        del function.__annotations__[name]  # of words that are answered: beartype knows Never as a result alone
    try:
        return _beartype(function)
    except BeartypeDecorHintPep673Exception:
        return function


def _import() -> None:
    for part in PARTS:
        import_module(f"attnlib.{part}")


_import()
for name in [name for name in sys.modules if name.partition(".")[0] == "attnlib"]:
    del sys.modules[name]
typing.TYPE_CHECKING = True
try:
    with install_import_hook("attnlib", "shapes.checked"):
        _import()
finally:
    typing.TYPE_CHECKING = False
