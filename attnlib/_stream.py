"""Torch's random numbers: those of a training run, apart from everybody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["own_stream", "random_state", "set_random_state"]


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
