"""The search for a bandwidth: minimise an error of positive numbers, one for each feature, on a log scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar

if TYPE_CHECKING:
    from numpy import ndarray as Array

STEPS = 41


def search_bandwidth(X: Array, error: Callable[[Array], float]) -> Array:
    """The bandwidth, one for each column of ``X``, at which ``error`` is least.

    A grid from less than the smallest gap between neighbours to far more than the whole range finds the valley, since
    such errors have several; a local search then finds its floor. With more features, each in turn goes
    through the grid while the others stand still, and Nelder and Mead's simplex finishes.
    """
    spread = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    grid = np.geomspace(1e-3, 1e3, STEPS)
    best = min((spread * step for step in grid), key=error)
    if X.shape[1] == 1:
        return _floor_of_valley(best, grid[1] / grid[0], error)
    rule_of_thumb = 1.06 * X.std(axis=0) * len(X) ** (-1 / (4 + X.shape[1]))
    starts = [_one_by_one(best, spread, grid, error), np.where(rule_of_thumb > 0, rule_of_thumb, spread)]
    found = [_simplex(start, error) for start in starts if np.isfinite(error(start))]
    return min(found, key=error)


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


def _simplex(start: Array, error: Callable[[Array], float]) -> Array:
    options = {"xatol": 1e-5, "fatol": 1e-9 * error(start), "maxiter": 200 * len(start)}
    found = minimize(
        lambda log_h: error(np.exp(np.clip(log_h, -50, 50))),
        np.log(start),
        method="Nelder-Mead",
        options=options,
    )
    return np.exp(np.clip(found.x, -50, 50))
