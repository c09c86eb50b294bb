"""What the package is from outside: light to import, honest about its names, and pictures that can be read aloud."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest
import torch

import attnlib
from attnlib import check_close, course, display, plotting, show
from attnlib.course import columns, environment
from attnlib.plotting.picture import Picture, new_figure

ROOT = Path(__file__).parents[1]


def in_new_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_attnlib_loads_neither_torch_nor_scikit_learn():
    code = "import sys, attnlib; print([m for m in ('torch', 'sklearn', 'matplotlib', 'scipy') if m in sys.modules])"
    assert in_new_python(code) == "[]"


@pytest.mark.parametrize("number", ["00", "01", "03"])
def test_the_numpy_lessons_pay_nothing_for_torch(number):
    file = next(lesson.file for lesson in course.LESSONS if lesson.number == number)
    cells = nbformat.read(ROOT / "notebooks" / f"{file}.ipynb", as_version=4).cells
    code = "\n".join(c.source for c in cells if c.cell_type == "code" and "live" not in c.metadata.get("tags", []))
    run = f"import sys; from IPython.core.interactiveshell import InteractiveShell as S; s = S(); s.run_cell({code!r})"
    assert in_new_python(run + "; print('torch' in sys.modules)").splitlines()[-1] == "False"


def test_every_public_name_exists():
    for name in attnlib.__all__:
        assert getattr(attnlib, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'atention'"):
        attnlib.atention  # noqa: B018
    assert "attention" in dir(attnlib)


@pytest.mark.parametrize(
    "module",
    [
        "core",
        "scores",
        "masks",
        "kernels",
        "regression",
        "heads",
        "positions",
        "recurrent",
        "variants",
        "interventions",
    ],
)
def test_every_public_function_has_an_equation_and_an_example(module):
    home = getattr(attnlib, module)
    for name in home.__all__:
        thing = getattr(home, name)
        if callable(thing) and name not in ("Attended", "Cache", "Memory", "OnlineSoftmax"):
            for part in (".. math::", ">>> "):
                assert part in thing.__doc__, f"attnlib.{module}.{name} lacks {part}"


@pytest.mark.parametrize(
    "module", ["probes", "tasks", "text", "training", "layers", "transformer", "translation", "decoding"]
)
def test_every_public_function_has_an_example(module):
    home = getattr(attnlib, module)
    for name in home.__all__:
        thing = getattr(home, name)
        if callable(thing):
            assert ">>> " in thing.__doc__, f"attnlib.{module}.{name} lacks an example"


def test_every_lesson_has_the_title_that_the_course_gives_it():
    for lesson in course.LESSONS:
        if lesson.ready:
            first = nbformat.read(ROOT / "notebooks" / f"{lesson.file}.ipynb", as_version=4).cells[0].source
            assert first.splitlines()[0] == f"# {lesson.number} · {lesson.title}"
            assert f" {lesson.length} minutes" in first
    files = {path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    assert files == {lesson.file for lesson in course.LESSONS if lesson.ready}


def test_the_readme_holds_the_syllabus():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for lesson in course.LESSONS:
        name = f"{lesson.number} · {lesson.title}"
        row = rf"^\| \[{re.escape(name)}\]\(notebooks/{lesson.file}\.ipynb\) \| .+ \| {re.escape(lesson.length)} \|"
        assert re.search(row, readme, re.MULTILINE), f"README.md and attnlib/course differ in {name}: make build"


def test_show_rounds_and_never_prints_minus_zero(capsys):
    show(x=np.array([-1e-9, 0.12345]), n=3, big=1234.5, shape=(2, 3), digits=2)
    show(francs=1234.4, digits=0)
    assert capsys.readouterr().out.splitlines() == [
        "x     (2,)",
        "[0.   0.12]",
        "n     3",
        "big   1234.5",
        "shape (2, 3)",
        "francs 1,234",
    ]


def test_show_asks_for_a_name():
    with pytest.raises(ValueError, match=r"values: none came. Give each a name: show\(weights=weights\)"):
        show(np.ones(2))


def test_show_names_the_columns(capsys):
    show(columns="head", digits=2, **{"held\nout": [0.5, -1e-9]}, layers=[12, 3], out=torch.tensor([[0.125, 1234.5]]))
    show(columns=["error"], digits=1, learned=[torch.ones((), requires_grad=True)])
    show(columns=["a", "of all"], percent=True, right=(0.046, 1.0), guessing=1 / 26, first=["<b>", "none"])
    show(columns=["error"], digits=1, one_side=0.25, both=1.0)
    assert capsys.readouterr().out.splitlines() == [
        "          head 0    head 1",
        "held out    0.50      0.00",
        "layers        12         3",
        "out         0.12  1,234.50",
        "         error",
        "learned    1.0",
        "         a  of all",
        "right  5 %   100 %",
        "guessing: 4 %",
        "first  <b>    none",
        "          error",
        "one side    0.2",
        "both        1.0",
    ]


def test_a_table_says_whose_a_number_is():
    rows = {"right & wrong": ["5 %", "<b>"], "guessing": "4 %"}
    table = ElementTree.fromstring(columns.in_columns("run", rows)._repr_html_().replace("&nbsp;", "\u00a0"))
    cells = [[(cell.tag, cell.get("scope"), cell.text) for cell in row] for row in table.iter("tr")]
    assert cells == [
        [("td", None, None), ("th", "col", "run 0"), ("th", "col", "run 1")],
        [("th", "row", "right & wrong"), ("td", None, "5\u00a0%"), ("td", None, "<b>")],
        [("td", None, "guessing: 4 %")],
    ]
    assert [cell.get("colspan") for cell in table.iter("td")][-1] == "3"
    assert {cell.get("style") for cell in table.iter("th") if cell.get("scope") == "col"} == {"text-align: right"}


@pytest.mark.parametrize("names", ["run", ["run 0", "run 1", "run 2"]])
def test_a_row_of_another_length_is_named(names):
    with pytest.raises(ValueError, match="'from scratch' has 2 values, and there are 3 columns: run 0, run 1, run 2"):
        show(columns=names, pretrained=[0.1, 0.2, 0.3], from_scratch=[0.1, 0.2])


def test_check_close_says_what_differs():
    with pytest.raises(AssertionError, match=r"they differ by up to 0\.5"):
        check_close(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    with pytest.raises(AssertionError, match=r"by_hand has shape \(2,\), library \(1,\)"):
        check_close(np.zeros(2), np.zeros(1))
    with pytest.raises(AssertionError, match="by_hand has 1 entries that are NaN or infinite, library 0"):
        check_close(np.array([np.nan]), np.zeros(1))


def test_show_source_shows_what_runs():
    text = display.show_source(attnlib.scaled_dot).data
    assert text.startswith("```python\n# attnlib/scores.py\ndef scaled_dot(")
    assert '"""' not in text


def test_the_environment_check_says_what_is_missing(monkeypatch, capsys):
    environment.check_environment()
    assert "Everything is there" in capsys.readouterr().out
    monkeypatch.setattr(environment, "PACKAGES", {"numpy": "numpy", "no-such-package": "none"})
    monkeypatch.setattr(environment, "_tested", lambda: {"numpy": "0.1"})
    environment.check_environment()
    said = capsys.readouterr().out
    assert "no-such-package is missing. In the folder of the course: pip install -r requirements.txt" in said
    assert "the course was tested with 0.1" in said


def test_a_picture_is_the_same_bytes_every_time_and_can_be_read_aloud():
    def draw():
        return plotting.scatter([1.0, 2.0], [3.0, 4.0], title="Up", labels=("x (m)", "y (s)"), query=1.5)

    assert draw().png() == draw().png()
    data, metadata = draw()._repr_mimebundle_()
    assert data["text/plain"] == "Up. One plot. Across: x (m). Up: y (s). Dots: 2."
    assert metadata["image/png"] == {"width": 700, "height": 400, "alt": data["text/plain"]}


def test_long_titles_are_wrapped_within_the_figure():
    fig, ax = new_figure(7, 4)
    ax.plot([0, 1])
    Picture(fig, "A finding that takes a good many words to say, so that one line cannot hold it all " * 2)
    fig.canvas.draw()
    assert fig._suptitle.get_window_extent().x1 <= fig.bbox.x1


def test_pictures_leave_the_readers_matplotlib_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plotting.lines({"a": ([0, 1], [0, 1])}, title="T", labels=("x", "y")).png()
    assert dict(mpl.rcParams) == before
