"""Moving figures: every page is current, whole and small, and every control moves what it shows, by the keyboard."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from ipywidgets import FloatLogSlider, interactive
from PIL import Image

from publish.lessons import sliders
from publish.lessons.build import COURSE
from publish.lessons.cells import Cell
from publish.lessons.lessons import LessonError, sources
from publish.lessons.sliders import needed, slider

MOVING = [
    pytest.param(one, id=f"{one.lesson.number}-{one.cell.moving['name']}") for one in sliders.moving_figures(COURSE)
]
TRAINED = {"13"}  # whose pictures need a minute of training: seen by the build, moved by test_notebook_sliders


@pytest.fixture(autouse=True)
def own_precision():
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)  # lessons that train in double precision set another


def data_of(moving):
    text = moving.path.read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_there_is_one_wherever_moving_teaches_more():
    numbers = [param.values[0].lesson.number for param in MOVING]
    assert numbers == ["01", "02", "03", "06", "08", "09", "13", "16"]
    assert sliders.orphans(COURSE) == []


@pytest.mark.parametrize("moving", MOVING)
def test_a_page_is_current_small_and_needs_nothing_else(moving):
    assert moving.is_current(), "make build"
    text = moving.path.read_text("utf-8")
    assert len(text) < 2_500_000
    assert "http" not in re.sub(r'id="data">.*?</script>', "", text, flags=re.DOTALL)
    data = data_of(moving)
    assert len(data["pictures"]) == len(data["alts"]) == np.prod([len(one["shown"]) for one in data["controls"]])
    assert all(alt.strip() for alt in data["alts"])


@pytest.mark.parametrize("moving", MOVING)
def test_a_static_figure_stands_beside_it(moving):
    section = []
    for cell in sources(moving.lesson)[: moving.place]:
        if cell.kind == "markdown" and re.match("##? ", cell.source):
            section = []
        section.append(cell)
    assert any(cell.figure for cell in section)


@pytest.mark.parametrize("moving", [param for param in MOVING if param.values[0].lesson.number not in TRAINED])
def test_the_pictures_are_what_the_lesson_draws(moving):
    data = data_of(moving)
    found = slider(sources(moving.lesson), moving.place)
    axes = sliders.steps(moving.cell, found)
    assert data["controls"] == [{key: axis[key] for key in ("label", "shown", "at", "choice")} for axis in axes]
    every = list(sliders.combinations(axes))
    for at in (0, len(every) // 2, len(every) - 1):
        picture = found.f(**every[at])
        assert picture.alt == data["alts"][at]
        stored = Image.open(io.BytesIO(base64.b64decode(data["pictures"][at]))).convert("L")
        drawn = Image.open(io.BytesIO(picture.png())).convert("L").resize(stored.size, Image.Resampling.LANCZOS)
        assert np.abs(np.asarray(stored, float) - np.asarray(drawn, float)).mean() < 2


def test_an_edit_in_the_code_that_it_needs_makes_a_page_stale():
    live = Cell("code", "@interact(h=(1, 3))\ndef turn(h=2):\n    return h * x", ("live",), moving={"name": "a"})
    cells = [Cell("code", "y = 1"), Cell("code", "x = y"), Cell("code", "z = 3"), live]
    assert needed(cells, 3) == ["y = 1", "x = y"]
    before = sliders.fingerprint(cells, 3)
    assert sliders.fingerprint([*cells[:2], Cell("code", "z = 4"), live], 3) == before
    assert sliders.fingerprint([Cell("code", "y = 2"), *cells[1:]], 3) != before


def test_controls_are_thinned_and_too_many_pictures_refused():
    cell = Cell("code", "", moving={"name": "a", "h": 3, "word": ["b"]})
    found = interactive(lambda h=9, word=1: None, h=(0, 10), word={"b": 1, "c": 2})
    axes = sliders.steps(cell, found)
    assert [axis["values"] for axis in axes] == [[0, 5, 10], [1]]
    assert [(axis["at"], axis["choice"]) for axis in axes] == [(2, False), (0, False)]
    found = interactive(lambda h, g: None, h=(1, 20), g=(1, 20))
    with pytest.raises(LessonError, match="moving: a makes 400 pictures"):
        sliders.steps(Cell("code", "", moving={"name": "a"}), found)


def test_every_kind_of_control_has_its_positions():
    def turn(flag=True, said="a", share=0.5, place=1000, power=150.0, word="c", number=4):
        pass

    controls = {"flag": True, "said": "a", "share": (0.0, 1.0, 0.25), "place": (900, 1100, 100)}
    controls |= {"power": FloatLogSlider(150, min=1, max=3, step=1), "word": ["b", "c"], "number": [2, 4]}
    axes = sliders.steps(Cell("code", "", moving={"name": "a", "place": 2, "share": 2}), interactive(turn, **controls))
    assert [(axis["values"], axis["shown"][axis["at"]]) for axis in axes] == [
        ([False, True], "True"),
        (["a"], "a"),
        ([0.0, 1.0], "0"),
        ([900, 1100], "900"),
        ([10, 100, 1000], "100"),
        (["b", "c"], "c"),
        ([2, 4], "4"),
    ]
    assert all(type(one) is int for one in axes[3]["values"])


@pytest.fixture(scope="module")
def tab(browser):
    return browser.new_page(viewport={"width": 390, "height": 700})


@pytest.mark.parametrize("moving", MOVING)
def test_the_keyboard_alone_moves_every_control(moving, tab):
    picture = tab.locator("img")
    for number, control in enumerate(data_of(moving)["controls"], 1):
        tab.goto(moving.path.as_uri())  # the others as they stand at first
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing is cut on a telephone
        for _ in range(number):
            tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.closest('label').innerText").startswith(control["label"])
        seen = {picture.get_attribute("src")}
        for key in ["ArrowLeft"] * len(control["shown"]) + ["ArrowRight"] * len(control["shown"]):
            tab.keyboard.press(key)
            seen.add(picture.get_attribute("src"))
        assert len(seen) > 1, control["label"]
        assert picture.get_attribute("alt")
