"""How Sphinx makes the decks: a Markdown file each, with reveal.js and MathJax from packages; nothing is fetched."""

from publish.notebooks import ROOT
from publish.site import LANGUAGE, PROJECT

project = PROJECT
language = LANGUAGE
extensions = ["myst_parser", "sphinx_revealjs", "sphinx-mathjax-offline", "publish.slides.directives"]
exclude_patterns = ["README.md", "_build"]
suppress_warnings = ["toc.not_included"]  # the page of all decks links to them
myst_enable_extensions = ["dollarmath", "colon_fence"]

revealjs_static_path = [str(ROOT / "slides" / "_static")]
revealjs_style_theme = "slides.css"
revealjs_script_files = ["slides.js"]
revealjs_script_conf = "startWith"  # what slides.js says
revealjs_script_plugins = [{"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"}]
