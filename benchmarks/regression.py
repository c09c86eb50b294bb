"""Kernel regression of lesson 01 against statsmodels: 2,000 queries from 2,000 points, with the same bandwidth."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from measure import Row, compare
from threadpoolctl import threadpool_limits

from attnlib import NadarayaWatson

with warnings.catch_warnings(action="ignore"):
    from statsmodels.nonparametric.kernel_regression import KernelReg

SIZE, BANDWIDTH = 2000, 0.3


def rows() -> Iterator[list[Row]]:
    """The rows of the table: a local mean, and a local line."""
    rng = np.random.default_rng(0)
    x, queries = rng.uniform(0, 10, size=(2, SIZE, 1))
    y = np.sin(x[:, 0]) + rng.normal(size=SIZE)
    for degree, reg_type, name, target in [(0, "lc", "mean", 8.0), (1, "ll", "line", 6.0)]:
        theirs = KernelReg(y, x, "c", bw=[BANDWIDTH], reg_type=reg_type)
        ours = NadarayaWatson(bandwidth=BANDWIDTH, degree=degree).fit(x, y)
        np.testing.assert_allclose(ours.predict(queries), theirs.fit(queries)[0], atol=1e-8)
        peer = "`statsmodels` `KernelReg.fit`"
        case = f"kernel regression, local {name}, 2,000 × 2,000"
        runs = {peer: lambda theirs=theirs: theirs.fit(queries)}
        with threadpool_limits(1):  # two of NumPy's threads on one core wait for each other
            yield compare(case, lambda ours=ours: ours.predict(queries), runs, {peer: target})
