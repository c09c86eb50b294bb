"""Which exercises are solved, and by which answers, in one small file on the reader's machine."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Progress:
    """What is known of a reader: exercises solved, the right answers as source, and wrong tries before each."""

    solved: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)

    def add(self, other: Progress) -> None:
        """Put what another one knows on top."""
        self.solved |= other.solved
        self.answers |= other.answers
        self.tries += other.tries

    def forget(self, exercises: str) -> None:
        """Leave out an exercise, "03.1", or all of a lesson, "03", or "all"."""
        gone = {one for one in {*self.solved, *self.answers, *self.tries} if _belongs(one, exercises)}
        self.solved -= gone
        for one in gone:
            self.answers.pop(one, None)
            self.tries.pop(one, None)


def _belongs(exercise: str, wanted: str) -> bool:
    return wanted == "all" or exercise == wanted or exercise.startswith(f"{wanted}.")


_unsaved = Progress()  # what could not be written to the file
_told = False


def path() -> Path:
    """Where progress is kept: the environment's ATTNLIB_PROGRESS, or ~/.attnlib/progress.json."""
    given = os.environ.get("ATTNLIB_PROGRESS")
    return Path(given) if given else Path("~/.attnlib/progress.json").expanduser()


def progress() -> tuple[Progress, str]:
    """What is known so far, and a word about a file that could not be read ("" mostly)."""
    kept, word = _read()
    known = _known(kept)
    known.add(_unsaved)
    return known, word


def mark(exercise: str, answer: str = "") -> str:
    """Note that an exercise is solved, with the source of the answer; returns a word where that went wrong, once."""
    return add(Progress({exercise}, {exercise: answer} if answer else {}))


def tried(exercise: str) -> str:
    """Note that an exercise, which was not solved before, got a wrong answer."""
    return "" if exercise in progress()[0].solved else add(Progress(tries=Counter([exercise])))


def add(new: Progress) -> str:
    """Put this on top of what is known; returns a word where that went wrong, once."""
    _unsaved.add(new)
    saved, word = _change(lambda known: known.add(_unsaved))
    if saved:
        _unsaved.forget("all")
    return word


def forget(exercises: str) -> str:
    """Leave out an exercise, a lesson or "all", and keep a copy of the file; returns a word where that went wrong."""
    _unsaved.forget(exercises)
    with suppress(OSError, RuntimeError):
        file = path().resolve()
        copy = next(name for name in _names_aside(file) if not name.exists())
        copy.write_bytes(file.read_bytes())
    return _change(lambda known: known.forget(exercises))[1]


def of_file(file: str | Path) -> Progress:
    """What a progress file knows.

    Raises ``ValueError`` where it is none.
    """
    try:
        return _known(_checked(Path(file).read_text(encoding="utf-8")))
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{file} is not a progress file ({getattr(error, 'strerror', None) or error})") from error


def export(file: str | Path) -> None:
    """Write what is known to another file, for a lecturer or another machine.

    Raises ``FileExistsError`` where there is one of this name.
    """
    with Path(file).open("x", encoding="utf-8") as stream:
        json.dump(_written({"version": 1}, progress()[0]), stream, indent=1)


def _change(change: Callable[[Progress], None]) -> tuple[bool, str]:
    """Change what the file knows while nobody else does; says whether that went well, and a word, "" mostly."""
    word = ""
    try:
        with _alone():
            kept, word = _read()
            known = _known(kept)
            change(known)
            if (new := _written(kept, known)) != kept:
                _write(new)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        return False, word or _unusable(error)
    return True, word


@contextmanager
def _alone() -> Iterator[None]:
    """While this lasts, no other notebook changes the file; a lock that was left behind is broken after 2 seconds."""
    lock = path().resolve().with_name("progress.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(100):
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(0.02)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _read() -> tuple[dict[str, Any], str]:
    empty = {"version": 1, "solved": []}
    try:
        return _checked(path().read_text(encoding="utf-8")), ""
    except FileNotFoundError:
        return empty, ""
    except (OSError, RuntimeError, ValueError) as error:  # RecursionError is a RuntimeError
        return empty, _set_aside(error)


def _checked(text: str) -> dict[str, Any]:
    kept = json.loads(text)
    if not (isinstance(kept, dict) and _are_ids(kept.get("solved"))):
        raise ValueError("no list of solved exercises in it")
    if not all(isinstance(kept.get(name, {}), dict) for name in ("answers", "tries")):
        raise ValueError("its answers and tries are not listed by exercise")
    return kept


def _known(kept: dict[str, Any]) -> Progress:
    return Progress(set(kept["solved"]), dict(kept.get("answers", {})), Counter(kept.get("tries", {})))


def _written(kept: dict[str, Any], known: Progress) -> dict[str, Any]:
    """The file's entries, those of other versions too; what is empty is left out."""
    new = {**kept, "solved": sorted(known.solved), "answers": known.answers, "tries": dict(known.tries)}
    return {name: value for name, value in new.items() if value or name not in ("answers", "tries")}


def _are_ids(ids: object) -> bool:
    return isinstance(ids, list) and all(isinstance(one, str) for one in ids)


def _set_aside(error: Exception) -> str:
    """Move a file that cannot be read out of the way, under a name that is free."""
    with suppress(OSError, RuntimeError):
        file = path().resolve()
        if file.is_file():
            aside = next(name for name in _names_aside(file) if not name.exists())
            os.replace(file, aside)
            return f"Your progress file could not be read ({error}). It was moved to {aside}, and a new one is begun."
    return _unusable(error)


def _names_aside(file: Path) -> Iterator[Path]:
    yield file.with_name(file.name + ".bak")
    yield from (file.with_name(f"{file.name}.{n}.bak") for n in range(2, 1000))


def _write(kept: dict[str, Any]) -> None:
    """All or nothing: another kernel reads either the old file or the new one."""
    file = path().resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(kept, stream, indent=1)
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _unusable(error: Exception) -> str:
    """Said once: the next check would only repeat it."""
    global _told
    if _told:
        return ""
    _told = True
    reason = getattr(error, "strerror", None) or error
    return f"Your progress cannot be kept in a file ({reason}). It lasts until the kernel stops."
