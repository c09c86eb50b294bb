"""What can be told about the lessons without running them. What running tells is nbval's part."""

import csv
import re
from functools import cache
from itertools import takewhile
from statistics import median

import pytest

from attnlib.course.lessons import LESSONS as PLANNED
from publish.lessons.build import COURSE
from publish.lessons.cells import core
from publish.lessons.lessons import LessonFiles, canonical, read_notebook, sources
from publish.lessons.minutes import length, minutes, stated
from publish.lessons.pages import PAGES, stale_pages
from publish.lessons.rules import output_problems, source_problems
from publish.lessons.sides import State, advice, state, without_notes
from publish.notebooks import figures

LESSONS = COURSE.lessons()
BUILT = [lesson for lesson in LESSONS if lesson.notebook.exists()]
NEEDS = {lesson.number: set(lesson.needs) for lesson in PLANNED}  # which the map of the course shows
CAUSES = list(csv.DictReader((COURSE.root / "studies" / "causes.csv").open(encoding="utf-8")))
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
built_lesson = pytest.mark.parametrize("lesson", BUILT, ids=lambda lesson: lesson.name)


@cache
def notebook_of(lesson: LessonFiles):
    return read_notebook(lesson.notebook)


def fail(lesson: LessonFiles, problems) -> None:
    """Fail with the problems, a line each, and the command that follows from them."""
    if problems:
        lines = "\n  ".join([f"{lesson.name}:", *problems])
        pytest.fail(f"{lines}\nOnce that is right: make build NB={lesson.number}", pytrace=False)


@every_lesson
def test_source_and_notebook_have_the_same_cells(lesson):
    if state(lesson) not in (State.CURRENT, State.OUTPUTS):
        pytest.fail(advice(lesson), pytrace=False)


@built_lesson
def test_the_notebook_is_as_the_build_writes_it(lesson):
    if state(lesson) is State.OUTPUTS:
        pytest.fail(advice(lesson), pytrace=False)
    if without_notes(lesson):
        pytest.fail(f"{lesson.name}: JupyterLab has noted something in it; `make build` takes it out", pytrace=False)


@every_lesson
def test_the_source_is_in_canonical_form(lesson):
    text = lesson.source.read_text("utf-8")
    if text != canonical(text):
        fail(lesson, [f"source/{lesson.source.name} is not laid out as the build would; the build does it"])


def controls(lesson: LessonFiles):
    return [row for row in CAUSES if row["lesson"] == lesson.number]


@every_lesson
def test_sentences_that_name_a_cause_stand_as_they_were_controlled(lesson):
    text, own = lesson.source.read_text("utf-8"), controls(lesson)
    lost = [row["sentence"] for row in own if text.count(row["sentence"]) != 1]
    assert not lost, f"studies/causes.csv has what {lesson.name} no longer says: is the control still its control?"
    wrong = [row for row in own if None in row or not all(row.values())]
    assert not wrong, "a row has four columns: is a comma outside of quotation marks?"


@every_lesson
def test_what_is_not_shown_is_in_the_list_of_what_was_run(lesson):
    said = re.findall(r"(?<!\*)not shown", lesson.source.read_text("utf-8"), re.IGNORECASE)
    named = sum(row["sentence"].lower().count("not shown") for row in controls(lesson))
    assert named == len(said), "what is not shown is in studies/causes.csv, the whole sentence: what was run for it?"


@every_lesson
def test_a_long_core_has_a_place_to_pause_in_its_middle_half(lesson):
    cells = core(sources(lesson))
    pauses = [i for i, cell in enumerate(cells) if cell.source.startswith("*A place to pause.*")]
    assert len(pauses) == (minutes(cells).core >= 40 and lesson.number != "15"), "15 is a lab: it ends where one likes"
    for i in pauses:
        taught = list(takewhile(lambda cell: not cell.source.startswith("## Exercises"), cells))
        assert 0.25 < length(cells[:i]) / length(taught) < 0.75


@every_lesson
def test_the_cells_are_small_and_well_marked(lesson):
    cells = sources(lesson)
    fail(lesson, source_problems(cells))
    assert median(cell.lines for cell in cells if cell.kind == "code") <= 4, (
        "half the code cells have at most four lines; move code to attnlib"
    )


def before(number: str) -> set[str]:
    """All lessons that one needs, and that these need."""
    return NEEDS[number].union(*map(before, NEEDS[number]))


@every_lesson
def test_the_lesson_says_what_it_needs_and_is_needed_for_as_the_map_does(lesson):
    said = re.search(r"Needs: (.*) Needed for: ([^;\n]*)", sources(lesson)[0].source)
    needs, needed_for = (set(re.findall(r"\[(\d\d)\]", words)) for words in said.groups())
    assert NEEDS[lesson.number] <= needs <= before(lesson.number)
    after = {number for number, needs in NEEDS.items() if lesson.number in needs}
    if needed_for or "no other lesson" in said[2]:  # else it says so in general words
        assert needed_for == after


@every_lesson
def test_the_lesson_states_the_minutes_that_it_takes(lesson):
    cells = sources(lesson)
    if stated(cells) != str(minutes(cells)):
        said = f"{lesson.name}: its first cell should say `{minutes(cells)}`, and says {stated(cells)!r}"
        pytest.fail(f"{said}. `make build` writes the number where one stands", pytrace=False)


@built_lesson
def test_every_cell_was_run_in_order_and_its_outputs_are_fit_to_keep(lesson):
    fail(lesson, output_problems(notebook_of(lesson)))


@built_lesson
def test_the_files_in_figures_are_the_pictures_of_the_notebook(lesson):
    stored = {lesson.figure(name): png for name, png, _ in figures(notebook_of(lesson))}
    files = {path: path.read_bytes() for path in COURSE.figures.glob(f"{lesson.number}_*.png")}
    problems = [f"figures/{path.name} belongs to no cell" for path in files.keys() - stored.keys()]
    problems += [
        f"figures/{path.name} is another picture than the notebook's"
        for path in stored.keys() & files.keys()
        if stored[path] != files[path]
    ]
    fail(lesson, sorted(problems))


def test_no_notebook_or_figure_is_left_without_its_source():
    assert [str(path.relative_to(COURSE.root)) for path in COURSE.orphans()] == [], "delete these"


@pytest.mark.parametrize("path", PAGES)
def test_pages_that_are_made_are_current(path):
    if path in stale_pages(COURSE):
        pytest.fail(f"{path} is made, not written, and is not current: make build", pytrace=False)
