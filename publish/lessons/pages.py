"""The pages that are made from the course, not written: ledger, plans, symbols, syllabus."""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module

from publish.decks import length
from publish.lessons.cells import Cell
from publish.lessons.lessons import Course, LessonError, sources
from publish.lessons.links import works
from publish.lessons.minutes import as_json

# The syllabus in the README stands between these two lines.
SYLLABUS = "<!-- syllabus: made from attnlib/course/lessons.py by make build -->"
END_OF_SYLLABUS = "<!-- end of syllabus -->"
MINUTES = "attnlib/course/minutes.json"


def table(module: str, *found: object) -> str:
    """The page that a module of the package makes of its own lists, and of what the lessons have."""
    return import_module(f"attnlib.course{module}").as_markdown(*found)  # only now: some read what a build writes


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
    rows = table("", {number: text for number, text in able.items() if text})
    return f"{above}{SYLLABUS}\n\n{rows}\n\n{END_OF_SYLLABUS}{below}"


def able_to(cells: Sequence[Cell]) -> str:
    """What a lesson's first cell promises, after "After this lesson you can"; nothing if it promises nothing."""
    first = cells[0].source if cells else ""
    found = re.search(r"^After this lesson you (?:can )?(.+?)\.(?= |$)", first, re.MULTILINE)
    return found[1] if found else ""


def reading_map(course: Course) -> str:
    """The works that each lesson quotes, and those that can be read after it."""
    return table(".reading", {lesson.number: works(sources(lesson)) for lesson in course.lessons()})


def teaching(course: Course) -> str:
    """The plans, with how many slides the decks have and how many minutes their notes say."""
    decks = {path.stem: length(path.read_text("utf-8")) for path in (course.root / "slides").glob("*.md")}
    return table(".plans", {name if name == "lecture" else name[:2]: found for name, found in decks.items()})


#: Pages that are made, not written: path -> function of the course (None: not to be made yet).
PAGES: dict[str, Callable[[Course], str | None]] = {
    "notebooks/CLAIMS.md": lambda _: table(".claims"),
    "notebooks/TEACHING.md": teaching,
    "notebooks/SYMBOLS.md": lambda _: table(".symbols"),
    "notebooks/FORMULAS.md": lambda _: table(".formulas"),
    "notebooks/READING.md": reading_map,
    MINUTES: as_json,
    "README.md": syllabus,
}


def stale_pages(course: Course, paths: Iterable[str] = PAGES) -> dict[str, str]:
    """The derived pages that are not what they should be, and what they should be."""
    found = {path: (course.root / path, PAGES[path](course)) for path in paths}
    return {
        path: text
        for path, (file, text) in found.items()
        if text is not None and not (file.exists() and file.read_text("utf-8") == text)
    }
