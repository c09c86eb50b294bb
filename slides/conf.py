"""How Sphinx makes the decks: a Markdown file each, with reveal.js and MathJax from packages; nothing is fetched."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the directives beside this file

project = "Attention, run"
language = "en"
extensions = ["myst_parser", "sphinx_revealjs", "sphinx-mathjax-offline", "directives"]
exclude_patterns = ["README.md", "_build"]
suppress_warnings = ["toc.not_included"]  # the page of all decks links to them
myst_enable_extensions = ["dollarmath", "colon_fence"]

revealjs_static_path = ["_static"]
revealjs_style_theme = "slides.css"
revealjs_script_files = ["slides.js"]
revealjs_script_conf = "startWith"  # what slides.js says
revealjs_script_plugins = [{"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"}]
