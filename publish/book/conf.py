"""How Sphinx makes the book: the notebooks as committed, never run again, with nothing fetched from outside."""

import os

from publish.book import lessons, links, living, reference, theme
from publish.notebooks import ROOT
from publish.site import LANGUAGE, PROJECT

project = PROJECT
author = "the attnlib authors"
copyright = "2026, the attnlib authors. Code MIT, prose and figures CC BY 4.0"
language = LANGUAGE
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
]

nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"  # a table that a cell shows is a table
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "amsmath"]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # score=scaled_dot, not the address of a function
napoleon_use_param = False  # "q, k, v" stay one entry with one text
napoleon_use_rtype = False
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "py:obj"  # what stands in `backticks` in a docstring is a link where it is a name of the library

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = [str(ROOT / "book" / "_static"), str(ROOT / "book" / "live")]
templates_path = [str(ROOT / "book" / "_templates")]
html_theme_options = {
    "use_download_button": True,
    "use_fullscreen_button": False,
    "collapse_navbar": True,
    "navbar_persistent": [],  # one search field is enough
}
html_show_sourcelink = False
html_domain_indices = False  # the reference has its own first page
exclude_patterns = ["**.ipynb_checkpoints"]

# Where the repository can be seen is known to the workflow that publishes the book, and to nobody else.
repository = ""
if name := os.environ.get("GITHUB_REPOSITORY"):
    address = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"
    repository = f"{address}/blob/{os.environ.get('GITHUB_SHA', 'HEAD')}"
    html_theme_options |= {"repository_url": address, "use_repository_button": True}
    html_theme_options["launch_buttons"] = {"binderhub_url": "https://mybinder.org"}  # which reads .binder
    html_theme_options["path_to_docs"] = ""


def setup(app):
    """Connect what is done to a page as it is read, as its links are sought, as it is written; then to the whole."""
    for style in ("book.css", "moving.css"):
        app.add_css_file(style)
    app.add_config_value("repository", "", "env")
    for change in (living.open_lesson, lessons.move, links.redirect, links.relink, lessons.describe, lessons.settle):
        app.connect("doctree-read", change)
    app.connect("autodoc-skip-member", reference.omit)
    app.connect("missing-reference", links.find)
    app.connect("doctree-resolved", lessons.fold)
    for change in (living.fetch, links.lead_back):
        app.connect("html-page-context", change)
    app.connect("html-page-context", theme.label, priority=900)
    for finish in (living.write, lessons.copy):
        app.connect("build-finished", finish)
    app.connect("build-finished", theme.empty, priority=900)
