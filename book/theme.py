"""What the theme leaves undone: names for its switches, one way on at the end of a page, tables for a phone."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

LONG = 40  # letters in a cell of a table that needs some width to be read


def settle(app: Sphinx, doctree: nodes.document) -> None:
    """Take out a lesson's own links to its neighbours, which the theme has at the end; mark long cells of tables."""
    paragraphs = list(doctree.findall(nodes.paragraph))
    if re.match(r"notebooks/\d\d_", app.env.docname) and paragraphs and re.search("← | →$", paragraphs[-1].astext()):
        paragraphs[-1].parent.remove(paragraphs[-1])
    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) > LONG:
            entry["classes"].append("long")


def label(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Say to those who hear a page what the arrow beside an entry of the list of pages does."""
    made = context["generate_toctree_html"]

    def labelled(*args: object, **options: object) -> object:
        tree = made(*args, **options)
        for arrow in getattr(tree, "select", lambda _: [])("summary"):
            above = arrow.find_parent("li").find("a")
            arrow["aria-label"] = f"Pages of {above.get_text() if above else 'this part'}"
        return tree

    context["generate_toctree_html"] = labelled


def empty(app: Sphinx, error: Exception | None) -> None:
    """Empty the script that draws icons, which the theme has as a font too; pages go on asking for it."""
    if error is None and app.builder.format == "html":
        (app.outdir / "_static" / "scripts" / "fontawesome.js").write_text("")


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", settle)
    app.connect("html-page-context", label, priority=900)
    app.connect("build-finished", empty, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
