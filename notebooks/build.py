"""Build the course: ``source/NN_title.md`` -> executed ``NN_title.ipynb``, the same bytes every time.

python notebooks/build.py             build the lessons that changed, then the pages made from them;
                                      where only prose changed, outputs are kept and nothing is run
python notebooks/build.py 01 02       run and build these, changed or not
python notebooks/build.py --all       run and build every lesson
python notebooks/build.py --pull 01   bring an edit made in JupyterLab back to the source
python notebooks/build.py --check     say what a build would do; exit 1 if anything
python notebooks/build.py --force ... let one side win where both were edited; the other is backed up

``make build`` and ``make pull`` call it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from building import moving
from building.lessons import (
    Cell,
    Course,
    LessonError,
    LessonFiles,
    notebook_text,
    read_notebook,
    read_source,
    to_cells,
    write_source,
)
from building.links import with_links
from building.minutes import CORE_LIMIT, as_json, minutes, with_minutes
from building.pages import stale_pages
from building.pictures import write_figures
from building.rules import output_problems, source_problems
from building.running import run, tidy
from building.sides import (
    State,
    advice,
    not_yet_run,
    sources,
    state,
    with_old_outputs,
    without_notes,
)

COURSE = Course(Path(__file__).resolve().parent.parent)


def build(lesson: LessonFiles, *, force: bool = False, rerun: bool = True) -> str:
    """Write a lesson's notebook and pictures, and say so; nothing is written if anything is wrong.

    Without ``rerun``, outputs are kept where only prose has changed since the last build.
    """
    cells = completed(lesson)
    edited = state(lesson) in (State.NOTEBOOK, State.CONFLICT)
    if edited and not force:
        raise LessonError(advice(lesson))
    _raise_if(source_problems(cells))
    kept = None if rerun else with_old_outputs(lesson, cells)
    notebook = kept or _run(lesson, cells)
    if edited:
        say(f"{lesson.name}: the edited notebook is kept as {backup(lesson.notebook).name}")
    canonise(lesson, cells)
    replace_text(lesson.notebook, notebook_text(notebook))
    drawn = write_figures(lesson, notebook)
    return "no code has changed, outputs kept" if kept else f"built, {drawn} figures"


def _run(lesson: LessonFiles, cells: Sequence[Cell]) -> NotebookNode:
    notebook = not_yet_run(lesson, cells)
    run(notebook, lesson.notebook.parent)
    tidy(notebook)
    _raise_if(output_problems(notebook))
    return notebook


def pull(lesson: LessonFiles, *, force: bool = False) -> str:
    """Write the notebook's cells back to the source; return what was done, in words."""
    if not lesson.notebook.exists():
        raise LessonError(f"{lesson.notebook.name} does not exist: there is nothing to pull.")
    found, edited = state(lesson), to_cells(read_notebook(lesson.notebook))
    if found not in (State.NOTEBOOK, State.CONFLICT):
        return f"nothing to pull, the lesson {found.value}"
    if found is State.CONFLICT and not force:
        raise LessonError(advice(lesson))
    _raise_if(_unwritable(lesson))
    text = write_source(edited)
    if read_source(text) != edited:
        raise LessonError("MyST cannot hold these cells: is there a `+++` line or a {code-cell} in a Markdown cell?")
    done = f"{lesson.source.name} now has the notebook's cells; next: make build NB={lesson.number}"
    if found is State.CONFLICT:
        done += f" (the source as it was: {backup(lesson.source).name})"
    replace_text(lesson.source, text)
    return done


def _unwritable(lesson: LessonFiles) -> list[str]:
    nodes = enumerate(read_notebook(lesson.notebook).cells, 1)
    return [f"cell {i} holds a pasted picture, which a source cannot" for i, node in nodes if node.get("attachments")]


def _raise_if(problems: Sequence[str]) -> None:
    if problems:
        raise LessonError("\n  ".join(problems))


def canonise(lesson: LessonFiles, cells: Sequence[Cell]) -> None:
    """Put a source in canonical form, minutes and links included, so that a pull changes only what was edited."""
    text = write_source(cells)
    if text == lesson.source.read_text("utf-8"):
        return
    if cells != sources(lesson):
        say(f"{lesson.name}: source/{lesson.source.name} now says {minutes(cells)}, links included")
    else:
        say(f"{lesson.name}: put source/{lesson.source.name} in canonical form (layout only)")
    replace_text(lesson.source, text)


def backup(path: Path) -> Path:
    """Copy a file to the first free name beside it (``.bak``, ``.2.bak``, ...)."""
    copy, number = path.with_name(f"{path.name}.bak"), 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.{number}.bak")
    copy.write_bytes(path.read_bytes())
    return copy


def write_minutes(course: Course) -> None:
    """Write how long all lessons take, for the package to know before a lesson shows it."""
    text = as_json(course)
    if not course.minutes.exists() or course.minutes.read_text("utf-8") != text:
        replace_text(course.minutes, text)
        say(f"{course.minutes.relative_to(course.root)}: written")


def publish(course: Course) -> None:
    """Write what is made from the notebooks: the pictures of those that are up to date, and the pages."""
    for lesson in course.lessons():
        if text := without_notes(lesson):
            replace_text(lesson.notebook, text)
            say(f"{lesson.name}: took out what JupyterLab had noted in it")
        if state(lesson) is State.CURRENT:
            write_figures(lesson, read_notebook(lesson.notebook))
    for lesson, place in moving.stale(course):
        cell = sources(lesson)[place]
        path, page = moving.path(lesson, cell), moving.page(lesson, place)
        if cell.moving.get("film"):
            path.with_suffix(".webp").write_bytes(moving.film(page))
        replace_text(path, page)
        say(f"{path.relative_to(course.root)}: drawn")
    for path, text in stale_pages(course).items():
        replace_text(course.root / path, text)
        say(f"{path}: written")
    found = [(lesson, minutes(sources(lesson)).core) for lesson in course.lessons()]
    if late := [f"{lesson.number} ({core})" for lesson, core in found if core > CORE_LIMIT]:
        say(f"Longer than {CORE_LIMIT} minutes without their excursions: {', '.join(late)}")


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step, so that an interrupted build leaves the old one whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)


def say(line: str) -> None:
    """Print a line at once, also where the output is not a terminal."""
    print(line, flush=True)


def check(course: Course) -> int:
    """Say what a build would do."""
    lessons = course.lessons()
    late = [advice(lesson) for lesson in lessons if state(lesson) is not State.CURRENT]
    late += [
        f"{lesson.name} states other minutes than it takes, or misses a link: make build"
        for lesson in lessons
        if incomplete(lesson)
    ]
    late += [
        f"{lesson.name} has notes of JupyterLab's in it: make build" for lesson in lessons if without_notes(lesson)
    ]
    late += [
        f"the moving figure {sources(lesson)[place].moving['name']} of {lesson.name} is not current: make build"
        for lesson, place in moving.stale(course)
    ]
    late += [f"{path} is not current: make build" for path in stale_pages(course)]
    late += [f"{path.name} belongs to no source: delete it" for path in [*course.orphans(), *moving.orphans(course)]]
    for line in late:
        say(line)
    return 1 if late else 0


def chosen(course: Course, numbers: Sequence[str], *, every: bool) -> list[LessonFiles]:
    """The lessons to work on: those named, or all, or those that are not up to date."""
    lessons = course.lessons()
    unknown = set(numbers) - {lesson.number for lesson in lessons}
    if unknown:
        raise LessonError(f"There is no lesson {', '.join(sorted(unknown))}.")
    if numbers:
        return [lesson for lesson in lessons if lesson.number in numbers]
    return [lesson for lesson in lessons if every or incomplete(lesson) or state(lesson) is not State.CURRENT]


def completed(lesson: LessonFiles) -> list[Cell]:
    """A lesson's cells, with the minutes and the links that are computed."""
    return with_links(with_minutes(sources(lesson)), lesson.name)


def incomplete(lesson: LessonFiles) -> bool:
    """Whether a lesson's source states other minutes than it takes, or misses a link."""
    return completed(lesson) != sources(lesson)


def work(course: Course, args: argparse.Namespace) -> int:
    """Do what the command line asks for; return the exit status."""
    failed = 0
    numbers = [number.zfill(2) for number in args.lessons]
    if not args.pull:
        write_minutes(course)
    for lesson in chosen(course, numbers, every=args.all):
        try:
            if args.pull:
                done = pull(lesson, force=args.force)
            else:
                done = build(lesson, force=args.force, rerun=bool(numbers) or args.all)
            say(f"{lesson.name}: {done}")
        except LessonError as error:
            failed += 1
            print(f"{lesson.name} is left as it was.\n  {error}", file=sys.stderr, flush=True)
    if not args.pull:
        publish(course)
    return 1 if failed else 0


def main(argv: Sequence[str] | None = None, course: Course = COURSE) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="lesson numbers")
    parser.add_argument("--all", action="store_true", help="every lesson, run again, changed or not")
    parser.add_argument("--force", action="store_true", help="overwrite the edited side, leaving a backup")
    parser.add_argument("--pull", action="store_true", help="notebook -> source")
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    if args.pull and not args.lessons:
        parser.error("--pull needs the number of a lesson (make pull NB=01)")
    try:
        return check(course) if args.check else work(course, args)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
