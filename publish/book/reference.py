"""The pages of the API reference: one for each room of the library, with what its door and its open modules offer."""

import csv
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from sphinx.application import Sphinx

import attnlib
from publish.notebooks import ROOT

#: Each room, and which of its modules are open to readers beside its front door.
ROOMS = {row["room"]: row["modules"].split() for row in csv.DictReader((ROOT / "book" / "reference.csv").open())}


def pages() -> Iterator[tuple[str, str]]:
    """The path and the text of each page."""
    yield "api/index.rst", _index()
    for room, modules in ROOMS.items():
        yield f"api/{room}.rst", _page(room, modules)


def _index() -> str:
    names = [f"   * - `{name}`\n     - {_first_line(name)}" for name in attnlib.__all__ if _is_no_module(name)]
    return "\n".join([
        _title("Library reference"),
        "Everything that the library offers, from its docstrings: the equation, the shapes, what raises an error, "
        "where it comes from, and an example, which the tests run.\n",
        ".. toctree::\n   :maxdepth: 1\n",
        *(f"   {room}" for room in ROOMS),
        "\n" + _title("At the front door", "-"),
        "These names are imported from ``attnlib`` itself: ``from attnlib import attention``.\n",
        ".. list-table::\n   :widths: auto\n",
        *names,
        "",
    ])  # fmt: skip


def _is_no_module(name: str) -> bool:
    return not hasattr(getattr(attnlib, name), "__path__") and hasattr(getattr(attnlib, name), "__module__")


def _first_line(name: str) -> str:
    return getattr(attnlib, name).__doc__.partition("\n")[0]


def _page(room: str, modules: list[str]) -> str:
    """The names that the door offers; then those of each open module that the page has not yet shown."""
    door, shown = import_module(f"attnlib.{room}"), set()
    parts = []
    for module in (door, *(import_module(f"attnlib.{room}.{name}") for name in modules)):
        names = [name for name in module.__all__ if (name, id(getattr(module, name))) not in shown]
        shown |= {(name, id(getattr(module, name))) for name in names}
        parts += [_title(module.__name__, "-" if parts else "="), f".. automodule:: {module.__name__}"]
        # Where a function of the folder has the name of its module, a link means the function.
        clash = module is not door and module.__name__.rpartition(".")[2] in door.__all__
        parts += ["   :no-index:" if clash else "", f"\n.. currentmodule:: {module.__name__}\n"]
        parts += [_entry(module, name) for name in names]
    return "\n".join(parts)


def _entry(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    if isinstance(thing, type):
        return f".. autoclass:: {name}\n   :members:\n"
    if callable(thing):
        return f".. autofunction:: {name}\n"
    value = f"   :value: {thing!r}\n" if len(repr(thing)) <= 60 else ""
    return f".. py:data:: {name}\n{value}\n   {_comment(module, name)}\n"


def _comment(module: ModuleType, name: str) -> str:
    """What the line that sets a constant says of it."""
    found = re.search(rf"^{name}\b[^#\n]*  # (.*)", inspect.getsource(module), re.MULTILINE)
    return found[1][0].upper() + found[1][1:].removesuffix(".") + "." if found else ""


def _title(words: str, line: str = "=") -> str:
    return f"{words}\n{line * len(words)}\n"


def omit(_app: Sphinx, _kind: str, _name: str, member: object, skip: bool, _options: object) -> bool | None:
    """Leave out what a class has from elsewhere, and the fields of tuples, of which the class's own words speak."""
    foreign = getattr(member, "__module__", None) or getattr(type(member), "__module__", "")
    return True if not skip and not foreign.startswith("attnlib") and not isinstance(member, property) else None
