"""What the two READMEs show runs, and prints what it says; what they count is counted."""

import re
from pathlib import Path

import pytest
import torch
from num2words import num2words

from attnlib.course import LESSONS
from attnlib.course.claims import CLAIMS
from attnlib.course.grading import registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
LIBRARY = (ROOT / "attnlib" / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", LIBRARY, flags=re.M | re.S)


def test_the_examples_run_in_the_order_in_which_they_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names = {}
    for block in BLOCKS:
        exec(block, names)
    assert names["out"].shape == (2, 5, 8)
    promised = [line.partition(")  # ")[2] for block in BLOCKS for line in block.splitlines() if "print(" in line]
    printed = capsys.readouterr().out
    for words in filter(None, promised):
        assert words in printed
    assert [path.name for path in tmp_path.iterdir()] == ["my_translator"]


def test_lessons_claims_and_exercises_are_counted():
    number = num2words(sum(lesson.ready for lesson in LESSONS))
    assert f"in {number} executable notebooks" in README
    assert f"[{len(CLAIMS)} such claims]" in README
    n_exercises = sum(len(registry.load(lesson)) for lesson in registry.lessons())
    assert f"There are {n_exercises} of them" in README


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "attnlib" / "README.md"], ids=["course", "library"])
def test_links_and_pictures_are_there(page):
    named = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [name for name in named if not (page.parent / name).exists()] == []


def test_the_benchmarks_that_are_shown_are_rows_of_the_results():
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
    shown = LIBRARY[LIBRARY.index("## How fast is it?") :]
    rows = re.findall(r"^\| .* \| [\d.]+ \| .*\|$", shown, flags=re.M)
    assert len(rows) > 9
    assert [row for row in rows if row not in results] == []
