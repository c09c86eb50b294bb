"""Every kind of answer gets its one message."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from attnlib.course.grading import Exercise, Misconception, grade

HINTS = ("one", "two", "three")


def softmax(scores):
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def weights(q, k):
    """The reference."""
    return softmax(q @ k.T / np.sqrt(q.shape[-1]))


def unscaled(q, k):
    return softmax(q @ k.T)


def not_turned(q, k):
    return softmax(q @ k / np.sqrt(q.shape[-1]))


def make(rng):
    return [(rng.normal(size=(n, d)), rng.normal(size=(m, d))) for n, m, d in ((3, 3, 3), (2, 5, 4), (4, 3, 6))]


WEIGHTS = Exercise(
    id="02.3",
    title="Weights",
    reference=weights,
    cases=make,
    hints=HINTS,
    misconceptions=[
        Misconception("unscaled", unscaled, "You forgot to divide by the root of d."),
        Misconception("not turned", not_turned, "You wrote q @ k; write q @ k.T."),
    ],
)


def changed_by(change):
    return lambda q, k: change(weights(q, k))


def test_right_answers():
    assert grade(WEIGHTS, weights).message == "02.3 right. Your function agrees with ours on all 3 inputs."
    assert grade(WEIGHTS, changed_by(np.ndarray.tolist)).kind == "right"
    assert grade(WEIGHTS, changed_by(lambda w: w.astype(np.float32))).kind == "right"


def nothing(q, k):
    """Your code here."""
    ...


def filled_in_half(q, k):
    scores = ...
    return scores / 2


def left_open(q, k):
    raise NotImplementedError


@pytest.mark.parametrize("stub", [nothing, filled_in_half, left_open, lambda q, k: ..., None, ...])
def test_a_stub_is_not_attempted(stub):
    verdict = grade(WEIGHTS, stub)
    assert (verdict.kind, verdict.message) == ("not attempted", "02.3 not attempted yet.")


@pytest.mark.parametrize("one", WEIGHTS.misconceptions, ids=lambda one: one.name)
def test_a_misconception_gets_its_own_words(one):
    verdict = grade(WEIGHTS, one.function)
    assert verdict.misconception == one.name
    assert verdict.message == f"02.3 not yet. {one.words}"


def test_a_misconception_is_no_longer_one_if_a_single_case_differs():
    def sometimes(q, k):
        return unscaled(q, k) if q.shape == (3, 3) else np.zeros((len(q), len(k)))

    assert grade(WEIGHTS, sometimes).kind == "wrong"


def test_a_misconception_that_equals_the_reference_cannot_make_it_wrong():
    twin = Exercise(
        id="02.1",
        title="",
        reference=weights,
        cases=make,
        hints=HINTS,
        misconceptions=[Misconception("twin", weights, "x")],
    )
    assert grade(twin, weights).kind == "right"


def once_right(q, k):
    return weights(q, k) if q.shape == (3, 3) else np.zeros((len(q), len(k)))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (changed_by(lambda w: w.T), "It is the transpose"),
        (lambda q, k: q[:, :2], "An array of shape (3, 2) came, shape (3, 3) was expected."),
        (changed_by(lambda w: 1.01 * w), "Every entry is 1.01 times what is expected."),
        (changed_by(lambda w: -w), "Every entry has the opposite sign"),
        (changed_by(lambda w: w + 0.5), "Every entry is 0.5 too large."),
        (changed_by(lambda w: 0 * w), "Every entry is 0."),
        (changed_by(lambda w: w[::-1]), "in reverse order along axis 0"),
        (changed_by(lambda w: np.sort(w, 0)), "The numbers are right, in a different order."),
        (changed_by(lambda w: np.round(w, 4)), "It is close: no entry is off by more than"),
        (lambda q, k: softmax((q @ k.T).T).T, "Your entries sum to 1 down each column."),
        (changed_by(lambda w: w / len(w)), "times what is expected"),
        (lambda q, k: softmax((q @ k.T).reshape(-1)).reshape(len(q), -1), "All your entries together"),
        (lambda q, k: np.exp(q @ k.T), "Each row should sum to 1. Your row [0] sums to"),
        (changed_by(lambda w: w.mean(-1)), "One axis is missing."),
        (changed_by(lambda w: w[None]), "only the shape is not"),
        (
            changed_by(lambda w: np.round(w).astype(int)),
            "Your entries are integers (int64), expected floats.",
        ),
        (changed_by(lambda w: w > 0.5), "Your entries are True and False (bool), expected floats."),
        (changed_by(lambda w: np.where(w > 0.5, np.nan, w)), "nan. At ["),
        (changed_by(lambda w: w / 0), "Every entry is infinite."),
        (changed_by(lambda w: None), "None came. Did you forget `return`?"),
        (lambda q, k: print(), "None came"),
        (changed_by(lambda w: (w, 1)), "Part 1 is right: return only that."),
        (changed_by(lambda w: "weights"), "The string 'weights' came"),
        (changed_by(lambda w: {"a": 1}), "A dictionary of 1 part came"),
        (changed_by(lambda w: {1, 2}), "A set came, an array of shape (3, 3) was expected."),
        (changed_by(lambda w: (x for x in w)), "A generator came"),
        (changed_by(lambda w: softmax), "The function softmax came"),
        (changed_by(lambda w: [[1.0], [1.0, 2.0]]), "of 2 parts came"),
        (
            once_right,
            "Right on the first input. On input 2 of 3 (q of shape (2, 4), k of shape (5, 4)): Every",
        ),
    ],
)
def test_an_unforeseen_answer_is_told_how_it_differs(answer, words):
    verdict = grade(WEIGHTS, answer)
    assert verdict.kind == "wrong"
    assert words in verdict.message


def test_an_input_that_is_changed_is_named():
    def scaled(q, k):
        q /= np.sqrt(q.shape[-1])
        return softmax(q @ k.T)

    verdict = grade(WEIGHTS, scaled)
    assert verdict.kind == "changed inputs"
    assert "changes its input q in place" in verdict.message
    assert verdict.message.endswith("What it returns is right.")


def test_wrong_numbers_of_arguments():
    assert "takes (q). It will be called with 2 arguments: q, k." in grade(WEIGHTS, lambda q: q).message
    assert "takes (q, k, *, scale)" in grade(WEIGHTS, lambda q, k, *, scale: q).message


def test_a_value_for_a_function():
    assert "asks for a function, and the number 0.3 came" in grade(WEIGHTS, 0.3).message
    assert "asks for a function, and an array of shape (3,) came" in grade(WEIGHTS, np.ones(3)).message


def test_importing_the_exercises_is_cheap():
    heavy = {"torch", "sklearn", "matplotlib"}
    code = f"import sys, attnlib.course.exercises; print({heavy} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_smallest_input_that_shows_the_mistake_is_told():
    rows = Exercise(
        id="01.1",
        title="Rows over their sums",
        reference=lambda x: x / x.sum(axis=1, keepdims=True),
        cases=lambda rng: [(rng.uniform(1, 2, size=(6, 5)),)],
        hints=("", "", ""),
        misconceptions=[],
    )
    message = grade(rows, lambda x: x / x.sum(axis=1, keepdims=True) * np.where(x.sum() > 9, 2, 1)).message
    assert "The smallest input found on which your answer is wrong: x = [[" in message
    [_, given] = message.split("x = ")
    assert 7 <= given.split(". Yours")[0].count(",") + 1 <= 10, "a sum above 9 takes some numbers"
    one = grade(rows, lambda x: x * 1.0).message
    assert "x = [[" in one


def exercise_of(reference, *inputs):
    return Exercise(
        id="01.1", title="", reference=reference, cases=lambda rng: [inputs], hints=HINTS, misconceptions=[]
    )


def test_the_smallest_input_keeps_what_was_promised_of_it():
    shares = exercise_of(lambda w: (w / w.sum(1, keepdims=True)).max(), np.full((3, 4), 0.25))
    assert "w = [[0.25, 0.25, 0.25, 0.25]]" in grade(shares, lambda w: w.max() + 1).message
    logs = exercise_of(lambda x: np.log(x), np.array([0.2, 0.3]))
    assert "x = [0.2]" in grade(logs, lambda x: np.log(x) + 1 / len(x)).message
    assert "expected [0]" in grade(exercise_of(lambda x: -x, np.array([0.0])), lambda x: x + 1).message


def test_chance_is_no_pattern():
    places = exercise_of(lambda x: x, np.array([0, 1, 0]))
    assert "sum" not in grade(places, lambda x: np.array([1, 0, 1])).message
    starts = exercise_of(lambda x: x, np.array([0.0, 0.0, 1.0, 1.0]))
    assert "reverse" not in grade(starts, lambda x: x[::-1]).message


def test_a_fraction_is_a_number():
    half = exercise_of(lambda x: x.mean(), np.array([0.0, 1.0]))
    assert grade(half, lambda x: Fraction(int(x.sum()), len(x))).kind == "right"
