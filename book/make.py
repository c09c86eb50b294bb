"""Make the book: ``python book/make.py FOLDER`` writes it to ``FOLDER/html``; a warning is an error.

``--pdf`` writes ``FOLDER/singlehtml/index.pdf`` instead: all of it on one page, printed with Chromium in some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main

from pages import ROOT, gather

PAPER = {"format": "A4", "margin": {"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"}}


def make(folder: Path, builder: str = "html") -> int:
    """Gather the pages in ``folder`` and build them there; return the exit status."""
    gather(folder / "source")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(Path(__file__).parent)]
    where = ["--doctree-dir", str(folder / "doctrees"), str(folder / "source"), str(folder / builder)]
    return main([*options, "-b", builder, *where])


def print_all(folder: Path) -> int:
    """Build the book as one page and print it."""
    sys.path.insert(0, str(ROOT / "tools"))
    import printing

    status = make(folder, "singlehtml")
    if not status:
        printing.write([folder / "singlehtml" / "index.html"], **PAPER)
    return status


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    sys.exit(print_all(folder) if "--pdf" in sys.argv else make(folder))
