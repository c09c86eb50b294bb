"""The search for a bandwidth: minimise an error of positive numbers, one for each feature, on a log scale."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar

if TYPE_CHECKING:
    from numpy import ndarray as Array

    Error = Callable[[Array], float]
    Slope = Callable[[Array], tuple[float, Array]]

__all__ = ["check_bandwidth", "search_bandwidth"]

STEPS = 41
LONG = 5.0  # seconds, from which on a search says how long it will take
MULTIPLES = (0.5, 1.0, 2.0, 4.0, 8.0)  # of the rule of thumb, from which the slope is followed


def search_bandwidth(
    X: Array, error: Error, slope: Slope | None = None, *, per_start: int = 20, weight: Array | None = None
) -> Array:
    """The bandwidth, one for each column of ``X``, at which ``error`` is least.

    A grid from a thousandth of the data's range to a thousand times it finds the valley, since such errors have
    several; a local search then finds its floor. With three features or more, ``slope`` is followed from several
    starts, if there is one: it gives the squared error and its derivatives by the logarithms. Else each feature in
    turn goes through the grid while the others stand still, and Nelder and Mead's simplex finishes.

    Warns when it will take long, and shows its progress then, where tqdm is installed. How many evaluations the local
    search needs is known to about a factor of two; ``per_start`` is what following the slope takes.
    """
    spread = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    grid = np.geomspace(1e-3, 1e3, STEPS)
    d = X.shape[1]
    follows = slope is not None and d > 2
    local = 15 if d == 1 else per_start * (1 + len(MULTIPLES)) if follows else 2 * STEPS * d + 80 * d**2
    with _announced(error, STEPS + local, d) as counted:
        # The widest first: the narrowest take two to three times as long, since points are left out by masks there,
        # and would promise too much.
        errors = [*map(counted, spread * grid[::-1, None])]
        best = spread * grid[np.argmin(errors[::-1])]
        if d == 1:
            return _floor_of_valley(best, grid[1] / grid[0], counted)
        rule = _rule_of_thumb(X, spread, weight)
        if follows:
            starts = [best, *(rule * times for times in MULTIPLES)]
            return min((_downhill(start, spread, grid, counted.also(slope)) for start in starts), key=counted)
        return min(_from_many_starts(rule, best, spread, grid, counted), key=counted)


class _Counted:
    """An error that says at each evaluation how far the search has come."""

    def __init__(self, error: Error, expected: int, d: int) -> None:
        self.error = error
        self.expected = expected
        self.d = d
        self.seen = 0
        self.times = []
        self.bar = None
        self.known: dict[bytes, float] = {}

    def __call__(self, h: Array) -> float:
        asked = h.tobytes()
        if asked not in self.known:
            self._count()
            self.known[asked] = self.error(h)
        return self.known[asked]

    def also(self, slope: Slope) -> Slope:
        def counted(h: Array) -> tuple[float, Array]:
            self._count()
            return slope(h)

        return counted

    def _count(self) -> None:
        self.seen += 1
        if self.bar is not None:
            self.bar.total = max(self.bar.total, self.seen)
            self.bar.update()
        if self.seen <= 4:
            self.times.append(time.perf_counter())
        if self.seen == 4:  # the quickest of three, since the first warms up and any may be held up
            self._announce(min(np.diff(self.times)) * self.expected)

    def _announce(self, seconds: float) -> None:
        if seconds < LONG:
            return
        warnings.warn(
            f"the search for {self.d} bandwidth{'s' * (self.d > 1)} will take about {seconds:.0f} s. bandwidth= with "
            f"{'a number' if self.d == 1 else 'numbers'} leaves it out, and a part of the data makes it shorter",
            stacklevel=6,
        )
        if find_spec("tqdm") and os.environ.get("TQDM_DISABLE", "0") in ("", "0"):  # a notebook's bar does not look
            from tqdm.auto import tqdm

            self.bar = tqdm(total=self.expected, initial=self.seen, leave=False, desc="searching a bandwidth")


@contextmanager
def _announced(error: Error, expected: int, d: int) -> Iterator[_Counted]:
    counted = _Counted(error, expected, d)
    try:
        yield counted
    finally:
        if counted.bar is not None:
            counted.bar.close()


def _rule_of_thumb(X: Array, spread: Array, weight: Array | None) -> Array:
    """Silverman (1986), equation 4.14, for a density, which is about what a regression needs."""
    n, deviation = len(X), X.std(axis=0)
    if weight is not None:
        n = weight.sum()
        deviation = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
    width = 1.06 * deviation * n ** (-1 / (4 + X.shape[1]))
    return np.where(width > 0, width, spread)


def _downhill(start: Array, spread: Array, grid: Array, slope: Slope) -> Array:
    """The floor of the valley below ``start``, within the grid, along the derivatives by the logarithms."""
    bounds = np.log(spread)[:, None] + np.log(grid[[0, -1]])
    found = minimize(
        lambda log_h: slope(np.exp(log_h)),
        np.clip(np.log(start), *bounds.T),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 100, "ftol": 1e-10},
    )
    return np.exp(found.x)


def _from_many_starts(rule: Array, best: Array, spread: Array, grid: Array, error: Error) -> Iterator[Array]:
    starts = [_one_by_one(best, spread, grid, error), _one_by_one(rule, spread, grid, error), rule]
    for start in starts:
        if np.isfinite(error(start)):
            yield _simplex(start, error, to=np.log, back=_exp)
    if np.isfinite(error(rule)):  # on the plain scale the simplex takes other steps, and other valleys
        yield _simplex(rule, error, to=np.array, back=np.abs)


def _floor_of_valley(best: Array, step: float, error: Error) -> Array:
    around = np.log(best[0]) + np.array([-1, 1]) * np.log(step)
    with np.errstate(invalid="ignore"):  # the error is infinite where a bandwidth is ruled out
        found = minimize_scalar(
            lambda log_h: error(np.exp([log_h])), bounds=around, method="bounded", options={"xatol": 1e-8}
        )
    return np.exp([found.x]) if found.fun < error(best) else best


def _one_by_one(best: Array, spread: Array, grid: Array, error: Error) -> Array:
    for _ in range(2):
        for c in range(len(best)):
            others = np.arange(len(best)) != c
            candidates = [np.where(others, best, spread * step) for step in grid]
            best = min([best, *candidates], key=error)
    return best


def _simplex(start: Array, error: Error, to: Callable[[Array], Array], back: Callable[[Array], Array]) -> Array:
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


def check_bandwidth(bandwidth: float | Sequence[float], n_features: int) -> Array:
    """One number for each feature; raise unless ``bandwidth`` is one or as many, all positive."""
    try:
        h = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        h = np.array(np.nan)
    is_number = not isinstance(bandwidth, str) and not any(isinstance(b, bool | np.bool_) for b in np.ravel(bandwidth))
    if not is_number or h.shape not in ((), (1,), (n_features,)):
        raise ValueError(
            f"bandwidth must be a positive number, one for each of {n_features} features, or 'loo'; got {bandwidth!r}"
        )
    if not np.all(np.isfinite(h) & (h > 0)):
        raise ValueError(f"bandwidth must be positive and finite; got {bandwidth!r}")
    return np.broadcast_to(h, n_features).copy()
