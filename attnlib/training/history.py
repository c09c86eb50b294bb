"""What `attnlib.training.fit` returns: how a training run went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from attnlib.plotting.picture import Picture

__all__ = ["History"]

Curve = tuple[list[int], list[float]]


@dataclass(repr=False)
class History:
    """The loss of every step, and the metrics at the steps where they were looked at.

    ``loss[s]`` is the loss of batch s, before the step that was taken on it. ``metrics`` is
    ``{name: (steps, values)}``, where ``steps`` says how many had been taken. ``planned`` is how many were asked for,
    and ``interrupted`` whether a person stopped the run before. ``seconds`` is the time all of it took; it is in no
    printed form and no comparison, since it is never the same twice.

    >>> History([2.31, 0.5, 0.04], {"accuracy": ([3], [0.98])}, planned=3)
    3 steps, loss 2.31 to 0.04; accuracy 0.98.
    """

    loss: list[float] = field(default_factory=list)
    metrics: dict[str, Curve] = field(default_factory=dict)
    planned: int = 0
    interrupted: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def steps(self) -> int:
        """How many steps were taken.

        >>> History([2.0, 1.0]).steps
        2
        """
        return len(self.loss)

    def __repr__(self) -> str:
        short = f" of {self.planned}" if self.steps < self.planned else ""
        start = {True: "Interrupted after ", False: "Stopped early after " if short else ""}[self.interrupted]
        said = f"{start}{self.steps}{short} steps"
        if self.loss:
            said += f", loss {_short(self.loss[0])} to {_short(self._last_loss())}"
        found = [f"{name} {_short(values[-1])}" for name, (_, values) in self.metrics.items() if values]
        return "; ".join([said, *found]) + "."

    def _last_loss(self) -> float:
        """The mean of the last twentieth: one batch may be luck."""
        return float(np.mean(self.loss[-max(1, self.steps // 20) :]))

    def curves(self, *, points: int = 100) -> dict[str, Curve]:
        """What there is to draw, ``{name: (steps, values)}``: the loss as at most ``points`` means, and every metric.

        A mean is over a stretch of steps without overlap, and stands at the middle of it.

        >>> History([4.0, 2.0, 1.0, 1.0]).curves(points=2)
        {'loss': ([1.5, 3.5], [3.0, 1.0])}
        """
        size = max(1, -(-self.steps // points))
        stretches = [self.loss[i : i + size] for i in range(0, self.steps, size)]
        middles = [i * size + (len(part) + 1) / 2 for i, part in enumerate(stretches)]
        loss = {"loss": (middles, [float(np.mean(part)) for part in stretches])} if self.loss else {}
        return loss | {name: curve for name, curve in self.metrics.items() if curve[0]}

    def picture(self, *, title: str) -> Picture:
        """The curves as a figure: the loss, and beside it the metrics.

        >>> History([4.0, 2.0, 1.0]).picture(title="It learns")
        It learns. One plot. Title: loss. Across: step. Up: loss. Lines: loss.
        """
        from attnlib.plotting.charts import lines

        curves = self.curves()
        panels = {"loss": {"loss": curves.pop("loss", ([], []))}} | ({"metrics": curves} if curves else {})
        return lines(panels, title=title, labels=[("step", "loss"), ("step", "value")][: len(panels)])


def _short(x: float) -> str:
    """Two decimals, or one digit where these would be zeros: what is the same on every machine, more or less."""
    return f"{x:.2f}" if x == 0 or abs(x) >= 0.01 else f"{x:.0e}"
