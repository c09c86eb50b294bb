"""Build the course: ``source/NN_title.md`` -> executed ``NN_title.ipynb``, the same bytes every time.

python -m publish lessons             build the lessons that changed, then the pages made from them;
                                      where only prose changed, outputs are kept and nothing is run
python -m publish lessons 01 02       run and build these, changed or not
python -m publish lessons --all       run and build every lesson
python -m publish lessons --pull 01   bring an edit made in JupyterLab back to the source
python -m publish lessons --check     say what a build would do; exit 1 if anything
python -m publish lessons --force ... let one side win where both were edited; the other is backed up

``make build`` and ``make pull`` call it.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from nbformat import NotebookNode

from publish.lessons import sliders
from publish.lessons.cells import Cell
from publish.lessons.lessons import (
    Course,
    LessonError,
    LessonFiles,
    notebook_text,
    read_notebook,
    read_source,
    sources,
    to_cells,
    write_source,
)
from publish.lessons.links import with_links
from publish.lessons.minutes import CORE_LIMIT, minutes, with_minutes
from publish.lessons.pages import MINUTES, stale_pages
from publish.lessons.pictures import write_figures
from publish.lessons.rules import output_problems, source_problems
from publish.lessons.running import run, tidy
from publish.lessons.sides import State, advice, edited_notebook, kept, not_yet_run, state, without_notes
from publish.notebooks import ROOT

COURSE = Course(ROOT)


def build(lesson: LessonFiles, *, force: bool = False, rerun: bool = True) -> str:
    """Write a lesson's notebook and pictures, and say so; nothing is written if anything is wrong.

    Without ``rerun``, outputs are kept where only prose has changed since the last build.
    """
    cells, edited = completed(lesson), edited_notebook(state(lesson))
    if edited and not force:
        raise LessonError(advice(lesson))
    _raise_if(source_problems(cells))
    old = None if rerun else kept(lesson, cells)
    notebook = old or _run(lesson, cells)
    if edited:
        say(f"{lesson.name}: the edited notebook is kept as {backup(lesson.notebook).name}")
    canonise(lesson, cells)
    replace_text(lesson.notebook, notebook_text(notebook))
    drawn = write_figures(lesson, notebook)
    return "no code has changed, outputs kept" if old else f"built, {drawn} figures"


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
    found, notebook = state(lesson), read_notebook(lesson.notebook)
    if not edited_notebook(found):
        return f"nothing to pull, the lesson {found.value}"
    if found is State.CONFLICT and not force:
        raise LessonError(advice(lesson))
    pasted = [number for number, node in enumerate(notebook.cells, 1) if node.get("attachments")]
    _raise_if([f"cell {number} holds a pasted picture, which a source cannot" for number in pasted])
    text = write_source(to_cells(notebook))
    if read_source(text) != to_cells(notebook):
        raise LessonError("MyST cannot hold these cells: is there a `+++` line or a {code-cell} in a Markdown cell?")
    done = f"{lesson.source.name} now has the notebook's cells; next: make build NB={lesson.number}"
    if found is State.CONFLICT:
        done += f" (the source as it was: {backup(lesson.source).name})"
    replace_text(lesson.source, text)
    return done


def _raise_if(problems: Sequence[str]) -> None:
    if problems:
        raise LessonError("\n  ".join(problems))


def completed(lesson: LessonFiles) -> list[Cell]:
    """A lesson's cells, with the minutes and the links that are computed."""
    return with_links(with_minutes(sources(lesson)), lesson.name)


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


def stale(course: Course) -> Iterator[tuple[str, Callable[[], object], str]]:
    """What is made from lessons and is not as it should be: what to say of it, how it is made, what to say then."""
    for lesson in course.lessons():
        if text := without_notes(lesson):
            done = f"{lesson.name}: took out what JupyterLab had noted in it"
            yield f"{lesson.name} has notes of JupyterLab's in it", partial(replace_text, lesson.notebook, text), done
    for moving in sliders.moving_figures(course):
        if not moving.is_current():
            said = f"the moving figure {moving.cell.moving['name']} of {moving.lesson.name} is not current"
            yield said, partial(draw, moving), f"{moving.path.relative_to(course.root)}: drawn"
    for path, text in stale_pages(course).items():
        yield f"{path} is not current", partial(replace_text, course.root / path, text), f"{path}: written"


def draw(moving: sliders.Moving) -> None:
    """Write the page of a moving figure, and its film if it has one."""
    page = moving.page()
    if moving.film:
        moving.film.write_bytes(sliders.film(page))
    replace_text(moving.path, page)


def publish(course: Course) -> None:
    """Write what is made from the notebooks: the pictures of those that are up to date, and the pages."""
    for _, make, done in stale(course):
        make()
        say(done)
    for lesson in course.lessons():
        if state(lesson) is State.CURRENT:
            write_figures(lesson, read_notebook(lesson.notebook))
    found = [(lesson, minutes(sources(lesson)).core) for lesson in course.lessons()]
    if late := [f"{lesson.number} ({core})" for lesson, core in found if core > CORE_LIMIT]:
        say(f"Longer than {CORE_LIMIT} minutes without their excursions: {', '.join(late)}")


def check(course: Course) -> int:
    """Say what a build would do."""
    lessons = course.lessons()
    late = [advice(lesson) for lesson in lessons if state(lesson) is not State.CURRENT]
    late += [
        f"{lesson.name} states other minutes than it takes, or misses a link: make build"
        for lesson in lessons
        if completed(lesson) != sources(lesson)
    ]
    late += [f"{said}: make build" for said, *_ in stale(course)]
    late += [f"{path.name} belongs to no source: delete it" for path in [*course.orphans(), *sliders.orphans(course)]]
    for line in late:
        say(line)
    return 1 if late else 0


def backup(path: Path) -> Path:
    """Copy a file to the first free name beside it (``.bak``, ``.2.bak``, ...)."""
    copy, number = path.with_name(f"{path.name}.bak"), 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.{number}.bak")
    copy.write_bytes(path.read_bytes())
    return copy


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step, so that an interrupted build leaves the old one whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)


def say(line: str) -> None:
    """Print a line at once, also where the output is not a terminal."""
    print(line, flush=True)


def chosen(course: Course, numbers: Sequence[str], *, every: bool) -> list[LessonFiles]:
    """The lessons to work on: those named, or all, or those that are not up to date."""
    lessons = course.lessons()
    if unknown := set(numbers) - {lesson.number for lesson in lessons}:
        raise LessonError(f"There is no lesson {', '.join(sorted(unknown))}.")
    if numbers:
        return [lesson for lesson in lessons if lesson.number in numbers]
    return [one for one in lessons if every or completed(one) != sources(one) or state(one) is not State.CURRENT]


def work(course: Course, args: argparse.Namespace) -> int:
    """Do what the command line asks for; return the exit status."""
    failed, numbers = 0, [number.zfill(2) for number in args.lessons]
    if not args.pull:  # the package should know how long lessons take before one of them shows it
        for path, text in stale_pages(course, [MINUTES]).items():
            replace_text(course.root / path, text)
            say(f"{path}: written")
    for lesson in chosen(course, numbers, every=args.all):
        try:
            if args.pull:
                done = pull(lesson, force=args.force)
            else:
                done = build(lesson, force=args.force, rerun=bool(numbers) or args.all)
            say(f"{lesson.name}: {done}")
        except LessonError as error:
            failed = 1
            print(f"{lesson.name} is left as it was.\n  {error}", file=sys.stderr, flush=True)
    if not args.pull:
        publish(course)
    return failed


def main(argv: Sequence[str] | None = None, course: Course = COURSE) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m publish lessons", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
