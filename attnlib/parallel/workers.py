"""Processes on this machine that run one function together, each knowing its rank, and what they return."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, start_processes

from attnlib._base.checks import check_at_least_one, check_positive
from attnlib.training.distributed import loopback

__all__ = ["run"]

_START = "forkserver" if sys.platform == "linux" else "spawn"


def run(function: Callable[..., Any], n_processes: int, *arguments: Any, seconds: float = 300.0) -> list[Any]:
    """``function(*arguments)`` in each of ``n_processes`` that have a `torch.distributed` group; what each returned.

    They talk over gloo, on this machine alone, with one thread each. Every process gets a copy of its own of the
    arguments. The function must stand in a module that can be imported: what a notebook's cell defines can not.

    Raises ``RuntimeError`` when one of them raises (with its words), is killed or is not done after ``seconds``; none
    is left running then. ``ValueError`` and ``TypeError`` for a number of processes below one, or a function that
    cannot be found by its name.

    >>> run(divmod, 2, 7, 3)
    [(2, 1), (2, 1)]
    """
    check_at_least_one("n_processes", n_processes)
    check_positive("seconds", seconds)
    if getattr(function, "__module__", "__main__") == "__main__" or "<" in getattr(function, "__qualname__", "<"):
        raise TypeError(f"function must be one that other processes can import from a module; got {function!r}")
    if _START == "forkserver":  # what is loaded here is loaded once for all of them
        multiprocessing.set_forkserver_preload([name for name in sys.modules if name.startswith("attnlib.")])
    with TemporaryDirectory() as folder:
        call = pickle.dumps((function, arguments))  # a copy for each: torch would share the memory of tensors
        context = start_processes(
            _work, (n_processes, folder, call), n_processes, join=False, start_method=_START
        )  # fmt: skip
        _wait(context, n_processes, seconds)
        return [pickle.loads((Path(folder) / str(rank)).read_bytes()) for rank in range(n_processes)]


def _wait(context: Any, n_processes: int, seconds: float) -> None:
    """Until all are done. The first to fail ends the others."""
    end, log = monotonic() + seconds, logging.getLogger("torch.multiprocessing.spawn")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of each process that it ends
    try:
        while not context.join(timeout=max(0.0, end - monotonic())):
            if monotonic() >= end:
                raise RuntimeError(
                    f"the {n_processes} processes were not done after {seconds:g} seconds, and were ended"
                )
    except ProcessExitedException as error:
        how = f"was killed ({error.signal_name})" if error.signal_name else f"ended with code {error.exit_code}"
        raise RuntimeError(f"process {error.error_index} of {n_processes} {how}, and the others were ended") from None
    except ProcessRaisedException as error:
        words = str(error).strip()
        raise RuntimeError(f"process {error.error_index} of {n_processes} failed: {words.splitlines()[-1]}") from error
    finally:
        log.setLevel(level)
        for process in context.processes:
            if process.is_alive():
                process.kill()


def _work(rank: int, n_processes: int, folder: str, call: bytes) -> None:
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch")  # torch's, of its own names
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(n_processes), "LOCAL_WORLD_SIZE": str(n_processes)}
    with loopback():
        store = dist.FileStore(str(Path(folder) / "store"), n_processes)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=n_processes)
    function, arguments = pickle.loads(call)
    found = function(*arguments)
    (Path(folder) / str(rank)).write_bytes(pickle.dumps(found))
    dist.barrier()
    dist.destroy_process_group()
