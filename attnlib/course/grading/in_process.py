"""Runs work in a copy of this process, which may loop in C, crash or alter whatever it likes.

The copy has what the notebook has, closures and classes of its cells too, and takes a few milliseconds to make.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from attnlib.course.grading import guard
from attnlib.course.grading.runs import Run, noted_warnings

PATIENCE = 0.5  # for a copy to say what it printed when its time is over, before it is killed

# None where processes cannot be copied: on Windows and in a browser.
_fork = multiprocessing.get_context("fork") if "fork" in multiprocessing.get_all_start_methods() else None


def run(work: Callable[[], Iterator[Any]], seconds: float, rehearsal: Callable[[], bool]) -> Run | None:
    """Collect what `work` gives, which must be fit to be pickled, for `seconds` at most.

    None where no copy could be made, or where `rehearsal` is not True in it, as it is here: some libraries do not
    outlive being copied, such as torch's gradients once they were taken on a GPU.

    >>> went = run(lambda: iter([1, 2]), seconds=5, rehearsal=lambda: True)
    >>> went is None or went.results == [1, 2]
    True
    """
    if _fork is None:
        return None
    near, far = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_task, args=(far, work, seconds, rehearsal), name="attnlib-check")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the copy does not have
            process.start()
        far.close()
        if _receive(near, process, seconds) != "ready":
            return None
        return _collect(near, process, seconds)
    except KeyboardInterrupt:
        return Run("interrupted", [], "", {})
    except OSError:  # as many processes as there may be
        return None
    finally:
        near.close()
        if process.pid is not None:
            _end(process)


def _collect(near: Connection, process: Any, seconds: float) -> Run:
    results: list[Any] = []
    until = time.monotonic() + seconds + PATIENCE
    while True:
        message = _receive(near, process, until - time.monotonic())
        if isinstance(message, Run):
            return Run(message.end, results, message.printed, message.warned, fault=message.fault)
        if message == "late":
            return Run("too long", results, "", {})
        if message == "gone":
            process.join(PATIENCE)
            return Run("gone", results, "", {}, code=process.exitcode)
        results += message


def _receive(near: Connection, process: Any, seconds: float) -> Any:
    """What the copy says next; "late" where it says nothing in time, "gone" where it will say nothing any more."""
    until = time.monotonic() + seconds
    while not near.poll(0.05):
        if time.monotonic() > until:
            return "late"
        # What the work has started itself may keep the line open.
        if not process.is_alive() and not near.poll():
            return "gone"
    try:
        return near.recv()
    except (EOFError, OSError, pickle.UnpicklingError):
        return "gone"


def _end(process: Any) -> None:
    """End the copy and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # it may not have had a group of its own yet
    process.join()


class _Line:
    """The copy's end of the line. When time is over, it says how far it came and ends."""

    def __init__(self, far: Connection, seconds: float) -> None:
        self.far = far
        self.process = os.getpid()
        self.sink = guard.Sink()
        self.warned: dict[str, int] = {}
        self._speaks = False
        self._late = False
        # Should the notebook's own process end before, the copy does not go on for ever.
        signal.signal(signal.SIGALRM, self._time_is_over)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def say(self, message: Any) -> None:
        """Send it, unless this is a copy of the copy."""
        if os.getpid() != self.process:
            os._exit(0)
        self._speaks = True
        self.far.send(message)
        self._speaks = False
        if self._late:
            self._time_is_over()

    def _time_is_over(self, *_: object) -> None:
        if self._speaks:
            self._late = True
            return
        self.far.send(Run("too long", [], self.sink.excerpt(), dict(self.warned)))
        os._exit(0)


def _task(far: Connection, work: Callable[[], Iterator[Any]], seconds: float, rehearsal: Callable[[], bool]) -> None:
    os.setsid()  # what it starts can be ended with it, and an interrupt of the notebook's does not reach it
    faulthandler.disable()  # the message says what happened
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # the threads of OpenMP were not copied, and would be waited for
    if not rehearsal():
        return
    far.send("ready")
    line, fault = _Line(far, seconds), None
    with guard.guarded(), noted_warnings() as line.warned:
        guard.enter(line.sink)
        try:
            for result in work():
                line.say([result])
        except Exception as error:
            fault = _sendable(error)
        except BaseException:  # an exit that was let out
            pass
    line.say(Run("finished", [], line.sink.excerpt(), dict(line.warned), fault=fault))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
