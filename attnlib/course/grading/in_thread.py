"""Runs work in a thread that can be stopped, unless it swallows what stops it or holds the interpreter."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from attnlib.course.grading import guard
from attnlib.course.grading.runs import End, Run, noted_warnings

PATIENCE = 1.0


def run(work: Callable[[], Iterator[Any]], seconds: float) -> Run:
    """Collect what `work` gives, for `seconds` at most or until the reader interrupts.

    >>> run(lambda: iter([1, 2]), seconds=5).results
    [1, 2]
    """
    worker = _Worker(work)
    with guard.guarded(), noted_warnings() as warned:
        end = worker.run(seconds)
        survives = end != "finished" and not worker.stop()
        if not survives:
            guard.leave(worker.thread.ident)
    return Run(end, list(worker.results), worker.sink.excerpt(), dict(warned), survives, worker.fault)


class _Worker:
    """A thread that does some work, and can be stopped.

    `Thread.join` and `is_alive` play no part: an exception that arrives inside of them, ours in the thread
    or an interrupt outside, leaves a running thread marked as ended (CPython 3.11).
    """

    def __init__(self, work: Callable[[], Iterator[Any]]) -> None:
        self.sink = guard.Sink()
        self.results: list[Any] = []
        self.fault: Exception | None = None
        self.thread = threading.Thread(target=self._task, args=(work,), name="attnlib-check", daemon=True)
        # The caller's context carries np.errstate and the cell that IPython credits output to.
        self._context = contextvars.copy_context()
        self._running = threading.Lock()
        self._running.acquire()

    def _task(self, work: Callable[[], Iterator[Any]]) -> None:
        try:
            # A SystemExit of `stop` may arrive anywhere, also outside of the learner's own code.
            with suppress(BaseException):
                guard.enter(self.sink)
                self._context.run(self._collect, work)
        finally:
            self._running.release()

    def _collect(self, work: Callable[[], Iterator[Any]]) -> None:
        try:
            self.results.extend(work())
        except Exception as fault:
            self.fault = fault

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
        ident, end = ctypes.c_ulong(self.thread.ident or 0), time.monotonic() + PATIENCE
        # Again and again: `except: pass` swallows one, but rarely all. Of all exceptions SystemExit is the
        # one that a dying thread does not report.
        while time.monotonic() < end:
            if not ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit)):
                return True  # there is no such thread any more
            if self._running.acquire(timeout=0.01):
                return True
        return False
