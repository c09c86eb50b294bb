"""What the book and the decks share: their command line, how Sphinx is called and what both tell it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.cmd.build import main

from publish.notebooks import ROOT

PROJECT = "Attention, run"
LANGUAGE = "en"


def arguments(what: str, says: str, folder: str, argv: Sequence[str]) -> argparse.Namespace:
    """The folder to write to, and whether to print."""
    parser = argparse.ArgumentParser(f"python -m publish {what}", description=says)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / folder)
    parser.add_argument("--pdf", action="store_true", help="print it, with Chromium")
    return parser.parse_args(argv)


def build(builder: str, beside: str, source: Path, to: Path, doctrees: Path) -> int:
    """Build what lies in ``source`` as the ``conf.py`` beside a file says; a warning is an error."""
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(Path(beside).parent)]
    return main([*options, "--doctree-dir", str(doctrees), "-b", builder, str(source), str(to)])


def raw(html: str) -> nodes.raw:
    """A piece of HTML, as it is."""
    return nodes.raw("", html, format="html")
