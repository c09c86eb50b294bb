"""The real data of the course. They come with packages that are installed anyway, so nothing is downloaded."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.needs import needs

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray as Array

__all__ = ["digits", "engel"]


def engel() -> tuple[Float[Array, 235], Float[Array, 235]]:
    """Income and food expenditure of 235 Belgian working-class households, in francs a year.

    Sorted by income. Source: Engel (1857), after Koenker and Bassett (1982); shipped with ``statsmodels``.

    >>> income, food = engel()
    >>> income.shape, float(income[-1].round())
    ((235,), 4958.0)
    """
    needs("statsmodels", extra="course")
    table = files("statsmodels").joinpath("datasets/engel/engel.csv").read_text(encoding="utf-8")
    income, food = np.loadtxt(table.splitlines(), delimiter=",", skiprows=1, unpack=True)
    order = np.argsort(income, kind="stable")
    return income[order], food[order]


def digits() -> tuple[Float[Array, "1797 8 8"], Int[Array, 1797]]:
    """1,797 handwritten digits of 8 by 8 pixels, from 0 (paper) to 1 (ink), and what they are.

    Source: Alpaydin and Kaynak (1998), UCI Machine Learning Repository; shipped with ``scikit-learn``.

    >>> images, labels = digits()
    >>> images.shape, labels[:5]
    ((1797, 8, 8), array([0, 1, 2, 3, 4]))
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.images / 16, bunch.target
