"""How a piece of work went that `sandbox` ran."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

_WARNINGS_KEPT = 20

End = Literal["finished", "too long", "interrupted", "gone"]


@dataclass(frozen=True)
class Run:
    """How it ended, what it gave until then, what it printed and warned of.

    `survives`: it still runs and could not be stopped. `fault`: the `Exception` that it let out. `code`: for a
    process that is gone, its exit code, or the number of the signal that ended it, negative.
    """

    end: End
    results: list[Any]
    printed: str
    warned: dict[str, int]
    survives: bool = False
    fault: Exception | None = None
    code: int | None = None


@contextmanager
def noted_warnings() -> Iterator[Counter[str]]:
    """Count the warnings inside the block instead of showing them; those of deprecation nobody needs."""
    seen: Counter[str] = Counter()

    def note(message: Warning, category: type[Warning], *_: object, **__: object) -> None:
        key = f"{category.__name__}: {message}"
        if key in seen or len(seen) < _WARNINGS_KEPT:
            seen[key] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.showwarning = note
        yield seen
