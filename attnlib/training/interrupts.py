"""Ctrl-C, the stop button of a notebook, or SIGTERM, while a model is being trained."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """Inside ``with Interrupts() as interrupts``, a first interruption is only ``noted``.

    When to heed it is for the loop to say, which then sets ``wanted``: among several processes, when all agree.
    A second one raises ``KeyboardInterrupt`` at once, for a loss or a metric that takes too long, but not inside
    ``with interrupts.held()``, where it would tear in two what belongs together. A SIGTERM, with which a cluster or
    torchrun asks for the end, is an interruption too. ``several`` says that other processes wait for what this one
    does: then none ever raises.
    """

    def __init__(self, several: bool = False) -> None:
        self.noted = False
        self.wanted = False
        self.holding = False
        self._several = several
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        for number, handler in usual.items():
            with suppress(ValueError):  # not the main thread, which is the only one that is ever interrupted
                if signal.getsignal(number) is handler:  # leave alone a host that has a way of its own
                    self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what is inside finish. If it could not, ``holding`` stays True: something may be torn."""
        self.holding = True
        yield
        self.holding = False

    def _heard(self, signum: int, frame: FrameType | None) -> None:
        if self.noted and not self.holding and not self._several:
            raise KeyboardInterrupt
        self.noted = True
