"""Make the book: ``python -m publish book FOLDER`` writes it to ``FOLDER/html``; a warning is an error.

``--pdf`` writes ``FOLDER/singlehtml/index.pdf`` instead: all of it on one page, printed with Chromium in some minutes.
"""

from collections.abc import Sequence

from publish.book.pages import gather
from publish.printing import write
from publish.site import arguments, build

NUMBER = '<div style="width: 100%; font-size: 8px; text-align: center"><span class="pageNumber"></span></div>'
PAPER = {  # of Playwright: as small as keeps a line of code one line, with numbers of pages and a list of headings
    "format": "A4",
    "margin": {"top": "16mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
    "scale": 0.75,
    "display_header_footer": True,
    "header_template": "<span></span>",
    "footer_template": NUMBER,
    "outline": True,
    "tagged": True,  # which the outline needs
}


def main(argv: Sequence[str]) -> int:
    """Gather the pages in a folder, build them there, print them if that is asked for; return the exit status."""
    asked = arguments("book", __doc__, "book/_build", argv)
    source, builder = asked.folder / "source", "singlehtml" if asked.pdf else "html"
    gather(source)
    print("Setting the lessons and the pages of the library: a minute or two.", flush=True)
    status = build(builder, __file__, source, asked.folder / builder, asked.folder / "doctrees")
    if asked.pdf and not status:
        write([asked.folder / builder / "index.html"], **PAPER)
    return status
