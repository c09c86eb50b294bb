"""Write all exercises with their answers, for whoever teaches: one page a lesson.

python tools/answers.py [FOLDER]     into answers/, unless a folder is named

`make answers` calls it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nbformat import read

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import registry
from attnlib.course.lessons import LESSONS, Lesson
from attnlib.course.source import source_of

ROOT = Path(__file__).resolve().parent.parent


def main(folder: str = "answers") -> None:
    """Write the pages."""
    to = ROOT / folder
    to.mkdir(parents=True, exist_ok=True)
    for lesson in LESSONS:
        if lesson.ready and lesson.number in registry.lessons():
            path = to / f"{lesson.file}.md"
            path.write_text(page(lesson), encoding="utf-8")
    print(f"{len(list(to.glob('*.md')))} pages in {to.relative_to(ROOT) if to.is_relative_to(ROOT) else to}")


def page(lesson: Lesson) -> str:
    """The answers of a lesson."""
    asked = questions(ROOT / "notebooks" / f"{lesson.file}.ipynb")
    answers = (answer(one, asked[one.id]) for one in registry.load(lesson.number))
    return "\n\n".join([f"# {lesson.heading}", *answers]) + "\n"


def questions(notebook: Path) -> dict[str, str]:
    """The text of each exercise, as the lesson has it: the prose above the cell that checks it."""
    found, prose = {}, ""
    for cell in read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            prose = cell.source
            continue
        for number in re.findall(r"check\(\s*[\"'](\d\d\.\d+)", cell.source):
            found.setdefault(number, re.sub(r"\A## .*\n+", "", prose))
    return found


def answer(one: Exercise, question: str) -> str:
    """One exercise: what is asked, the solution, the hints, and the wrong answers that are recognised."""
    shown = source_of(one.solution or one.reference)
    solution = (
        f"```python\n{shown.rstrip()}\n```" if shown else f"`{getattr(one.reference, '__name__', one.reference)}`"
    )
    hints = "\n".join(f"{number}. {hint}" for number, hint in enumerate(one.hints, 1))
    wrong = "\n".join(f"- *{m.name}*: {m.words}" for m in one.misconceptions)
    return f"## {one.id} {one.title}\n\n{question}\n\n{solution}\n\nHints:\n\n{hints}\n\nRecognised:\n\n{wrong}"


if __name__ == "__main__":
    main(*sys.argv[1:2])
