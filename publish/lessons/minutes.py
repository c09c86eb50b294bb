"""How many minutes a lesson takes: computed from what is in it, and written where minutes are shown."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from publish.lessons.cells import Cell, in_excursions
from publish.lessons.lessons import Course, sources

# Set so that lessons 09 and 12, as they stood when readers had taken their time over them, give 45 and 80.
WORDS_A_MINUTE = 44  # prose with a formula in most sentences, and a guess to make before the answer
SECONDS_A_LINE = 3  # of code, which the prose around it says in words
MINUTES_A_FIGURE = 1.5  # its axes, its title, and where to see what the title says
MINUTES_AN_EXERCISE = 0.5  # beyond its words and its lines of code, which count like all others
STEP = 5  # rounded up: who has been told 45 minutes should not need 47

CORE_LIMIT = 60  # a lesson without its excursions should be no longer

STATED = re.compile(r"\b\d+(?: \+ \d+)? minutes\b")
REFERENCES = re.compile(r"^## Where this comes from$.*?(?=^##? |\Z)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.DOTALL)  # a formula counts as one word
ADDRESS = re.compile(r"(?<=\])\([^)]*\)")
WORD = re.compile(r"[^\W_][\w'’–-]*")
EXERCISE = re.compile(r"\bcheck\(\s*[\"'](\d\d\.\d+)")


@dataclass(frozen=True)
class Minutes:
    """Minutes for the lesson without its excursions, and for these."""

    core: int
    excursions: int = 0

    def __str__(self) -> str:
        return f"{self.core} + {self.excursions} minutes" if self.excursions else f"{self.core} minutes"


def minutes(cells: Sequence[Cell]) -> Minutes:
    """What the cells of a lesson take."""
    aside = in_excursions(cells)
    parts = [[cell for cell, out in zip(cells, aside, strict=True) if out is part] for part in (False, True)]
    return Minutes(*(_rounded_up(length(part)) if part else 0 for part in parts))


def length(cells: Iterable[Cell]) -> float:
    """Minutes of reading, running and exercises, not rounded."""
    prose = "\n\n".join(cell.source for cell in cells if cell.kind == "markdown")
    code = [cell for cell in cells if cell.kind == "code"]
    exercises = {number for cell in code for number in EXERCISE.findall(cell.source)}
    return (
        words(prose) / WORDS_A_MINUTE
        + sum(cell.lines for cell in code) * SECONDS_A_LINE / 60
        + sum(cell.figure is not None for cell in code) * MINUTES_A_FIGURE
        + len(exercises) * MINUTES_AN_EXERCISE
    )


def words(prose: str) -> int:
    """How many words a reader reads: no references, no addresses of links, not the minutes themselves."""
    for left_out in (REFERENCES, ADDRESS, STATED):
        prose = left_out.sub("", prose)
    return len(WORD.findall(FORMULA.sub(" formula ", prose)))


def _rounded_up(value: float) -> int:
    return max(STEP, STEP * math.ceil(round(value, 2) / STEP))


def stated(cells: Sequence[Cell]) -> str | None:
    """The minutes that a lesson's first cell states, as it does (None: it states none)."""
    found = STATED.search(cells[0].source) if cells else None
    return found.group() if found else None


def with_minutes(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, the first stating the minutes that they take, if it states any."""
    if stated(cells) is None:
        return list(cells)
    first, *rest = cells
    return [replace(first, source=STATED.sub(str(minutes(cells)), first.source, count=1)), *rest]


def as_json(course: Course) -> str:
    """The minutes of every lesson, as the package keeps them: lesson -> [core, excursions]."""
    found = {lesson.number: minutes(sources(lesson)) for lesson in course.lessons()}
    lines = [f"  {json.dumps(number)}: [{m.core}, {m.excursions}]" for number, m in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
