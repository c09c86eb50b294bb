"""Links of the book: names of the library to their entries in the reference, files outside the book to elsewhere.

A docstring says `softmax` or `attnlib.causal`, the reference has `attnlib.core.masked_softmax` and
`attnlib.masks.causal`. A name that fits one entry leads there; one that fits several, or none, stays as code.

A page is written for the repository, where `[attention](../attnlib/core/attention.py)` opens a file. Here it becomes
a link to what the reference says of the name in brackets. A test that the book shows is found by its name too. Any
other file of the repository is opened there if the book knows its address (see conf.py); else its name stays, without
a link. A file that is nowhere is left for Sphinx to warn of.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from publish.notebooks import ROOT
from publish.site import raw

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


def redirect(app: Sphinx, doctree: nodes.document) -> None:
    """Give each link of a page, just read, that leads to a file outside the book another place to lead to."""
    for link in list(doctree.findall(pending_xref)):
        if link.get("reftype") == "myst" and link.get("refdomain") != "doc":
            path = _in_repository(app.env.docname, link["reftarget"])
            if path:
                link.replace_self(_elsewhere(app, link, path))


def relink(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to lessons in what a cell shows as HTML lead to their pages."""
    for part in doctree.findall(nodes.raw):
        part.replace_self(raw(re.sub(r'(href="[^":]*)\.ipynb"', r'\1.html"', part.astext())))


def _in_repository(page: str, target: str) -> Path | None:
    """The file of the repository that a link on a page means, as a path from the top."""
    path = (ROOT / page).parent / target.partition("#")[0]
    path = path.resolve()
    return path.relative_to(ROOT) if path.is_file() and path.is_relative_to(ROOT) else None


def _elsewhere(app: Sphinx, link: pending_xref, path: Path) -> nodes.Node:
    words, text = list(link.children), link.astext()
    named = {"reftarget": text, "refdoc": app.env.docname, "refwarn": True}
    if path.parts[0] == "attnlib" and path.suffix == ".py":
        return pending_xref("", *words, refdomain="py", reftype="obj", **named)
    if f"{path.with_suffix('')}" in app.env.found_docs:
        return pending_xref("", *words, refdomain="std", reftype="ref", refexplicit=True, **named)
    if app.config.repository:
        return nodes.reference("", "", *words, refuri=f"{app.config.repository}/{path.as_posix()}")
    return nodes.inline("", "", *words)
