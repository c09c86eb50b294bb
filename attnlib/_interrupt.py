"""Ctrl-C, or the stop button of a notebook, while a model is being trained."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts"]


class Interrupts:
    """Inside ``with Interrupts() as interrupts``, a first interruption is only noted, in ``interrupts.wanted``.

    A second one raises ``KeyboardInterrupt`` at once, for a loss or a metric that takes too long, but not inside
    ``with interrupts.held()``, where it would tear in two what belongs together.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.holding = False
        self._before = None

    def __enter__(self) -> Interrupts:
        try:
            before = signal.getsignal(signal.SIGINT)
            if before is signal.default_int_handler:  # leave alone a host that has a way of its own
                self._before = signal.signal(signal.SIGINT, self._noted)
        except ValueError:  # not the main thread, which is the only one that is ever interrupted
            pass
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what is inside finish. If it could not, ``holding`` stays True: something may be torn."""
        self.holding = True
        yield
        self.holding = False

    def _noted(self, signum: int, frame: FrameType | None) -> None:
        if self.wanted and not self.holding:
            raise KeyboardInterrupt
        self.wanted = True
