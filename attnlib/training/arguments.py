"""What `attnlib.training.fit` makes sure of before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attnlib._base.checks import check_at_least_one, check_one_of, check_positive, check_size

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

__all__ = ["Settings", "check_model"]


@dataclass(frozen=True)
class Settings:
    """How `attnlib.training.fit` was asked to train, checked; what each is, it says."""

    batches: Callable[[int], Any]
    loss: Callable[[Module, Any], Any]
    steps: int
    lr: float
    optimizer: Callable[[Iterable[Tensor], float], Optimizer] | None
    schedule: Callable[[int], float] | None
    clip: float | None
    seed: int
    metrics: Mapping[str, Callable[[Module], float]] | None
    every: int
    patience: int | None
    watch: str
    checkpoint: Path | None
    save_every: int

    def __post_init__(self) -> None:
        functions = {"loss": self.loss, "optimizer": self.optimizer, "schedule": self.schedule}
        check_functions(self.batches, **functions)
        check_positive("lr", self.lr)
        if self.clip is not None:
            check_positive("clip", self.clip)
        for name, check in {"steps": check_size, "seed": check_size, "every": check_at_least_one}.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        object.__setattr__(self, "save_every", check_at_least_one("save_every", self.save_every))
        object.__setattr__(self, "metrics", checked_metrics(self.metrics))
        check_watch(self.patience, self.watch, self.metrics)
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", made_folder(self.checkpoint))

    def factor(self, step: int) -> float:
        """What the schedule multiplies the learning rate with at ``step``."""
        factor = 1.0 if self.schedule is None else float(self.schedule(step))
        if not (isfinite(factor) and factor >= 0):
            raise ValueError(f"schedule must return a factor of zero or more; got {factor} at step {step}")
        return factor


def check_model(model: object) -> None:
    """Raise unless ``model`` can be trained."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    if any(parameter.dtype == torch.float16 for parameter in model.parameters()):
        raise TypeError(
            "model must be trained in float32, float64 or bfloat16; in float16 squares of gradients overflow"
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model must have at least one parameter that needs a gradient; got none")


def check_functions(batches: object, **others: object) -> None:
    """Raise unless all are functions, or None where that may be."""
    if not callable(batches):
        raise TypeError(
            "batches must be a function from the step to its batch, so that a run can go on at any step: "
            f"attnlib.data.text.by_length(...), or lambda step: ...; got {type(batches).__name__}"
        )
    for name, function in others.items():
        if not callable(function) and not (function is None and name != "loss"):
            raise TypeError(f"{name} must be a function; got {type(function).__name__}")


def made_folder(checkpoint: str | Path) -> Path:
    """The folder, which is there from now on: that it cannot be written is better known before the training."""
    try:
        folder = Path(checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError) as error:
        raise ValueError(f"checkpoint must be a folder that can be written; got {checkpoint!r} ({error})") from None
    return folder


def checked_metrics(metrics: Mapping[str, Callable[[Module], float]] | None) -> dict[str, Callable[[Module], float]]:
    """``metrics`` as a dictionary of its own; raise unless all are functions with names."""
    metrics = dict(metrics or {})
    if "loss" in metrics:
        raise ValueError("metrics must not be named 'loss', which is the training loss; 'held-out loss' would do")
    for name, metric in metrics.items():
        if not isinstance(name, str):
            raise TypeError(f"metrics must have names; got {name!r}")
        if not callable(metric):
            raise TypeError(f"metrics[{name!r}] must be a function of the model; got {type(metric).__name__}")
    return metrics


def check_watch(patience: int | None, watch: str, metrics: Mapping[str, object]) -> None:
    """Raise unless ``watch`` is a metric that can be watched, where patience is asked for."""
    if patience is None:
        return
    check_at_least_one("patience", patience)
    known = ["lowest loss", *(f"{way} {name}" for name in metrics for way in ("lowest", "highest"))]
    check_one_of("watch", watch, known)
