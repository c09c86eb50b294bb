"""Arrays of other libraries than NumPy and torch: those that know the array API and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import partial
from itertools import product

import array_api_strict as strict
import numpy as np
import pytest

from attnlib import attention, masks, scores

# As a cache of dtypes would that does not tell types apart.
pytestmark = pytest.mark.filterwarnings("error:You are comparing a array_api_strict dtype")

RNG = np.random.default_rng(0)
Q, K, V, W = (
    RNG.normal(size=(2, 6, 4)),
    RNG.normal(size=(2, 6, 4)),
    RNG.normal(size=(2, 6, 5)),
    RNG.normal(size=(4, 4)),
)
SOME, BIAS = RNG.random((6, 6)) < 0.6, RNG.normal(size=(6, 6))
SOME[2] = False  # a query with nothing left

SCORES = {
    "scaled_dot": lambda to: scores.scaled_dot,
    "gaussian": lambda to: scores.gaussian,
    "bilinear": lambda to: partial(scores.bilinear, w=to(W)),
    "additive": lambda to: partial(scores.additive, w_q=to(W), w_k=to(W), w=to(W[0])),
}
HIDING = {
    "nothing": lambda to: {},
    "causal": lambda to: {"causal": True},
    "mask": lambda to: {"mask": to(SOME)},
    "bias": lambda to: {"bias": to(BIAS)},
    "band": lambda to: {"mask": masks.Band(back=2, dilation=2, global_positions=[1])},
}
ROADS = {"weights": {}, "no weights": {"weights": False}, "block": {"weights": False, "block": 4}}
CASES = [case for case in product(SCORES, HIDING, ROADS) if case[1:] != ("band", "block")]


@pytest.mark.parametrize(("score", "hiding", "road"), CASES, ids=map(", ".join, CASES))
def test_strict_arrays_give_what_numpy_gives(score, hiding, road):
    def attended(to):
        return attention(to(Q), to(K), to(V), score=SCORES[score](to), **HIDING[hiding](to), **ROADS[road])

    got, want = attended(strict.asarray), attended(np.asarray)
    assert type(got.out) is type(strict.asarray(Q))
    np.testing.assert_allclose(np.asarray(got.out), want.out, atol=1e-12)
    if want.weights is not None:
        np.testing.assert_allclose(np.asarray(got.weights), want.weights, atol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] == "scaled_dot"], ids=", ".join)
@pytest.mark.parametrize("version", ["2022.12", "2023.12"])
def test_an_older_version_of_the_standard_is_enough(version, case):
    with warnings.catch_warnings(action="ignore"), strict.ArrayAPIStrictFlags(api_version=version):
        test_strict_arrays_give_what_numpy_gives(*case)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("hiding", "road"), [case[1:] for case in CASES if case[0] == "scaled_dot"])
def test_jax_gives_what_numpy_gives_in_its_own_precision(hiding, road):
    jax = pytest.importorskip("jax.numpy", reason="pip install jax")

    def attended(asarray):
        def to(x):
            return asarray(x if x.dtype == bool else x.astype(np.float32))

        return attention(to(Q), to(K), to(V), **HIDING[hiding](to), **ROADS[road]).out

    np.testing.assert_allclose(np.asarray(attended(jax.asarray)), attended(np.asarray), atol=1e-5)


class Vectors:
    """A library of somebody's own, which speaks no array API."""

    shape, ndim, dtype = (2, 3), 2, np.dtype("float64")


def test_what_is_no_array_and_what_does_not_fit_is_named():
    ours, theirs = np.eye(3), strict.asarray(np.eye(3))
    with pytest.raises(TypeError, match=r"k must be a NumPy array .* that speaks the array API; got Vectors"):
        attention(ours, Vectors(), ours)
    with pytest.raises(TypeError, match="q and v must come from one library; got array_api_strict and NumPy"):
        attention(theirs, theirs, ours)
    with pytest.raises(TypeError, match="mask must come from the library of the scores, array_api_strict; got NumPy"):
        attention(theirs, theirs, theirs, mask=ours > 0)
    with pytest.raises(ValueError, match="v holds NaN or infinity in 1 of 9 entries"):
        attention(theirs, theirs, strict.asarray(np.diag([1.0, 1.0, np.inf])))
    with pytest.raises(TypeError, match=r"q must hold floating-point numbers; got dtype array_api_strict\.int64"):
        attention(strict.asarray(np.eye(3, dtype=int)), theirs, theirs)


SKLEARN = """
from sklearn.utils.estimator_checks import check_estimator
from attnlib.regression import NadarayaWatson
for degree in (0, 1):
    for done in check_estimator(NadarayaWatson(bandwidth=1.0, degree=degree), on_skip=None, on_fail=None):
        if "array_api" in done["check_name"]:
            print(done["status"])
"""


def test_scikit_learns_own_check_of_the_array_api_runs_where_scipy_is_told_of_it():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SKLEARN],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},  # read when SciPy is imported, so not in this process
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["passed"] * 2
