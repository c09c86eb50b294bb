"""Figures that move, below the sliders that need a running notebook: pages of `figures/moving`, in a frame."""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

PAGES = Path(__file__).resolve().parent.parent / "figures" / "moving"


def show(app: Sphinx, doctree: nodes.document) -> None:
    """Put the page of each live cell that has one below its code."""
    for cell in list(doctree.findall(nodes.container)):
        moving = cell.get("cell_metadata", {}).get("moving") if cell.get("nb_element") == "cell_code" else None
        if moving:
            name = f"{Path(app.env.docname).name[:2]}_{moving['name']}"
            cell += nodes.raw("", frame(name), format="html")


def frame(name: str) -> str:
    """The page in a frame; it tells the frame how high it is."""
    title = escape(f"A figure that moves: {name[3:].replace('_', ' ')}. Its controls come first.")
    return f'<iframe class="moving" src="../_moving/{name}.html" title="{title}" loading="lazy" height="620"></iframe>'


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the pages beside the book's own."""
    if exception is None and app.builder.format == "html":
        shutil.copytree(PAGES, Path(app.outdir) / "_moving", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", show)
    app.connect("build-finished", copy)
    app.add_css_file("moving.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
