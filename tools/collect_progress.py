"""Put the progress files of a class into one table.

python tools/collect_progress.py FOLDER > class.csv

Each file is what a student wrote with `progress(export="ada.json")`. The table has a row for
each student, a column for each exercise and each patient of lesson 15 (1: solved), and the number solved. A file that
cannot be read is named.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from attnlib.course import progress_file
from attnlib.course.grading import registry
from attnlib.course.lab.chart import PATIENTS


def main(folder: str = "") -> int:
    """Print the table; the status is 1 where a file was left out or there is none."""
    files = sorted(Path(folder).glob("*.json")) if folder and Path(folder).is_dir() else []
    if not files:
        print(f"There is no .json file in {folder!r}. Name a folder with the progress files.", file=sys.stderr)
        return 1
    every = [one.id for lesson in registry.lessons() for one in registry.load(lesson)]
    every += [f"15.{n:02}" for n in PATIENTS]
    table, left_out = csv.writer(sys.stdout, lineterminator="\n"), 0
    table.writerow(["student", "solved", *every])
    for path in files:
        try:
            done = progress_file.of_file(path).solved
        except ValueError as error:
            print(f"{error}. It is left out.", file=sys.stderr)
            left_out += 1
            continue
        table.writerow([path.stem, len(done & set(every)), *(int(one in done) for one in every)])
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
