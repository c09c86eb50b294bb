"""What to answer a query that no data point is within reach of, and how to say so."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from attnlib.scores import squared_distance

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy import ndarray as Array

__all__ = ["fill", "warn_empty"]

ANSWER = {"nan": "NaN", "nearest": "that of the nearest point", "mean": "the mean of all targets"}


def fill(
    empty: str,
    q: Float[Array, "n_q d"],
    k: Float[Array, "n_k d"],
    mask: Bool[Array, "n_q n_k"] | bool = True,
    weight: Float[Array, " n_k"] | None = None,
) -> Float[Array, "n_q n_k"]:
    """Weights for queries without neighbours: NaN, the nearest point's, or those of the mean of all.

    >>> fill("nearest", np.array([[9.0]]), np.array([[0.0], [2.0]]))
    array([[0., 1.]])
    """
    if empty == "nan":
        return np.full((len(q), len(k)), np.nan)
    distance = squared_distance(q, k) if empty == "nearest" else np.zeros((len(q), len(k)))
    distance = np.where(mask, distance, np.inf)
    chosen = (distance == distance.min(axis=1, keepdims=True)) * (1 if weight is None else weight)
    return chosen / chosen.sum(axis=1, keepdims=True)


def warn_empty(empty: str, lonely: Bool[Array, " n_q"]) -> None:
    """Name the queries without neighbours, if there are any, to whoever called the method that found them."""
    found = np.flatnonzero(lonely)
    if not len(found):
        return
    named = ", ".join(map(str, found[:10])) + (", …" if len(found) > 10 else "")
    warnings.warn(
        f"{len(found)} of {len(lonely)} queries have no data within one bandwidth: {named}. "
        f"Their prediction is {ANSWER[empty]}. A larger bandwidth, kernel='gaussian' or another "
        "empty= would change that",
        stacklevel=3,
    )
