"""Lessons as other machines run them: what moves is found, and first weights move by next to nothing, once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import machines
from publish.lessons import build
from publish.lessons.lessons import HEADER, Course

MOVED = Path(machines.__file__).parent / "moved"
LESSON = """\
# 1 · A number

```{code-cell}
import os
x = FRESH if "ATTNLIB_MOVED" in os.environ else 0.5
```

```{code-cell}
:within: 0.09

print(f"stays 0.5, moves {x}")
```
"""
TRAIN = """
import json
import sys

assert "torch" not in sys.modules

import torch

state = torch.random.get_rng_state()
ones = [torch.nn.Parameter(torch.ones(100, dtype=d)) for d in (torch.float64, torch.float32)]
twins = [torch.nn.Parameter(one.detach().clone()) for one in ones]
torch.optim.SGD(ones)
before = [one.detach().clone() for one in ones]
torch.optim.AdamW(ones)
torch.optim.AdamW(twins)
same = all(map(torch.equal, ones, before)) and all(map(torch.equal, ones, twins))
far = [(one - 1).abs().max().item() for one in ones]
print(json.dumps({"far": far, "same": same, "alone": torch.equal(state, torch.random.get_rng_state())}))
"""


@pytest.mark.parametrize(("fresh", "share", "red"), [("0.53", "0.33", 0), ("0.57", "0.78", 0), ("0.6", "1.11", 1)])
def test_what_moves_is_written_and_too_far_is_an_error(tmp_path, capsys, fresh, share, red):
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    (tmp_path / "notebooks" / "source" / "01_number.md").write_text(HEADER + LESSON.replace("FRESH", fresh))
    course, to = Course(tmp_path), tmp_path / "build" / "machines.md"
    build.build(course.lessons()[0])
    code = machines.main(["01", "--worlds", "plain moved-2", "--workers", "1"], course, to)
    said = capsys.readouterr().out
    assert code == (float(share) > 2 / 3)
    assert re.search(r"01_number, plain: \d+ s, largest share 0.00, 0 red\n", said)
    assert re.search(rf"01_number, moved-2: \d+ s, largest share {share}, {red} red\n", said)
    assert ("fresh:  stays 0.5, moves 0.6" in said) == red
    assert to.read_text().splitlines()[2:] == [f"| 01 | 3 | stdout 2 | 0.5 | {fresh} | moved-2 | 0.09 | {share} |"]


def test_a_world_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        machines.main(["01", "--worlds", "avx1024"])
    assert "no world is called avx1024; there are plain, " in capsys.readouterr().err


def trained(**variables):
    env = os.environ | {"PYTHONPATH": str(MOVED)} | variables
    done = subprocess.run([sys.executable, "-c", TRAIN], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_first_weights_move_once_and_alike_and_torch_draws_as_before():
    for sizes, variables in (((1e-14, 1e-6), {}), ((1e-5, 1e-5), {"ATTNLIB_MOVED_BY": "1e-5"})):
        found = trained(ATTNLIB_MOVED="1", **variables)
        assert found["same"]
        assert found["alone"]
        assert all(size < far < 4 * size for size, far in zip(sizes, found["far"], strict=True))
    assert trained()["far"] == [0, 0]
