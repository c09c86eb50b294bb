"""The search for a bandwidth: minimise an error of positive numbers, one for each feature, on a log scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar

if TYPE_CHECKING:
    from numpy import ndarray as Array

STEPS = 41


def search_bandwidth(X: Array, error: Callable[[Array], float]) -> Array:
    """The bandwidth, one for each column of ``X``, at which ``error`` is least.

    A grid from a thousandth of the data's range to a thousand times it finds the valley, since such errors have
    several; a local search then finds its floor. With more features, each in turn goes through the grid while
    the others stand still, and Nelder and Mead's simplex finishes, from several starts.
    """
    spread = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    grid = np.geomspace(1e-3, 1e3, STEPS)
    best = min((spread * step for step in grid), key=error)
    if X.shape[1] == 1:
        return _floor_of_valley(best, grid[1] / grid[0], error)
    return min(_from_many_starts(X, best, spread, grid, error), key=error)


def _from_many_starts(
    X: Array, best: Array, spread: Array, grid: Array, error: Callable[[Array], float]
) -> Iterator[Array]:
    rule_of_thumb = 1.06 * X.std(axis=0) * len(X) ** (-1 / (4 + X.shape[1]))
    rule_of_thumb = np.where(rule_of_thumb > 0, rule_of_thumb, spread)
    starts = [_one_by_one(best, spread, grid, error), _one_by_one(rule_of_thumb, spread, grid, error), rule_of_thumb]
    for start in starts:
        if np.isfinite(error(start)):
            yield _simplex(start, error, to=np.log, back=_exp)
    if np.isfinite(error(rule_of_thumb)):  # on the plain scale the simplex takes other steps, and other valleys
        yield _simplex(rule_of_thumb, error, to=np.array, back=np.abs)


def _floor_of_valley(best: Array, step: float, error: Callable[[Array], float]) -> Array:
    around = np.log(best[0]) + np.array([-1, 1]) * np.log(step)
    with np.errstate(invalid="ignore"):  # the error is infinite where a bandwidth is ruled out
        found = minimize_scalar(
            lambda log_h: error(np.exp([log_h])), bounds=around, method="bounded", options={"xatol": 1e-8}
        )
    return np.exp([found.x]) if found.fun < error(best) else best


def _one_by_one(best: Array, spread: Array, grid: Array, error: Callable[[Array], float]) -> Array:
    for _ in range(2):
        for c in range(len(best)):
            others = np.arange(len(best)) != c
            candidates = [np.where(others, best, spread * step) for step in grid]
            best = min([best, *candidates], key=error)
    return best


def _simplex(
    start: Array, error: Callable[[Array], float], to: Callable[[Array], Array], back: Callable[[Array], Array]
) -> Array:
    options = {"xatol": 1e-5, "fatol": 1e-9 * error(start), "maxiter": 200 * len(start)}

    def error_at(x: Array) -> float:
        h = back(x)
        return error(h) if np.all(h > 0) else np.inf

    with np.errstate(invalid="ignore"):
        h = back(minimize(error_at, to(start), method="Nelder-Mead", options=options).x)
    return h if np.all(h > 0) else start


def _exp(x: Array) -> Array:
    """The way back from a logarithm, within what a bandwidth can be."""
    return np.exp(np.clip(x, -50, 50))
