"""All that a training run is at one moment, in one file: exactly what it takes to go on as if nothing had happened."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attnlib.training.history import History
from attnlib.training.random_state import of_process, set_random_state
from attnlib.training.weights import PART, put_weights, read, weights_of, write

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

__all__ = ["FILE", "load", "save", "settings_of", "tidy"]

FILE = "checkpoint.safetensors"


def save(
    folder: Path,
    model: Module,
    optimizer: Optimizer,
    history: History,
    random: dict[str, Tensor],
    settings: dict[str, Any],
) -> None:
    """Write everything to `FILE` in ``folder``, in one piece: see `attnlib.training.weights.write`.

    ``random`` are the states of the random numbers, those of process 1 with "/1" after their names.
    """
    tensors = {f"model/{name}": tensor for name, tensor in weights_of(model).items()}
    plain: dict[str, dict[str, Any]] = {}
    for i, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                tensors[f"optimizer/{i}/{name}"] = value
            else:
                plain.setdefault(str(i), {})[name] = value
    tensors |= {f"random/{device}": state for device, state in random.items()}
    tensors["history/loss"] = torch.tensor(history.loss, dtype=torch.float64)
    beside = {
        "settings": settings,
        "optimizer": plain,
        "groups": [_options(group) for group in optimizer.param_groups],
        "metrics": history.metrics,
        "seconds": history.seconds,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / FILE, tensors, {"attnlib": json.dumps(beside, default=_refuse)})


def load(
    folder: Path,
    model: Module,
    optimizer: Optimizer,
    settings: Callable[[int], dict[str, Any]],
    steps: int,
    rank: int = 0,
) -> History | None:
    """Put model, optimizer and random numbers back to what ``folder`` holds, and return how far the run had come.

    The random numbers are those of process ``rank``; where it had none, they stay as they are.

    ``settings`` is a function of the steps that were taken, since of a schedule only these can be compared. None
    where there is no checkpoint. Raises ``ValueError`` when it is one of another run, or further than ``steps``,
    having changed nothing.
    """
    path = folder / FILE
    if not path.exists():
        return None
    tensors, metadata = read(path)
    if "attnlib" not in metadata:
        raise ValueError(f"{path} must be a checkpoint that fit wrote; it holds something else")
    beside = json.loads(metadata["attnlib"])
    done = len(tensors["history/loss"])
    _compare(path, beside["settings"], settings(done))
    if done > steps:
        raise ValueError(f"steps must be at least {done}, which {path} has; got {steps}")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "random": {}, "history": {}}
    for name, tensor in tensors.items():
        part, rest = name.split("/", 1)
        parts[part][rest] = tensor
    put_weights(model, parts["model"], str(path))
    _put_optimizer(optimizer, parts["optimizer"], beside)
    set_random_state(of_process(parts["random"], model, rank))
    metrics = {name: (steps, values) for name, (steps, values) in beside["metrics"].items()}
    return History(parts["history"]["loss"].tolist(), metrics, seconds=beside["seconds"])


def tidy(folder: Path) -> None:
    """Remove what a run that was killed while it wrote has left."""
    for part in folder.glob(f"{FILE}.*{PART}"):
        part.unlink(missing_ok=True)


def settings_of(model: Module, optimizer: Optimizer, **others: Any) -> dict[str, Any]:
    """What decides how a run goes, as far as it can be written down; ``others`` are settings of `fit`.

    The batches, the loss and what a module does in ``forward`` cannot: to keep those is for the caller.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = optimizer.param_groups
    kinds = {name: [str(x.dtype).removeprefix("torch."), list(x.shape)] for name, x in weights_of(model).items()}
    made = {
        "parameters": kinds,
        "trained": {
            names.get(id(parameter), f"parameter {j} of group {i}, not of the model"): f"{j} of group {i}"
            for i, group in enumerate(groups)
            for j, parameter in enumerate(group["params"])
        },
        "optimizer": type(optimizer).__name__,
        "options": {f"{i}.{key}": value for i, group in enumerate(groups) for key, value in _options(group).items()},
        "modules": dict(enumerate(re.sub(r" at 0x[0-9a-f]+", "", str(model)).splitlines())),
        **others,
    }
    return json.loads(json.dumps(made, default=_refuse))  # tuples become lists, as they will when read back


def _put_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor], beside: dict[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {int(i): dict(values) for i, values in beside["optimizer"].items()}
    for name, tensor in tensors.items():
        i, key = name.split("/", 1)
        state.setdefault(int(i), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    for group, options in zip(groups, beside["groups"], strict=True):
        group |= {key: tuple(x) if isinstance(group.get(key), tuple) else x for key, x in options.items()}
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _options(group: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in group.items() if key != "params"}
    return {key: value.item() if isinstance(value, torch.Tensor) else value for key, value in plain.items()}


def _refuse(value: object) -> None:
    raise TypeError(f"optimizer must keep tensors and plain numbers only, to be stored; got {type(value).__name__}")


def _compare(path: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    wrong = []
    for key in here | there:
        a, b = there.get(key), here.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found = [(f"{key}[{name}]", a.get(name), b.get(name)) for name in a | b if a.get(name) != b.get(name)]
            wrong += found[:3] + [(f"{len(found) - 3} more of {key}", "other", "these")] * (len(found) > 3)
        elif a != b:
            wrong.append((key, a, b))
    if wrong:
        said = "; ".join(f"{name} was {_words(a)} and is {_words(b)}" for name, a, b in wrong)
        raise ValueError(
            f"checkpoint must be a folder of this run; {path} is one of another: {said}. "
            "Go on with what it was written with, or name another folder"
        )


def _words(value: object) -> str:
    return "nothing" if value is None else str(value).strip()
