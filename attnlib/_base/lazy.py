"""Front doors that open late: a name is imported when it is first used, so that nobody waits for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

__all__ = ["lazy"]


def lazy(
    package: str, names: Mapping[str, Sequence[str]], modules: Mapping[str, Sequence[str]] | None = None
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of ``package``.

    ``names`` are what it offers, by the module below it that has them; ``modules`` are modules that it offers by their
    last name, by the folder that they lie in ("" for its own).

    >>> _, get, _ = lazy("attnlib", {"core": ["attention"]}, {"data.": ["text"]})
    >>> get("attention").__name__, get("text").__name__
    ('attention', 'attnlib.data.text')
    """
    home = {name: f"{package}.{module}" for module, found in names.items() for name in found}
    place = {name: f"{package}.{folder}{name}" for folder, found in (modules or {}).items() for name in found}
    offered = sorted([*home, *place])

    def __getattr__(name: str) -> object:  # noqa: N807
        if name in home:
            return getattr(import_module(home[name]), name)
        if name in place:
            return import_module(place[name])
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return offered, __getattr__, lambda: offered
