"""The pages that are made from the course, not written: ledger, plans, symbols, syllabus."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence

from .cells import Cell
from .lessons import Course, LessonError
from .links import works
from .minutes import as_json
from .sides import sources

# The syllabus in the README stands between these two lines.
SYLLABUS = "<!-- syllabus: made from attnlib/course/lessons.py by make build -->"
END_OF_SYLLABUS = "<!-- end of syllabus -->"


def made_by(module: str) -> Callable[[Course], str]:
    """The page that a module of the package makes of its own lists."""
    return lambda _course: importlib.import_module(f"attnlib.course.{module}").as_markdown()


def syllabus(course: Course) -> str | None:
    """The README with the syllabus between its two marks."""
    readme = course.root / "README.md"
    if not readme.exists():
        return None
    above, start, rest = readme.read_text("utf-8").partition(SYLLABUS)
    _, end, below = rest.partition(END_OF_SYLLABUS)
    if not (start and end):
        raise LessonError(f"README.md needs the lines `{SYLLABUS}` and `{END_OF_SYLLABUS}`.")
    able = {lesson.number: able_to(sources(lesson)) for lesson in course.lessons()}
    table = importlib.import_module("attnlib.course").as_markdown({n: text for n, text in able.items() if text})
    return f"{above}{SYLLABUS}\n\n{table}\n\n{END_OF_SYLLABUS}{below}"


def able_to(cells: Sequence[Cell]) -> str:
    """What a lesson's first cell promises, after "After this lesson you can"; nothing if it promises nothing."""
    found = re.search(
        r"^After this lesson you (?:can )?(.+?)\.(?= |$)", cells[0].source if cells else "", re.MULTILINE
    )
    return found[1] if found else ""


def reading_map(course: Course) -> str:
    """The works that each lesson quotes, and those that can be read after it."""
    quoted = {lesson.number: works(sources(lesson)) for lesson in course.lessons()}
    return importlib.import_module("attnlib.course.reading").as_markdown(quoted)


def teaching(course: Course) -> str:
    """The plans, with how many slides the decks have and how many minutes their notes say."""
    texts = {path.stem: path.read_text("utf-8") for path in (course.root / "slides").glob("*.md")}
    found = {
        name if name == "lecture" else name[:2]: (
            len(re.findall(r"^#{1,3} ", text, re.MULTILINE)),
            sum(map(int, re.findall(r"^:::\{notes\} (\d+) min$", text, re.MULTILINE))),
        )
        for name, text in texts.items()
    }
    return importlib.import_module("attnlib.course.plans").as_markdown(found)


#: Pages that are made, not written: path -> function of the course (None: not to be made yet).
PAGES: dict[str, Callable[[Course], str | None]] = {
    "notebooks/CLAIMS.md": made_by("claims"),
    "notebooks/TEACHING.md": teaching,
    "notebooks/SYMBOLS.md": made_by("symbols"),
    "notebooks/FORMULAS.md": made_by("formulas"),
    "notebooks/READING.md": reading_map,
    "attnlib/course/minutes.json": as_json,
    "README.md": syllabus,
}


def stale_pages(course: Course) -> dict[str, str]:
    """The derived pages that are not what they should be, and what they should be."""
    wanted = {path: make(course) for path, make in PAGES.items()}
    return {
        path: text
        for path, text in wanted.items()
        if text is not None and (not (course.root / path).exists() or (course.root / path).read_text("utf-8") != text)
    }
