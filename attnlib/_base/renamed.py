"""Old names, which work for one version more and say the new one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar

__all__ = ["RenamedWeights", "moved", "renamed", "say_renamed", "with_new_names"]


def say_renamed(old: str, new: str) -> None:
    """Tell whoever used the name ``old``, two calls from here, that it is ``new`` now."""
    warnings.warn(f"{old} is now {new}; the old name works until version 2", DeprecationWarning, stacklevel=3)


class renamed:  # noqa: N801
    """An attribute of a class, or of its instances, by its old name.

    >>> class Model:
    ...     def prefill(self):
    ...         return "read"
    ...     remember = renamed("prefill")
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     Model().remember(), str(said[0].message)
    ('read', 'Model.remember is now Model.prefill; the old name works until version 2')
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, old: str) -> None:
        self.old = old

    def __get__(self, instance: object, owner: type) -> Any:
        say_renamed(f"{owner.__name__}.{self.old}", f"{owner.__name__}.{self.new}")
        return attrgetter(self.new)(owner if instance is None else instance)


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


def with_new_names(tensors: Mapping[str, Any], prefix: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Weights by the ``names`` that the parts of a module at ``prefix`` have now.

    >>> with_new_names({"gpt.table.weight": 1, "gpt.norm.bias": 2}, "gpt.", {"table": "token_embedding"})
    {'gpt.token_embedding.weight': 1, 'gpt.norm.bias': 2}
    """
    old = re.compile(f"{re.escape(prefix)}({'|'.join(map(re.escape, names))})\\.")
    return {old.sub(lambda found: f"{prefix}{names[found[1]]}.", name, count=1) if old.match(name) else name: tensor
            for name, tensor in tensors.items()}  # fmt: skip


class RenamedWeights:
    """A module of torch whose parts had other names: they are found under these, and weights that were saved so.

    ``renamed_weights`` has the new name of each. It stands before `torch.nn.Module` among the bases.
    """

    renamed_weights: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for old, new in vars(cls).get("renamed_weights", {}).items():
            setattr(cls, old, renamed(new))
            vars(cls)[old].__set_name__(cls, old)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.renamed_weights:
            whole = self.renamed_weights[name]
            say_renamed(f"{type(self).__name__}.{name}", f"{type(self).__name__}.{whole}")
            home, _, name = whole.rpartition(".")
            setattr(attrgetter(home)(self) if home else self, name, value)
        else:
            super().__setattr__(name, value)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = with_new_names(state_dict, prefix, self.renamed_weights)
        state_dict.clear()
        state_dict.update(found)
        super()._load_from_state_dict(state_dict, prefix, *rest)
