"""Write all exercises with their answers, for whoever teaches: a page a lesson, and the lesson with its solutions.

python tools/answers.py [FOLDER] [--run]     into answers/, unless a folder is named; --run runs the lessons as well

`make answers` calls it.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode, read, write

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import registry
from attnlib.course.lab.causes import CAUSES
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lessons import LESSONS, Lesson
from attnlib.course.source import source_of

ROOT = Path(__file__).resolve().parent.parent
CHECK = re.compile(r"^check\(\"(\d\d\.\d+)\", (my_\w+)\)$", re.MULTILINE)


def main(folder: str = "answers", *, run: bool = False) -> int:
    """Write the pages and the notebooks; the status is 1 where a lesson that was run has a check that failed."""
    to = ROOT / folder
    to.mkdir(parents=True, exist_ok=True)
    failed = []
    for lesson in LESSONS:
        if lesson.ready and lesson.number in registry.lessons():
            (to / f"{lesson.file}.md").write_text(page(lesson), encoding="utf-8")
            notebook = filled(lesson)
            failed += wrong_checks(notebook) if run else []
            write(notebook, to / f"{lesson.file}.ipynb")
    print(f"{len(list(to.glob('*.md')))} pages in {to.relative_to(ROOT) if to.is_relative_to(ROOT) else to}")
    print(*failed, sep="\n", end="\n" * bool(failed))
    return int(bool(failed))


def filled(lesson: Lesson) -> NotebookNode:
    """The lesson, not run, with the solutions where a reader would write."""
    notebook = read(ROOT / "notebooks" / f"{lesson.file}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = [], None
        if asked := CHECK.search(cell.source):
            one = registry.find(asked[1])
            cell.source = f"{as_answer(one, asked[2])}\n\n{asked[0]}"
    return notebook


def as_answer(one: Exercise, name: str) -> str:
    """The solution, under the name that the lesson checks."""
    source = source_of(one.solution or one.reference)
    if source.startswith("lambda"):
        return f"{name} = {source}" if not one.asks_for_value else f"{name} = ({source})()"
    own = ast.parse(source).body[0].name
    return f"{source}\n\n{name} = {own}{'()' if one.asks_for_value else ''}"


def wrong_checks(notebook: NotebookNode) -> list[str]:
    """Run a lesson, and say which checks did not pass."""
    # Less what needs a browser: nbclient may overlook a cell's reply while it answers a slider, and wait 400 s for it.
    still = [cell for cell in notebook.cells if "live" not in cell.metadata.get("tags", ())]
    runnable = NotebookNode({**notebook, "cells": still})
    NotebookClient(runnable, timeout=400, resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()
    checked = ((CHECK.search(cell.source), cell.outputs) for cell in notebook.cells if cell.cell_type == "code")
    said = ((asked[1], "".join(out.get("text", "") for out in outputs)) for asked, outputs in checked if asked)
    return [f"{number}: {text}" for number, text in said if not text.startswith(f"{number} right")]


def page(lesson: Lesson) -> str:
    """The answers of a lesson."""
    asked = questions(ROOT / "notebooks" / f"{lesson.file}.ipynb")
    exercises = registry.load(lesson.number)
    if unasked := [one.id for one in exercises if one.id not in asked]:
        raise LookupError(f"{lesson.file} has no cell that checks {', '.join(unasked)}")
    answers = (answer(one, asked[one.id]) for one in exercises)
    sheet = [patients()] if lesson.number == "15" else []
    return "\n\n".join([f"# {lesson.heading}", *answers, *sheet]) + "\n"


def patients() -> str:
    """What each patient of lesson 15 has, and what finds it."""
    head = ["## The patients", "", "| | complaint | what it has | what finds it |", "| ---: | --- | --- | --- |"]
    causes = [(number, entry, CAUSES[entry.cause]) for number, entry in PATIENTS.items()]
    rows = [
        f"| {number} | {entry.complaint} | *{entry.cause}*: {cause.sentence} | {', '.join(sorted(cause.found_by))} |"
        for number, entry, cause in causes
    ]
    return "\n".join([*head, *rows])


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
    sys.exit(main(*[one for one in sys.argv[1:2] if one != "--run"], run="--run" in sys.argv))
