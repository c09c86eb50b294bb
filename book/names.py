"""Names of the library in docstrings and pages: found under the name by which the reference lists them.

A docstring says `softmax` or `attnlib.causal`, the reference has `attnlib.core.masked_softmax` and
`attnlib.masks.causal`. A name that fits one entry leads there; one that fits several, or none, stays as code.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

BACK = re.compile(r'(id="([\w.]+)">\s*<a class="viewcode-back" )href="[^"]*"')


def find(app: Sphinx, env: BuildEnvironment, link: pending_xref, words: nodes.TextElement) -> nodes.reference | None:
    """A link to the one entry of the reference that a name can mean, if there is one."""
    if link.get("refdomain") != "py":
        return None
    objects, name = env.domains.python_domain.objects, link["reftarget"].removesuffix("()")
    found = _same(name, objects) if name.startswith("attnlib.") else _likely(name, objects, link.get("py:module"))
    if len(found) != 1:
        return None
    entry = objects[found[0]]
    return make_refnode(app.builder, link["refdoc"], entry.docname, entry.node_id, words, link["reftarget"])


def _same(name: str, objects: dict[str, ObjectEntry]) -> list[str]:
    """The entry for the very thing that a full name stands for, or for the class that has it."""
    while name != "attnlib":
        above, _, last = name.rpartition(".")
        if found := [other for other in objects if other.endswith(f".{last}") and thing(other) is thing(name)]:
            return found[:1]
        name = above
    return []


def _likely(name: str, objects: dict[str, ObjectEntry], module: str | None) -> list[str]:
    """The entries that end in a name: those of the same module if there are any, methods only if nothing else."""
    found = [other for other in objects if other.endswith(f".{name}")]
    found = [other for other in found if objects[other].objtype != "method"] or found
    beside = [other for other in found if module and other.startswith(f"{module}.")]
    return list({id(thing(other)): other for other in beside or found}.values())


@cache
def thing(name: str) -> object:
    """What a dotted name stands for; where a function and a module share it, the function."""
    above, _, last = name.rpartition(".")
    try:
        home = import_module(above)
    except ModuleNotFoundError:
        home = thing(above)
    return getattr(home, last) if hasattr(home, last) else import_module(name)


def lead_back(app: Sphinx, page: str, _template: str, context: dict, _doctree: object) -> None:
    """On a page of code, lead from each function to its entry: viewcode knows one module for all of a file."""
    objects = app.env.domains.python_domain.objects

    def address(block: re.Match) -> str:
        name = f"{page.removeprefix('_modules/').replace('/', '.')}.{block[2]}"
        entry = objects[_same(name, objects)[0]]
        return f'{block[1]}href="{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"'

    if page.startswith("_modules/attnlib"):
        context["body"] = BACK.sub(address, context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("missing-reference", find)
    app.connect("html-page-context", lead_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
