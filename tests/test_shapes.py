"""Drawn shapes: where they lie, what they cover, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.data.shapes import SHAPES, draw, extent

AREA = {"ring": np.pi / 4 * 0.7, "square": 1.0, "cross": 1 - 0.625**2, "bar": 0.375}  # of the box's width, squared


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_fills_its_box_and_nothing_else(shape):
    picture = draw(shape, 1.0, 8, (7, 9), np.zeros((16, 14)))
    width, height = extent(shape, 8)
    down, right = np.nonzero(picture)
    assert (right.min(), right.max() + 1) == (7 - width / 2, 7 + width / 2)
    assert (down.min(), down.max() + 1) == (np.floor(9 - height / 2), np.ceil(9 + height / 2))
    assert picture.sum() == pytest.approx(AREA[shape] * 64, rel=0.03)
    assert picture.min() == 0
    assert picture.max() == 1


def test_colours_mix_at_the_edge_and_the_canvas_stays_as_it_was():
    canvas = np.full((6, 6, 3), 0.5, dtype=np.float32)
    picture = draw("square", (1.0, 0.0, 0.5), 2, (2.5, 3), canvas)
    assert (canvas == 0.5).all()
    assert picture.dtype == np.float32
    assert picture[2:4, 2] == pytest.approx(np.array([[1, 0, 0.5]] * 2))
    assert picture[2:4, 1] == pytest.approx(np.array([[0.75, 0.25, 0.5]] * 2))  # half of it is covered


def test_what_lies_outside_is_not_drawn():
    assert (draw("ring", 1.0, 4, (-9, 3), np.zeros((5, 5))) == 0).all()
    assert draw("square", 1.0, 4, (0, 0), np.zeros((5, 5))).sum() == 4


def test_what_is_refused():
    canvas = np.zeros((4, 4))
    for error, words, arguments in (
        (ValueError, "shape must be one of 'ring'", ("circle", 1.0, 2, (1, 1), canvas)),
        (ValueError, "size must be positive", ("ring", 1.0, 0, (1, 1), canvas)),
        (ValueError, "at must be two numbers", ("ring", 1.0, 2, (1, 1, 1), canvas)),
        (TypeError, "at must be a number; got str", ("ring", 1.0, 2, ("1", "2"), canvas)),
        (ValueError, "colour must be one number", ("ring", (1, 0, 0), 2, (1, 1), canvas)),
        (TypeError, "canvas must hold floating-point", ("ring", 1.0, 2, (1, 1), np.zeros((4, 4), int))),
        (ValueError, "canvas must have shape", ("ring", 1.0, 2, (1, 1), np.zeros(4))),
    ):
        with pytest.raises(error, match=words):
            draw(*arguments)
