"""Is an edit right? Known within a minute: ``make check`` tries what changed, and what that touches, nearest first.

python tools/check.py            what differs from the last commit
python tools/check.py 06 07      all that is about these lessons, and their cells
python tools/check.py --said     what is said of the lessons that differ: `make build` ends with it

What does not fit into the minute is named, and left to `make test`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from attnlib.course.lessons import SECONDS as MEASURED
from touched import ROOT, Tree

SECONDS = 50
CELLS = 20  # seconds of lessons' cells that fit into the minute
FILES = 8  # of tests: reading one costs a second, and what stands farther from an edit seldom breaks by it
# Everything that is said of a lesson without running its cells.
STATIC = [
    "tests/test_claims.py::test_every_claim_is_shown_in_its_lessons_and_nothing_else_is",
    "tests/test_notebook_links.py",
    "tests/test_notebooks_static.py",
    "tests/test_numbers_said.py",
    "tests/test_reading.py",
    "tests/test_slides.py",
    "tests/test_symbols.py",
    "tests/test_teaching.py::test_every_exercise_has_its_page_of_answers",
    "tests/test_teaching.py::test_lessons_with_solutions_have_no_stub_left",
    "tests/test_teaching.py::test_plans_are_of_the_lengths_they_say_and_name_what_there_is",
    "tests/test_teaching.py::test_the_syllabus_says_what_one_can_do",
]
EXERCISES = ["tests/test_exercises_registry.py", "tests/test_exercises_solutions.py"]
WHOLE = [*STATIC, *EXERCISES, "tests/test_claims.py", "tests/test_moving.py"]
LONG = ["tests/test_book.py", "tests/test_book_browser.py", "tests/test_lab_browser.py"]
NO_TESTS = 5
RUFF = [["check", "--quiet"], ["format", "--check", "--quiet"]]
MYPY = [sys.executable, "-m", "mypy", "--no-error-summary"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "selecting", "-r", "fE", "--tb", "short"]
TWO = ["-n", "2", "--dist", "loadscope"]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=400"]
OF_A_LESSON = re.compile(r"(?:notebooks/|notebooks/source/|slides/|attnlib/course/exercises/lesson)(\d\d)[_.]")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="lesson numbers")
    parser.add_argument(
        "--said", action="store_true", help="only what is said of lessons that differ, as a build does"
    )
    args = parser.parse_args(argv)
    if args.said:
        return said(lessons_in(Tree().changed()))
    return whole([number.zfill(2) for number in args.lessons]) if args.lessons else edits(Tree())


def lessons_in(changed: Sequence[str]) -> list[str]:
    """The numbers of the lessons that some files belong to."""
    return sorted({found.group(1) for path in changed if (found := OF_A_LESSON.match(path))})


def whole(numbers: Sequence[str]) -> int:
    """Everything about some lessons: their rules, cells, figures, exercises, decks and claims."""
    paths = [path for number in numbers for path in (ROOT / "notebooks").glob(f"{number}_*.ipynb")]
    if len(paths) < len(numbers):
        sys.exit(f"There is no lesson {' or '.join(numbers)}: a number has two digits, as 06.")
    return run([*PYTEST, *NBVAL, *TWO, *of(numbers), *map(str, paths), *WHOLE])


def said(numbers: Sequence[str], more: Sequence[str] = ()) -> int:
    """What is said of some lessons, without running their cells."""
    return run([*PYTEST, *of(numbers), *STATIC, *more]) if numbers else 0


def edits(tree: Tree) -> int:
    """What differs from the last commit, and what that touches."""
    until = time.time() + SECONDS
    changed = tree.changed()
    python = [path for path in changed if path.endswith(".py") and (tree.root / path).exists()]
    library = [path for path in python if path.startswith("attnlib/")]
    numbers = lessons_in(changed)
    types = subprocess.Popen(MYPY, cwd=ROOT) if library else None
    codes = [run([sys.executable, "-m", "ruff", *how, *python]) for how in RUFF if python]
    if any(path.startswith(("attnlib/", "publish/")) for path in python):
        codes.append(run([str(Path(sys.executable).with_name("lint-imports")), "--no-logo"]))
    exercises = EXERCISES if any("/exercises/" in path for path in changed) else []
    codes.append(said(numbers, [f"--until={until}", *exercises]))
    wanted, left = touched(tree, changed)
    if (wanted or library) and time.time() > until:
        left.append("Left to make test, as the time is up: the tests of what the edit touches.")
    elif wanted or library:
        codes.append(run([*PYTEST, *NBVAL, "--doctest-modules", f"--until={until}", *library, *wanted]))
    codes.append(finished(types, until) if types else 0)
    for line in left or () if changed else ["Nothing differs from the last commit. A lesson: make check NB=06"]:
        print(line)
    return max(codes)


def touched(tree: Tree, changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tests and the lessons that an edit touches, as pytest is told of them, and what did not fit."""
    far = tree.reached({path: tree.edits(path) for path in changed if not path.startswith(("notebooks/", "figures/"))})
    tests = {
        path: sorted((names[name], f"{path}::{name}") for name in names if name.startswith("test_"))
        for path, names in far.items()
        if path.startswith("tests/test_")
    }
    own = {f"tests/test_{Path(path).stem}.py" for path in changed}
    files = sorted(filter(tests.get, tests), key=lambda path: (path not in own, path in LONG, tests[path][0]))
    lessons = sorted((min(names.values()), path) for path, names in far.items() if path.endswith(".ipynb") and names)
    fit, full = [], []
    for _, path in lessons:
        whole = sum(MEASURED.get(lesson[10:12], CELLS) for lesson in [*fit, path]) > CELLS
        (full if whole else fit).append(path)
    left = [f"Left to make test: {len(files) - FILES} files of tests that stand farther off."] * (len(files) > FILES)
    if full:
        left.append(f"Left to make test, as it takes longer: lesson {', '.join(path[10:12] for path in full)}.")
    return [*(test for path in files[:FILES] for _, test in tests[path]), *fit], left


def finished(types: subprocess.Popen[bytes], until: float) -> int:
    """What the checker of types found, if it is ready in time."""
    try:
        return types.wait(max(5.0, until - time.time()))
    except subprocess.TimeoutExpired:
        types.kill()
        print("Types: not known in a minute. What mypy has read it keeps, so ask again.")
        return 0


def of(numbers: Sequence[str]) -> list[str]:
    """Tell pytest which lessons."""
    return [f"--lesson={number}" for number in numbers]


def run(command: Sequence[str]) -> int:
    """Run a command in the folder of the course, seen as it goes."""
    code = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "tools")}).returncode
    return 0 if code == NO_TESTS and "pytest" in command else code


if __name__ == "__main__":
    sys.exit(main())
