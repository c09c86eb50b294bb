"""Where the time of a step goes, and what several processes add, for lesson 23. Writes ``processes.md``."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from time import perf_counter

import torch
from tqdm import tqdm

from attnlib import attention, parallel
from attnlib.models import GPT, GPTConfig
from attnlib.nn import EncoderLayer
from attnlib.parallel import steps
from studies.machine import described
from studies.tables import table

TURNS, STEPS = 15, 9
LAYERS = [(d, n) for d in (64, 256) for n in (64, 128, 256, 512, 1024, 2048, 4096)]
WAYS = {"alone": (1,), "texts": (2, 4), "weights": (2, 4), "heads": (2, 4), "positions": (2, 4)}
SIZES = tuple(product((64, 128, 192), ((4, 128), (16, 128), (4, 512))))

PAGE = f"""\
# Where the time goes

Made by `make studies`, on {described()}.

## One layer

A layer of four heads reads one text, forward, without a mask, in one thread: milliseconds for all of it and for its
attention alone (from queries, keys and values to their weighted mean), with all weights in memory and with torch's
fused kernel. The fastest of {TURNS} passes of each kind, taken in turn.

"""

STEPS_PAGE = f"""
## A step in several processes

Forward and backward through a GPT of two layers and four heads, 64 tokens, one thread a process; the processes share
this machine's cores and talk over its loopback. Seconds (the fastest of {STEPS} turns, as the slowest process has
them), and bytes that each process sent, the mean.

"""


def layer_times(d: int, n: int) -> list[str]:
    """Milliseconds of a layer and of its attention in the same pass, with all weights, then with the fused kernel."""
    torch.manual_seed(0)
    layer, x, inside = EncoderLayer(d, 4, 4 * d).eval(), torch.randn(1, n, d), []

    def watched(*arrays, **options):
        began = perf_counter()
        out = attention(*arrays, **options)
        inside.append(perf_counter() - began)
        return out

    layer.self_attention.attend = watched
    turns = [[(seconds(layer, x, weights=weights), inside[-1]) for weights in (True, False)] for _ in range(TURNS)]
    return [f"{1000 * time:.3f}" for way in zip(*turns, strict=True) for time in min(way)]


@torch.no_grad()
def seconds(layer: EncoderLayer, x: torch.Tensor, *, weights: bool) -> float:
    """What a pass takes."""
    began = perf_counter()
    layer(x, weights=weights)
    return perf_counter() - began


def several(way, model, tokens):
    """Some steps, each of the model as it was: the fastest, and what was sent."""
    found = [getattr(steps, way)(deepcopy(model), tokens) for _ in range(STEPS)]
    return min(step.seconds for step in found), found[-1].sent


def step_times(way: str, n_processes: int, width: int, rows: int, length: int) -> list[str]:
    """One row of the table."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(n_tokens=64, n_max=length, d_model=width, n_heads=4, n_layers=2))
    tokens = torch.randint(64, (rows, length + 1))
    found = parallel.run(several, n_processes, way, model, tokens)
    sent = sum(sent for _, sent in found) / n_processes
    return [f"{max(time for time, _ in found):.4f}", f"{sent:.0f}"]


def page() -> str:
    """The page, everything measured."""
    torch.set_num_threads(1)
    rows = [("width", "length", "layer", "attention", "fused layer", "fused attention"), ("---:",) * 6]
    rows += [(f"{d}", f"{n}", *layer_times(d, n)) for d, n in tqdm(LAYERS)]
    steps_rows = [("way", "processes", "width", "rows", "length", "seconds", "bytes sent"), ("---",) + ("---:",) * 6]
    settings = [(way, n, width, *size) for way, ns in WAYS.items() for n in ns for width, size in SIZES]
    steps_rows += [(way, *map(str, sizes), *step_times(way, *sizes)) for way, *sizes in tqdm(settings)]
    return PAGE + table(rows) + STEPS_PAGE + table(steps_rows)
