"""`make check`: what an edit touches is found, nearest first, and nothing is begun when the time is up."""

import subprocess
import time

import pytest

import attnlib.course.claims  # noqa: F401  which selecting reads: what a run of pytester's imports first is dropped after it
import check
import touched

pytest_plugins = ["pytester"]
FILES = {
    "attnlib/__init__.py": "",
    "attnlib/scores.py": 'def dot(q, k):\n    """Multiply."""\n    return q @ k\n\n\ndef far(q):\n    return q\n',
    "attnlib/core.py": "from attnlib.scores import dot\n\n\ndef attention(q, k):\n    return dot(q, k)\n",
    "tests/test_scores.py": "from attnlib import scores\n\n\ndef test_dot():\n    assert scores.dot\n",
    "tests/test_core.py": "from attnlib.core import attention\n\n\ndef test_attention():\n    assert attention\n",
    "tests/test_other.py": "from other import dot\n\n\ndef test_dot_of_another():\n    assert dot\n",
    "tests/test_pages.py": 'def test_page():\n    assert open("README.md")\n',
    "README.md": "# Read\n",
}


@pytest.fixture
def tree(tmp_path):
    """A small repository, committed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    return touched.Tree(tmp_path)


def edit(tree, name, old, new):
    file = tree.root / name
    file.write_text(file.read_text().replace(old, new))


def test_an_edit_is_told_first_to_those_that_name_it(tree):
    edit(tree, "attnlib/scores.py", "q @ k", "-q @ k")
    assert tree.changed() == ["attnlib/scores.py"]
    assert tree.edits("attnlib/scores.py") == {"dot"}
    far = tree.reached({"attnlib/scores.py": {"dot"}})
    assert far["attnlib/core.py"] == {"attention": 1}
    assert far["tests/test_scores.py"] == {"test_dot": 1}
    assert far["tests/test_core.py"] == {"test_attention": 2}
    assert not far.get("tests/test_other.py"), "it imports another dot"


def test_words_in_a_docstring_touch_no_test(tree):
    edit(tree, "attnlib/scores.py", "Multiply", "Take the inner product")
    assert tree.edits("attnlib/scores.py") == set()


def test_a_page_is_told_to_the_test_that_reads_it_and_a_lost_file_to_who_named_it(tree):
    edit(tree, "README.md", "Read", "Write")
    (tree.root / "attnlib" / "core.py").unlink()
    assert set(tree.changed()) == {"README.md", "attnlib/core.py"}
    far = tree.reached({path: tree.edits(path) for path in tree.changed()})
    assert far["tests/test_pages.py"] == {"test_page": 1}
    assert tree.edits("attnlib/core.py") == {"attention"}


def test_the_course_is_read_so(tree):
    far = touched.Tree().reached(
        {"attnlib/scores.py": {"gaussian"}, "attnlib/course/drawings/shifting.py": {"shift_diagram"}}
    )
    assert far["tests/test_scores.py"]["test_gradients_at_distance_zero_are_finite"] == 1
    assert min(far["notebooks/01_nadaraya_watson.ipynb"].values()) == 1
    assert min(far["notebooks/11_encoder_and_decoder.ipynb"].values()) == 1
    wanted, left = check.touched(touched.Tree(), [])
    assert (wanted, left) == ([], [])


def test_every_file_that_is_asked_exists():
    for test in {*check.STATIC, *check.EXERCISES, *check.WHOLE, *check.LONG}:
        assert (check.ROOT / test.partition("::")[0]).is_file(), test
    assert check.lessons_in(["notebooks/source/06_self_attention.md", "attnlib/course/exercises/lesson09.py"]) == [
        "06",
        "09",
    ]


LESSONS = """
import time
import pytest

@pytest.mark.parametrize("lesson", ["06", "07_heads"])
def test_of_a_lesson(lesson):
    pass

@pytest.mark.parametrize("exercise", ["06.1", "07.1"])
def test_of_an_exercise(exercise):
    pass

def test_of_all():
    time.sleep(SECONDS)
"""


def test_what_is_made_for_other_lessons_is_left_out(pytester):
    pytester.makepyfile(LESSONS.replace("SECONDS", "0"))
    pytester.runpytest("-p", "selecting", "--lesson", "06").assert_outcomes(passed=3, deselected=2)


def test_what_runs_when_the_time_is_up_is_broken_off(pytester):
    pytester.makepyfile(LESSONS.replace("SECONDS", "60"))
    begun = time.monotonic()
    pytester.runpytest("-p", "selecting", f"--until={time.time() + 1}").assert_outcomes(passed=4, skipped=1)
    late = pytester.runpytest("-p", "selecting", f"--until={time.time() - 1}")
    late.assert_outcomes(skipped=5)
    late.stdout.fnmatch_lines(["5 of these had no time: make test runs them."])
    assert time.monotonic() - begun < 50
