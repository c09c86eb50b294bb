"""What `check`, `hint`, `solution` and `progress` print, and what the progress file keeps."""

import json
import subprocess
import sys

import pytest

import attnlib.course.exercises as exercises
from attnlib.course import progress_file
from attnlib.course.grading import check, commands, hint, progress, solution

LESSON = '''
from attnlib.course.exercises.exercise import Exercise, Misconception

def double(x):
    """Two x.

    In full.
    """

    # add it to itself
    return x + x

def cases(rng):
    return [(1.5,), (2.0,)]

HINTS = ("Think.", "Think twice.", "x + x")
SQUARE = [Misconception("square", lambda x: x * x, "You squared it.")]
EXERCISES = [
    Exercise(id="90.1", title="Double", reference=double, cases=cases, hints=HINTS, misconceptions=SQUARE),
    Exercise(id="90.2", title="Half", reference=lambda: 1 / 2, hints=HINTS, misconceptions=[]),
    Exercise(id="90.3", title="Size", reference=len, cases=cases, hints=HINTS, misconceptions=[]),
]
'''


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """A lesson 90, a lesson 91 that cannot be imported, and a progress file of their own."""
    (tmp_path / "lesson90.py").write_text(LESSON)
    (tmp_path / "lesson91.py").write_text("import not_there")
    monkeypatch.setattr(exercises, "__path__", [str(tmp_path)])
    monkeypatch.setattr(progress_file, "_unsaved", progress_file.Progress())
    monkeypatch.setattr(progress_file, "_told", False)
    monkeypatch.setattr(commands, "_hints_shown", {})
    file = tmp_path / "home" / "progress.json"
    monkeypatch.setenv("ATTNLIB_PROGRESS", str(file))
    yield file
    sys.modules.pop("attnlib.course.exercises.lesson90", None)


@pytest.fixture
def said(capsys):
    return lambda: capsys.readouterr().out


def double(x):
    return 2 * x


def test_check_prints_one_message_and_returns_nothing(said):
    assert check("90.1", double) is None
    assert said() == "90.1 right. Your function agrees with ours on all 2 inputs.\n"


def test_what_is_left_out_is_named_and_the_order_does_not_matter(said):
    check("90.1")
    assert said() == 'answer: nothing came. It stands behind the id: check("90.1", your_answer).\n'
    for command in (check, hint, solution):
        command()
        assert said().startswith("exercise: got '', expected an id like '01.2'.")
    check(double, "90.1")
    assert said().startswith("90.1 right.")


def test_only_the_lesson_that_is_asked_for_is_imported():
    check("90.1", double)
    assert "attnlib.course.exercises.lesson91" not in sys.modules


def test_long_messages_are_wrapped_but_code_is_not(said):
    check("90.1", lambda x: print("word " * 50) or x / 0)
    lines = said().split("\n")
    assert max(len(line) for line in lines if not line.startswith("  ")) <= 96
    assert "  " + ("word " * 50).rstrip() in [line.rstrip() for line in lines]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("99.1", "expected an id like '01.2'. There are exercises for lessons 90 to 91."),
        ("", "exercise: got '', expected an id like '01.2'"),
        (" 90.1", "Did you mean '90.1', in quotes?"),
        ("90", "expected an id like '01.2'"),
        (90.1, "exercise: got 90.1, expected an id like '01.2'. Did you mean '90.1', in quotes?"),
        ("90.7", "exercise: got '90.7'; lesson 90 has 90.1, 90.2, 90.3."),
    ],
)
def test_an_unknown_id_is_answered_with_those_that_exist(said, name, words):
    for command in (lambda: check(name, double), lambda: hint(name), lambda: solution(name)):
        command()
        answer = " ".join(said().split())
        assert answer.startswith("exercise: got ")
        assert words in answer


def test_hints_come_one_after_the_other(said):
    for n, words in enumerate(("Think.", "Think twice.", "x + x"), start=1):
        hint("90.1")
        assert said().startswith(f"hint {n} of 3: {words}\n")
    hint("90.1")
    assert said() == 'You have seen the three hints. solution("90.1") shows the solution.\n'
    hint("90.1", 2)
    hint("90.1")
    assert said().startswith("hint 2 of 3: Think twice.\nhint 3 of 3: x + x\n")
    with pytest.raises(ValueError, match="n: got 4; there are hints 1, 2 and 3"):
        hint("90.1", 4)


def test_solution_shows_the_source_without_docstring(said):
    solution("90.1")
    assert said() == "def double(x):\n    # add it to itself\n    return x + x\n"
    solution("90.2")
    assert said() == "lambda: 1 / 2\n"
    solution("90.3")
    assert said() == "90.3 is solved by the function len, which is not written in Python.\n"


def test_progress_is_kept_and_shown(file, said):
    check("90.1", double)
    check("90.2", 0.5)
    check("90.1", lambda x: x * x)
    said()
    progress()
    table = said().split("\n")
    assert table[0] == "90  ■■□     90.3"
    assert table[1] == "91", "it cannot be imported, and need not be"
    assert table[2] == "2 of 3 exercises solved. Next: 90.3, Size."
    assert json.loads(file.read_text())["solved"] == ["90.1", "90.2"]


def test_progress_of_other_lessons_and_versions_is_kept(file):
    file.parent.mkdir()
    file.write_text('{"version": 2, "solved": ["17.1"], "more": 1}')
    check("90.1", double)
    kept = json.loads(file.read_text())
    assert "answer = double" in kept.pop("answers")["90.1"]
    assert kept == {"version": 2, "solved": ["17.1", "90.1"], "more": 1}


def test_what_was_hard_is_told(said):
    for wrong in (3.0, 4.0, 5.0):
        check("90.2", wrong)
    check("90.1", lambda x: x * x)
    said()
    progress()
    assert "Most tries: 90.2 (3 wrong)." in said()
    check("90.2", 0.5)
    check("90.2", 7.0)  # after it was solved
    said()
    progress()
    assert "Most tries: 90.2 (3 wrong)." in said()


def test_progress_moves_to_another_machine(file, said, tmp_path, monkeypatch):
    check("90.1", double)
    progress(export=str(tmp_path / "ada.json"))
    assert "Written to" in said()
    progress(export=str(tmp_path / "ada.json"))
    assert "export: your progress cannot be written to" in said()
    monkeypatch.setenv("ATTNLIB_PROGRESS", str(tmp_path / "elsewhere" / "progress.json"))
    check("90.2", 0.5)
    progress(add=str(tmp_path / "ada.json"))
    assert "2 of 3 exercises solved" in said()
    assert "90.1" in progress_file.progress()[0].answers
    progress(add=str(tmp_path / "lesson90.py"))
    assert "is not a progress file" in " ".join(said().split())


def test_what_is_forgotten_is_gone_and_kept_in_a_copy(file, said):
    check("90.1", double)
    check("90.2", 0.5)
    progress(forget="90.1")
    assert "1 of 3 exercises solved" in said()
    progress(forget="all")
    assert "0 of 3 exercises solved" in said()
    assert json.loads(file.with_name("progress.json.bak").read_text())["solved"] == ["90.1", "90.2"]
    progress(forget="92")
    assert "forget: got '92', expected" in said()


def test_two_notebooks_at_once_lose_nothing(file):
    program = (
        "import sys; from attnlib.course import progress_file\n"
        "for n in range(30): progress_file.mark(f'{sys.argv[1]}.{n}')"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, lesson]) for lesson in ("81", "82")]
    assert [one.wait() for one in both] == [0, 0]
    assert len(json.loads(file.read_text())["solved"]) == 60
    assert not file.with_name("progress.lock").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"solved": 3}', '{"solved": [[]]}', "[" * 100_000, "\x00"])
def test_a_corrupt_file_is_set_aside(file, said, text):
    file.parent.mkdir()
    file.write_text(text)
    file.with_name("progress.json.bak").write_text("older")
    check("90.1", double)
    words = said()
    assert "Your progress file could not be read" in words
    assert "progress.json.2.bak" in words.replace("\n", " ")
    assert file.with_name("progress.json.bak").read_text() == "older"
    assert file.with_name("progress.json.2.bak").read_text() == text
    check("90.2", 0.5)
    assert said() == "90.2 right.\n"
    assert json.loads(file.read_text())["solved"] == ["90.1", "90.2"]


@pytest.mark.parametrize("where", ["inside a file", "a folder"])
def test_a_place_that_cannot_be_written_is_mentioned_once(file, said, monkeypatch, where):
    file.parent.mkdir()
    (file.parent / "kept").write_text("kept")
    place = file.parent / "kept" / "progress.json" if where == "inside a file" else file.parent
    monkeypatch.setenv("ATTNLIB_PROGRESS", str(place))
    check("90.1", double)
    assert "Your progress cannot be kept in a file" in said()
    check("90.2", 0.5)
    assert said() == "90.2 right.\n"
    progress()
    assert "2 of 3" in said()
    assert [path.name for path in file.parent.iterdir()] == ["kept"]


def test_without_a_home_nothing_breaks(said, monkeypatch):
    monkeypatch.delenv("ATTNLIB_PROGRESS")

    def no_home(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.expanduser", no_home)
    check("90.1", double)
    assert "cannot be kept in a file (Could not determine home directory.)" in said().replace("\n", " ")


def test_without_lessons_there_is_nothing_to_do(said, monkeypatch):
    monkeypatch.setattr(exercises, "__path__", [])
    progress()
    assert said() == "There are no exercises yet.\n"
