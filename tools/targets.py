"""Every make target for real, each in a fresh clone with the packages that it sets up itself: ``make targets``.

python tools/targets.py              all of them, in half an hour
python tools/targets.py book slides  some of them

What is committed is tried. A target whose whole work takes long is asked for a small part of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ASKED = {
    "help": "",
    "lab": "LAB_ARGS=--no-browser",
    "reset": "NB=00",
    "test": 'LESSONS=notebooks/00_start_here.ipynb PYTEST_ARGS="--deselect tests --deselect attnlib"',
    "check": "",
    "lint": "",
    "format": "",
    "build": "NB=00",
    "pull": "NB=00",
    "answers": "",
    "mutants": "NB=07.2",
    "progress": "FROM=class",
    "times": "NB=00",
    "machines": 'NB=00 WORLDS="plain moved-1"',
    "targets": "NAME=help",
    "parity": "",
    "book": "",
    "slides": "",
    "bench": "",
    "studies": "NAME=processes",
    "pretrain": 'ARGS="--steps 1 --d-model 8 --n-heads 2 --layers 1 --batch 2"',
    "constraints": "",
}
SOLVED = "mkdir class && .venv/bin/python -c 'from attnlib.course import progress; progress(export=\"class/a.json\")'"
FIRST = {"reset": "make lab LAB_ARGS=--version", "progress": f"make .venv/learner && {SOLVED}"}
ENDLESS = {"lab": "is running at:"}  # what it says when it is up: it runs until it is stopped


def main(names: Sequence[str]) -> int:
    """Try targets, one after the other, and say of each how it went."""
    if strange := sorted(set(names) - set(ASKED)):
        sys.exit(f"There is no target {', '.join(strange)}; there are {', '.join(ASKED)}.")
    failed = [name for name in names or ASKED if not works(name)]
    print(f"Failed: {', '.join(failed)}" if failed else "All work.")
    return bool(failed)


def works(name: str) -> bool:
    """Whether a target does what it is asked for, in a clone of its own."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        command = f"{FIRST.get(name, 'true')} && make {name} {ASKED[name]}"
        code, said = output_of(command, folder, ENDLESS.get(name))
    print(f"{name:12} {'works' if code == 0 else 'FAILS'} {time.monotonic() - started:5.0f} s", flush=True)
    if code:
        print("\n".join(f"  {line}" for line in said[-15:]), flush=True)
    return code == 0


def output_of(command: str, folder: str, up: str | None) -> tuple[int, list[str]]:
    """The exit status and the lines of a command; one that says that it is ``up`` is stopped, and has done well."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "VIRTUAL_ENV"))}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, shell=True, cwd=folder, env=own, start_new_session=True, **pipes)
    said = []
    for line in process.stdout:
        said.append(line.rstrip())
        if up and up in line:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()
            return 0, said
    return process.wait(), said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
