"""Links of a page to files that the book does not show: to their code in the book, to the repository, or no link.

A page is written for the repository, where `[attention](../attnlib/core/attention.py)` opens a file. Here it becomes
a link to what the reference says of the name in brackets. A test that the book shows is found by its name too. Any
other file of the repository is opened there if the book knows its address (see conf.py); else its name stays, without
a link. A file that is nowhere is left for Sphinx to warn of.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]


def redirect(app: Sphinx, doctree: nodes.document) -> None:
    """Give each link of a page, just read, that leads to a file outside the book another place to lead to."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("reftype") == "myst" and link.get("refdomain") != "doc":
            path = _in_repository(app.env.docname, link["reftarget"])
            if path:
                link.replace_self(_elsewhere(app, link, path))


def relink(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to lessons in what a cell shows as HTML lead to their pages."""
    for part in doctree.findall(nodes.raw):
        part.replace_self(nodes.raw("", re.sub(r'(href="[^":]*)\.ipynb"', r'\1.html"', part.astext()), format="html"))


def _in_repository(page: str, target: str) -> Path | None:
    """The file of the repository that a link on a page means, as a path from the top."""
    path = (ROOT / page).parent / target.partition("#")[0]
    path = path.resolve()
    return path.relative_to(ROOT) if path.is_file() and path.is_relative_to(ROOT) else None


def _elsewhere(app: Sphinx, link: addnodes.pending_xref, path: Path) -> nodes.Node:
    words, text = list(link.children), link.astext()
    if path.parts[0] == "attnlib" and path.suffix == ".py":
        return addnodes.pending_xref(
            "", *words, refdomain="py", reftype="obj", reftarget=text, refdoc=app.env.docname, refwarn=True
        )
    if f"{path.with_suffix('')}" in app.env.found_docs:
        return addnodes.pending_xref(
            "", *words, refdomain="std", reftype="ref", reftarget=text, refexplicit=True, refdoc=app.env.docname,
            refwarn=True,
        )  # fmt: skip
    if app.config.repository:
        return nodes.reference("", "", *words, refuri=f"{app.config.repository}/{path.as_posix()}")
    return nodes.inline("", "", *words)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_config_value("repository", "", "env")
    app.connect("doctree-read", redirect)
    app.connect("doctree-read", relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
