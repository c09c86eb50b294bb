"""`make mutants` finds what an exercise lets through, and takes no equal answer for a mistake."""

import importlib.util
import zlib
from pathlib import Path

import numpy as np

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import registry

SPEC = importlib.util.spec_from_file_location("mutants", Path(__file__).parent.parent / "tools" / "mutants.py")
mutants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)


def _scaled(x):
    return np.sum(x * 2, axis=0)


def exercise(monkeypatch, cases):
    """One that stands as if it were of lesson 03."""
    registry.load("03")
    monkeypatch.setattr(_scaled, "__module__", __name__)
    return Exercise(id="03.1", title="Twice", reference=_scaled, cases=cases, hints=("", "", ""), misconceptions=[])


def random(rng):
    return [(rng.normal(size=(3, 2)),)]


def constant_for_check(rng):
    """Rows and columns with equal sums, but only from the generator that `check` has."""
    x = rng.normal(size=(2, 2))
    its_own = np.random.default_rng(zlib.crc32(b"03.1")).normal(size=(2, 2))
    return [(np.full((2, 2), 2.0) if np.array_equal(x, its_own) else x,)]


def test_every_change_is_rejected_where_the_cases_show_it(monkeypatch):
    assert mutants.examined(exercise(monkeypatch, random)) == (4, 0, [])


def test_what_check_takes_for_right_is_named(monkeypatch):
    total, same, survivors = mutants.examined(exercise(monkeypatch, constant_for_check))
    assert (total, same, survivors) == (4, 0, ["0  →  1"])


def test_what_is_equal_on_all_inputs_is_no_mistake(monkeypatch):
    _, same, survivors = mutants.examined(exercise(monkeypatch, lambda rng: [(np.zeros((2, 2)),)]))
    assert survivors == []
    assert same > 0


def test_a_changed_helper_is_a_change():
    found = list(mutants.mutants(registry.find("10.5")))
    assert any("1000" in what for what, _ in found)
