"""Make the book: ``python book/make.py FOLDER`` writes it to ``FOLDER/html``; a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import main

from pages import gather


def make(folder: Path) -> int:
    """Gather the pages in ``folder`` and build them there; return the exit status."""
    gather(folder / "source")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(Path(__file__).parent)]
    return main([*options, "--doctree-dir", str(folder / "doctrees"), str(folder / "source"), str(folder / "html")])


if __name__ == "__main__":
    sys.exit(make(Path(sys.argv[1])))
