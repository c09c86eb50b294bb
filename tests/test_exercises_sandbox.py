"""Answers that loop, flood, raise or exit do no harm and get one message."""

import _thread
import io
import multiprocessing
import os
import random
import re
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from attnlib.course.grading import Exercise, compare, grade, guard, in_process, in_thread, values

EXERCISE = Exercise(
    id="02.1",
    title="Half",
    reference=lambda x: x / 2,
    cases=lambda rng: [(rng.normal(size=3),), (rng.normal(size=4),)],
    hints=("", "", ""),
    misconceptions=[],
)


@pytest.fixture
def _short(monkeypatch):
    monkeypatch.setenv("ATTNLIB_CHECK_SECONDS", "0.3")
    monkeypatch.setattr(in_thread, "PATIENCE", 0.3)


@pytest.fixture
def _no_processes(monkeypatch):
    """As on Windows, where a process cannot be copied."""
    monkeypatch.setattr(in_process, "_fork", None)


forks = pytest.mark.skipif(in_process._fork is None, reason="processes cannot be copied here")


@pytest.fixture
def enough():
    """Lets an answer that cannot be stopped end with its test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.usefixtures("_short", "_no_processes")
def test_an_endless_loop_is_stopped():
    running = []

    def answer(x):
        while True:
            running.append(1)

    verdict = grade(EXERCISE, answer)
    assert verdict.kind == "stopped"
    assert "After 0.3 seconds your function was still running, on input 1 of 2" in verdict.message
    assert "could not be stopped" not in verdict.message
    count = len(running)
    time.sleep(0.1)
    assert len(running) == count


@pytest.mark.usefixtures("_short", "_no_processes")
def test_a_loop_that_swallows_everything_gets_one_message(enough, capsys):
    def answer(x):
        while not enough.is_set():
            try:
                print("still here")
                time.sleep(0.001)
            except BaseException:
                continue

    before = sys.stdout
    verdict = grade(EXERCISE, answer)
    assert "could not be stopped" in verdict.message
    assert "restart the kernel" in verdict.message
    print("mine")
    time.sleep(0.1)
    assert capsys.readouterr().out == "mine\n"
    enough.set()
    time.sleep(0.1)
    assert grade(EXERCISE, lambda x: x / 2).kind == "right"
    assert sys.stdout is before


@pytest.mark.usefixtures("_short", "_no_processes")
def test_a_long_sleep_gets_one_message():
    verdict = grade(EXERCISE, lambda x: time.sleep(2))
    assert verdict.kind == "stopped"
    assert "could not be stopped" in verdict.message


@pytest.mark.parametrize("fork", [in_process._fork, None])
def test_the_reader_can_stop_it(fork, monkeypatch):
    monkeypatch.setattr(in_process, "_fork", fork)
    timer = threading.Timer(0.1, _thread.interrupt_main)

    def answer(x):
        while True:
            pass

    timer.start()
    verdict = grade(EXERCISE, answer)
    assert verdict.message == "02.1 stopped, as you asked. Nothing was checked."
    assert not multiprocessing.active_children()


def test_fifty_megabytes_become_a_few_lines(capsys):
    def answer(x):
        print("z" * 50_000_000)
        print("z" * 50, file=sys.stderr)
        return x / 2

    verdict = grade(EXERCISE, answer)
    assert verdict.kind == "right"
    assert len(verdict.message) < 600
    assert capsys.readouterr() == ("", "")


def test_the_first_ten_lines_are_shown_and_the_rest_counted():
    def answer(x):
        for i in range(30):
            print(i)
        return x / 2

    shown = grade(EXERCISE, answer).message.split("It printed:\n")[1].split("\n")
    assert shown == [*(f"  {i}" for i in range(10)), "  ... and 50 more lines"]
    assert grade(EXERCISE, lambda x: print("a") or x / 2).message.endswith("It printed:\n  a\n  a")


def test_an_exception_names_the_learners_line():
    def answer(x):
        y = np.ones(7)
        return np.concatenate([x @ y])

    verdict = grade(EXERCISE, answer)
    assert verdict.kind == "raised"
    line = answer.__code__.co_firstlineno + 2
    assert f"\n  line {line}: return np.concatenate([x @ y])\n  ValueError: matmul" in verdict.message
    assert "Traceback" not in verdict.message


def test_deep_recursion():
    def answer(x):
        return answer(x)

    message = grade(EXERCISE, answer).message
    assert "calls itself without end" in message
    assert "RecursionError: maximum recursion depth exceeded" in message


def raiser(error):
    def answer(x):
        raise error

    return answer


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: sys.exit(), "Your function called exit."),
        (lambda x: exit(), "Your function called exit."),
        (raiser(SystemExit("bye")), "Your function called exit."),
        (raiser(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raiser(GeneratorExit()), "GeneratorExit"),
        (raiser(UnprintableError()), "UnprintableError"),
        (raiser(ValueError("a\n" * 1000)), "ValueError: a a a"),
    ],
)
def test_whatever_is_raised_becomes_a_message(answer, words):
    verdict = grade(EXERCISE, answer)
    assert verdict.kind == "raised"
    assert words in verdict.message
    assert len(verdict.message) < 700
    assert not sys.stdin.closed


def test_warnings_are_summarised_where_the_answer_is_wrong():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        wrong = grade(EXERCISE, lambda x: x / np.zeros(len(x)))
        right = grade(EXERCISE, lambda x: (x / np.zeros(len(x)), x / 2)[1])
    assert "  RuntimeWarning: divide by zero encountered in divide (2 times)" in wrong.message
    assert right.message == "02.1 right. Your function agrees with ours on all 2 inputs."
    assert not seen


def test_the_callers_errstate_holds_in_the_answer():
    with np.errstate(all="raise"):
        assert "FloatingPointError" in grade(EXERCISE, lambda x: x / np.zeros(len(x))).message


@pytest.mark.usefixtures("_no_processes")
def test_without_threads_the_answer_runs_without_a_limit(monkeypatch, capsys):
    def no_threads(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_threads)
    verdict = grade(EXERCISE, lambda x: print("hello") or x / 2)
    print("after")
    assert verdict.message.endswith("It printed:\n  hello\n  hello")
    assert capsys.readouterr().out == "after\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "\n", "b", "\n"], "a\nb"),
        (["a\n\n\n"], "a"),
        ([f"{i}\n" for i in range(11)], "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n... and 1 more line"),
        (["abc\n", "z" * 500, "\n", "end"], "abc\n... and 2 more lines"),
        (["z" * 500], "z" * 400 + "\n... and 100 more characters"),
        (["z" * 9000, "\n", "more"], "z" * 400 + "\n... and 8,605 more characters"),
    ],
)
def test_an_excerpt(written, shown):
    sink = guard.Sink()
    for text in written:
        sink.write(text)
    assert sink.excerpt() == shown


def test_an_answer_that_closes_or_replaces_its_output_leaves_the_notebooks_alone():
    before = sys.stdout

    def closes(x):
        sys.stdout.close()
        return x

    def replaces(x):
        sys.stdout = io.StringIO()
        return x

    for answer in (closes, replaces):
        assert grade(EXERCISE, answer).kind == "wrong"
        # An answer of another test that could not be stopped keeps the guard in place.
        assert getattr(sys.stdout, "original", sys.stdout) is getattr(before, "original", before)
        print("still here")


def test_an_answer_that_alters_numpy_is_judged_by_numpy_as_it_was(monkeypatch):
    monkeypatch.setattr(np, "tanh", np.tanh)  # put back after the test what the answer takes away
    exercise = Exercise(
        id="02.2",
        title="Squash",
        reference=lambda x: np.tanh(x),
        cases=lambda rng: [(rng.normal(size=3),)],
        hints=("", "", ""),
        misconceptions=[],
    )

    def cheats(x):
        np.tanh = np.zeros_like
        return np.zeros_like(x)

    assert grade(exercise, cheats).kind == "wrong"


def test_an_exception_that_hides_itself_gets_a_message():
    class HiddenError(Exception):
        def __str__(self):
            raise SystemExit

    def answer(x):
        raise HiddenError

    assert "ended without an answer" in grade(EXERCISE, answer).message


def test_several_numbers_may_come_in_any_brackets():
    assert grade(EXERCISE, lambda x: tuple(x / 2)).kind == "right"
    assert grade(EXERCISE, lambda x: [float(number) / 2 for number in x]).kind == "right"


@forks
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    "answer",
    [
        lambda x: sum(range(10**12)),  # no thread gets its turn meanwhile
        lambda x: re.match("(a+)+b", "a" * 60),
        lambda x: time.sleep(60),
    ],
)
def test_what_holds_the_interpreter_is_ended(answer):
    message = grade(EXERCISE, answer).message
    assert message.startswith("02.1 stopped. After 0.3 seconds your function was still running, on input 1 of 2")
    assert "could not be stopped" not in message
    assert not multiprocessing.active_children()


@forks
@pytest.mark.usefixtures("_short")
def test_what_a_loop_without_end_has_printed_is_shown():
    def answer(x):
        print("begins")
        while True:
            try:
                time.sleep(0.001)
            except BaseException:
                continue

    message = grade(EXERCISE, answer).message
    assert message.endswith("Is there a loop in it that never ends?\nIt printed:\n  begins")


@forks
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: os._exit(0), "Your function ended Python on input 1 of 2"),
        (lambda x: os.kill(os.getpid(), signal.SIGKILL), "Python was ended by SIGKILL in your function, on input 1"),
        (lambda x: x / 2 if len(x) == 3 else os.abort(), "Python was ended by SIGABRT in your function, on input 2"),
        (lambda x: os.closerange(3, 99), "Your function ended Python on input 1 of 2"),
    ],
)
def test_an_answer_that_ends_python_ends_its_own(answer, words):
    verdict = grade(EXERCISE, answer)
    assert verdict.kind == "stopped"
    assert words in verdict.message
    assert "Your notebook goes on." in verdict.message


@forks
def test_an_answer_that_copies_its_process_is_judged_once(tmp_path):
    def answer(x):
        if not os.fork():
            time.sleep(0.4)
            (tmp_path / "lives").touch()
        return x / 2

    assert grade(EXERCISE, answer).kind == "right"
    time.sleep(0.6)
    assert not (tmp_path / "lives").exists()


def _settings():
    torch = pytest.importorskip("torch")
    return (
        torch.get_default_dtype(),
        torch.initial_seed(),
        os.getcwd(),
        sys.getrecursionlimit(),
        random.getstate()[1][:3],
        np.random.get_state()[1][:3].tolist(),  # noqa: NPY002
        np.get_printoptions()["precision"],
        os.environ.get("ALTERED"),
    )


@forks
def test_what_an_answer_changes_stays_with_it():
    def answer(x):
        sys.modules["torch"].set_default_dtype(sys.modules["torch"].float64)
        sys.modules["torch"].manual_seed(8)
        os.chdir("/")
        sys.setrecursionlimit(50_000)
        random.seed(8)
        np.random.seed(8)  # noqa: NPY002
        np.set_printoptions(precision=1)
        os.environ["ALTERED"] = "yes"
        os.closerange(1, 3)
        return x / 2

    before = _settings()
    assert grade(EXERCISE, answer).kind == "right"
    assert _settings() == before
    os.fstat(1)


@forks
def test_a_wrong_answer_does_not_pass_by_a_function_that_it_replaces():
    def cheats(x):
        np.isclose = np.allclose = np.array_equal = lambda *_, **__: np.array(True)
        compare.is_right = compare.agree = values.agree = values.leaf_agrees = lambda *_, **__: True
        values.entries_agree = values.same_input = lambda *_, **__: np.array(True)
        sys.modules["attnlib.course.grading.grade"]._judge = None
        sys.modules["attnlib.course.grading.trial"].same_input = lambda *_: True
        return x * 3

    assert grade(EXERCISE, cheats).kind == "wrong"

    def writes_into_its_input(x):
        cheats(x)
        x /= 2
        return x

    assert grade(EXERCISE, writes_into_its_input).kind == "changed inputs"


@forks
def test_an_answer_that_alters_how_it_is_sent_is_not_judged():
    def cheats(x):
        sys.modules["pickle"].dumps = lambda *_, **__: b"rubbish"
        return x / 2

    verdict = grade(EXERCISE, cheats)
    assert verdict.kind == "stopped"
    assert "ended without an answer" in verdict.message


@forks
def test_torch_computes_in_the_copy_with_threads_and_gradients():
    torch = pytest.importorskip("torch")
    threads, here = torch.get_num_threads(), os.getpid()
    torch.set_num_threads(2)
    try:
        large = torch.randn(600, 600, requires_grad=True)
        (large @ large).exp().sum().backward()  # starts torch's threads, which are not copied
        exercise = Exercise(
            id="02.3",
            title="Slope",
            reference=lambda x: 2 * x,
            cases=lambda rng: [(torch.from_numpy(rng.normal(size=(300, 300))),)],
            hints=("", "", ""),
            misconceptions=[],
        )

        def answer(x):
            x = x.clone().requires_grad_()
            (x @ torch.eye(300, dtype=x.dtype) * x).sum().backward()
            return x.grad if os.getpid() != here else None

        assert grade(exercise, answer).kind == "right"
    finally:
        torch.set_num_threads(threads)


@forks
def test_where_what_is_right_fails_in_a_copy_the_answer_runs_here():
    here = os.getpid()

    def reference(x):
        if os.getpid() != here:
            raise RuntimeError("cannot be copied")
        return x / 2

    exercise = Exercise(
        id="02.4", title="", reference=reference, cases=EXERCISE.cases, hints=("", "", ""), misconceptions=[]
    )
    assert grade(exercise, reference).kind == "right"


def test_what_cannot_leave_the_process_is_described():
    class Own:
        pass

    assert "An Own came" in grade(EXERCISE, lambda x: Own()).message
    assert "Did you forget to call it?" in grade(EXERCISE, lambda x: lambda: x / 2).message


def test_an_exercise_may_hand_functions_over_and_compare_in_its_own_way():
    exercise = Exercise(
        id="02.5",
        title="Apply",
        reference=lambda f, x: (f(x), "any"),
        cases=lambda rng: [(lambda x: x + 1, rng.normal(size=3))],
        compare=lambda expected, got: np.array_equal(expected[0], got[0]),
        hints=("", "", ""),
        misconceptions=[],
    )
    assert grade(exercise, lambda f, x: (f(x), "other")).kind == "right"
    assert grade(exercise, lambda f, x: (x, "any")).kind == "wrong"
