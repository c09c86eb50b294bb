"""Keeps what an answer prints, and its calls of `exit`, away from the notebook it runs in."""

from __future__ import annotations

import builtins
import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KEPT = 4000
_here = threading.local()
_workers: set[int] = set()
_originals: dict[tuple[int, str], Any] = {}
_lock = threading.RLock()


class Sink(io.TextIOBase):
    """A text stream that keeps the beginning and counts the rest.

    >>> sink = Sink()
    >>> print("one", file=sink)
    >>> sink.excerpt()
    'one'
    """

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._room = _KEPT
        self._characters = 0
        self._breaks = 0
        self._open = False  # the last line has no line break yet

    def writable(self) -> bool:
        """A sink takes everything."""
        return True

    def write(self, text: str) -> int:
        """Keep `text` while there is room."""
        if self._room:
            self._kept.append(text[: self._room])
            self._room -= len(self._kept[-1])
        self._characters += len(text)
        self._breaks += text.count("\n")
        self._open = not text.endswith("\n") if text else self._open
        return len(text)

    def excerpt(self, lines: int = 10, characters: int = 400) -> str:
        """The first lines, and how much is left out."""
        beginning = "".join(self._kept)[:characters]
        lead = beginning.split("\n")
        cut = len(beginning) < self._characters
        if cut and len(lead) == 1:
            return f"{beginning}\n... and {self._characters - len(beginning):,} more characters"
        if cut and len(lead) <= lines:
            lead.pop()  # it may have been cut in the middle
        shown = "\n".join(lead[:lines]).rstrip()
        left = self._breaks + self._open - min(len(lead), lines)
        return f"{shown}\n... and {left:,} more line{'s' if left > 1 else ''}" if left > 0 else shown


class _Stream:
    """Standard output that sends what a worker writes to the worker's sink."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def _target(self) -> Any:
        return sink_of_this_thread() or self.original

    def write(self, text: str) -> Any:
        return self._target().write(text)

    def writelines(self, lines: Any) -> None:
        self._target().writelines(lines)

    def flush(self) -> None:
        self._target().flush()

    def close(self) -> None:
        """An answer may close what it writes to, and that is not the notebook's output."""
        if sink_of_this_thread() is None:
            self.original.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _Exit:
    """An `exit` that ends the answer when a worker calls it, instead of the kernel."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if sink_of_this_thread() is not None:
            raise SystemExit
        return self.original(*args, **kwargs)


def sink_of_this_thread() -> Sink | None:
    """The sink of the worker that asks, None for every other thread."""
    return getattr(_here, "sink", None)


def enter(sink: Sink) -> None:
    """Called by a worker: from here on what it writes goes to `sink`."""
    _workers.add(threading.get_ident())
    _here.sink = sink


def leave(worker: int | None) -> None:
    """Note that a worker, given by its thread's id, has ended."""
    _workers.discard(worker or 0)
    if worker == threading.get_ident():
        _here.sink = None


@contextmanager
def guarded() -> Iterator[None]:
    """Redirect per thread inside the block, and after it for as long as a worker survives."""
    with _lock:
        for owner, name, wrap in _targets():
            current = getattr(owner, name, None)
            if current is not None and not isinstance(current, wrap):
                _originals[id(owner), name] = current
                setattr(owner, name, wrap(current))
    try:
        yield
    finally:
        _release()


def _release() -> None:
    """Put everything back; where a worker that could not be stopped may still write, put the guards back."""
    with _lock:
        _workers.intersection_update(sys._current_frames())  # a survivor may have ended since
        for owner, name, wrap in _targets():
            original = _originals.get((id(owner), name))
            if original is None:
                continue
            if not _workers:
                del _originals[id(owner), name]
                setattr(owner, name, original)
            elif not isinstance(getattr(owner, name, None), wrap):  # the answer has put something of its own there
                setattr(owner, name, wrap(original))


def _targets() -> list[tuple[Any, str, type]]:
    targets: list[tuple[Any, str, type]] = [(sys, "stdout", _Stream), (sys, "stderr", _Stream)]
    targets += [(builtins, "exit", _Exit), (builtins, "quit", _Exit)]
    if "IPython" in sys.modules:
        shell = getattr(sys.modules["IPython"], "get_ipython", lambda: None)()
        # In a notebook `exit` is IPython's, and asks the shell to stop the kernel.
        if shell is not None:
            targets.append((shell, "ask_exit", _Exit))
    return targets
