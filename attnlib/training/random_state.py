"""Torch's random numbers: those of a training run, apart from everybody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["of_process", "own_stream", "random_state", "set_random_state"]


def random_state(model: Module) -> dict[str, Tensor]:
    """The state of torch's random numbers on the CPU and on every device of ``model``, by device.

    >>> list(random_state(torch.nn.Linear(1, 1)))
    ['cpu']
    """
    devices = {str(parameter.device) for parameter in model.parameters()} - {"cpu"}
    return {device: _stream(device).get_state() for device in ["cpu", *sorted(devices)]}


def set_random_state(states: dict[str, Tensor]) -> None:
    """Go back to ``states``; those of a device that this machine lacks are left out."""
    for device, state in states.items():
        if device == "cpu" or torch.get_device_module(device.partition(":")[0]).is_available():
            _stream(device).set_state(state)


def of_process(states: dict[str, Tensor], model: Module, rank: int) -> dict[str, Tensor]:
    """Those of ``states`` that are of process ``rank``, by the devices which it has now.

    A state has the name that its device has in process 0: the only GPU of process 1 may be cuda:0 there, cuda:1 here.

    >>> list(of_process({"cpu": torch.zeros(1), "cpu/1": torch.ones(1)}, torch.nn.Linear(1, 1), rank=1).values())
    [tensor([1.])]
    """
    split = {name: name.partition("/") for name in sorted(states)}
    own = [(device, states[name]) for name, (device, _, of) in split.items() if int(of or 0) == rank]
    pairs = zip(random_state(model), own, strict=False)
    return {here: state for here, (there, state) in pairs if here.partition(":")[0] == there.partition(":")[0]}


@contextmanager
def own_stream(model: Module, seed: int) -> Iterator[None]:
    """Random numbers that begin at ``seed``; afterwards the caller's go on as if nothing had been drawn.

    >>> with own_stream(torch.nn.Linear(1, 1), seed=0):
    ...     torch.rand(1)
    tensor([0.4963])
    """
    before = random_state(model)
    try:
        for device in before:
            _stream(device).manual_seed(seed)
        yield
    finally:
        set_random_state(before)


def _stream(device: str) -> torch.Generator:
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return torch.default_generator
    if kind == "mps":
        return torch.mps._get_default_mps_generator()
    module = torch.get_device_module(kind)
    module.init()
    return module.default_generators[int(index or 0)]
