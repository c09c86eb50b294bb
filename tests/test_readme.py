"""What README shows runs, and prints what it says."""

import re
from pathlib import Path

import torch
from num2words import num2words

from attnlib.course import LESSONS

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), flags=re.M | re.S)


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


def test_the_first_line_counts_the_lessons():
    number = num2words(sum(lesson.ready for lesson in LESSONS))
    assert f"in {number} executable notebooks" in (ROOT / "README.md").read_text("utf-8")
