"""A deck as a web page, and what it needs beside it: everything is copied, nothing is fetched."""

from __future__ import annotations

import base64
import re
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import files
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from attnlib.course.lessons import LESSONS, PARTS, Lesson
from building.lessons import read_notebook

from . import prose
from .packing import Slide, slides
from .pieces import Piece, sections

ROOT = Path(__file__).resolve().parent.parent.parent
WIDE, HIGH = 1220, 640  # pixels that a figure may fill, of 1280 and 720
TEMPLATES = ROOT / "slides" / "template"
STATED = re.compile(
    r"(?P<able>After this lesson .*?\.) (?P<minutes>\d[\d +]* minutes)\. Needs: (?P<needs>.*?)\. Needed for:",
    re.DOTALL,
)


@dataclass(frozen=True)
class Deck:
    """The deck of one lesson."""

    lesson: Lesson
    able: str
    needs: str
    slides: tuple[Slide, ...]

    @property
    def count(self) -> int:
        """How many slides it has, title and end included."""
        return len(self.slides) + 1

    @property
    def next(self) -> Lesson | None:
        """The lesson whose question ends this one."""
        ready = [lesson for lesson in LESSONS if lesson.ready]
        place = ready.index(self.lesson)
        return ready[place + 1] if place + 1 < len(ready) else None


def decks() -> list[Deck]:
    """The decks of all lessons, in order."""
    return [deck_of(lesson) for lesson in LESSONS if lesson.ready]


@lru_cache(64)
def deck_of(lesson: Lesson) -> Deck:
    """The deck of a lesson, from its notebook."""
    notebook = read_notebook(ROOT / "notebooks" / f"{lesson.file}.ipynb")
    stated = STATED.search(notebook.cells[0].source)
    able, needs = (stated["able"], stated["needs"]) if stated else ("", "")
    return Deck(lesson, " ".join(able.split()), needs, tuple(slides(sections(notebook))))


def write(found: Sequence[Deck], folder: Path, *, pdf: bool = False) -> None:
    """Write all decks, their figures, the page of all decks and what they need."""
    folder.mkdir(parents=True, exist_ok=True)
    copy_assets(folder / "assets")
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    environment.filters.update(
        md=markdown, inline=inline, code=highlighted, frame=frame, fitted=fitted, in_table=in_table
    )
    for deck in found:
        for slide in deck.slides:
            for piece in slide.pieces:
                if piece.kind == "figure":
                    save_figure(folder / "figures", deck, piece)
            if slide.moving:
                (folder / "moving").mkdir(exist_ok=True)
                shutil.copy(ROOT / "figures" / "moving" / f"{slide.moving}.html", folder / "moving")
        text = environment.get_template("deck.html.j2").render(deck=deck, slides=deck.slides)
        (folder / f"{deck.lesson.file}.html").write_text(text, "utf-8")
    index = environment.get_template("index.html.j2").render(decks=found, parts=PARTS, pdf=pdf)
    (folder / "index.html").write_text(index, "utf-8")


def save_figure(folder: Path, deck: Deck, piece: Piece) -> None:
    """Write a figure as it is stored in the notebook."""
    folder.mkdir(exist_ok=True)
    (folder / f"{deck.lesson.number}_{piece.name}.png").write_bytes(base64.b64decode(piece.body))


def copy_assets(folder: Path) -> None:
    """Copy reveal.js, MathJax, the letters and the style."""
    folder.mkdir(exist_ok=True)
    static = Path("sphinx_revealjs/_static/revealjs")
    for name in ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js", "LICENSE"):
        shutil.copyfile(in_package("sphinx-revealjs", static / name), folder / Path(name).name)
    fonts = in_package("sphinx-revealjs", static / "dist/theme/fonts/source-sans-pro/LICENSE").parent
    shutil.copytree(fonts, folder / "fonts", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.eot", "*.ttf"))
    mathjax = Path("sphinx-mathjax-offline/static/mathjax/tex-svg-full.js")
    shutil.copyfile(in_package("sphinx-mathjax-offline", mathjax), folder / "mathjax.js")
    for name in ("slides.css", "slides.js"):
        shutil.copyfile(TEMPLATES / name, folder / name)


def in_package(name: str, path: Path) -> Path:
    """Where a file of an installed package lies."""
    return next(Path(file.locate()) for file in files(name) or () if file == type(file)(path))


# What the templates ask for.


def markdown(text: str) -> str:
    """Markdown as HTML, formulas left for MathJax; links as words, for a slide leads nowhere."""
    return markdown2html_mistune(prose.LINK.sub(r"\1", text)).replace("<a ", "<span ").replace("</a>", "</span>")


def inline(text: str) -> str:
    """The same for a line, without the paragraph around it."""
    return re.sub(r"^<p>|</p>$", "", markdown(text).strip())


def highlighted(code: str) -> str:
    """Python in colours."""
    return str(Highlight2HTML()(code, language="python"))


def frame(piece: Piece) -> tuple[int, int]:
    """Width and height at which a figure fills the slide."""
    width, height = struct.unpack(">II", base64.b64decode(piece.body[:64])[16:24])
    scale = min(WIDE / width, HIGH / height)
    return round(width * scale), round(height * scale)


def in_table(markdown: str) -> int:
    """The size of letters at which a table fits across a slide, in pixels: 22 to 32."""
    rows = [[len(prose.plain(cell.strip())) for cell in row.strip("|").split("|")] for row in markdown.splitlines()]
    widest = [max(cells) for cells in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True)]
    return max(22, min(32, int((1136 - 40 * len(widest)) / (0.48 * sum(widest)))))


def fitted(text: str) -> int:
    """The size of letters at which the widest line of code or output fills a slide, in pixels: 20 to 38."""
    widest = max(map(len, text.splitlines()), default=1)
    return max(20, min(38, int(1150 / (0.602 * widest))))
