"""What counts as the same output: numbers, kinds, tensors, several parts, typed-in values."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnlib.course.grading import Exercise, Misconception, grade
from attnlib.course.grading.diagnosis import describe
from attnlib.course.grading.values import Rules, agree, read

HINTS = ("one", "two", "three")


def value(right, *, cases=None, tolerance=(1e-6, 1e-8), **wrong):
    """An exercise that asks for a value, with named wrong values."""
    known = [Misconception(name, lambda v=v: v, f"words for {name}") for name, v in wrong.items()]
    return Exercise(
        id="03.5",
        title="Find it",
        reference=lambda: right,
        hints=HINTS,
        misconceptions=known,
        tolerance=tolerance,
    )


def returns(right, case=(0.5,), **more):
    """An exercise whose reference returns `right` whatever comes."""
    more = {"misconceptions": [], **more}
    return Exercise(id="04.1", title="", reference=lambda x: right, cases=lambda rng: [case], hints=HINTS, **more)


def test_nan_is_right_only_where_the_reference_has_it():
    exercise = returns(np.array([np.nan, 1.0]))
    assert grade(exercise, lambda x: [float("nan"), 1.0]).kind == "right"
    assert grade(exercise, lambda x: [1.0, float("nan")]).kind == "wrong"
    assert grade(exercise, lambda x: [0.0, 1.0]).kind == "wrong"
    assert grade(returns(np.array([np.inf])), lambda x: [-np.inf]).kind == "wrong"


def test_kinds_of_numbers():
    assert "integers" in grade(returns(np.ones(2)), lambda x: [1, 1]).message
    assert grade(returns(np.array([True])), lambda x: [1]).kind == "wrong"
    assert grade(returns(3), lambda x: 3.0).kind == "right"
    assert grade(returns(3.0), lambda x: 3).message.endswith("3 came, expected a float. The numbers are right.")
    assert grade(returns(["a", "b"]), lambda x: ["a", "B"]).kind == "wrong"
    assert grade(returns(["a", "b"]), lambda x: [1.0, 2.0]).kind == "wrong"
    assert grade(returns(np.zeros(0, int)), lambda x: []).kind == "right"
    assert "opposite" in grade(returns(np.array([True, False])), lambda x: ~np.array([True, False])).message


class Pair(NamedTuple):
    out: np.ndarray
    weights: np.ndarray


def test_several_outputs():
    exercise = returns(Pair(np.ones(2), np.eye(2)))
    assert grade(exercise, lambda x: (np.ones(2), np.eye(2))).kind == "right"
    assert "Part 2 (weights): " in grade(exercise, lambda x: (np.ones(2), np.ones((2, 2)))).message
    assert "a tuple or list of 2 parts was expected" in grade(exercise, lambda x: np.ones(2)).message
    named = returns({"q": 1.0, "k": 2.0})
    assert grade(named, lambda x: {"k": 2.0, "q": 1.0}).kind == "right"
    assert "are named 'q', 'v', expected 'q', 'k'" in grade(named, lambda x: {"q": 1.0, "v": 2.0}).message
    assert "Entry 'k': Yours is 3, expected 2." in grade(named, lambda x: {"q": 1.0, "k": 3.0}).message


def test_values():
    exercise = value(12.5, tolerance=(0.01, 0), grams=12500.0)
    assert grade(exercise, 12.45).message == "03.5 right."
    assert grade(exercise, np.float32(12.5)).kind == "right"
    assert grade(exercise, 12).message == "03.5 not yet. 12 is not it, though not far off."
    assert grade(exercise, 6.0).message == "03.5 not yet. 6 is less than half of what it should be."
    assert grade(exercise, 30).message == "03.5 not yet. 30 is more than twice what it should be."
    assert grade(exercise, -12.5).message == "03.5 not yet. -12.5 is not it, and its sign is wrong."
    assert grade(exercise, 12500).misconception == "grams"
    assert grade(exercise, None).kind == grade(exercise, ...).kind == "not attempted"
    assert grade(exercise, "12.5").message == "03.5 not yet. The string '12.5' came, expected a number."
    assert grade(exercise, [12.5]).message == (
        "03.5 not yet. An array of shape (1,) came, a single number was expected."
    )


def test_values_do_not_give_the_answer_away():
    assert grade(value(3), 3.0).kind == "right"
    assert grade(value("b", a="a"), " B ").kind == "right"
    assert grade(value("b", a="a"), "A").misconception == "a"
    assert grade(value("b"), "c").message == "03.5 not yet. 'c' is not it."
    message = grade(value(np.array([1.0, 7.25])), [1.0, 2.0]).message
    assert message == "03.5 not yet. 1 of 2 entries differs. At [1], 2 is less than half of what it should be."


def test_adapt_picks_the_part_that_counts():
    exercise = returns({"w": 1.0, "rest": 2.0}, adapt=lambda out: out["w"])
    assert grade(exercise, lambda x: {"w": 1.0}).kind == "right"
    assert "A list (TypeError: list indices" in grade(exercise, lambda x: [1.0]).message
    assert "None came" in grade(exercise, lambda x: print()).message


def test_compare_replaces_the_comparison():
    def same_set(expected, got):
        return set(expected) == set(got) or (len(got) == 2 and "One of them is wrong.")

    exercise = returns([1, 2], compare=same_set, misconceptions=[Misconception("m", lambda x: [8, 9], "mmm")])
    assert grade(exercise, lambda x: [2, 1]).kind == "right"
    assert grade(exercise, lambda x: [9, 8]).misconception == "m"
    assert grade(exercise, lambda x: [1, 3]).message.endswith("One of them is wrong.")
    assert grade(exercise, lambda x: 5).kind == "wrong"


def test_tensors_in_and_out():
    torch = pytest.importorskip("torch")
    case = (torch.arange(6.0).reshape(2, 3).requires_grad_(),)
    exercise = Exercise(
        id="05.1",
        title="",
        reference=lambda x: x * 2,
        cases=lambda rng: [case],
        hints=HINTS,
        misconceptions=[Misconception("square", lambda x: x**2, "You squared it.")],
    )
    assert grade(exercise, lambda x: x + x).kind == "right"
    assert grade(exercise, lambda x: x * x).misconception == "square"
    assert "A torch tensor is expected" in grade(exercise, lambda x: (2 * x).detach().numpy()).message
    assert "x of shape (2, 3)" in grade(exercise, lambda x: x).message
    assert "Every entry is 0.5 times" in grade(exercise, lambda x: x.bfloat16()).message
    assert grade(exercise, lambda x: x.data.mul_(2) * 1).kind == "changed inputs"


def test_the_first_difference_is_shown_with_digits_that_tell_it_apart():
    verdict = grade(returns(np.array([1.0, 2.0, 3.0])), lambda x: np.array([1.0, 2.00001, 3.0]))
    assert "At [1] yours is 2.00001, expected 2; 1 of 3 entries differs." in verdict.message


def test_a_wrong_reference_is_an_error_for_its_author():
    with pytest.raises(RuntimeError, match=r"reference of 04\.1 returned"):
        grade(returns({1, 2}), lambda x: 1)
    with pytest.raises(ValueError, match=r"id: got '1\.2'"):
        Exercise(id="1.2", title="", reference=max, hints=HINTS, misconceptions=[])
    with pytest.raises(ValueError, match="three strings"):
        Exercise(id="01.2", title="", reference=max, hints="abc", misconceptions=[])


def test_lists_may_be_changed_too():
    exercise = returns(1.0, ([1, 2],))
    assert grade(exercise, lambda x: x.append(3) or 1.0).kind == "changed inputs"


def test_a_built_in_function_may_be_the_answer():
    assert grade(returns(0.0, (0.0,)), np.sin).kind == "right"


def test_a_function_for_a_value():
    assert "asks for a value, and the function describe came" in grade(value(1.0), describe).message


SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
DTYPES = st.sampled_from([bool, int, float, np.float32, complex, "U2"])
ARRAYS = st.tuples(DTYPES, SHAPES).flatmap(lambda both: arrays.arrays(*both))
OUTPUTS = st.one_of(ARRAYS, st.none(), st.tuples(ARRAYS, ARRAYS), st.dictionaries(st.sampled_from("ab"), ARRAYS))


@settings(max_examples=200, deadline=None)
@given(OUTPUTS, OUTPUTS, st.booleans())
def test_any_two_outputs_agree_or_are_told_apart_in_words(expected, got, loose):
    wanted, came = read(expected), read(got)
    assert agree(wanted, read(expected), Rules(loose=loose))
    if not agree(wanted, came, Rules(loose=loose)):
        assert describe(wanted, came, Rules(loose=loose)).endswith((".", "?"))


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(float, SHAPES.filter(lambda shape: 0 not in shape), elements=st.floats(-9, 9)), st.data())
def test_one_entry_beyond_the_tolerance_is_enough_to_be_wrong(right, data):
    index = tuple(data.draw(st.integers(0, n - 1)) for n in right.shape)
    wrong = right.copy()
    wrong[index] += data.draw(st.sampled_from([-1, 1])) * 2 * (1e-6 * abs(right[index]) + 1e-8)
    assert not agree(read(right), read(wrong), Rules())
