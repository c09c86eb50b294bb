"""How Sphinx makes the book: the notebooks as committed, never run again, with nothing fetched from outside."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for excursions

project = "Attention, run"
author = "the attnlib authors"
copyright = "2026, the attnlib authors. Code MIT, prose and figures CC BY 4.0"
extensions = ["myst_nb", "sphinx_copybutton", "sphinx-mathjax-offline", "excursions"]

nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "amsmath"]
# A page of the ledger links to its tests, which the repository shows and the book does not.
suppress_warnings = ["myst.xref_missing"]

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_theme_options = {"use_download_button": True, "show_navbar_depth": 1}
exclude_patterns = ["source", "lab", "building", "**.ipynb_checkpoints"]
