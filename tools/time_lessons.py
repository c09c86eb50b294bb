"""Measure how long Run All takes in each lesson, and write attnlib/course/seconds.json.

`make times` does all lessons, `make times NB=01` one. Measured on a quiet machine; one thread, as lessons are built.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from publish.lessons.lessons import Course, sources
from publish.lessons.running import run
from publish.lessons.sides import not_yet_run

ROOT = Path(__file__).resolve().parent.parent
SECONDS = ROOT / "attnlib" / "course" / "seconds.json"


def main(numbers: Sequence[str]) -> None:
    """Run the lessons, one after the other, and write what they took."""
    found = json.loads(SECONDS.read_text("utf-8")) if SECONDS.exists() else {}
    for lesson in Course(ROOT).lessons():
        if numbers and lesson.number not in numbers:
            continue
        start = time.perf_counter()
        run(not_yet_run(lesson, sources(lesson)), lesson.notebook.parent)
        found[lesson.number] = round(time.perf_counter() - start)
        print(f"{lesson.name}: {found[lesson.number]} s", flush=True)
        SECONDS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
