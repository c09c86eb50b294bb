"""How far a stored number may move: what moves, what does not, and that `make test` is red when it should be."""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from attnlib.course.columns import in_columns
from publish.lessons.build import COURSE
from publish.lessons.cells import Cell
from publish.lessons.lessons import HEADER, LessonError, read_source, to_cells, unrun_notebook, write_source
from publish.lessons.numbers import distance_problems, moved, numbers, settle, texts, well_formed
from publish.lessons.rules import output_problems, source_problems
from publish.lessons.sides import digests


def may_move(text, within):
    return [number.text for number in numbers(text, within) if number.distance is not None]


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("run 0: 46 %", ["46"]),
        ("46% and 47 per cent of 397", ["46", "47"]),
        ("x     (2, 3)\n[[0.   0.5 ]\n [1.   0.25]]", ["0.", "0.5", "1.", "0.25"]),
        ("runs [0.2, 1.0]", ["0.2", "1.0"]),
        ("It stays at 46. So does 3.", []),
        ("1e5 and 2.5e-07", ["1e5", "2.5e-07"]),
        ("francs 1,234 or 1,234.5", ["1,234.5"]),
        ("-0.5 −0.5 (0.5) p=0.5 3-4.5", ["-0.5", "−0.5", "0.5", "0.5", "4.5"]),
        ("run2 x_1.5 64d 2.5x version 1.2.3 exercise 05.1", []),
        ("<td>0.5</td> **0.7** $0.9$", ["0.5", "0.7", "0.9"]),
        ("nan inf -inf", []),
    ],
)
def test_what_moves_where_one_distance_holds_for_all(text, free):
    assert may_move(text, 5) == free


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("0.5 loss 0.2 exact 97 % steps 700", ["0.2", "97"]),
        ("right 412 of 500", ["412"]),
        ("right: [412, 398]", ["412", "398"]),
        ("right (2,)\n[412 398]", ["412", "398"]),
        ("loss 0.2\n[0.3]\nother 0.4", ["0.2", "0.3"]),
        ("losses 0.2, floss 0.3", []),
        ("right 0: 46 %", ["46"]),
    ],
)
def test_what_moves_where_words_have_distances(text, free):
    assert may_move(text, {"loss": 0.1, "exact": 2, "right": 20}) == free


def test_each_word_has_its_own_distance():
    found = {n.text: n.distance for n in numbers("loss 0.2 exact 97 %", {"loss": 0.1, "exact": 2})}
    assert found == {"0.2": 0.1, "97": 2}


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("loss 0.46", "loss 0.51"),
        ("loss 0.46", "loss 0.41"),
        ("[0.5  0.46]", "[0.46 0.5 ]"),
        ("[ 0.01 0.2 ]", "[-0.01 0.2 ]"),
        ("[0.5 0.5\n 0.5]", "[0.5\n 0.5 0.5]"),
        ("0.0", "-0.0"),
        ("share 1", "share 0.98"),
    ],
)
def test_numbers_that_are_near_enough(stored, fresh):
    assert moved(stored, fresh, 0.05) == ""


@pytest.mark.parametrize(
    ("stored", "fresh", "said"),
    [
        ("loss 0.46", "loss 0.52", "0.46 became 0.52: 0.06 apart, within allows 0.05"),
        ("over 0.46", "under 0.46", "`over` is stored, a fresh run has `under` there"),
        ("a b 0.46", "ab 0.46", "`a` is stored, a fresh run has `ab` there"),
        ("0.46", "0.46 then", "nothing is stored, a fresh run has `then` there"),
        ("0.46 then 0.5", "then 0.46 0.5", "a number is stored, a fresh run has `then` there"),
        ("0.46", "0.46 0.47", "1 numbers are stored, a fresh run prints 2"),
        ("0.46", "nan", "1 numbers are stored, a fresh run prints 0"),
        ("run 0: 0.46", "run 1: 0.46", "0 became 1: 1 apart, which may not move"),
        ("x (2, 3) 0.5", "x (2, 4) 0.5", "`3)` is stored, a fresh run has `4)` there"),
        ("1e5", "2e5", "100000 apart"),
        ("1,234.5", "1,235.5", "1 apart"),
    ],
)
def test_what_is_too_far_says_so(stored, fresh, said):
    assert said in moved(stored, fresh, 0.05)


def test_the_lines_that_differ_are_shown():
    said = moved("steps 700\nrun 0: 46 %", "steps 700\nrun 0: 53 %", 5)
    assert said.splitlines()[1:] == ["  stored: run 0: 46 %", "  fresh:  run 0: 53 %"]


@pytest.mark.parametrize(
    ("text", "within", "said"),
    [
        ("0.93", 0.23, ""),
        ("0.93", 0.3, "lets 0.93 move by 0.3, which says nothing about it: `within` may be 0.2325 here"),
        ("0.01 0.93", 0.05, ""),
        ("0.01 0.93", 0.2, "lets 0.01 move by 0.2"),
        ("3 %", 10, ""),
        ("3 %", 11, "`within` may be 10 here"),
        ("francs 1,234", {"francs": 300}, ""),
        ("francs 1,234", {"francs": 600}, "`within` may be 308.5 here"),
        ("wrong 3", {"wrong": 3}, "`within` may be 2 here"),
        ("run 3", 1, "prints no number that may move"),
        ("loss 0.5", {"loss": 0.1, "lass": 0.1}, "'lass' and prints no such word"),
        ("loss 0.5", 0, "expected a distance above 0"),
        ("loss 0.5", "0.1", "expected a distance above 0"),
    ],
)
def test_a_distance_that_says_nothing_is_a_problem_of_the_outputs(text, within, said):
    cell = new_code_cell("x", metadata={"within": within}, outputs=[new_output("stream", text=text)])
    cell.execution_count = 1
    found = "; ".join(output_problems(nbformat.v4.new_notebook(cells=[cell])))
    assert said in found
    assert bool(said) == bool(found)
    assert found.endswith("; ".join(distance_problems(cell.outputs, within)))


@pytest.mark.parametrize("within", [0, -1, True, float("nan"), float("inf"), {}, {"loss": 0}, {3: 0.5}, {"a": "b"}])
def test_what_is_no_distance(within):
    assert not well_formed(within)
    assert "expected a number above 0" in source_problems([Cell("code", "x", within=within)])[0]


@pytest.mark.parametrize("tags", [("nbval-ignore-output",), ("live", "nbval-ignore-output")])
def test_a_distance_needs_an_output_that_is_compared(tags):
    assert "whose output is compared" in source_problems([Cell("code", "x", tags, within=0.1)])[0]
    assert "whose output is compared" in source_problems([Cell("markdown", "x", within=0.1)])[0]
    assert source_problems([Cell("code", "x", within=0.1)]) == []


@pytest.mark.parametrize("within", [0.05, 5, {"loss": 0.05, "exact": 2}])
def test_source_and_notebook_hold_the_distance(within):
    cells = [Cell("code", "x", within=within), Cell("code", "x")]
    text = write_source(cells)
    assert read_source(text) == cells
    notebook = unrun_notebook(cells, "01")
    assert notebook.cells[0].metadata.within == within
    assert digests(to_cells(notebook)) == digests(cells)
    assert len(set(digests(cells))) == 2


def test_five_and_five_point_nought_are_one_distance():
    """JupyterLab writes 5.0 as 5 when it saves."""
    text = HEADER + "```{code-cell}\n:within: 5.0\n\nx\n```\n"
    assert digests(read_source(text)) == digests([Cell("code", "x", within=5)])
    with pytest.raises(LessonError, match=re.escape("within: 'a'. Expected a int | float | dict")):
        read_source(text.replace("5.0", "a"))


# What `make test` says, in one real run: lesson -> what it prints, what is stored, its `within`, what is said.
RUNS = {
    "near": ("loss 0.46 run 2: 48 %", "loss 0.5 run 2: 46 %", {"loss": 0.05, "run": 5}, None),
    "far": ("loss 0.46", "loss 0.56", 0.05, "0.56 became 0.46: 0.1 apart, within allows 0.05"),
    "word": ("loss 0.46", "less 0.46", 0.05, "`less` is stored, a fresh run has `loss` there"),
    "count": ("loss 0.46", "loss 0.46 0.5", 0.05, "2 numbers are stored, a fresh run prints 1"),
    "absurd": ("loss 0.46", "loss 0.46", 0.4, "This cell lets 0.46 move by 0.4, which says nothing about it"),
    "strict": ("loss 0.46", "loss 0.461", None, "Cell outputs differ"),
    "row": ([0.46, 0.5], [0.46, 0.54], {"loss": 0.05}, None),
    "table": ([0.46, 0.5], [0.46, 0.56], {"loss": 0.05}, "0.56 became 0.50: 0.06 apart, within allows 0.05"),
    "cells": ([0.46, 0.5], [0.46, 0.56], None, "Cell outputs differ"),
    "kind": ("loss 0.46", None, 0.05, "This cell has `within` and prints no number that may move"),
}


TABLE = "show(columns='run', digits=2, loss={}, floor=0.1)"


def shown(values):
    """What a cell stores that printed a text, or rows under columns."""
    if isinstance(values, str):
        return new_output("stream", text=values + "\n")
    table = in_columns("run", {"loss": [f"{value:.2f}" for value in values], "floor": "0.10"})
    return new_output("display_data", data={"text/plain": repr(table), "text/html": table._repr_html_()})


def test_a_table_is_compared_once_and_kept_whole():
    stored, fresh = [shown([0.46, 0.54])], [shown([0.46, 0.5])]
    assert [kind for kind, _, _ in texts(stored)] == ["text/plain"]
    settled, wrong = settle(stored, fresh, {"loss": 0.05})
    assert (settled, wrong) == (stored, "")
    settled, wrong = settle(stored, fresh, {"loss": 0.03})
    assert settled == fresh
    assert "0.54 became 0.50" in wrong
    assert may_move(stored[0].data["text/plain"], {"loss": 0.05}) == ["0.46", "0.54"]  # no 0.10 of another row


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What pytest says about each of the notebooks above."""
    root = tmp_path_factory.mktemp("numbers")
    (root / "notebooks").mkdir()
    for i, (name, (fresh, stored, within, _)) in enumerate(RUNS.items()):
        code = f"print('{fresh}')" if isinstance(fresh, str) else "from attnlib import show\n" + TABLE.format(fresh)
        notebook = unrun_notebook([Cell("code", code, within=within)], f"{i:02d}")
        notebook.cells[0].execution_count = 1
        notebook.cells[0].outputs = [shown(stored)] if stored else []
        nbformat.write(notebook, root / "notebooks" / f"{i:02d}_{name}.ipynb")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(COURSE.root / name, root)
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "notebooks"]
    command += ["-o", f"pythonpath={COURSE.root}", "--nbval", "--nbval-current-env"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_pytest_is_red_when_it_should_be(made, name):
    number, said = f"{list(RUNS).index(name):02d}", RUNS[name][-1]
    parts = re.split(r"^_+ .*?notebooks/(\d\d)_\w+\.ipynb.*_+$", made.partition("what to do about")[0], flags=re.M)
    failures = dict(zip(parts[1::2], parts[2::2], strict=True))
    if said is None:
        assert number not in failures, made
    else:
        assert said in failures[number], made
        assert (f"make build NB={number}" in failures[number]) == (name in ("far", "word", "count", "table"))
    assert f"{sum(run[-1] is not None for run in RUNS.values())} failed, 2 passed" in made
