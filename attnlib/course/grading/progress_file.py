"""Which exercises are solved, in one small file on the reader's machine."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_solved_here: set[str] = set()
_told = False


def path() -> Path:
    """Where progress is kept: the environment's ATTNLIB_PROGRESS, or ~/.attnlib/progress.json."""
    given = os.environ.get("ATTNLIB_PROGRESS")
    return Path(given) if given else Path("~/.attnlib/progress.json").expanduser()


def solved() -> tuple[set[str], str]:
    """The ids solved so far, and a word about a file that could not be read ("" mostly)."""
    kept, word = _read()
    return set(kept["solved"]) | _solved_here, word


def mark(exercise: str) -> str:
    """Note that an exercise is solved; returns a word where that went wrong, once."""
    _solved_here.add(exercise)
    kept, word = _read()
    ids = set(kept["solved"]) | _solved_here
    if ids == set(kept["solved"]):
        return word
    try:
        _write({**kept, "solved": sorted(ids)})
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        return word or _unusable(error)
    return word


def _read() -> tuple[dict[str, Any], str]:
    empty = {"version": 1, "solved": []}
    try:
        kept = json.loads(path().read_text(encoding="utf-8"))
        if not (isinstance(kept, dict) and _are_ids(kept.get("solved"))):
            raise ValueError("no list of solved exercises in it")
    except FileNotFoundError:
        return empty, ""
    except (OSError, RuntimeError, ValueError) as error:  # RecursionError is a RuntimeError
        return empty, _set_aside(error)
    return kept, ""


def _are_ids(ids: object) -> bool:
    return isinstance(ids, list) and all(isinstance(one, str) for one in ids)


def _set_aside(error: Exception) -> str:
    """Move a file that cannot be read out of the way, under a name that is free."""
    with suppress(OSError, RuntimeError):
        file = path().resolve()
        if file.is_file():
            aside = next(name for name in _names_aside(file) if not name.exists())
            os.replace(file, aside)
            return f"Your progress file could not be read ({error}). It is now {aside}, and a new one begins."
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
    return f"Your progress cannot be kept in a file ({reason}). It counts until the kernel stops."
