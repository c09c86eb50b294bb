"""Runs an answer where it cannot harm the notebook: for a limited time, in a thread of its own."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from attnlib.course.grading import guard

_PATIENCE = 1.0
_WARNINGS_KEPT = 20


End = Literal["finished", "too long", "interrupted"]


@dataclass(frozen=True)
class Run:
    """How a piece of work went: how it ended, whether it still runs, what it printed and warned of."""

    end: End
    survives: bool
    printed: str
    warned: dict[str, int]


def run(work: Callable[[], None], seconds: float) -> Run:
    """Do `work` in a thread, and stop it after `seconds` or when the reader interrupts.

    `work` hands on its results by side effect and lets no `Exception` out.

    >>> results = []
    >>> run(lambda: results.append(2 + 2), seconds=5).end, results
    ('finished', [4])
    """
    worker = _Worker(work)
    with guard.guarded(), _warnings() as warned:
        end = worker.run(seconds)
        survives = end != "finished" and not worker.stop()
        if not survives:
            guard.leave(worker.thread.ident)
    return Run(end, survives, worker.sink.excerpt(), dict(warned))


class _Worker:
    """A thread that does some work, and can be stopped.

    `Thread.join` and `is_alive` play no part: an exception that arrives inside of them, ours in the thread
    or an interrupt outside, leaves a running thread marked as ended (CPython 3.11).
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.sink = guard.Sink()
        self.thread = threading.Thread(target=self._task, args=(work,), name="attnlib-check", daemon=True)
        # The caller's context carries np.errstate and the cell that IPython credits output to.
        self._context = contextvars.copy_context()
        self._running = threading.Lock()
        self._running.acquire()

    def _task(self, work: Callable[[], None]) -> None:
        try:
            # A SystemExit of `stop` may arrive anywhere, also outside of the learner's own code.
            with suppress(BaseException):
                guard.enter(self.sink)
                self._context.run(work)
        finally:
            self._running.release()

    def run(self, seconds: float) -> End:
        """Do the work, for so long at most."""
        end = time.monotonic() + seconds
        try:
            self._start()
            # In short steps: on Windows a wait cannot be interrupted.
            while not self._running.acquire(timeout=0.05):
                if time.monotonic() > end:
                    return "too long"
        except KeyboardInterrupt:
            return "interrupted"
        return "finished"

    def _start(self) -> None:
        try:
            self.thread.start()
        except RuntimeError:  # no threads here, as in a browser: do it in this one, without a limit
            self.thread.run()
            guard.leave(threading.get_ident())

    def stop(self) -> bool:
        """Raise SystemExit inside the thread until it ends or patience does; whether it ended."""
        ident, end = ctypes.c_ulong(self.thread.ident or 0), time.monotonic() + _PATIENCE
        # Again and again: `except: pass` swallows one, but rarely all. Of all exceptions SystemExit is the
        # one that a dying thread does not report.
        while time.monotonic() < end:
            if not ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit)):
                return True  # there is no such thread any more
            if self._running.acquire(timeout=0.01):
                return True
        return False


@contextmanager
def _warnings() -> Iterator[Counter[str]]:
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
