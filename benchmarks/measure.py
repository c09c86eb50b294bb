"""Timing in turns, and memory at its peak: what every comparison here is made of."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

Run = Callable[[], object]
TURNS, LEAST = 21, 0.05


@dataclass(frozen=True)
class Row:
    """One line of the table: how much more a peer takes than we do, with the quartiles of all turns.

    Where ``target`` is missed, ``bound`` says what stands in the way.
    """

    case: str
    peer: str
    ratios: tuple[float, ...]
    target: float | None = None
    bound: str = ""

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower one, the median and the upper one."""
        return tuple(float(x) for x in np.quantile(self.ratios, [0.25, 0.5, 0.75]))

    @property
    def verdict(self) -> str:
        """Whether the target is reached, and if not, why not."""
        if self.target is None or self.reached:
            return "" if self.target is None else "reached"
        within = ["within the spread"] if self.quartiles[2] >= self.target else []
        return "missed" + "".join(f"; {why}" for why in [*within, *([self.bound] if self.bound else [])])

    @property
    def reached(self) -> bool:
        """Is the median at the target, as far as the table's digits show?"""
        return self.target is None or round(self.quartiles[1], 2) >= self.target


def compare(
    case: str,
    ours: Run,
    theirs: Mapping[str, Run],
    targets: Mapping[str, float] | None = None,
    *,
    turns: int = TURNS,
    bounds: Mapping[str, str] | None = None,
) -> list[Row]:
    """A row for each peer: in every turn all run once after another, and its time is divided by ours in that turn.

    A short run is repeated until it takes a twentieth of a second. Absolute times drift with whatever else the
    machine does; the ratio within a turn does not.
    """
    everyone = {"ours": ours, **theirs}
    repeats = {name: _repeats(run) for name, run in everyone.items()}
    taken: dict[str, list[float]] = {name: [] for name in everyone}
    gc.collect()
    gc.disable()
    try:
        for turn in range(turns):
            for name in list(everyone)[:: -1 if turn % 2 else 1]:  # there and back, so that nobody always comes first
                taken[name].append(_seconds(everyone[name], repeats[name]))
    finally:
        gc.enable()
    mine = np.array(taken["ours"])
    ratios = {name: tuple(np.array(taken[name]) / mine) for name in theirs}
    targets, bounds = targets or {}, bounds or {}
    return [Row(case, name, ratios[name], targets.get(name), bounds.get(name, "")) for name in theirs]


def peak_of_torch(run: Run) -> int:
    """The most bytes that tensors made by ``run`` held at one time, as the profiler saw them come and go."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        kept = run()
    changes = [(e.start_ns(), e.nbytes()) for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    del kept
    return max(np.cumsum([size for _, size in sorted(changes)]).max(), 0)


def peak_of_numpy(run: Run) -> int:
    """The most bytes that arrays made by ``run`` held at one time."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def forward_and_backward(layer: torch.nn.Module, run: Callable[[], torch.Tensor], *inputs: torch.Tensor) -> Run:
    """``run`` and the gradients of its sum, for the parameters of ``layer`` and for ``inputs``."""
    wanted = [*layer.parameters(), *inputs]

    def both() -> None:
        torch.autograd.grad(run().sum(), wanted)

    return both


def _repeats(run: Run) -> int:
    run()
    once = min(_seconds(run, 1) for _ in range(2))
    return max(1, round(LEAST / max(once, 1e-7)))


def _seconds(run: Run, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times
