"""The exercises in a real kernel: what loops, floods or exits there leaves the next cell working."""

from pathlib import Path

import pytest

import attnlib
from attnlib.course.grading import in_process

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

SETUP = """
from attnlib.course.grading import Exercise, check, solution
from attnlib.course.grading import registry

def half(x):
    "Half."
    return x / 2

half_it = Exercise(id="90.1", title="", reference=half, cases=lambda rng: [(2.0,), (3.0,)],
                   hints=("", "", ""), misconceptions=[])
registry.find = lambda name: half_it
"""

FOR_EVER = """
def answer(x):
    while True:
        pass

check("90.1", answer)
"""

SURVIVOR = """
import time
from attnlib.course.grading import in_process, in_thread

processes, in_process._fork, in_thread.PATIENCE = in_process._fork, None, 0.3

def survivor(x):
    while True:
        try:
            print("noise")
            time.sleep(0.001)
        except:
            pass

check("90.1", survivor)
in_process._fork = processes
"""

EXITS = """
def leave(x):
    exit()

check("90.1", leave)
"""

INTERRUPTED = """
import _thread, threading

threading.Timer(0.2, _thread.interrupt_main).start()
check("90.1", answer)
"""

HOSTILE = """
import os
import numpy as np
import torch

class Half:
    def __call__(self, x):
        return times(x)

def times(x):
    torch.ones(2, requires_grad=True).sum().backward()
    return x * factor

def cheats(x):
    np.isclose = np.allclose = lambda *_, **__: True
    return x

factor = 0.5
torch.ones(2, requires_grad=True).sum().backward()
check("90.1", Half())
check("90.1", lambda x: os._exit(3))
check("90.1", lambda x: sum(range(10**12)))
check("90.1", cheats)
"""

CELLS = [
    SETUP,
    FOR_EVER,
    "print('next')",
    SURVIVOR,
    "time.sleep(0.3); print('still quiet')",
    EXITS,
    "time.sleep(0.3); print('alive')",
    "def wrong(x):\n    y = 1\n    return y / 0\n\ncheck('90.1', wrong)",
    "check('90.1', half)",
    "solution('90.1')",
    INTERRUPTED,
    HOSTILE,
    "print('still there', np.allclose(1, 2))",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLIB_PROGRESS", str(tmp_path_factory.mktemp("home") / "progress.json"))
        patch.setenv("ATTNLIB_CHECK_SECONDS", "1")
        patch.setenv("PYTHONPATH", str(Path(attnlib.__file__).parents[1]))
        nbclient.NotebookClient(notebook, timeout=60).execute()
    return [cell.outputs for cell in notebook.cells]


def text(cell):
    """The text of a cell that has one output and no other."""
    assert [(output.output_type, output.name) for output in cell] == [("stream", "stdout")]
    return " ".join(cell[0].text.split())


def test_an_endless_loop_gets_one_message_and_the_next_cell_works(outputs):
    assert text(outputs[1]).startswith("90.1 stopped. After 1 second your function was still running")
    assert text(outputs[2]) == "next"


def test_a_survivor_does_not_write_into_other_cells(outputs):
    assert "could not be stopped" in text(outputs[3])
    assert text(outputs[4]) == "still quiet"


def test_exit_does_not_end_the_kernel(outputs):
    assert text(outputs[5]) == "90.1 not yet. Your function called exit. Return the result instead."
    assert text(outputs[6]) == "alive"


def test_the_stop_button_stops_the_answer(outputs):
    assert text(outputs[10]) == "90.1 stopped, as you asked. Nothing was checked."


def test_an_exception_names_the_line_of_the_cell(outputs):
    assert text(outputs[7]) == (
        "90.1 not yet. Your function raised an exception on input 1 of 2 (x = 2). "
        "line 3: return y / 0 ZeroDivisionError: division by zero"
    )


def test_a_right_answer_and_the_solution(outputs):
    assert text(outputs[8]).startswith("90.1 right.")
    [output] = outputs[9]
    assert output.data["text/markdown"] == "```python\ndef half(x):\n    return x / 2\n```"


@pytest.mark.skipif(in_process._fork is None, reason="processes cannot be copied here")
def test_an_answer_that_ends_or_alters_python_does_so_to_a_copy(outputs):
    said = " ".join(output.text for output in outputs[11])
    assert said.startswith("90.1 right. ")
    assert "90.1 stopped. Your function ended Python on input 1 of 2 (x = 2)" in said
    assert "90.1 stopped. After 1 second your function was still running" in said
    assert "could not be stopped" not in said
    assert "90.1 not yet. On input 1 of 2 (x = 2): Yours is 2, expected 1." in said
    assert text(outputs[12]) == "still there False"
