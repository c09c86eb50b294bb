"""Working copies: what JupyterLab opens, so that running and saving never touches the lessons of the course.

python notebooks/lab/copies.py              copy the lessons into my_lessons/, or bring the copies up to date
python notebooks/lab/copies.py --reset 06   give lesson 06 back as it was; the copy is kept

`make lab` does the first, `make reset NB=06` the second. Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent
MINE = COURSE.parent / "my_lessons"
LESSON = "[0-9][0-9]_*.ipynb"


def refresh(course: Path = COURSE, mine: Path = MINE, *, outputs: bool = False) -> list[str]:
    """Copy what is new, replace copies that nobody has edited, and say which edited ones have a newer edition.

    Copies come without outputs, so that a prediction is one; with ``outputs=True``, as the lessons have them. To run a
    lesson is not to edit it: a copy's own outputs are not looked at.
    """
    mine.mkdir(exist_ok=True)
    copied, said = _read(mine), []
    for lesson in sorted(course.glob(LESSON)):
        copy, edition = mine / lesson.name, _fingerprint(lesson)
        known, now = copied.get(lesson.name), _fingerprint(copy) if copy.exists() else None
        unrun = outputs and known == now == edition and copy.read_bytes() == _unrun(lesson)
        if now is None or known == now != edition or unrun:
            _write(copy, lesson.read_bytes() if outputs else _unrun(lesson))
        elif edition not in (known, now):
            number = lesson.name[:2]
            said.append(f"Lesson {number} has a new edition. You have edited yours, so it stays as it is.")
            said.append(f"  make reset NB={number} gives you the new one, and keeps yours.")
            continue
        copied[lesson.name] = edition
    for page in course.glob("*.md"):  # what the lessons link to
        _write(mine / page.name, page.read_bytes())
    _write(mine / ".copied.json", json.dumps(copied, indent=1).encode())
    return said


def reset(number: str, course: Path = COURSE, mine: Path = MINE) -> str:
    """Give a lesson back as it was, keep the copy under ``earlier``, and say where.

    Raises `ValueError` if there is no such lesson.
    """
    lessons = {lesson.name[:2]: lesson for lesson in course.glob(LESSON)}
    if not number or number.zfill(2) not in lessons:
        named = f"no lesson {number!r}" if number else "no lesson named"
        raise ValueError(f"There is {named}. Write: make reset NB=06, with one of {' '.join(sorted(lessons))}.")
    lesson = lessons[number.zfill(2)]
    copy, kept = mine / lesson.name, None
    if copy.exists():
        kept = _free(mine / "earlier" / lesson.name)
        kept.parent.mkdir(exist_ok=True)
        copy.replace(kept)
    refresh(course, mine)
    where = f" Yours is now {kept.relative_to(mine.parent)}." if kept else ""
    return f"{copy.relative_to(mine.parent)} is as it was.{where} If it is open: File, Reload Notebook from Disk."


def _unrun(lesson: Path) -> bytes:
    """A lesson without its outputs; a broken file as it is."""
    raw = lesson.read_bytes()
    try:
        notebook = json.loads(raw)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
    except (ValueError, KeyError, TypeError):
        return raw
    return f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n".encode()


def _fingerprint(notebook: Path) -> str:
    """What a lesson says and computes, without what running it adds; of a broken file, all of it."""
    raw = notebook.read_bytes()
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(raw)["cells"]]
        raw = json.dumps([cell for cell in cells if cell[1].strip()]).encode()
    except (ValueError, KeyError, TypeError):
        pass
    return hashlib.sha256(raw).hexdigest()[:16]


def _read(mine: Path) -> dict[str, str]:
    """The editions that were copied; of a file that is gone or broken, none."""
    try:
        copied = json.loads((mine / ".copied.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return copied if isinstance(copied, dict) else {}


def _write(path: Path, content: bytes) -> None:
    """All or nothing: what is interrupted leaves the old file whole."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _free(path: Path) -> Path:
    """The first of ``name.1.ipynb``, ``name.2.ipynb`` and so on that does not exist."""
    number = 1
    while (free := path.with_name(f"{path.stem}.{number}.ipynb")).exists():
        number += 1
    return free


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reset", metavar="NN", help="the lesson to give back as it was")
    wanted = parser.parse_args(argv).reset
    try:
        said = refresh() if wanted is None else [reset(wanted)]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for line in said:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
