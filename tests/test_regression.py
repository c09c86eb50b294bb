"""Kernel regression: against statsmodels, against brute force, and with scikit-learn's manners."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import warnings
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import get_args
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from attnlib import NadarayaWatson, NadarayaWatsonClassifier, data, kernels
from attnlib.regression import nadaraya_watson
from attnlib.regression.bandwidth_search import search_bandwidth
from attnlib.regression.blocks import in_tiles
from attnlib.regression.leave_one_out import squared_error_and_slope
from attnlib.regression.local_line import local_lines

with warnings.catch_warnings(action="ignore"):
    from statsmodels.nonparametric.kernel_regression import KernelReg


def problem(n=120, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X.sum(axis=1) + 0.2 * rng.normal(size=n)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("degree", "reg_type"), [(0, "lc"), (1, "ll")])
@pytest.mark.parametrize("bandwidth", [[0.2], [1.0], [5.0], [0.5, 0.9], [0.8, 0.6, 1.1]])
def test_agrees_with_statsmodels(degree, reg_type, bandwidth):
    X, y = problem(d=len(bandwidth))
    queries = problem(n=50, d=len(bandwidth), seed=1)[0]
    theirs = KernelReg(y, X, "c" * len(bandwidth), bw=bandwidth, reg_type=reg_type).fit(queries)[0]
    ours = NadarayaWatson(bandwidth=bandwidth, degree=degree).fit(X, y).predict(queries)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("degree", "reg_type"), [(0, "lc"), (1, "ll")])
@pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 0), (2, 2), (2, 8)])
def test_the_search_is_at_least_as_good_as_that_of_statsmodels(degree, reg_type, d, seed):
    X, y = problem(n=33, d=d, seed=seed)
    with np.errstate(all="ignore"):
        theirs = abs(KernelReg(y, X, "c" * d, bw="cv_ls", reg_type=reg_type).bw)  # some come out negative
    ours = NadarayaWatson(degree=degree).fit(X, y)
    assert ours.loo_error() <= NadarayaWatson(bandwidth=theirs, degree=degree).fit(X, y).loo_error() * (1 + 1e-9)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", kernels.KERNELS)
@pytest.mark.parametrize("empty", ["nan", "nearest", "mean"])
@pytest.mark.parametrize("bandwidth", [0.02, 0.3, 2.0])
@pytest.mark.filterwarnings("ignore:.*queries have no data")
def test_leave_one_out_in_closed_form_is_that_of_refits(degree, kernel, empty, bandwidth):
    X, y = problem(n=40)
    X[0] = 8.0  # one point far from all others, whose weight on itself is one
    model = NadarayaWatson(kernel, bandwidth=bandwidth, degree=degree, empty=empty).fit(X, y)
    refitted = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        refitted.append(y[i] - clone(model).fit(X[others], y[others]).predict(X[[i]])[0])
    np.testing.assert_allclose(model.loo_residuals(), refitted, rtol=1e-5, atol=1e-6)


def test_the_search_asks_for_no_bandwidth_twice(monkeypatch):
    X, y = problem(n=40, d=2)
    model, asked = NadarayaWatson(), []
    error = model._loo_error
    monkeypatch.setattr(model, "_loo_error", lambda h: (asked.append(tuple(h)), error(h))[1])
    model.fit(X, y)
    assert len(asked) == len(set(asked)) > 100


def test_residuals_of_lines_are_found_by_moments_where_these_keep_their_digits(monkeypatch):
    X, y = problem(n=200, d=2)
    model, straightened, straighten = NadarayaWatson(bandwidth=0.5, degree=1).fit(X, y), [], nadaraya_watson.straighten
    monkeypatch.setattr(
        nadaraya_watson, "straighten", lambda a, q, k: (straightened.append(len(q)), straighten(a, q, k))[1]
    )
    quick = model.loo_residuals()
    assert sum(straightened) < 20
    monkeypatch.setattr(
        nadaraya_watson,
        "lines_with_leverage",
        lambda a, q, k, y: (np.zeros_like(y), np.zeros(len(y)), np.zeros(len(y), dtype=bool)),
    )
    np.testing.assert_allclose(quick, model.loo_residuals(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", kernels.KERNELS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30), d=st.integers(1, 4))
@settings(deadline=None, max_examples=25)
def test_weights_are_those_of_the_kernel(kernel, seed, n, d):
    rng = np.random.default_rng(seed)
    X, y, queries, h = (
        rng.normal(size=(n, d)),
        rng.normal(size=(n, 2)),
        rng.normal(size=(n, d)),
        rng.uniform(0.8, 3, size=d),
    )
    distance = np.sqrt((((queries[:, None] - X) / h) ** 2).sum(axis=-1))
    say = kernels.KERNELS[kernel](distance)
    queries, say = queries[say.sum(axis=1) > 1e-6], say[say.sum(axis=1) > 1e-6]
    if len(queries):
        model = NadarayaWatson(kernel, bandwidth=h).fit(X, y)
        np.testing.assert_allclose(model.weights(queries), say / say.sum(axis=1, keepdims=True), atol=1e-9)
        np.testing.assert_allclose(model.predict(queries), model.weights(queries) @ y, atol=1e-12)


def test_a_local_line_repeats_any_plane_and_a_local_mean_does_not():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 2))
    plane = 3 + X @ [2.0, -1.0]
    corner = [[0.0, 0.0]]
    straight = NadarayaWatson(bandwidth=0.2, degree=1).fit(X, plane)
    assert straight.predict(corner)[0] == pytest.approx(3, abs=1e-9)
    assert abs(NadarayaWatson(bandwidth=0.2).fit(X, plane).predict(corner)[0] - 3) > 0.05


@pytest.mark.parametrize(("empty", "want"), [("nan", np.nan), ("nearest", 7.0), ("mean", 4.0)])
def test_an_empty_neighbourhood_is_named_and_answered_as_asked(empty, want):
    model = NadarayaWatson("box", bandwidth=1.0, empty=empty).fit([[0.0], [1.0], [9.0]], [2.0, 3.0, 7.0])
    with pytest.warns(UserWarning, match="2 of 3 queries have no data within one bandwidth: 0, 2"):
        got = model.predict([[6.0], [0.5], [30.0]])
    np.testing.assert_allclose(got, [want, 2.5, want])
    with pytest.warns(UserWarning, match="queries"):
        weights = model.weights([[6.0]])
    np.testing.assert_allclose(weights @ [2.0, 3.0, 7.0], [want])


def test_far_from_all_data_the_gaussian_answers_with_the_nearest():
    model = NadarayaWatson(bandwidth=0.01).fit([[0.0], [1.0]], [2.0, 3.0])
    np.testing.assert_allclose(model.predict([[50.0], [-50.0]]), [3.0, 2.0])


def test_the_search_finds_engels_bandwidth_despite_the_lonely_rich_household():
    income, food = data.engel()
    model = NadarayaWatson().fit(income[:, None], food)
    assert model.loo_error() == pytest.approx(119.523, abs=1e-3)
    around = model.bandwidth_ * np.array([[0.9], [1.1]])
    assert all(NadarayaWatson(bandwidth=h).fit(income[:, None], food).loo_error() > model.loo_error() for h in around)


def test_lives_in_pipelines_and_searches():
    X, y = problem(d=2)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), NadarayaWatson(bandwidth=1.0)),
        {"nadarayawatson__bandwidth": [0.01, 0.3, 30.0], "nadarayawatson__degree": [0, 1]},
    )
    assert search.fit(X, y).best_params_["nadarayawatson__bandwidth"] == 0.3
    assert search.best_score_ > 0.8


@parametrize_with_checks(
    [NadarayaWatson(bandwidth=1.0), NadarayaWatson(bandwidth=1.0, degree=1), NadarayaWatsonClassifier(bandwidth=1.0)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


WEIGHTED = {
    "mean": dict(bandwidth=0.4),
    "line": dict(bandwidth=0.8, degree=1),
    "box": dict(kernel="box", bandwidth=0.6, empty="nearest"),
    "triangle": dict(kernel="triangle", bandwidth=0.7, empty="mean"),
    "narrow": dict(bandwidth=0.01),
    "narrow line": dict(bandwidth=0.05, degree=1),
    "searched": dict(),
    "searched line": dict(degree=1),
    "searched triangle": dict(kernel="triangle", empty="mean"),
}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.filterwarnings("ignore:.*queries have no data")
def test_a_weight_of_two_is_a_row_given_twice_and_of_zero_a_row_left_out(name, d):
    if d == 3 and name == "searched triangle":
        pytest.skip("the simplex takes long with three features")
    if d > 1 and name == "narrow line":
        pytest.skip("too few points near each query for a plane that would be the same twice")
    X, y = problem(n=30, d=d)
    X[0] = 7.0  # lonely
    y += 0.5 * np.square(X).sum(axis=1)  # no direction is straight, where any bandwidth would do
    counts = np.random.default_rng(2).permutation([0, 1, 2, 3, 1, 1] * 5)
    by_weight = NadarayaWatson(**WEIGHTED[name]).fit(X, y, sample_weight=counts)
    twice = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    searched = NadarayaWatson(**WEIGHTED[name]).fit(*twice).bandwidth_
    np.testing.assert_allclose(by_weight.bandwidth_, searched, rtol=1e-3)  # as near as a search comes on any processor
    given_twice = NadarayaWatson(**{**WEIGHTED[name], "bandwidth": by_weight.bandwidth_}).fit(*twice)
    queries = np.concatenate([problem(n=40, d=d, seed=3)[0], [[5.0] * d]])
    kept = counts[counts > 0]
    exact = dict(rtol=1e-5, atol=1e-6) if "searched" in name else dict(rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_weight.predict(queries), given_twice.predict(queries), **exact)
    np.testing.assert_allclose(np.repeat(by_weight.loo_residuals(), kept), given_twice.loo_residuals(), **exact)
    assert by_weight.loo_error() == pytest.approx(given_twice.loo_error(), rel=1e-4, nan_ok=True)
    np.testing.assert_allclose(by_weight.standard_error(queries), given_twice.standard_error(queries), **exact)
    for ours, theirs in zip(by_weight.predict_interval(queries), given_twice.predict_interval(queries), strict=True):
        np.testing.assert_allclose(ours, theirs, **exact)
    np.testing.assert_allclose(by_weight.weights(queries) @ by_weight.y_, by_weight.predict(queries), atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1])
def test_the_slope_of_weighted_rows_is_that_of_rows_given_twice(degree):
    X, y = problem(n=30, d=3)
    counts = np.array([1, 2, 3] * 10)
    ours = squared_error_and_slope(X, y[:, None], [0.5, 0.6, 0.9], degree, counts.astype(float))
    X, y = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    theirs = squared_error_and_slope(X, y[:, None], [0.5, 0.6, 0.9], degree)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-9)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-8)


def test_of_a_row_that_counts_less_than_one_all_is_left_out():
    X, y = problem(n=30)
    weight = np.random.default_rng(1).uniform(0.1, 1.0, size=30)
    model = NadarayaWatson(bandwidth=0.4).fit(X, y, weight)
    for i in (0, 7):
        others = np.arange(30) != i
        [fit] = NadarayaWatson(bandwidth=0.4).fit(X[others], y[others], weight[others]).predict(X[[i]])
        assert model.loo_residuals()[i] == pytest.approx(y[i] - fit)


def test_a_heavy_key_far_away_is_not_left_out():
    X = np.concatenate([np.zeros((1, 1)), np.full((1, 1), 12.0), np.full((200, 1), 99.0)])
    weight = np.array([1.0, 1e40, *[1.0] * 200])
    model = NadarayaWatson(bandwidth=1.0).fit(X, np.array([0.0, 1.0, *[5.0] * 200]), weight)
    assert model.predict([[0.0]])[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0, -1.0, 2.0], "sample_weight must be finite and not negative; got -1.0 for row 1"),
        ([1.0, 2.0, np.nan], "sample_weight must be finite and not negative; got nan for row 2"),
        ([1.0, 2.0], r"sample_weight must be one number for each row, of shape \(3,\); got shape \(2,\)"),
        ([0.0, 0.0, 3.0], "sample_weight must be positive for at least 2 of 3 rows; got zero for 2"),
        ("heavy", "sample_weight must be numbers, one for each row; got 'heavy'"),
        ([1.0, 2.0, 3j], "sample_weight must be numbers, one for each row; got"),
    ],
)
def test_bad_weights_are_named(weight, words):
    with pytest.raises(ValueError, match=words):
        NadarayaWatson().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], sample_weight=weight)


def test_the_classifier_weighs_its_rows():
    X, y = labelled()
    counts = np.random.default_rng(2).integers(0, 4, size=len(y))
    counts[y == "middle"] = 0
    ours = NadarayaWatsonClassifier().fit(X, y, sample_weight=counts)
    theirs = NadarayaWatsonClassifier().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert ours.classes_.tolist() == theirs.classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_no_check_is_skipped_where_scipy_takes_other_arrays():
    code = """
from sklearn.utils.estimator_checks import check_estimator
from attnlib import NadarayaWatson, NadarayaWatsonClassifier
found = [one for kind in (NadarayaWatson, NadarayaWatsonClassifier) for one in check_estimator(kind(bandwidth=1.0))]
print(len(found) > 100, {one["status"] for one in found})
"""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}  # read when scipy is loaded
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert said.stdout == "True {'passed'}\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which Linux has")
def test_many_queries_stay_within_half_a_gibibyte():
    code = """
import numpy as np
from attnlib import NadarayaWatson
rng = np.random.default_rng(0)
model = NadarayaWatson(bandwidth=0.1).fit(rng.normal(size=(20_000, 1)), rng.normal(size=20_000))
model.predict(rng.normal(size=(20_000, 1)))  # all weights at once would be 3,000 MiB
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert peak < 500 * 2**10, f"{peak / 2**10:.0f} MiB"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which Linux has")
def test_memory_grows_by_little_more_than_what_comes_in_and_goes_out():
    code = """
import numpy as np
from attnlib import NadarayaWatson

def peak():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))

rng = np.random.default_rng(0)
model = NadarayaWatson(bandwidth=0.1).fit(rng.normal(size=(250, 1)), rng.normal(size=250))
model.predict(rng.normal(size=(10_000, 1)))
before = peak()
model.predict(rng.normal(size=(1_000_000, 1)))
print((peak() - before) / 2**10)
"""
    grown = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 120, f"{grown:.0f} MiB for a million queries"  # all weights would be 1,900


@pytest.mark.parametrize("kernel", kernels.KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:.*queries have no data")
def test_keys_out_of_reach_change_no_digit(kernel, degree, d):
    X, y = problem(n=700, d=d)
    queries = np.concatenate([problem(n=400, d=d, seed=1)[0], [[30.0] * d]])
    model = NadarayaWatson(kernel, bandwidth=0.05 * d, degree=degree, empty="nearest").fit(X, y)
    weights = model.weights(queries)
    scale = np.maximum(1, abs(weights).sum(axis=1))
    np.testing.assert_allclose(
        model.predict(queries) / scale, weights @ y / scale, rtol=0, atol=1e-8 if degree else 1e-14
    )


@pytest.mark.parametrize("d", [1, 3])
def test_what_a_gaussian_leaves_out_weighs_less_than_rounding(d):
    q, k = problem(n=50, d=d)[0] / 0.02, problem(n=3000, d=d, seed=1)[0] / 0.02
    for query in q:
        kept = []
        in_tiles(lambda rows, near, kept=kept: kept.append(near), query[None], k, gaussian=True)
        logs = -np.square(query - k).sum(axis=1) / 2
        weights = np.exp(logs - logs.max())
        assert np.delete(weights, kept[0]).sum() < 1e-16 * weights.sum()


def test_most_keys_are_out_of_reach_where_the_bandwidth_is_small():
    q, seen = problem(n=2000)[0] / 0.02, []
    in_tiles(lambda rows, near: seen.append((len(rows), near)), q, q, gaussian=True)
    assert sum(rows for rows, _ in seen) == 2000
    assert np.mean([2000 if isinstance(near, slice) else len(near) for _, near in seen]) < 500


@pytest.mark.filterwarnings("ignore:the search for 3 bandwidths")  # by the simplex, on a slow machine
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("d", [3, 6])
def test_the_slope_is_that_of_the_error_and_leads_at_least_as_low_as_the_simplex(d, degree):
    X, y = problem(n=60, d=d)
    X[:, 2] *= 100
    error = NadarayaWatson(bandwidth=1.0, degree=degree).fit(X, y)._loo_error
    h = np.where(np.arange(d) == 2, 150.0, 1.5)
    squared, slope = squared_error_and_slope(X, y[:, None], h, degree)
    assert squared == pytest.approx(error(h) ** 2)
    for c in range(d):
        step = np.exp(1e-5 * (np.arange(d) == c))
        difference = (error(h * step) ** 2 - error(h / step) ** 2) / 2e-5
        assert slope[c] == pytest.approx(difference, rel=1e-5)
    found = NadarayaWatson(degree=degree).fit(X, y)
    assert found.bandwidth_.shape == (d,)
    if d == 3:
        assert found.loo_error() <= error(search_bandwidth(X, error)) * (1 + 1e-5)  # it goes beyond the grid


@pytest.mark.parametrize(("degree", "n"), [(0, 200), (1, 56)])
def test_ten_features_take_seconds_and_few_evaluations(monkeypatch, degree, n):
    X, y = problem(n=n, d=10)
    seen = []
    counted = lambda *a: (seen.append(1), squared_error_and_slope(*a))[1]  # noqa: E731
    monkeypatch.setattr("attnlib.regression.nadaraya_watson.squared_error_and_slope", counted)
    NadarayaWatson(degree=degree).fit(X, y)
    assert 50 < len(seen) < 1000


@pytest.mark.parametrize(("d", "degree"), [(1, 0), (3, 0), (1, 1)])
def test_a_long_search_says_so_before(monkeypatch, d, degree):
    X, y = problem(n=15, d=d)
    clock = mock.Mock(perf_counter=iter([0.0, 9.0, 9.001, 20.0]).__next__)  # slow to start, and held up once
    monkeypatch.setattr("attnlib.regression.bandwidth_search.time", clock)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the search")
        NadarayaWatson(degree=degree).fit(X, y)  # quick, and silent
    clock.perf_counter = count(step=1.0).__next__
    bars = []
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **options: bars.append(mock.Mock(**options)) or bars[-1])
    monkeypatch.setenv("TQDM_DISABLE", "0")
    with pytest.warns(
        UserWarning, match=rf"the search for {d} bandwidths? will take about \d+ s.*leaves it out"
    ) as said:
        NadarayaWatson(degree=degree).fit(X, y)
    (ours,) = [warning for warning in said if "the search" in str(warning.message)]
    assert ours.filename == __file__
    assert bars[0].update.call_count > 30
    bars[0].close.assert_called_once()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    with pytest.warns(UserWarning, match="the search"):
        NadarayaWatson(degree=degree).fit(X, y)
    assert len(bars) == 1


@pytest.mark.parametrize(
    ("n", "d", "options"),
    [
        (100, 1, {}),
        (100, 2, {}),
        (60, 3, {}),
        (150, 10, {}),
        (60, 5, {"degree": 1}),
        (40, 4, {"kernel": "epanechnikov", "empty": "nearest"}),
    ],
)
def test_a_forecast_is_right_to_a_factor_of_two_and_the_bar_ends_within_its_total(monkeypatch, n, d, options):
    X, y = problem(n=n, d=d)
    model = NadarayaWatson(**options)
    seen, bars, error, slope = [], [], model._loo_error, squared_error_and_slope
    monkeypatch.setattr(model, "_loo_error", lambda h: (seen.append(h), error(h))[1])
    monkeypatch.setattr(nadaraya_watson, "squared_error_and_slope", lambda *a: (seen.append(a[2]), slope(*a))[1])
    # each evaluation takes a minute, and those that mask points out three times as long
    clock = mock.Mock(perf_counter=lambda: sum(180 if np.all(h < 0.05) else 60 for h in seen))
    monkeypatch.setattr("attnlib.regression.bandwidth_search.time", clock)
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **options: bars.append(mock.Mock(**options)) or bars[-1])
    monkeypatch.setenv("TQDM_DISABLE", "0")
    with pytest.warns(UserWarning, match="the search") as said:
        model.fit(X, y)
    promised = float(re.search(r"about (\d+) s", str(said[0].message))[1])
    assert 0.5 < promised / clock.perf_counter() < 2
    assert bars[0].initial + bars[0].update.call_count <= bars[0].total


@pytest.mark.parametrize("degree", [0, 1])
def test_standard_errors_are_those_of_a_bootstrap(degree):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(400, 1))
    y = np.sin(X[:, 0]) + (0.1 + 0.2 * X[:, 0]) * rng.normal(size=400)  # noise that grows
    queries, model = np.array([[0.5], [1.5], [2.5], [3.5]]), NadarayaWatson(bandwidth=0.2, degree=degree)
    drawn = [rng.integers(400, size=400) for _ in range(500)]
    moved = np.std([clone(model).fit(X[i], y[i]).predict(queries) for i in drawn], axis=0)
    np.testing.assert_allclose(model.fit(X, y).standard_error(queries), moved, rtol=0.2)
    assert moved[-1] > 2 * moved[0]


def test_intervals_hold_as_many_new_observations_as_they_say():
    rng = np.random.default_rng(1)
    X, new = rng.uniform(0, 4, size=(2, 3000, 2))
    y, seen = (np.sin(x[:, :1] + [0.0, 1.0]) + 0.2 * x[:, :1] * rng.normal(size=(3000, 2)) for x in (X, new))
    model = NadarayaWatson(bandwidth=0.3).fit(X, y)
    for level in (0.5, 0.95):
        low, high = model.predict_interval(new, level)
        assert low.shape == (3000, 2)
        np.testing.assert_allclose(((low < seen) & (seen < high)).mean(axis=0), level, atol=0.04)
    with pytest.raises(ValueError, match="level must be at least 0 and below 1; got 1"):
        model.predict_interval(new, 1)


def test_standard_errors_are_those_of_other_targets_at_the_same_places():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    wave, model = np.sin(6 * X[:, 0]), NadarayaWatson("epanechnikov", bandwidth=0.12)
    targets = wave[:, None] + 0.3 * rng.normal(size=(300, 500))  # as many worlds
    fitted, queries = model.fit(X, targets), np.array([[0.1], [0.3], [0.5], [0.7]])
    moved, said = fitted.predict(queries).std(axis=1), fitted.standard_error(queries)
    np.testing.assert_allclose(said.mean(axis=1), moved, rtol=0.2)


@pytest.mark.parametrize("kernel", kernels.KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("empty", ["nan", "nearest"])
@pytest.mark.filterwarnings("ignore:.*queries have no data")
def test_variances_are_sums_over_the_weights_and_need_only_those_within_reach(kernel, degree, empty, monkeypatch):
    X, y = problem(n=700)
    queries = np.concatenate([problem(n=400, seed=1)[0], [[30.0]]])
    model = NadarayaWatson(kernel, bandwidth=0.03, degree=degree, empty=empty).fit(X, np.stack([y, 2 * y], axis=1))
    weights, squares = abs(model.weights(queries)), model.loo_residuals() ** 2
    squares = np.where(np.isnan(squares), np.nanmean(squares, axis=0), squares)
    error = np.sqrt(weights**2 @ squares)
    half = NormalDist().inv_cdf(0.9) * np.sqrt(error**2 + weights @ squares / weights.sum(axis=1, keepdims=True))
    model.standard_error(queries[:1])  # the residuals, which need all rows
    seen, attend = [], nadaraya_watson.attention
    monkeypatch.setattr(
        nadaraya_watson, "attention", lambda q, k, *a, **o: (seen.append(len(k)), attend(q, k, *a, **o))[1]
    )
    np.testing.assert_allclose(model.standard_error(queries), error, rtol=1e-9)
    low, high = model.predict_interval(queries, 0.8)
    assert np.mean(seen) < 0.8 * len(X)
    np.testing.assert_allclose(high - low, 2 * half, rtol=1e-9)


def test_residuals_are_found_once_for_a_fit_and_its_settings(monkeypatch):
    X, y = problem(n=50)
    model, found, find = NadarayaWatson(bandwidth=0.5).fit(X, y), [], nadaraya_watson.loo_residuals
    stored = pickle.dumps(model)
    monkeypatch.setattr(nadaraya_watson, "loo_residuals", lambda *a: (found.append(1), find(*a))[1])
    first = model.standard_error(X)
    model.predict_interval(X)
    assert len(found) == 1
    assert pickle.dumps(model) == stored
    np.testing.assert_array_equal(pickle.loads(stored).standard_error(X), first)
    for change in (
        lambda: model.fit(X, 2 * y),
        lambda: model.set_params(degree=1),
        lambda: model.bandwidth_.fill(0.9),
    ):
        change()
        fresh = NadarayaWatson(bandwidth=model.bandwidth_, degree=model.degree).fit(X, 2 * y)
        np.testing.assert_array_equal(model.standard_error(X), fresh.standard_error(X))


def test_a_lonely_points_noise_is_that_of_the_others():
    X, y = problem(n=50)
    X[0] = 9.0
    model = NadarayaWatson("box", bandwidth=0.5).fit(X, y)
    assert np.isfinite(model.standard_error([[9.0]])).all()


def labelled(n=150):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, np.array(["low", "middle", "high"])[np.digitize(X.sum(axis=1), [-1, 1])]


def test_the_classifier_is_the_weighted_share_of_each_label():
    X, y = labelled()
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, y)
    queries = np.random.default_rng(1).normal(size=(20, 2))
    squares = np.square((queries[:, None] - X) / 0.4).sum(axis=2)
    weights = np.exp(-squares / 2) / np.exp(-squares / 2).sum(axis=1, keepdims=True)
    wanted = np.stack([weights[:, y == label].sum(axis=1) for label in ("high", "low", "middle")], axis=1)
    np.testing.assert_allclose(model.predict_proba(queries), wanted, atol=1e-12)
    assert model.predict(queries).tolist() == [model.classes_[i] for i in wanted.argmax(axis=1)]
    assert NadarayaWatsonClassifier().fit(X, y).score(X, y) > 0.9


def test_logarithms_of_probabilities_keep_a_zero_as_minus_infinity():
    X, y = labelled()
    model = NadarayaWatsonClassifier("box", bandwidth=0.7).fit(X, y)
    shares = model.predict_proba(X)
    with warnings.catch_warnings(action="error"):
        got = model.predict_log_proba(X)
    np.testing.assert_array_equal(got == -np.inf, shares == 0)
    np.testing.assert_allclose(np.exp(got), shares, atol=1e-15)
    assert (shares == 0).any()


def test_type_checkers_know_the_kernels_there_are():
    assert get_args(kernels.Kernel) == tuple(kernels.KERNELS)
    for kind in (NadarayaWatson, NadarayaWatsonClassifier):
        assert kind.__init__.__annotations__["kernel"] == "Kernel"


def test_the_classifiers_search_is_that_of_the_brier_score():
    X, y = labelled(60)
    found = NadarayaWatsonClassifier().fit(X, y).regression_
    assert found.loo_error() <= NadarayaWatson(bandwidth=[0.5, 0.5]).fit(X, found.y_).loo_error()
    search = GridSearchCV(NadarayaWatsonClassifier(), {"bandwidth": [0.3, 50.0]}).fit(X, y)
    assert search.best_params_["bandwidth"] == 0.3


def test_a_label_that_is_out_of_reach():
    X, y = [[0.0], [0.5], [9.0]], [1, 1, 2]
    for empty, wanted in {"mean": [2 / 3, 1 / 3], "nearest": [0, 1]}.items():
        model = NadarayaWatsonClassifier("box", bandwidth=1.0, empty=empty).fit(X, y)
        with pytest.warns(UserWarning, match="1 of 1 queries have no data"):
            np.testing.assert_allclose(model.predict_proba([[5.0]]), [wanted])
    with pytest.raises(ValueError, match="empty must be one of 'mean', 'nearest'; got 'nan'"):
        NadarayaWatsonClassifier(bandwidth=1.0, empty="nan").fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        NadarayaWatsonClassifier(bandwidth=1.0).fit(X, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("offset", [0, 1e6])
@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 1.0, 1e3, 1e7, [0.1, 1e4]])
def test_a_local_line_keeps_its_digits_at_any_bandwidth_and_place(bandwidth, offset):
    d = np.size(bandwidth)
    rng = np.random.default_rng(0)
    X, queries = offset + rng.uniform(size=(40, d)), offset + rng.uniform(size=(6, d))

    def plane(x):
        return (x - offset) @ np.arange(1.0, d + 1)

    got = NadarayaWatson(bandwidth=bandwidth, degree=1).fit(X, plane(X)).predict(queries)
    np.testing.assert_allclose(got, plane(queries), atol=1e-8)


@pytest.mark.parametrize("kernel", kernels.KERNELS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60), d=st.integers(1, 3), wide=st.floats(-2, 1))
@settings(deadline=None, max_examples=25)
def test_a_line_by_moments_is_the_line_by_weights(kernel, seed, n, d, wide):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), 100 + rng.normal(size=(n, 2))
    X[: n // 3] = X[0] + 1e-9 * rng.normal(size=(n // 3, d))  # neighbours without a spread to speak of
    queries = np.concatenate([rng.normal(size=(20, d)), X[:3], 30 * rng.normal(size=(3, d))])
    model = NadarayaWatson(kernel, bandwidth=10**wide, degree=1, empty="mean").fit(X, y)
    with warnings.catch_warnings(action="ignore"):
        got, weights = model.predict(queries), model.weights(queries)
    scale = np.maximum(1, abs(weights).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(got / scale, weights @ y / scale, rtol=0, atol=1e-8)


def test_a_line_keeps_its_digits_far_outside_of_the_data():
    X = np.random.default_rng(0).normal(size=(300, 1))
    queries = np.linspace(-60, 60, 401)[:, None]
    got = NadarayaWatson(bandwidth=2.0, degree=1).fit(X, 5 + 3 * X[:, 0]).predict(queries)
    np.testing.assert_allclose(got, 5 + 3 * queries[:, 0], rtol=0, atol=2e-11)


def test_nearly_all_lines_are_drawn_by_moments():
    X, y = problem(n=500)
    k = X / 0.1
    sure = local_lines(k, k, y[:, None], kernels.log_kernel("gaussian"))[1]
    assert sure.mean() > 0.97


def test_two_points_make_a_line_however_far_the_query():
    for h in (0.05, 0.1, 1, 1e3, 1e8):
        line = NadarayaWatson(bandwidth=h, degree=1).fit([[0.0], [1.0]], [0.0, 1.0])
        assert line.predict([[2.0]])[0] == pytest.approx(2)


def test_a_query_beyond_all_numbers_is_named_and_not_answered_with_zero():
    with pytest.warns(UserWarning, match="1 of 2 queries have no data within one bandwidth: 1"):
        got = NadarayaWatson(bandwidth=1.0).fit([[0.0], [1.0]], [1.0, 2.0]).predict([[0.5], [1e200]])
    assert np.isnan(got[1])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_bandwidth_beneath_all_numbers_is_named():
    model = NadarayaWatson(bandwidth=1e-320).fit([[0.0], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="bandwidth must not be so small that X / bandwidth is infinite; got 1e-320"):
        model.predict([[0.5]])


def test_left_out_points_without_neighbours_are_named():
    with pytest.warns(UserWarning, match="1 of 3 queries have no data within one bandwidth: 2"):
        assert np.isnan(NadarayaWatson("box", bandwidth=1.0).fit([[0.0], [1.0], [9.0]], [1.0, 2.0, 3.0]).loo_error())


X, Y = problem(n=10)
BAD = {
    "bandwidth zero": (dict(bandwidth=0.0), "bandwidth must be positive and finite; got 0.0"),
    "bandwidth negative": (dict(bandwidth=-2), "bandwidth must be positive and finite; got -2"),
    "bandwidth NaN": (dict(bandwidth=float("nan")), "bandwidth must be positive"),
    "bandwidth of two": (dict(bandwidth=[1.0, 2.0]), r"one for each of 1 features.*\[1.0, 2.0\]"),
    "bandwidth in words": (dict(bandwidth="silverman"), "or 'loo'; got 'silverman'"),
    "kernel": (dict(kernel="round"), "kernel must be one of 'gaussian', 'box'.*got 'round'"),
    "degree": (dict(degree=2), "degree must be one of 0, 1; got 2"),
    "empty": (dict(empty="zero"), "empty must be one of 'nan', 'nearest', 'mean'; got 'zero'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named(name):
    parameters, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        NadarayaWatson(**parameters).fit(X, Y)


@pytest.mark.parametrize(("bad", "words"), [(np.nan, "X contains NaN"), (np.inf, "X contains infinity")])
def test_bad_data_are_named(bad, words):
    broken = X.copy()
    broken[3] = bad
    with pytest.raises(ValueError, match=words):
        NadarayaWatson(bandwidth=1.0).fit(broken, Y)
    with pytest.raises(ValueError, match="1 features"):
        NadarayaWatson(bandwidth=1.0).fit(X, Y).predict(np.zeros((2, 3)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e300])
@pytest.mark.parametrize("degree", [0, 1])
def test_the_search_takes_data_of_any_size(scale, degree):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    plain, scaled = (NadarayaWatson(degree=degree).fit(x, y) for x in (X, X * scale))
    np.testing.assert_allclose(scaled.bandwidth_ / scale, plain.bandwidth_, rtol=1e-3)
    np.testing.assert_allclose(scaled.predict(X * scale), plain.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bandwidth", [True, [True], np.array([True])])
def test_a_truth_is_no_bandwidth(bandwidth):
    with pytest.raises(ValueError, match=r"bandwidth must be a positive number, .*; got .*True"):
        NadarayaWatson(bandwidth=bandwidth).fit([[0.0], [1.0]], [0.0, 1.0])
