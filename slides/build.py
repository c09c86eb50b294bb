"""Make the decks: ``python slides/build.py`` writes slides/_build, ``--pdf`` prints each as well."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]

from decks import pages, pdf  # noqa: E402  # they need the two folders

OUT = ROOT / "slides" / "_build"


def main() -> None:
    """Write what the command line asks for, and say how it is opened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pdf", action="store_true", help="print every deck to a PDF as well, with Chromium")
    parser.add_argument("--to", type=Path, default=OUT, help="the folder to write to")
    asked = parser.parse_args()
    decks = pages.decks()
    pages.write(decks, asked.to, pdf=asked.pdf)
    if asked.pdf:
        pdf.write(decks, asked.to)
    print(f"{len(decks)} decks. Open {asked.to / 'index.html'} in a browser: no server is needed.")


if __name__ == "__main__":
    main()
