"""What `attnlib.training.fit` makes sure of before it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from attnlib._checks import check_at_least_one, check_one_of

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["check_functions", "check_watch", "checked_metrics", "made_folder"]


def check_functions(model: object, batches: object, **others: object) -> None:
    """Raise unless ``model`` can be trained and the others are functions, or None where that may be."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    if any(parameter.dtype == torch.float16 for parameter in model.parameters()):
        raise TypeError(
            "model must be trained in float32, float64 or bfloat16; in float16 squares of gradients overflow"
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model must have at least one parameter that needs a gradient; got none")
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
