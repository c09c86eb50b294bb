r"""Shapes to draw: a ring, a square, a cross, a bar. At sixteen pixels a circle and a square can hardly be told apart.

Places are measured in pixels from the upper left corner of the picture, first to the right, then down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.checks import check_floats, check_number, check_one_of, check_positive

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray as Array

__all__ = ["SHAPES", "draw", "extent"]

SHAPES = ("ring", "square", "cross", "bar")
FINE = 4  # points along each side of a pixel, by which the share of it that is covered is counted
THIN = 0.375  # half the thickness of a bar, as a share of half its length


def extent(shape: str, size: float) -> tuple[float, float]:
    """Width and height of the smallest box around a shape of ``size``, in pixels: a bar is flat, the others square.

    Raises ``TypeError`` or ``ValueError`` for another word, or a size that is not a positive number.

    >>> extent("ring", 8), extent("bar", 10)
    ((8, 8), (10, 3.75))
    """
    check_one_of("shape", shape, SHAPES)
    check_positive("size", size)
    return size, (THIN * size if shape == "bar" else size)


def draw(
    shape: str,
    colour: float | Sequence[float],
    size: float,
    at: tuple[float, float],
    canvas: Float[Array, "height width *channels"],
) -> Float[Array, "height width *channels"]:
    r"""A copy of ``canvas`` with a shape upon it: its box is ``size`` pixels wide, its middle is ``at`` (right, down).

    .. math:: \text{drawn} = (1 - c)\, \text{canvas} + c\, \text{colour}

    Here :math:`c` is the share of a pixel that the shape covers, counted at 4 by 4 points. ``colour`` is one number,
    or as many as the canvas has channels. What lies outside the canvas is not drawn.

    Raises ``TypeError`` or ``ValueError`` for another word, a size that is not a positive number, a place that is not
    two numbers, or a canvas that is not a NumPy array of floats ``(height, width)`` or ``(height, width, channels)``.

    >>> draw("square", 1.0, 2, (2, 1), np.zeros((3, 4)))
    array([[0., 1., 1., 0.],
           [0., 1., 1., 0.],
           [0., 0., 0., 0.]])
    """
    check_one_of("shape", shape, SHAPES)
    check_positive("size", size)
    check_floats(canvas=canvas)
    if not isinstance(canvas, np.ndarray) or canvas.ndim not in (2, 3):
        raise ValueError(f"canvas must have shape (height, width) or (height, width, channels); got {canvas.shape}")
    if len(at) != 2:
        raise ValueError(f"at must be two numbers, to the right and down; got {len(at)}")
    if np.shape(colour) not in ((), canvas.shape[2:]):
        raise ValueError(f"colour must be one number or {canvas.shape[2:]}; got shape {np.shape(colour)}")
    right, down = (check_number("at", place) for place in at)
    height, width = canvas.shape[:2]
    fine = (np.arange(FINE) + 0.5) / FINE
    u = ((np.arange(width)[:, None] + fine).ravel() - right) / (size / 2)
    v = ((np.arange(height)[:, None] + fine).ravel() - down) / (size / 2)
    inside = _inside(shape, u[None, :], v[:, None])  # (height * FINE, width * FINE)
    covered = inside.reshape(height, FINE, width, FINE).mean(axis=(1, 3))
    covered = covered if canvas.ndim == 2 else covered[..., None]
    return ((1 - covered) * canvas + covered * np.asarray(colour)).astype(canvas.dtype)


def _inside(shape: str, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether a point is in the shape; the shape's width goes from -1 to 1."""
    box = (abs(u) < 1) & (abs(v) < 1)
    if shape == "square":
        return box
    if shape == "ring":
        return (u**2 + v**2 < 1) & (u**2 + v**2 > 0.3)
    if shape == "cross":
        return box & ((abs(u) < THIN) | (abs(v) < THIN))
    return box & (abs(v) < THIN)
