"""The training loop behind `attnlib.training.fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from attnlib.training import checkpoint
from attnlib.training.history import History
from attnlib.training.loss import loss_of
from attnlib.training.random_state import random_state, set_random_state

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

    from attnlib.training.arguments import Settings
    from attnlib.training.distributed import Processes
    from attnlib.training.interrupts import Interrupts

__all__ = ["Run"]


@dataclass
class Run:
    """One training run. What changes is the model, the optimizer, the random numbers and the history; no more.

    So a checkpoint is these four, and all other questions (is it time to look, to save, to stop?) are answered from
    the history alone. Several processes that train one model hold these four alike, but for the random numbers: each
    does all that is here, on its share of every batch; only `_evaluate` and `_save` are the work of process 0.
    """

    model: Module
    settings: Settings
    processes: Processes

    def __post_init__(self) -> None:
        settings = self.settings
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = (settings.optimizer or adamw)(parameters, settings.lr)
        self.history = History(metrics={name: ([], []) for name in settings.metrics})
        self._rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self._saved = self._place()
        self._started = perf_counter()
        self._loss = loss_of(self.model, settings, self.processes)
        if settings.checkpoint is not None:
            kept = {"seed": settings.seed, "clip": settings.clip, "every": settings.every}
            kept["metrics"] = list(settings.metrics)
            self._kept = checkpoint.settings_of(self.model, self.optimizer, **kept)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        steps = self.settings.steps
        if self.settings.checkpoint is not None:
            self.history = self._found(steps) or self.history
        self._saved = self._place()
        self.history.planned = steps
        self._started -= self.history.seconds
        for at, values in self.history.metrics.values():
            if at and at[-1] % self.settings.every and at[-1] < steps:  # looked at only because the run ended there
                del at[-1], values[-1]

    def go(self, interrupts: Interrupts, tick: Callable[[float, float], None]) -> None:
        """Train until ``steps`` are taken, patience is at its end, or a person interrupts."""
        history, settings = self.history, self.settings
        while True:
            if history.steps % settings.every == 0:
                self._evaluate()
            if history.steps % settings.save_every == 0:
                with interrupts.held():
                    self._save()
            interrupts.wanted = self.processes.any(interrupts.noted)
            if history.steps >= settings.steps or interrupts.wanted or self._is_enough():
                break
            value, terms, norm = self._gradients(history.steps)
            with interrupts.held():
                self._update(norm)
                history.loss.append(value)
            tick(value, terms)
        if not interrupts.wanted:
            self._evaluate()

    def finish(self, interrupts: Interrupts) -> History:
        """Save, and say how it went."""
        self.history.interrupted = interrupts.wanted and self.history.steps < self.settings.steps
        with interrupts.held():
            self._save()
        self.history.seconds = perf_counter() - self._started
        return self.history

    def end(self) -> None:
        """Untie the model from the other processes, also while a traceback still holds this run."""
        self._loss = None

    def _found(self, steps: int) -> History | None:
        with self.processes.together():
            if self.processes.rank == 0:
                checkpoint.tidy(self.settings.checkpoint)
            found = checkpoint.load(
                self.settings.checkpoint, self.model, self.optimizer, self._described, steps, self.processes.rank
            )
            done = found.steps if found else 0
        if self.processes.any(self.processes.sums(done)[0] != self.processes.size * done):
            raise ValueError(
                f"checkpoint must be one folder for all processes; {self.settings.checkpoint} differs among them"
            )
        return found

    def _gradients(self, step: int) -> tuple[float, float, Tensor]:
        """The loss of the step's batch, its terms, the norm of its gradient; if that fails, as if it was not tried."""
        buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        stream = random_state(self.model)
        try:
            self.optimizer.zero_grad()
            with self.processes.together():
                total, count = self._loss(step)
            value, terms = self.processes.sums(total.item(), count)
            value = _mean(value, terms, step)
            (total * self.processes.size / terms).backward()  # the gradients of all will be added, and divided by size
            norm = get_total_norm([p.grad for p in self._trained() if p.grad is not None])
            if not norm.isfinite():
                raise _not_finite("the gradient", step)
        except BaseException:  # an interruption, too
            self.optimizer.zero_grad()
            set_random_state(stream)
            for buffer, before in buffers:
                buffer.copy_(before)
            raise
        return value, terms, norm

    def _update(self, norm: Tensor) -> None:
        if self.settings.clip is not None:
            clip_grads_with_norm_(self._trained(), self.settings.clip, norm)
        factor = self.settings.factor(self.history.steps)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.processes.broadcast(self.model.buffers())  # running means of a share are not those of another

    @torch.no_grad()
    def _evaluate(self) -> None:
        """Note the metrics, unless that was done at this step, or nothing has been trained."""
        steps = self.history.steps
        due = {
            name: f
            for name, f in self.settings.metrics.items()
            if steps and self.history.metrics[name][0][-1:] != [steps]
        }
        if not due:
            return
        stream = random_state(self.model)
        self.model.eval()
        try:
            # One process looks and the others wait: all must decide by the same number, and what a metric draws at
            # random, prints or writes is wanted once.
            with self.processes.together():
                found = [float(metric(self.model)) if self.processes.rank == 0 else 0.0 for metric in due.values()]
            values = dict(zip(due, self.processes.sums(*found), strict=True))
        finally:
            self.model.train()
            set_random_state(stream)
        for name, value in values.items():
            self.history.metrics[name][0].append(steps)
            self.history.metrics[name][1].append(value)

    def _save(self) -> None:
        history = self.history
        if self.settings.checkpoint is not None and self._place() != self._saved:
            history.seconds = perf_counter() - self._started
            random = self.processes.gathered(random_state(self.model))
            with self.processes.together():  # no one goes on, and might read it, before it is written
                if self.processes.rank == 0:
                    described = self._described(history.steps)
                    checkpoint.save(self.settings.checkpoint, self.model, self.optimizer, history, random, described)
            self._saved = self._place()

    def _place(self) -> tuple[int, int]:
        """How far the run has come: a checkpoint of the same place need not be written again."""
        return self.history.steps, sum(len(values) for _, values in self.history.metrics.values())

    def _is_enough(self) -> bool:
        settings = self.settings
        if settings.patience is None or self.history.steps % settings.every:
            return False
        sign, name = (1 if settings.watch.startswith("lowest ") else -1), settings.watch.split(" ", 1)[1]
        if name in settings.metrics:
            values = [v for at, v in zip(*self.history.metrics[name], strict=True) if at % settings.every == 0]
        else:
            values = np.reshape(self.history.loss, (-1, settings.every)).mean(axis=1).tolist()
        best = min(range(len(values)), key=lambda i: sign * values[i] if isfinite(values[i]) else np.inf, default=0)
        return len(values) - 1 - best >= settings.patience

    def _described(self, done: int) -> dict[str, Any]:
        """The settings, with the schedule as it was at steps 0, 1, 3, 7, … of those that are done."""
        places = [2**i - 1 for i in range(done.bit_length())]
        return self._kept | {"schedule": {str(step): self.settings.factor(step) for step in places}}

    def _trained(self) -> list[Tensor]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]


def adamw(parameters: list[Tensor], lr: float) -> Optimizer:
    """What trains unless another optimizer is given; fused, which is one kernel instead of ten."""
    return torch.optim.AdamW(parameters, lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)


def _mean(total: float, terms: float, step: int) -> float:
    if not terms:
        raise ValueError(f"loss must have at least one term in every batch; it counted none at step {step}")
    if not isfinite(total / terms):
        raise _not_finite(f"loss {total / terms}", step)
    return total / terms


def _not_finite(what: str, step: int) -> FloatingPointError:
    return FloatingPointError(
        f"{what} is not a finite number at step {step}, of batches({step}). The model is as it was before that step; "
        "a smaller lr may help"
    )
