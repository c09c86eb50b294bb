"""Put the progress files of a class into one table.

python tools/collect_progress.py FOLDER > class.csv

Each file is a student's `~/.attnlib/progress.json` under another name: ada.json, grace.json. The table has a row for
each student, a column for each exercise (1: solved), and the number solved. A file that cannot be read is named.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from attnlib.course.grading import registry


def solved(path: Path) -> set[str]:
    """What a file says is solved.

    Raises `ValueError` for a file that is no progress file.
    """
    try:
        found = json.loads(path.read_text("utf-8"))["solved"]
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(
            f"{path.name} is no progress file: it should hold a list of solved exercises. It is left out."
        )
    return set(found)


def main(folder: str = "") -> int:
    """Print the table; the status is 1 where a file was left out or there is none."""
    files = sorted(Path(folder).glob("*.json")) if folder and Path(folder).is_dir() else []
    if not files:
        print(f"There is no .json file in {folder!r}. Name a folder with the progress files.", file=sys.stderr)
        return 1
    every = [one.id for lesson in registry.lessons() for one in registry.load(lesson)]
    table, left_out = csv.writer(sys.stdout, lineterminator="\n"), 0
    table.writerow(["student", "solved", *every])
    for path in files:
        try:
            done = solved(path)
        except ValueError as error:
            print(error, file=sys.stderr)
            left_out += 1
            continue
        table.writerow([path.stem, len(done & set(every)), *(int(one in done) for one in every)])
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
