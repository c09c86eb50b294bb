"""Every exercise of every lesson: the reference is right, and each wrong answer is told what it is."""

import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlib.course.grading import grade, in_process, registry, trial
from attnlib.course.source import source_of

ROOT = Path(__file__).resolve().parent.parent
LESSONS = registry.lessons()
EXERCISES = [exercise for lesson in LESSONS for exercise in registry.load(lesson)]
MISTAKES = [(exercise, mistake) for exercise in EXERCISES for mistake in exercise.misconceptions]


def each_exercise(test):
    return pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)(test)


def each_mistake(test):
    ids = [f"{exercise.id} {mistake.name}" for exercise, mistake in MISTAKES]
    return pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=ids)(test)


@pytest.fixture
def in_a_thread(monkeypatch):
    """As where processes cannot be copied: what is judged is the same, without two thousand copies."""
    monkeypatch.setattr(in_process, "_fork", None)


@pytest.mark.parametrize("lesson", LESSONS)
def test_titles_are_read_as_they_are_written(lesson):
    assert registry.titles(lesson) == {one.id: one.title for one in registry.load(lesson)}


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_three_to_six_exercises_numbered_from_one(lesson):
    ids = [exercise.id for exercise in registry.load(lesson)]
    assert ids == [f"{lesson}.{n}" for n in range(1, len(ids) + 1)]
    assert len(ids) <= 6
    assert len(ids) >= (0 if lesson == "00" else 3)


@each_exercise
def test_an_exercise_has_hints_mistakes_and_inputs(exercise):
    assert len(exercise.misconceptions) >= 3
    assert len({*exercise.hints}) == 3
    assert exercise.asks_for_value or len(trial.make_cases(exercise)) >= 2
    assert source_of(exercise.solution or exercise.reference)


@each_exercise
def test_its_words_are_in_our_voice(exercise):
    words = [exercise.title, *exercise.hints, *(mistake.words for mistake in exercise.misconceptions)]
    for text in words:
        assert text.strip() == text != ""
        assert not re.search(r"!(?!=)|\b(simply|just|obviously|powerful|elegant)\b|[\U0001f300-\U0001faff]", text)


@each_exercise
def test_the_reference_is_right(exercise):
    answer = exercise.reference() if exercise.asks_for_value else exercise.reference
    assert grade(exercise, answer).kind == "right"


@pytest.mark.usefixtures("in_a_thread")
@each_mistake
def test_a_misconception_is_rejected_with_its_own_words(exercise, mistake):
    answer = mistake.function() if exercise.asks_for_value else mistake.function
    verdict = grade(exercise, answer)
    assert (verdict.kind, verdict.misconception) == ("misconception", mistake.name)
    assert mistake.words in verdict.message


@each_exercise
def test_no_two_answers_give_the_same_numbers(exercise):
    functions = {mistake.name: mistake.function for mistake in exercise.misconceptions}
    functions["the reference"] = exercise.reference
    gives = {name: outputs(exercise, function) for name, function in functions.items()}
    for one, other in itertools.combinations(gives, 2):
        assert not all_close(exercise, gives[one], gives[other]), f"{one} and {other}"


def outputs(exercise, function):
    """What a function gives on every case: an adapted output, or the exception's type."""
    came = trial.outcomes(function, trial.make_cases(exercise), exercise.adapt)
    with np.errstate(all="ignore"):
        return [outcome.failure.type if outcome.failure else outcome.output for outcome in came]


def all_close(exercise, some, others):
    return len(some) == len(others) and all(map(lambda a, b: close(exercise, a, b), some, others))


def close(exercise, a, b):
    """An oracle of its own, so that the engine's comparison is not checked against itself."""
    if exercise.compare is not None:
        no_answer = exercise.adapt is not None and isinstance(b, str)
        return not no_answer and exercise.compare(a, b) is True
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(lambda x, y: close(exercise, x, y), a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(exercise, a[key], b[key]) for key in a)
    if is_numeric(a) and is_numeric(b):
        rtol, atol = exercise.tolerance
        a, b = plain(a), plain(b)
        return a.shape == b.shape and a.dtype.kind == b.dtype.kind and np.allclose(b, a, rtol, atol, equal_nan=True)
    return type(a) is type(b) and not is_numeric(a) and a == b


def plain(value):
    return value.detach().float().numpy() if is_tensor(value) and value.is_floating_point() else np.asarray(value)


def is_tensor(value):
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def is_numeric(value):
    return is_tensor(value) or isinstance(value, np.ndarray | np.generic | float | int | bool)


def everywhere(change):
    """Apply `change` to every float array of an output, and some change to what is not floats."""

    def changed(output):
        if isinstance(output, tuple):
            parts = map(changed, output)
            return type(output)(*parts) if hasattr(output, "_fields") else tuple(parts)
        if isinstance(output, list):
            return [changed(part) for part in output]
        if isinstance(output, dict):
            return {key: changed(part) for key, part in output.items()}
        if isinstance(output, str):
            return f"{output}?"
        if not is_numeric(output):
            return output
        array = plain(output)
        if array.dtype.kind != "f":
            return ~array if array.dtype.kind == "b" else array + 1
        array = change(array)
        return sys.modules["torch"].as_tensor(array) if is_tensor(output) else array

    return changed


def noisy(array):
    return array + np.random.default_rng(0).normal(scale=1e-3, size=array.shape)


UNFORESEEN = {
    "noise": noisy,
    "negated": lambda array: -array,
    "transposed": lambda array: (
        np.swapaxes(array, -1, -2) if array.ndim > 1 else array[::-1] if array.ndim else -array
    ),
    "scaled": lambda array: 1.01 * array,
    "much larger": lambda array: 3.7 * array,
    "shifted": lambda array: array + 0.01,
    "rolled": lambda array: np.roll(array, 1),
    "zeros": np.zeros_like,
    "one entry": lambda array: array + 0.1 * (np.arange(array.size) == array.size - 1).reshape(array.shape),
    "an axis more": lambda array: array[None],
    "nan": lambda array: array * np.nan,
}


@pytest.mark.usefixtures("in_a_thread")
@pytest.mark.parametrize("name", UNFORESEEN)
@each_exercise
def test_an_unforeseen_wrong_answer_is_rejected(exercise, name):
    change = everywhere(UNFORESEEN[name])

    def answer(*inputs):
        return change(exercise.reference(*inputs))

    assert_rejected_unless_close(exercise, answer)


@each_exercise
def test_an_answer_that_is_right_on_the_first_case_only_is_rejected(exercise):
    if exercise.asks_for_value:
        return  # one value, one case
    calls = itertools.count()

    def first_only(*inputs):
        output = exercise.reference(*inputs)
        return output if next(calls) % len(trial.make_cases(exercise)) == 0 else everywhere(noisy)(output)

    assert_rejected_unless_close(exercise, first_only)


def assert_rejected_unless_close(exercise, answer):
    wanted, came = outputs(exercise, exercise.reference), outputs(exercise, answer)
    if all_close(exercise, wanted, came):
        return  # the same within this exercise's tolerance
    verdict = grade(exercise, answer() if exercise.asks_for_value else answer)
    assert verdict.kind != "right"
    if verdict.misconception:
        [mistake] = [one for one in exercise.misconceptions if one.name == verdict.misconception]
        assert all_close(exercise, outputs(exercise, mistake.function), came)


@each_exercise
def test_an_answer_in_single_precision_is_right(exercise):
    def answer(*inputs):
        return in_single_precision(exercise.reference(*inputs))

    if not all_close(exercise, outputs(exercise, exercise.reference), outputs(exercise, answer)):
        return  # this exercise asks for more digits
    assert grade(exercise, answer() if exercise.asks_for_value else answer).kind == "right"


def in_single_precision(output):
    if isinstance(output, tuple):
        parts = map(in_single_precision, output)
        return type(output)(*parts) if hasattr(output, "_fields") else tuple(parts)
    if isinstance(output, float | np.ndarray | np.floating) and plain(output).dtype.kind == "f":
        return plain(output).astype(np.float32)
    return output


MARK = re.compile(r"^\*\*(\d\d\.\d)\*\* \((write|work out|experiment|design|choose|repair), (★{1,3}), \d+ min\)", re.M)


def test_each_exercise_says_what_it_asks_for_and_two_fifths_ask_for_more_than_to_write_it_down():
    texts = (path.read_text("utf-8") for path in (ROOT / "notebooks" / "source").glob("[0-9]*.md"))
    marks = {number: kind for text in texts for number, kind, _ in MARK.findall(text)}
    every = {one.id for lesson in registry.lessons() for one in registry.load(lesson)} - {"00.1"}  # shown, not asked
    assert marks.keys() == every
    assert sum(kind != "write" for kind in marks.values()) >= 0.4 * len(marks)
