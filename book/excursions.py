"""Fold excursions in the book: a section `Excursion: title` becomes a closed `<details>`, without a script.

It is done when a page is written, after Sphinx has read its headings for the tables of contents: the address
of the section stays on the section, which is always shown, and browsers open a `<details>` around what a link
inside it leads to.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

MARK = "Excursion: "


def fold(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Put the excursions of a page into `<details>`, their titles into `<summary>`."""
    if app.builder.format != "html":
        return
    for section in list(doctree.findall(nodes.section)):
        title = section[0] if len(section) else None
        if isinstance(title, nodes.title) and title.astext().startswith(MARK):
            section.insert(0, _html('<details class="excursion"><summary>'))
            section.insert(section.index(title) + 1, _html("</summary>"))
            section.append(_html("</details>"))


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-resolved", fold)
    app.add_css_file("book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
