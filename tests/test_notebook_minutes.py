"""Minutes, computed and written; and that a change of prose alone runs nothing."""

import json

import nbformat
import pytest

from publish.lessons import build
from publish.lessons.build import COURSE
from publish.lessons.cells import Cell
from publish.lessons.lessons import read_notebook, sources
from publish.lessons.minutes import Minutes, as_json, length, minutes, stated, with_minutes, words
from publish.lessons.sides import State, state


def edit_source(lesson, old, new):
    text = lesson.source.read_text()
    assert old in text
    lesson.source.write_text(text.replace(old, new))


@pytest.fixture
def no_run(monkeypatch):
    """A build that runs anything fails."""
    monkeypatch.setattr(build, "run", None)


# The formula


@pytest.mark.parametrize(
    ("prose", "count"),
    [
        ("Two short words, and it's over.", 6),
        ("A formula, $x_1 + y$, counts once. $$\na + b\n$$", 6),
        ("[A link](https://example.org/very/long) counts its words.", 5),
        ("In 45 minutes.", 1),
        ("In 45 + 20 minutes.", 1),
        ("One.\n\n## Where this comes from\n\n- A. Vaswani and others.\n\n## Two", 2),
        ("One.\n\n## Where this comes from\n\n- A. Vaswani and others.", 1),
    ],
)
def test_what_counts_as_a_word(prose, count):
    assert words(prose) == count


def test_what_takes_time():
    nothing = length([Cell("code", "")])
    prose = length([Cell("markdown", "word " * 440)])
    code = length([Cell("code", "x = 1\n\n" * 20)])
    figure = length([Cell("code", "", figure="a")])
    exercises = length([Cell("code", text) for text in ('check("01.1", f)', 'check("01.1", g)')])
    assert [nothing, prose, code, figure] == [0, 10, 1, 1.5]
    assert exercises == pytest.approx(0.5 + 2 * 3 / 60)


def test_an_excursion_is_counted_apart_with_its_exercises():
    core = [Cell("markdown", "# A\n\nIn 5 minutes. " + "word " * 850), Cell("code", 'check("01.1", f)')]
    aside = [Cell("markdown", "## Excursion: B"), Cell("markdown", "word " * 410), Cell("code", 'check("01.2", f)')]
    assert minutes(core) == Minutes(20)
    assert minutes(core + aside) == Minutes(20, 10)
    assert minutes([*core, *aside, Cell("markdown", "## C"), Cell("markdown", "word " * 220)]) == Minutes(25, 10)
    assert minutes([*core, aside[0]]) == Minutes(20, 5)
    assert [str(Minutes(20)), str(Minutes(20, 10))] == ["20 minutes", "20 + 10 minutes"]
    written = with_minutes(core + aside)
    assert stated(core) == "5 minutes"
    assert stated(written) == "20 + 10 minutes"
    assert with_minutes(written) == written
    assert with_minutes(core) != core


@pytest.mark.parametrize(("count", "stated"), [(1, 5), (220, 5), (221, 10), (45 * 44, 45), (45 * 44 + 1, 50)])
def test_minutes_are_rounded_up(count, stated):
    assert minutes([Cell("markdown", "word " * count)]) == Minutes(stated)


def test_a_lesson_that_states_no_minutes_is_left_alone():
    cells = [Cell("markdown", "# A"), Cell("markdown", "It takes 5 minutes.")]
    assert stated(cells) is None
    assert with_minutes(cells) == cells


def test_the_package_knows_the_minutes_of_every_lesson():
    from attnlib.course import lessons as course

    found = json.loads(as_json(COURSE))
    assert list(found) == [lesson.number for lesson in COURSE.lessons()]
    assert {lesson.number: [lesson.minutes, lesson.excursion_minutes] for lesson in course.LESSONS} == found


@pytest.mark.parametrize("lesson", COURSE.lessons(), ids=lambda lesson: lesson.name)
def test_no_core_is_longer_than_a_lesson_should_be(lesson):
    assert minutes(sources(lesson)).core <= build.CORE_LIMIT


def test_the_package_says_both_in_one(monkeypatch):
    from attnlib.course import lessons as course

    monkeypatch.setattr(course, "MINUTES", {"00": [45, 20], "01": [40, 0]})
    assert [lesson.length for lesson in course.LESSONS[:2]] == ["45 + 20", "40"]
    assert " | 45 + 20 | " in course.as_markdown({})
    assert "45 + 20 min" in _texts(course.LESSONS[:2], course.PARTS)


def _texts(lessons, parts):
    from attnlib.course import course_map

    return course_map(lessons, parts).html


# The build writes them


def test_a_build_writes_the_minutes_and_runs_nothing_for_it(course, line, no_run, capsys):
    edit_source(line, "What does it look like?", "What does it look like? 90 minutes.")
    outputs = [cell.get("outputs") for cell in read_notebook(line.notebook).cells]
    assert build.main([], course) == 0
    said = capsys.readouterr().out
    assert "01_line: source/01_line.md now says 5 minutes" in said
    assert "01_line: no code has changed, outputs kept" in said
    assert "What does it look like? 5 minutes." in line.source.read_text()
    assert "What does it look like? 5 minutes." in read_notebook(line.notebook).cells[0].source
    assert [cell.get("outputs") for cell in read_notebook(line.notebook).cells] == outputs
    assert json.loads(course.minutes.read_text()) == {"01": [5, 0], "02": [5, 0], "03": [5, 0]}
    assert build.main(["--check"], course) == 0


def test_another_formula_rewrites_a_lesson_that_is_up_to_date(course, line, no_run, monkeypatch, capsys):
    edit_source(line, "What does it look like?", "What does it look like? 5 minutes.")
    assert build.main([], course) == 0
    monkeypatch.setattr("publish.lessons.minutes.MINUTES_A_FIGURE", 60)
    assert (state(line), build.main(["--check"], course)) == (State.CURRENT, 1)
    assert "01_line states other minutes than it takes" in capsys.readouterr().out
    assert build.main([], course) == 0
    assert "look like? 65 minutes." in line.source.read_text()
    assert build.main(["--check"], course) == 0


def test_minutes_are_not_written_over_an_edited_notebook(course, line, capsys):
    edit_source(line, "What does it look like?", "What does it look like? 5 minutes.")
    assert build.main([], course) == 0
    notebook = read_notebook(line.notebook)
    notebook.cells[0].source += " 90 minutes" + " word" * 1000
    nbformat.write(notebook, line.notebook)
    before = line.source.read_text()
    assert build.main([], course) == 1
    assert (line.source.read_text(), state(line)) == (before, State.NOTEBOOK)
    assert build.main(["--pull", "01"], course) == 0
    assert build.main([], course) == 0
    assert f"look like? {minutes(sources(line))}" in line.source.read_text()


def test_the_lesson_that_shows_the_minutes_is_run_again_when_they_change(course, line, capsys):
    last = course.lessons()[2]
    edit_source(last, "1 + 1", "course_map = 1 + 1")
    assert build.main([], course) == 0
    assert (state(last), build.main(["--check"], course)) == (State.CURRENT, 0)
    edit_source(line, "Prose with", "word " * 500 + "Prose with")
    capsys.readouterr()
    assert build.main([], course) == 0
    assert "03_sum: built" in capsys.readouterr().out
    edit_source(line, "Prose with", "word " * 500 + "Prose with")
    edit_source(last, "A sum", "The sum")
    assert build.main([], course) == 0
    assert "03_sum: built" in capsys.readouterr().out


def test_a_long_core_is_named(course, no_run, monkeypatch, capsys):
    monkeypatch.setattr(build, "CORE_LIMIT", 4)
    assert build.main([], course) == 0
    assert "Longer than 4 minutes without their excursions: 01 (5), 02 (5), 03 (5)" in capsys.readouterr().out


# A change of prose


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("look like?", "look like? Indeed."),
        ("## Look", "## Look\n\n+++\n\nAnother cell."),
        ("Prose with $x^2$ that is only for reading.\n\n", ""),
    ],
)
def test_a_change_of_prose_keeps_the_outputs(course, line, no_run, old, new):
    edit_source(line, old, new)
    assert build.main([], course) == 0
    assert state(line) is State.CURRENT


def test_another_distance_keeps_the_outputs_if_it_says_something(course, monkeypatch, capsys):
    last = course.lessons()[2]
    edit_source(last, "1 + 1", "0.25 + 0.25")
    assert build.main([], course) == 0
    monkeypatch.setattr(build, "run", None)
    edit_source(last, "{code-cell}\n", "{code-cell}\n:within: 0.1\n\n")
    assert build.main([], course) == 0
    assert (state(last), read_notebook(last.notebook).cells[1].metadata.within) == (State.CURRENT, 0.1)


@pytest.mark.parametrize(
    ("old", "new", "numbers"),
    [
        ("look like?", "look like? Indeed.", ["01"]),
        ("look like?", "look like? Indeed.", ["--all"]),
        ("x + 1", "x + 2", []),
        (":figure: line", ":figure: curve", []),
        (":tags: [raises-exception]", ":tags: [raises-exception, other]", []),
    ],
)
def test_what_runs_a_lesson(course, line, monkeypatch, old, new, numbers):
    ran = []

    def run(notebook, folder):
        ran.append(notebook.metadata.attnlib.cells)
        for built, cell in zip(outputs, [c for c in notebook.cells if c.cell_type == "code"], strict=False):
            cell.update(outputs=built.outputs, execution_count=built.execution_count)

    outputs = [cell for cell in read_notebook(line.notebook).cells if cell.cell_type == "code"]
    monkeypatch.setattr(build, "run", run)
    edit_source(line, old, new)
    build.main(numbers, course)
    assert len(ran) == (3 if numbers == ["--all"] else 1)


def test_outputs_unfit_to_keep_are_made_again(course, line, monkeypatch):
    notebook = read_notebook(line.notebook)
    notebook.cells[1].execution_count = 7
    nbformat.write(notebook, line.notebook)
    edit_source(line, "look like?", "look like? Indeed.")
    assert build.main([], course) == 0
    assert read_notebook(line.notebook).cells[1].execution_count == 1


# What JupyterLab writes


def test_what_jupyterlab_notes_is_no_edit_and_is_taken_out(course, line, no_run, capsys):
    before = line.notebook.read_bytes()
    notebook = read_notebook(line.notebook)
    notebook.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    notebook.metadata.language_info = {"name": "python", "version": "3.12.1"}
    notebook.cells[2].metadata["jp-MarkdownHeadingCollapsed"] = True
    notebook.cells[3].metadata.update(collapsed=True, scrolled=True, jupyter={"source_hidden": True})
    nbformat.write(notebook, line.notebook)
    assert state(line) is State.CURRENT
    assert build.main(["--check"], course) == 1
    assert "01_line has notes of JupyterLab's in it" in capsys.readouterr().out
    assert build.main(["--pull", "01"], course) == 0
    assert "nothing to pull" in capsys.readouterr().out
    assert build.main([], course) == 0
    assert line.notebook.read_bytes() == before
