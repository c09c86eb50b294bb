"""Make the decks: ``python slides/build.py FOLDER`` writes them there, ``--pdf`` prints each as well."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

HERE = Path(__file__).resolve().parent


def make(folder: Path) -> int:
    """Write all decks into a folder, and return the exit status; a name that a lesson does not have is an error."""
    return sphinx(["--quiet", "--fail-on-warning", "--keep-going", "-b", "revealjs", str(HERE), str(folder)])


def main() -> int:
    """Write what the command line asks for, and say how it is opened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE / "_build")
    parser.add_argument("--pdf", action="store_true", help="print every deck to a PDF as well, with Chromium")
    asked = parser.parse_args()
    if status := make(asked.folder):
        return status
    if asked.pdf:
        sys.path.insert(0, str(HERE.parent / "tools"))
        import printing

        ready = "window.deckReady === true && document.querySelector('.pdf-page')"
        decks = sorted(asked.folder.glob("*.html"))
        printing.write(decks, "?print-pdf&theme=light", ready, prefer_css_page_size=True)
    print(f"Open {asked.folder / 'index.html'} in a browser: no server is needed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
