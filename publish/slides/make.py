"""Make the decks: ``python -m publish slides FOLDER`` writes them there, ``--pdf`` prints each as well.

A name that a lesson does not have is an error.
"""

from collections.abc import Sequence

from publish.notebooks import ROOT
from publish.printing import write
from publish.site import arguments, build

READY = "window.deckReady === true"


def main(argv: Sequence[str]) -> int:
    """Write what the command line asks for, and say how it is opened."""
    asked = arguments("slides", __doc__, "slides/_build", argv)
    if status := build("revealjs", __file__, ROOT / "slides", asked.folder, asked.folder / ".doctrees"):
        return status
    if asked.pdf:
        decks = sorted(asked.folder.glob("*.html"))
        write(decks, "?print-pdf&theme=light", READY, prefer_css_page_size=True)
    print(f"Open {asked.folder / 'index.html'} in a browser: no server is needed.")
    return 0
