"""Prompts of examples, and the small Transformer that reads them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import functions, prompts
from attnlib.models import InContext

seeds = st.tuples(st.integers(0, 50), st.integers(0, 50))
MAKERS = {
    "hills": lambda seed: functions.hills(3, 5, seed=seed),
    "planes": lambda seed: functions.planes(3, 5, seed=seed),
    "smooth": lambda seed: functions.smooth(3, 5, seed=seed),
    "answered": lambda seed: prompts.answered(3, 5, prompts.rules(4, seed=1), seed=seed),
    "repeated": lambda seed: prompts.repeated(3, 12, (2, 5), seed=seed),
    "rules": lambda seed: [prompts.rules(3, seed=seed)],
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_seed_decides_and_nothing_else(make):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    data = make(7)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert all(torch.equal(a, b) for a, b in zip(make(7), data, strict=True))
    assert not torch.equal(make((7, 0))[0], data[0])


@given(seeds, st.integers(1, 4), st.sampled_from([(1,), (1, 3), (5,)]))
def test_on_a_hill_the_opposite_direction_has_the_opposite_climb(seed, batch, waves):
    data = functions.hills(batch, 40, waves=waves, noise=0.0, seed=seed)
    torch.testing.assert_close(data.x.norm(dim=-1), torch.ones(batch, 40, dtype=torch.float64))
    angle = torch.atan2(data.x[..., 1], data.x[..., 0])
    columns = [wave(w * angle) for w in waves for wave in (torch.cos, torch.sin)]
    fit = torch.linalg.lstsq(torch.stack(columns, dim=-1), data.truth)
    torch.testing.assert_close(torch.stack(columns, dim=-1) @ fit.solution, data.truth)
    assert torch.equal(data.y, data.truth)


def test_hills_have_variance_one_and_the_noise_that_was_asked_for():
    data = functions.hills(20_000, 2, noise=0.5, seed=0)
    assert data.truth.var().item() == pytest.approx(1, abs=0.05)
    assert (data.y - data.truth).std().item() == pytest.approx(0.5, abs=0.01)


@given(seeds, st.integers(1, 3), st.integers(1, 5), st.sampled_from([0.5, 3.0]))
def test_planes_go_through_the_origin(seed, batch, d, scale):
    data = functions.planes(batch, d + 3, d, scale=scale, seed=seed)
    assert data.x.shape == (batch, d + 3, d)
    w = torch.linalg.lstsq(data.x, data.truth).solution
    torch.testing.assert_close(data.x @ w, data.truth)


def test_inputs_of_planes_are_as_large_as_asked():
    assert functions.planes(5000, 3, scale=3.0, seed=0).x.std().item() == pytest.approx(3, rel=0.03)


def test_smooth_curves_have_the_covariance_of_their_length():
    data = functions.smooth(20_000, 2, length=0.4, noise=0.0, scale=1.0, seed=0)
    x, y = data.x[..., 0], data.truth[..., 0]
    assert x.abs().max() <= 1
    expected = torch.exp(-((x[:, 0] - x[:, 1]) ** 2) / (2 * 0.4**2))
    near = (x[:, 0] - x[:, 1]).abs() < 0.2
    for some in (near, ~near):
        assert (y[some, 0] * y[some, 1]).mean().item() == pytest.approx(expected[some].mean().item(), abs=0.06)


@given(seeds, st.integers(1, 4), st.integers(1, 6))
def test_answers_follow_the_rule(seed, batch, n):
    table = prompts.rules(3, n_questions=5, n_answers=4, seed=seed)
    data = prompts.answered(batch, n, table, seed=seed)
    for questions, answers, rule in zip(*data, strict=True):
        assert answers.tolist() == [table[rule, q].item() for q in questions]
    assert table.shape == (3, 5)
    assert table.max() < 4


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))
def test_a_repeat_begins_again_after_its_period(seed, batch, low, extra):
    data = prompts.repeated(batch, 15, (low, low + extra), n_symbols=9, seed=seed)
    for tokens, period in zip(*data, strict=True):
        assert low <= period <= low + extra
        assert torch.equal(tokens[period:], tokens[:-period])
        assert tokens.max() < 9


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: functions.hills(0, 3, seed=0), ValueError, "batch must be at least 1; got 0"),
        (lambda: functions.hills(1, 3, waves=(), seed=0), ValueError, r"waves must hold .*; got \(\)"),
        (lambda: functions.hills(1, 3, waves=(0, 1), seed=0), ValueError, "from 1 up"),
        (lambda: functions.hills(1, 3, noise=-1.0, seed=0), ValueError, "noise must be .*; got -1.0"),
        (lambda: functions.hills(1, 3, noise=math.nan, seed=0), ValueError, "noise must be .*; got nan"),
        (lambda: functions.planes(1, 3, 0, seed=0), ValueError, "d must be at least 1"),
        (lambda: functions.planes(1, 3, scale=0.0, seed=0), ValueError, "scale must be positive"),
        (lambda: functions.planes(1, 2.5, seed=0), TypeError, "n must be an integer"),
        (lambda: functions.smooth(1, 3, length=-1.0, seed=0), ValueError, "length must be positive"),
        (lambda: functions.smooth(1, 3, noise="loud", seed=0), TypeError, "noise must be a number; got str"),
        (lambda: prompts.rules(0, seed=0), ValueError, "n_rules must be at least 1"),
        (lambda: prompts.answered(1, 3, torch.zeros(4), seed=0), ValueError, "table must be"),
        (lambda: prompts.answered(1, 3, [[0, 1]], seed=0), ValueError, "table must be"),
        (lambda: prompts.repeated(1, 3, (4, 2), seed=0), ValueError, r"low not above high; got \(4, 2\)"),
        (lambda: prompts.repeated(1, 3, (0, 2), seed=0), ValueError, r"period\[0\] must be at least 1"),
        (lambda: InContext(0, 1), ValueError, "d_x must be at least 1"),
        (lambda: InContext(2, 1, n_layers=0), ValueError, "n_layers must be at least 1"),
        (lambda: InContext(2, 1, d_model=24, n_heads=5), ValueError, "n_heads must divide d_model = 24"),
        (lambda: InContext(2, 1)(torch.zeros(1, 3, 3), torch.zeros(1, 3, 1)), ValueError, r"x must have .* 2\)"),
        (lambda: InContext(2, 1)(torch.zeros(1, 3, 2), torch.zeros(1, 3)), ValueError, r"y must have .* 1\)"),
        (lambda: InContext(2, 1)(torch.zeros(1, 3, 2), torch.zeros(1, 4, 1)), ValueError, "one batch and length"),
        (lambda: InContext(2, 1)(torch.zeros(1, 3, 2).long(), torch.zeros(1, 3, 1)), TypeError, "floating-point"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_answer_knows_the_examples_before_it_and_not_its_own():
    torch.manual_seed(0)
    model = InContext(3, 2).double()
    x, y = torch.randn(1, 6, 3, dtype=torch.float64), torch.randn(1, 6, 2, dtype=torch.float64)
    x_gradient, y_gradient = torch.autograd.functional.jacobian(lambda *both: model(*both).sum((0, 2)), (x, y))
    reads_x, reads_y = (g[:, 0].abs().sum(-1) > 0 for g in (x_gradient, y_gradient))  # (answer, place)
    every = torch.ones(6, 6, dtype=torch.bool)
    assert torch.equal(reads_x, every.tril())
    assert torch.equal(reads_y, every.tril(-1))


def test_the_first_row_has_no_example_and_is_no_example_of_zeros():
    torch.manual_seed(0)
    model, rows = InContext(2, 1), []
    hook = model.embedding.register_forward_pre_hook(lambda module, args: rows.append(args[0]))
    x, y = torch.randn(1, 3, 2), torch.randn(1, 3, 1)
    model(x, y)
    hook.remove()
    before = torch.cat([x, y, torch.ones(1, 3, 1)], dim=-1)
    expected = torch.cat([torch.cat([torch.zeros(1, 1, 4), before[:, :-1]], dim=1), x], dim=-1)
    assert torch.equal(rows[0], expected)


def test_it_learns_what_one_example_can_tell():
    from attnlib.training import fit

    torch.manual_seed(0)
    model = InContext(1, 1, d_model=16, n_layers=1)

    def batch(step):
        slope = torch.from_numpy(np.random.default_rng(step).choice([-1.0, 1.0], (64, 1, 1))).float()
        return torch.ones(64, 3, 1), slope.expand(64, 3, 1)

    fit(model, batch, lambda model, data: ((model(*data) - data[1]) ** 2).mean(), steps=150, lr=1e-2, progress=False)
    x, y = batch(1000)
    error = ((model(x, y) - y) ** 2).mean((0, 2))
    assert error[0] > 0.8
    assert error[1:].max() < 0.05
