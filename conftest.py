"""What every test runs under, and what nbval leaves out of checking a lesson: its pictures, and how far numbers move.

This file lies at the root because pytest hands a lesson in ``notebooks/`` only to the files above it.
"""

import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import nbval.kernel
import pytest
from nbval.plugin import IPyNbCell, NbCellError

from publish.lessons.numbers import distance_problems, settle
from publish.lessons.pictures import differences
from publish.lessons.running import environment, patient

SCRATCH = tempfile.TemporaryDirectory(prefix="attnlib-")
os.environ.update(environment(Path(SCRATCH.name)))
nbval.kernel.start_new_kernel = patient(nbval.kernel.start_new_kernel)
exactly = IPyNbCell.compare_outputs

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell started this in the background; tests stop programs
    signal.signal(signal.SIGINT, signal.default_int_handler)

LESSON = re.compile(r"notebooks/(\d\d)_\w+\.ipynb(?=::)")
ADVICE = """\
{path}: stored outputs differ from fresh ones.
  If the change is meant: make build NB={number}, look at it, commit.
  If not, the code changed behaviour."""
REMEDY = """\
If the change is meant: make build NB={number}, look at it, commit.
If only another CPU gives it: find out over several seeds how far the number moves, and put that in `within`.
If neither, the code changed behaviour."""


def leniently(cell, fresh, stored, *args):
    """Compare the outputs of a cell as nbval does, but for what the cell's ``within`` allows, and nothing more."""
    within = cell.cell.metadata.get("within")
    if within is None:
        return exactly(cell, fresh, stored, *args)
    if problems := list(distance_problems(stored, within)):
        cell.raise_cell_error("This cell " + "; ".join(problems))
    settled, wrong = settle(stored, fresh, within)
    if wrong:
        remedy = REMEDY.format(number=cell.path.name[:2])
        cell.raise_cell_error(f"Text differs by more than its cell allows.\n{wrong}\n{remedy}")
    return exactly(cell, settled, stored, *args)


IPyNbCell.compare_outputs = leniently


def pytest_configure(config):
    """Keep nbval's colours out of a log; it writes them wherever it is not told otherwise."""
    if config.option.color == "auto" and not sys.stdout.isatty():
        config.option.color = "no"


def pytest_unconfigure():
    """Leave nothing behind."""
    SCRATCH.cleanup()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Start each lesson as a new reader does, with no exercise done."""
    if isinstance(item, IPyNbCell) and item.cell_num == 0:
        Path(os.environ["ATTNLIB_PROGRESS"]).unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """After nbval has run a cell and compared its text, compare its pictures."""
    result = yield
    if isinstance(item, IPyNbCell) and item.options["check"] and item.test_outputs is not None:
        differ = differences(item.cell.outputs, item.test_outputs, item.cell.metadata.get("tags", ()))
        if differ:
            raise NbCellError(item.cell_num, f"Pictures differ: {differ}", item.cell.source)
    return result


def pytest_terminal_summary(terminalreporter):
    """Say what to do about lessons that no longer print what they did."""
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    lessons = {found.group(): found.group(1) for report in failed if (found := LESSON.search(report.nodeid))}
    if lessons:
        terminalreporter.section("what to do about the lessons")
    for path, number in sorted(lessons.items()):
        terminalreporter.write_line(ADVICE.format(path=path, number=number))
