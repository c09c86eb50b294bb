"""Every slider of every lesson is moved, and what it shows must change: one that moves nothing teaches nothing."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
from ipywidgets import FloatLogSlider, SelectionSlider, Text, Widget, interactive

import attnlib.training
from attnlib.plotting import Picture
from publish.lessons.build import COURSE
from publish.lessons.lessons import sources
from publish.lessons.sliders import controls_of, names, slider

LESSONS = {lesson.number: lesson for lesson in COURSE.lessons()}
SLIDERS = [
    (number, place) for number in LESSONS for place, cell in enumerate(sources(LESSONS[number])) if cell.has_slider
]
# For a control that takes words.
OTHER_WORDS = {
    "05": "notebook",
    "06": "the old savings bank",
    "11": "9 8 7",
    "12": "17",
    "16": "If the file does not",
}


def ends(control: Widget, number: str) -> tuple[Any, Any]:
    """Two values of a control that lie far from each other."""
    if isinstance(control, Text):
        return control.value, OTHER_WORDS[number]
    if isinstance(control, FloatLogSlider):
        return control.base**control.min, control.base**control.max
    if isinstance(control, SelectionSlider):
        return control.options[0], control.options[-1]
    return control.min, control.max


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


@pytest.mark.parametrize(("number", "place"), SLIDERS)
def test_every_slider_moves_what_it_shows(number, place, hasty):
    assert_each_control_moves(number, slider(sources(LESSONS[number]), place))


def assert_each_control_moves(number: str, found: interactive) -> None:
    """With the others as the lesson sets them, or all low, or all high, each control must change what is shown."""
    controls = controls_of(found)
    both = {name: ends(control, number) for name, control in controls.items()}
    start = {name: control.value for name, control in controls.items()}
    stands = (start, *({name: pair[side] for name, pair in both.items()} for side in (0, 1)))
    for name, (low, high) in both.items():
        moves = (shown(found.f, at | {name: low}) != shown(found.f, at | {name: high}) for at in stands)
        assert any(moves), f"lesson {number}: {name} from {low} to {high} changes nothing that is shown"


def test_a_slider_that_moves_nothing_is_noticed():
    with pytest.raises(AssertionError, match="back from 0 to 7 changes nothing"):
        assert_each_control_moves("09", interactive(lambda back=1, ahead=1: ahead, ahead=(0, 7), back=(0, 7)))


@pytest.mark.parametrize(
    ("source", "reads", "binds"),
    [
        ("y = x", {"x"}, {"y"}),
        ("x = 1\ny = x", set(), {"x", "y"}),
        ("x += 1", {"x"}, {"x"}),
        ("import a.b as c, d", set(), {"c", "d"}),
        ("def f(z):\n    return x + z", {"x"}, {"f"}),
        ("def f():\n    return x\nx = 1", set(), {"f", "x"}),
        ("class A:\n    z = x\n    w = z", {"x"}, {"A"}),
        ("[i for i in x]", {"x"}, set()),
        ("for i in x:\n    pass", {"x"}, {"i"}),
        ("(lambda z: z + x)(1)", {"x"}, set()),
        ("with x as y: pass", {"x"}, {"y"}),
        ("del x", {"x"}, set()),
        ("this is no Python", set(), set()),
    ],
)
def test_what_a_cell_reads_and_binds(source, reads, binds):
    internal = {"__name__"}  # a class asks for its module's
    assert (names(source)[0] - internal, names(source)[1]) == (reads, binds)
