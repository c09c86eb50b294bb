"""Several processes that train one model, each on its share of every batch; or the one that trains alone.

Torchrun starts them and tells each, in its environment, who it is. What they tell each other are tensors: nothing is
pickled on the way.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from attnlib._base.seeds import generator

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["Processes", "joined", "loopback"]

_MEETINGS = count()
_ENDED: list[dist.ProcessGroup] = []


@dataclass(frozen=True)
class Processes:
    """Which of how many this one is. Every method is for all of them to call, in the same order.

    ``device`` is where a tensor must lie to be sent.

    >>> Processes().sums(2.0, 0.5), Processes().any(False)
    ([2.0, 0.5], False)
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    def sums(self, *numbers: float) -> list[float]:
        """Each of ``numbers``, added up over the processes: the same answer for all, to the last bit."""
        if self.size == 1:
            return list(numbers)
        received = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(received)
        return received.tolist()

    def any(self, flag: bool) -> bool:
        """Does one of them say yes?"""
        return self.sums(float(flag))[0] > 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """All leave at the same time. When one of them fails inside, all fail: they would wait for it for ever."""
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):  # the others may be gone
                self.any(True)
            raise
        if self.any(False):
            raise RuntimeError("another of the processes failed at the same place, and says why")

    def gathered(self, states: dict[str, Tensor]) -> dict[str, Tensor]:
        """The ``states`` of all, bytes by name: those of process 1 with "/1" after the names, and so on."""
        found = dict(states)
        for name, state in states.items() if self.size > 1 else ():
            received = [torch.empty_like(state, device=self.device) for _ in range(self.size)]
            dist.all_gather(received, state.to(self.device))
            found |= {f"{name}/{rank}": received[rank].to(state.device) for rank in range(1, self.size)}
            found[name] = received[0].to(state.device)
        return found

    @torch.no_grad()
    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Make ``tensors`` what they are in process 0."""
        for tensor in tensors if self.size > 1 else ():
            received = tensor.detach().flatten().contiguous().view(torch.uint8)  # not every kind of number can be sent
            dist.broadcast(received, src=0)
            if self.rank:
                tensor.copy_(received.view(tensor.dtype).reshape(tensor.shape))

    def wrapped(self, module: Module) -> Module:
        """``module``, with gradients that are means over the processes, and the weights and buffers of process 0."""
        # A batch may leave a parameter unused. That this is looked for also keeps the gradients in the groups in which
        # they are sent: from three processes on, the groups decide in which order numbers are added, and a run that
        # goes on would have others for a step.
        return DistributedDataParallel(module, find_unused_parameters=True)

    def seed(self, seed: int) -> int:
        """The seed of this one's own random numbers: ``seed`` for process 0, as if it were alone."""
        return int(generator((seed, self.rank)).integers(2**63)) if self.rank else seed


@contextmanager
def joined(model: Module) -> Iterator[Processes]:
    """The processes that train ``model``: those of the caller's group, or of torchrun, or this one alone.

    A group that is made here ends here; the caller's is left as it is.
    """
    if not dist.is_available():
        yield Processes()
        return
    made = not dist.is_initialized() and "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    kind = next(model.parameters()).device.type
    if made:
        _meet("gloo" if kind == "cpu" else f"cpu:gloo,{kind}:{dist.get_default_backend_for_device(kind)}")
    try:
        if dist.is_initialized():
            yield Processes(dist.get_rank(), dist.get_world_size(), kind if dist.get_backend() == "nccl" else "cpu")
        else:
            yield Processes()
    finally:
        if made:
            # Should a DistributedDataParallel that is still alive (in a traceback, say) be the last to hold the group,
            # it would end it with Python's lock in its hands, for which the group's threads may be waiting.
            _ENDED[:] = [dist.group.WORLD]
            dist.destroy_process_group()


def _meet(backend: str) -> None:
    """Make the group. Each has names of its own in the store, where those of an earlier one may still stand."""
    store = dist.PrefixStore(f"attnlib/{next(_MEETINGS)}", _store())
    with loopback():
        dist.init_process_group(
            backend, store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
        )


@contextmanager
def loopback() -> Iterator[None]:
    """Where all are on one machine, nothing needs to leave it, and its name need not be known to anyone."""
    name, lone = "GLOO_SOCKET_IFNAME", os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    loops = [loop for _, loop in socket.if_nameindex() if loop in ("lo", "lo0")] if lone else []
    if name in os.environ or not loops:
        yield
        return
    os.environ[name] = loops[0]
    try:
        yield
    finally:
        del os.environ[name]


@lru_cache
def _store() -> dist.Store:  # type: ignore[name-defined]  # torch's stubs do not name it
    return next(dist.rendezvous("env://"))[0]
