"""What the book does to the pages of lessons: what moves is in a frame, pictures have words, excursions are folded.

An excursion is folded when its page is written, after Sphinx has read its headings for the tables of contents: the
address of the section stays on the section, which is always shown, and browsers open a `<details>` around what a link
inside it leads to.
"""

import hashlib
import re
import shutil
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from publish.notebooks import ROOT, figures, lesson_notebook
from publish.site import raw

EXCURSION = "Excursion: "
LONG = 40  # letters in a cell of a table that needs some width to be read


def move(app: Sphinx, doctree: nodes.document) -> None:
    """Put the page of each live cell that has one below its code."""
    for cell in list(doctree.findall(nodes.container)):
        moving = cell.get("cell_metadata", {}).get("moving") if cell.get("nb_element") == "cell_code" else None
        if moving:
            cell += raw(frame(f"{Path(app.env.docname).name[:2]}_{moving['name']}"))


def frame(name: str) -> str:
    """The page in a frame; it tells the frame how high it is."""
    title = escape(f"A figure that moves: {name[3:].replace('_', ' ')}. Its controls come first.")
    return f'<iframe class="moving" src="../_moving/{name}.html" title="{title}" loading="lazy" height="620"></iframe>'


def copy(app: Sphinx, error: Exception | None) -> None:
    """Put the pages that move beside the book's own."""
    if error is None and app.builder.format == "html":
        shutil.copytree(ROOT / "figures" / "moving", Path(app.outdir) / "_moving", dirs_exist_ok=True)


def describe(app: Sphinx, doctree: nodes.document) -> None:
    """Put a notebook's alt texts on its pictures: myst-nb names a picture's file after its bytes, and so do we."""
    words = {}
    if lesson := re.fullmatch(r"notebooks/(\d\d_\w+)", app.env.docname):
        words = {hashlib.sha256(png).hexdigest(): alt for _, png, alt in figures(lesson_notebook(lesson[1]))}
    for image in doctree.findall(nodes.image):
        image["alt"] = words.get(Path(image["uri"]).stem) or image.get("alt", "")
        if not lesson:  # a lesson may be printed as it is
            image["loading"] = "lazy"


def settle(app: Sphinx, doctree: nodes.document) -> None:
    """Take out a lesson's own links to its neighbours, which the theme has at the end; mark long cells of tables."""
    paragraphs = list(doctree.findall(nodes.paragraph))
    if re.match(r"notebooks/\d\d_", app.env.docname) and paragraphs and re.search("← | →$", paragraphs[-1].astext()):
        paragraphs[-1].parent.remove(paragraphs[-1])
    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) > LONG:
            entry["classes"].append("long")


def fold(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Put the excursions of a page into `<details>`, their titles into `<summary>`; no script is needed."""
    for section in list(doctree.findall(nodes.section)) if app.builder.format == "html" else ():
        title = section[0] if len(section) else None
        if isinstance(title, nodes.title) and title.astext().startswith(EXCURSION):
            section.insert(0, raw('<details class="excursion"><summary>'))
            section.insert(section.index(title) + 1, raw("</summary>"))
            section.append(raw("</details>"))
