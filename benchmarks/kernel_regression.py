"""How fast is `NadarayaWatson.predict` beside `KernelReg.fit` of statsmodels? Prints a table and writes it down.

Both predict 2,000 queries from 2,000 points with the same bandwidth, in turns, in one process. What counts is the
ratio of the two times in each turn; absolute times drift with whatever else the machine is doing.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tqdm import trange

from attnlib import NadarayaWatson

with warnings.catch_warnings(action="ignore"):
    from statsmodels.nonparametric.kernel_regression import KernelReg

TURNS, SIZE, BANDWIDTH = 15, 2000, 0.3
TARGET = 8.0


def seconds(run: Callable[[], object]) -> float:
    """The time that one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(degree: int, reg_type: str) -> np.ndarray:
    """Their time over ours, one ratio a turn."""
    rng = np.random.default_rng(0)
    x, queries = rng.uniform(0, 10, size=(2, SIZE, 1))
    y = np.sin(x[:, 0]) + rng.normal(size=SIZE)
    theirs = KernelReg(y, x, "c", bw=[BANDWIDTH], reg_type=reg_type)
    ours = NadarayaWatson(bandwidth=BANDWIDTH, degree=degree).fit(x, y)
    np.testing.assert_allclose(ours.predict(queries), theirs.fit(queries)[0], atol=1e-8)
    turns = trange(TURNS, desc=reg_type, leave=False)
    return np.array([seconds(lambda: theirs.fit(queries)) / seconds(lambda: ours.predict(queries)) for _ in turns])


def main() -> None:
    """Run both comparisons and write ``benchmarks/kernel_regression.md``."""
    rows = [
        "| prediction, 2,000 queries from 2,000 points | their time over ours: median | lower to upper quartile |",
        "| --- | ---: | ---: |",
    ]
    for name, degree, reg_type in [("local mean", 0, "lc"), ("local line", 1, "ll")]:
        low, middle, high = np.quantile(compare(degree, reg_type), [0.25, 0.5, 0.75])
        rows.append(
            f"| {name}, against `KernelReg(reg_type={reg_type!r}).fit` | {middle:.1f} | {low:.1f} to {high:.1f} |"
        )
    table = "\n".join(rows)
    head = "# Kernel regression against statsmodels\n\nMade by `make bench`. "
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    said = f"{head}{TURNS} turns on {machine}; the target for the local mean is {TARGET:.0f}.\n\n{table}\n"
    Path(__file__).with_suffix(".md").write_text(said, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
