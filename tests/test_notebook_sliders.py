"""Every slider of every lesson is moved, and what it shows must change: one that moves nothing teaches nothing."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
from typing import Any

import ipywidgets
import jupytext
import pytest
import torch

import attnlib.training
from attnlib.plotting import Picture
from build import COURSE

LESSONS = {lesson.number: lesson for lesson in COURSE.lessons()}
OTHER_WORDS = {"05": "notebook", "11": "9 8 7", "12": "17"}  # for a control that takes words


def code_cells(number: str) -> list[tuple[str, bool]]:
    """The code of a lesson, cell by cell, and whether a cell is live."""
    cells = jupytext.reads(LESSONS[number].source.read_text("utf-8"), fmt="md:myst").cells
    return [(c.source, "live" in c.metadata.get("tags", [])) for c in cells if c.cell_type == "code"]


def has_a_slider(number: str) -> bool:
    return any(live and "@interact" in source for source, live in code_cells(number))


def needed(cells: list[tuple[str, bool]], live: int) -> list[str]:
    """The cells before a live one that bind a name which it needs, and those that these need."""
    wanted, chosen = loads(cells[live][0]), []
    for source, is_live in reversed(cells[:live]):
        if not is_live and binds(source) & wanted:
            wanted |= loads(source)
            chosen.append(source)
    return chosen[::-1]


def loads(source: str) -> set[str]:
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def binds(source: str) -> set[str]:
    bound = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            bound.add(node.value.id)  # x[i] = ...
    return bound


def ends(control: Any, number: str) -> tuple[Any, Any]:
    """Two values of a control that lie far from each other."""
    if isinstance(control, str):
        return control, OTHER_WORDS[number]
    if isinstance(control, tuple) and len(control) in (2, 3) and not isinstance(control[0], str):
        return control[0], control[1]
    if isinstance(control, ipywidgets.FloatLogSlider):
        return control.base**control.min, control.base**control.max
    if isinstance(control, ipywidgets.Widget):
        return control.min, control.max
    values = list(control.values() if isinstance(control, dict) else control)
    return values[0], values[-1]


def shown(function: Any, values: dict[str, Any]) -> object:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        came = function(**values)
    return said.getvalue(), came.png() if isinstance(came, Picture) else repr(came)


@pytest.fixture
def hasty(monkeypatch):
    """Training in three steps: what a slider shows of a model may be nonsense here, as long as it moves."""
    fit = attnlib.training.fit

    def short(*args, **options):
        return fit(*args, **options | {"steps": min(3, options["steps"]), "checkpoint": None, "progress": False})

    monkeypatch.setattr(attnlib.training, "fit", short)
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)  # lessons that train in double precision set another


@pytest.mark.parametrize("number", [*filter(has_a_slider, LESSONS)])
def test_every_slider_moves_what_it_shows(number, hasty, monkeypatch):
    cells = code_cells(number)
    for place, (source, live) in enumerate(cells):
        if not (live and "@interact" in source):
            continue
        caught: list[tuple[Any, dict[str, Any]]] = []
        monkeypatch.setattr(ipywidgets, "interact", catching(caught))
        names: dict[str, Any] = {"__name__": f"lesson{number}"}
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in needed(cells, place):
                exec(compile(cell, f"lesson {number}", "exec"), names)
            exec(compile(source, f"slider of lesson {number}", "exec"), names)
        [(function, controls)] = caught
        assert_each_control_moves(number, function, controls)


def catching(caught: list[tuple[Any, dict[str, Any]]]) -> Any:
    """What stands in for `interact`: it notes the function and its controls."""

    def interact(**controls):
        def note(function):
            caught.append((function, controls))
            return function

        return note

    return interact


def assert_each_control_moves(number: str, function: Any, controls: dict[str, Any]) -> None:
    """With the others as the lesson sets them, or all low, or all high, each control must change what is shown."""
    both = {name: ends(control, number) for name, control in controls.items()}
    stand = {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty}
    for name, (low, high) in both.items():
        moved = []
        for others in (stand, *({other: pair[side] for other, pair in both.items()} for side in (0, 1))):
            moved.append(shown(function, others | {name: low}) != shown(function, others | {name: high}))
        assert any(moved), f"lesson {number}: {name} from {low} to {high} changes nothing that is shown"


def test_a_slider_that_moves_nothing_is_noticed():
    with pytest.raises(AssertionError, match="back from 0 to 7 changes nothing"):
        assert_each_control_moves("09", lambda back=1, ahead=1: ahead, {"ahead": (0, 7), "back": (0, 7)})
