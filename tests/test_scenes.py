"""Scenes: the shapes are where the boxes say, do not touch, and come from the seed alone."""

from __future__ import annotations

import pytest
import torch

from attnlib.data.scenes import NOTHING, scenes
from attnlib.data.shapes import SHAPES, extent


def test_the_ink_is_in_the_boxes_and_nowhere_else():
    some = scenes(50, noise=0.0, seed=3)
    for picture, kinds, boxes in zip(*some, strict=True):
        places = (torch.arange(24) + 0.5) / 24
        inside = torch.zeros(24, 24, dtype=torch.bool)
        for kind, (right, down, width, height) in zip(kinds, boxes, strict=True):
            half = (width + 1 / 24) / 2, (height + 1 / 24) / 2  # a pixel at the edge is covered in part
            here = ((places - right).abs() < half[0]) & ((places - down).abs() < half[1])[:, None]
            assert kind == NOTHING or picture[0][here].max() > 0.5
            assert kind < NOTHING or not (right, down, width, height) > (0, 0, 0, 0)
            inside |= here & (kind < NOTHING)
        assert picture[0][~inside].abs().max() == 0
        assert picture.max() <= 1  # no two shapes lie upon each other


def test_each_number_and_each_kind_comes_equally_often():
    some = scenes(2000, seed=1)
    counts = (some.kinds < NOTHING).sum(1)
    assert torch.bincount(counts, minlength=4)[1:].sub(2000 / 3).abs().max() < 80
    kinds = torch.bincount(some.kinds.flatten(), minlength=5)[:4]
    assert kinds.sub(1000).abs().max() < 120
    assert (some.kinds[:, 0] < NOTHING).all()


def test_boxes_are_those_of_their_shapes_and_lie_inside():
    some = scenes(200, seed=2)
    real = some.kinds < NOTHING
    low, high = some.boxes[..., :2] - some.boxes[..., 2:] / 2, some.boxes[..., :2] + some.boxes[..., 2:] / 2
    assert low[real].min() >= 0
    assert high[real].max() <= 1
    for kind, box in zip(some.kinds[real], some.boxes[real], strict=True):
        assert box[2:].tolist() == pytest.approx(extent(SHAPES[kind], float(box[2])))


def test_the_seed_decides():
    assert all(torch.equal(a, b) for a, b in zip(scenes(3, seed=7), scenes(3, seed=7), strict=True))
    assert not torch.equal(scenes(3, seed=7).pictures, scenes(3, seed=(7, 0)).pictures)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": (2, 1)}, "n must be two numbers"),
        ({"n": (0, 0)}, "n must be two numbers"),
        ({"size": 8}, "size must be at least 10 pixels"),
        ({"n": (9, 9), "size": 12}, "n must leave room for"),
        ({"noise": -1.0}, "noise must be finite and not negative"),
        ({"batch": 0}, "batch must be at least 1"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        scenes(**{"batch": 2, "seed": 0} | options)
