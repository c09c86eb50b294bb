"""The build, the pull and their refusals, on a course of three small lessons."""

import json
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_output

from publish.lessons import build
from publish.lessons.build import COURSE
from publish.lessons.lessons import (
    HEADER,
    Cell,
    LessonError,
    canonical,
    read_notebook,
    read_source,
    to_cells,
    unrun_notebook,
    write_source,
)
from publish.lessons.pictures import difference
from publish.lessons.rules import output_problems, source_problems
from publish.lessons.running import patient
from publish.lessons.sides import State, digests, state
from publish.notebooks import pngs

ROOT = COURSE.root


def contents(course):
    """Every file of a course that a build could have written."""
    found = [p for p in course.root.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return {str(p.relative_to(course.root)): p.read_bytes() for p in found}


def edit_source(lesson, old, new):
    text = lesson.source.read_text()
    assert old in text
    lesson.source.write_text(text.replace(old, new))


def edit_notebook(lesson, change):
    """Change a notebook file as a person at a screen would."""
    notebook = read_notebook(lesson.notebook)
    change(notebook.cells)
    nbformat.write(notebook, lesson.notebook)


def edit_first_cell(cells):
    cells[0].source += " indeed"


@pytest.fixture
def no_run(monkeypatch):
    """Let a build take outputs for granted, to save the second that a kernel needs."""

    def run(notebook, folder):
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, cell in enumerate(code, 1):
            cell.execution_count = number

    monkeypatch.setattr(build, "run", run)


# Building


def test_a_second_build_gives_the_same_bytes(course):
    before = contents(course)
    assert build.main(["01", "02"], course) == 0
    assert contents(course) == before


def test_a_lesson_that_did_not_change_is_not_built(course, capsys, monkeypatch):
    monkeypatch.setattr(build, "run", None)
    assert build.main([], course) == 0
    assert capsys.readouterr().out == ""
    assert build.main(["--check"], course) == 0


def test_a_changed_source_is_built(course, line, capsys):
    edit_source(line, "x + 1", "x + 2")
    edit_source(line, ":figure: line", ":figure: curve")
    assert state(line) is State.SOURCE
    assert build.main(["--check"], course) == 1
    capsys.readouterr()
    assert build.main([], course) == 0
    assert "02_fall" not in capsys.readouterr().out
    assert state(line) is State.CURRENT
    assert read_notebook(line.notebook).cells[1].outputs[0].data["text/plain"] == "4"
    assert sorted(p.name for p in course.figures.glob("*.png")) == ["01_curve.png", "02_fall.png"]


def test_what_a_notebook_holds(built_course):
    lesson = built_course.lessons()[0]
    notebook = read_notebook(lesson.notebook)
    assert [cell.id for cell in notebook.cells[:2]] == ["01-c01", "01-c02"]
    assert set(notebook.metadata) == {"attnlib", "kernelspec", "language_info"}
    drawn, live, error, printed = (notebook.cells[i] for i in (3, 4, 7, 8))
    alt = {"alt": "A line that rises to 3 and falls to 2", "height": 50, "width": 100}
    assert drawn.outputs[0].metadata["image/png"] == alt
    assert lesson.figure("line").read_bytes() == pngs(drawn.outputs)[0]
    assert (live.outputs, live.execution_count) == ([], 3)
    assert error.outputs[0].traceback == ["IndexError: list index out of range"]
    assert [out.text for out in printed.outputs] == ["one\ntwo\n"]


def test_a_failing_cell_is_named_and_nothing_is_written(course, line, capsys):
    edit_source(line, "x + 1", "\n\nx + undefined")
    before = contents(course)
    assert build.main([], course) == 1
    said = capsys.readouterr().err
    assert "01_line" in said
    assert "cell 2 (`from standin import Picture`) raised NameError" in said
    assert contents(course) == before


@pytest.mark.parametrize(
    ("message", "tries"),
    [("Kernel died before replying to x", 3), ("Kernel didn't respond in 60 seconds", 3), ("No such kernel", 1)],
)
def test_a_kernel_without_a_port_is_started_again(message, tries):
    calls = []

    @patient
    def start():
        calls.append(message)
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=message):
        start()
    assert len(calls) == tries


def test_outputs_that_were_stripped_are_made_again(course, line, no_run):
    edit_notebook(line, lambda cells: cells[1].update(outputs=[], execution_count=None))
    assert state(line) is State.OUTPUTS
    assert line in build.chosen(course, [], every=False)


def test_a_source_is_put_in_canonical_form(course, no_run, capsys):
    lesson = course.lessons()[2]
    loose = lesson.source.read_text().replace("\n\n", "\n\n\n")
    lesson.source.write_text(loose)
    assert build.main(["3"], course) == 0
    assert "canonical form" in capsys.readouterr().out
    assert lesson.source.read_text() == canonical(loose) != loose


def test_unknown_lessons_and_double_numbers_are_refused(course, capsys):
    assert build.main(["09"], course) == 1
    assert "no lesson 09" in capsys.readouterr().err
    (course.notebooks / "source" / "01_other.md").write_text(HEADER)
    assert build.main([], course) == 1
    assert "share the number 01" in capsys.readouterr().err


def test_orphans_are_reported(course, capsys):
    course.lessons()[1].source.unlink()
    assert [path.name for path in course.orphans()] == ["02_fall.ipynb", "02_fall.png"]
    assert build.main(["--check"], course) == 1
    assert "02_fall.ipynb belongs to no source" in capsys.readouterr().out


# Two sides


def test_an_edited_notebook_is_not_overwritten(course, line, capsys):
    edit_notebook(line, edit_first_cell)
    before = contents(course)
    assert build.main(["01"], course) == 1
    said = capsys.readouterr().err
    assert "cell 1 (`# 1 · A line`)" in said
    assert "make pull NB=01" in said
    assert "make build NB=01 FORCE=1" in said
    assert contents(course) == before


def test_force_backs_the_notebook_up(course, no_run):
    lesson = course.lessons()[2]
    for _ in range(2):
        edit_notebook(lesson, edit_first_cell)
        edited = lesson.notebook.read_bytes()
        assert build.main(["03", "--force"], course) == 0
    copies = sorted(course.notebooks.glob("*.bak"))
    assert [copy.name for copy in copies] == ["03_sum.ipynb.2.bak", "03_sum.ipynb.bak"]
    assert copies[0].read_bytes() == edited
    assert state(lesson) is State.CURRENT


def test_pull_brings_the_edit_and_nothing_else(course, line, capsys):
    before = line.source.read_text()

    def edit(cells):
        edit_first_cell(cells)
        cells[1].metadata.update(collapsed=True, jupyter={"source_hidden": True}, tags=["a"])
        cells.append(new_code_cell("", execution_count=None))

    edit_notebook(line, edit)
    assert build.main(["--pull", "1"], course) == 0
    assert "make build NB=01" in capsys.readouterr().out
    wanted = before.replace("look like?", "look like? indeed").replace(
        "```{code-cell}\nfrom", "```{code-cell}\n:tags: [a]\n\nfrom"
    )
    assert line.source.read_text() == wanted
    assert state(line) is State.OUTPUTS


def test_pull_without_an_edit_leaves_the_source_alone(course, line, capsys):
    before = contents(course)
    assert build.main(["--pull", "01"], course) == 0
    assert "nothing to pull" in capsys.readouterr().out
    edit_source(line, "x + 1", "x + 2")
    changed_source = line.source.read_bytes()
    assert build.main(["--pull", "01"], course) == 0
    assert contents(course) == before | {"notebooks/source/01_line.md": changed_source}


def test_a_conflict_is_refused_by_both_and_loses_nothing(course, line, capsys):
    edit_notebook(line, edit_first_cell)
    edit_source(line, "x + 1", "x + 2")
    before = contents(course)
    for command in (["01"], ["--pull", "01"]):
        assert build.main(command, course) == 1
        said = capsys.readouterr().err
        notebook, source = said.split("In the source:")
        assert "cell 1 (`# 1 · A line`)" in notebook
        assert "cell 2 (`from standin import Picture`)" in source
        assert "make pull NB=01 FORCE=1" in source
    assert contents(course) == before
    assert build.main(["--pull", "01", "--force"], course) == 0
    assert line.source.with_name("01_line.md.bak").read_bytes() == before["notebooks/source/01_line.md"]
    assert "x + 1" in line.source.read_text()


def test_the_same_edit_on_both_sides_is_no_conflict(line):
    edit_notebook(line, edit_first_cell)
    edit_source(line, "look like?", "look like? indeed")
    assert state(line) is State.OUTPUTS


@pytest.mark.parametrize("source", ["a\n\n+++\n\nb", "```{code-cell}\n1\n```"])
def test_pull_refuses_what_a_source_cannot_hold(course, line, source, capsys):
    edit_notebook(line, lambda cells: cells[0].update(source=source))
    before = contents(course)
    assert build.main(["--pull", "01"], course) == 1
    assert "MyST cannot hold" in capsys.readouterr().err
    edit_notebook(line, lambda cells: cells[0].update(source="x", attachments={"a.png": {"image/png": ""}}))
    assert build.main(["--pull", "01"], course) == 1
    assert "pasted picture" in capsys.readouterr().err
    assert contents(course).keys() == before.keys()


# What a lesson may hold


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (Cell("code", "\n".join(["x = 1"] * 16)), "16 lines; more than 15 belong in attnlib"),
        (Cell("code", "x", ("live",)), "nbval-ignore-output"),
        (Cell("code", "x", ("live", "nbval-ignore-output"), figure="a"), "stores a figure"),
        (Cell("markdown", "x", figure="a"), "stores a figure"),
        (Cell("code", "x", figure="A b"), "lower-case"),
        (Cell("raw", "x"), "raw cell"),
        (Cell("markdown", "*The row of* bank*, a mean*"), "shows a `*` at “bank*, a mean*”"),
    ],
)
def test_source_problems(cell, problem):
    assert any(problem in said for said in source_problems([Cell("markdown", "# A"), cell]))


def test_figure_names_are_unique():
    cells = [Cell("code", "x", figure="a"), Cell("code", "y", figure="a")]
    assert source_problems(cells) == ["two cells have the figure name 'a'"]
    assert source_problems([cells[0], Cell("code", "\n".join(["y"] * 15))]) == []


@pytest.mark.parametrize(
    ("metadata", "output", "problem"),
    [
        ({}, new_output("display_data", data={"image/png": "", "text/plain": "A line"}), "no name for it"),
        ({"figure": "a"}, new_output("display_data", data={"text/plain": "3"}), "draws 0 pictures"),
        ({"figure": "a"}, new_output("display_data", data={"image/png": ""}), "without alt text"),
        ({}, new_output("stream", name="stderr", text="Warning: x"), "wrote to stderr: 'Warning: x'"),
        ({}, new_output("stream", text="in /home/ada/course"), "'/home/ada/course'"),
        ({}, new_output("stream", text=f"in {ROOT}"), "another on every machine"),
        ({}, new_output("display_data", data={"text/plain": "<f at 0x7f12345678>"}), "'0x7f12345678'"),
        ({}, new_output("error", ename="E", evalue="", traceback=[]), "not tagged raises-exception"),
        ({"tags": ["raises-exception"]}, new_output("stream", text="fine"), "raised nothing"),
        (
            {},
            new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}}),
            "tag it live",
        ),
    ],
)
def test_output_problems(metadata, output, problem):
    cell = new_code_cell("x", metadata=metadata, outputs=[output], execution_count=1)
    said = output_problems(nbformat.v4.new_notebook(cells=[cell]))
    assert any(problem in line for line in said), said


def test_cells_that_were_not_run_in_order_are_a_problem():
    cells = [new_code_cell("x", execution_count=2), new_code_cell("y")]
    said = output_problems(nbformat.v4.new_notebook(cells=cells))
    assert said == [
        "cell 1 (`x`) was run as number 2, not as number 1",
        "cell 2 (`y`) was run as number None, not as number 2",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```{code-cell}\n:color: red\n\nx\n```\n", "metadata 'color'"),
        ("```{code-cell}\n:tags: live\n\nx\n```\n", "not of type 'array'"),
        ('+++ {"deck": ["x"]}\n\nx\n', "metadata 'deck'"),
        ("```{code-cell}\n:tags: [\n\nx\n```\n", "no lesson in MyST"),
    ],
)
def test_a_source_that_cannot_be_read_says_why(text, said):
    with pytest.raises(LessonError, match=re.escape(said)):
        read_source(HEADER + text)


TEXTS = st.text("ab1 \n#`-+|%{}$\\é", min_size=1, max_size=40).filter(str.strip)
CELLS = st.builds(
    Cell,
    kind=st.sampled_from(["code", "markdown"]),
    source=TEXTS.map(lambda text: re.sub(r"\A(?: *\n)+", "", text).rstrip()),
    tags=st.sampled_from([(), ("live",), ("a", "live")]),
).filter(lambda cell: "+++" not in cell.source and "---" not in cell.source and "```" not in cell.source)


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_source_and_notebook_hold_the_same(cells):
    text = write_source(cells)
    assert read_source(text) == cells
    assert canonical(text) == text
    notebook = unrun_notebook(cells, "01")
    assert digests(to_cells(notebook)) == digests(cells)
    assert to_cells(notebook) == cells


# Checking: nbval for the text, our own hook for the pictures


def test_pictures_are_compared_with_a_tolerance(built_course):
    line, fall = ((built_course.figures / name).read_bytes() for name in ("01_line.png", "02_fall.png"))
    assert difference(line, line) == ""
    assert "of 255" in difference(line, fall)


def test_a_changed_lesson_fails_with_words(course):
    """A changed digit, a changed picture and a deleted picture, in one strict run."""
    first, second, third = course.lessons()
    other = read_notebook(second.notebook).cells[1].outputs[0].data["image/png"]
    edit_notebook(first, lambda cells: cells[3].outputs[0].data.pop("image/png"))
    edit_notebook(second, lambda cells: cells[1].outputs[0].data.update({"image/png": swap_colours(other)}))
    edit_notebook(third, lambda cells: cells[1].outputs[0].data.update({"text/plain": "3"}))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, course.root)
    lessons = [str(lesson.notebook.relative_to(course.root)) for lesson in course.lessons()]
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["-o", f"pythonpath={ROOT}", "--nbval", "--nbval-current-env", *lessons]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 4 passed" in done.stdout
    assert "Pictures differ: 0 pictures are stored, a fresh run draws 1" in done.stdout
    assert "the stored picture differs from a fresh one by" in done.stdout
    for lesson in course.lessons():
        assert f"notebooks/{lesson.notebook.name}: stored outputs differ from fresh ones" in done.stdout
        assert f"make build NB={lesson.number}, look at it, commit" in done.stdout


def swap_colours(png):
    """The same picture as a base64 PNG with red and blue exchanged."""
    import base64
    import io

    from matplotlib.image import imread, imsave

    file = io.BytesIO()
    imsave(file, imread(io.BytesIO(base64.b64decode(png)), "png")[..., [2, 1, 0, 3]], format="png")
    return base64.b64encode(file.getvalue()).decode()


def test_the_notebook_is_plain_json_with_sorted_keys(built_course):
    text = built_course.lessons()[0].notebook.read_text()
    assert text.endswith("}\n")
    assert list(json.loads(text)) == ["cells", "metadata", "nbformat", "nbformat_minor"]
