"""Write constraints.txt: one version of everything, for every Python and system that the course supports.

Solved at once, not frozen from one environment: what one Python takes, another may refuse. Versions that stand
in the file stay unless something rules them out; with ``--upgrade`` all are chosen anew. Needs ``uv`` on the
PATH, and reads metadata only: nothing is installed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup_environment import supported

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# The versions of everything else, solved for Python {oldest} to {newest} at once, on Linux, macOS and Windows.
# Made by `make constraints` from requirements.txt and pyproject.toml with all its extras; do not edit.
# Constraints only pin what something else asks for. What the course asks for itself stands in
# requirements.txt; what torch brings along (CUDA or not) depends on the machine and stands nowhere.
"""
# From 4.25 on, jsonschema builds a parser for each kind of web address when it is imported, seconds in every process
# that reads a notebook, JupyterLab first of all.
HELD_BACK = ["jsonschema<4.25"]
FOR_A_GPU = re.compile(r"cuda-|nvidia-|triton\b")


def main() -> None:
    """Solve, and replace constraints.txt when that worked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions, not those in the file")
    upgrade = parser.parse_args().upgrade
    if not shutil.which("uv"):
        sys.exit("make constraints needs uv, which is no part of the course: pip install uv, anywhere on the PATH.")
    oldest, *_, newest = supported(ROOT)
    asked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    old = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    solved = solve(pins(asked), old, f"{oldest}.0", upgrade=upgrade)
    new = HEADER.format(oldest=oldest, newest=newest) + constraints(solved, pins(asked))
    (ROOT / "constraints.txt").write_text(new, encoding="utf-8")


def pins(requirements: str) -> list[str]:
    """The lines that pin something: neither comments, nor options, nor the course itself."""
    return [line for line in requirements.splitlines() if "==" in line and not line.startswith(("#", "-"))]


def solve(asked: list[str], preferred: str, oldest: str, *, upgrade: bool) -> str:
    """What uv makes of it, for all Pythons from ``oldest`` on."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "constraints.txt")
        answer.write_text(preferred, encoding="utf-8")  # uv keeps to what stands in the file it is to write
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", oldest]
        command += ["--all-extras", "--no-header", "--no-annotate", "--output-file", str(answer)]
        command += ["--upgrade"] * upgrade + ["-", "pyproject.toml"]
        given = "\n".join(asked + HELD_BACK)
        done = subprocess.run(command, cwd=ROOT, input=given, stdout=subprocess.DEVNULL, text=True)
        if done.returncode:
            sys.exit("uv found no versions that go together, and constraints.txt is as it was. Its reason is above.")
        return answer.read_text(encoding="utf-8")


def constraints(solved: str, asked: list[str]) -> str:
    """What was solved, without what requirements.txt pins and what only torch for a GPU needs."""
    named = {pin.partition("==")[0] for pin in asked}
    keep = [s for s in solved.splitlines() if s.partition("==")[0] not in named and not FOR_A_GPU.match(s)]
    return "".join(f"{line}\n" for line in keep)


if __name__ == "__main__":
    main()
