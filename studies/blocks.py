"""What lesson 10 leaves out of a layer, several seeds each. ``make studies`` writes ``blocks.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import nan
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm
from torch.optim import Optimizer
from tqdm import tqdm

from attnlib import MultiHeadAttention, tasks
from attnlib.nn import FeedForward
from attnlib.training import fit
from attnlib.training.run import adamw
from studies.machine import described
from studies.tables import listed, table

DRAWS, DEPTH, AFTER = range(12), 24, (3, 12, 24)
SETTINGS = {  # rate, steps, steps of warm-up, seeds
    "0.006, no warm-up": (0.006, 180, 1, range(9)),
    "0.006, warm-up": (0.006, 180, 60, range(9)),
    "0.006, no warm-up, 540 steps": (0.006, 540, 1, range(5)),
    "0.001, no warm-up, 400 steps": (0.001, 400, 1, range(5)),
}
LAYERS = {
    "the lower three": (0, 1, 2),
    "the upper three": (3, 4, 5),
    "every other, from the first": (0, 2, 4),
    "every other, from the second": (1, 3, 5),
}
STARTS = {  # the number, layers
    "a half": (0.5, 6),
    "a tenth": (0.1, 6),
    "twelve layers, a tenth": (0.1, 12),
    "twelve layers, zero": (0.0, 12),
}
END = (0.0003, 5000, 0.1)  # rate, most steps, and the loss at which the task is learned
torch.set_default_dtype(torch.float64)

HEAD = f"""\
# What stands around attention: several seeds each

Made by `make studies`, on {described()}.

## How different 16 words stay

Random rows of 64 numbers through {DEPTH} layers with fresh weights, {len(DRAWS)} draws of both. The spread is the size
of what is left of the words when their mean is taken off, compared with what was there. Lowest and highest of the
draws, 1e-12 standing for less. The first draw is the lesson's.

"""

TRAINED = """
## What learns

Stacks of six layers learn to say which of eight symbols stood one place back. Mean loss of the last 20 steps, a number
a seed, seeds from 0 on; 180 steps where nothing else is said, a warm-up of 60. Guessing has 2.08, the symbols without
their order 1.81. "nan" stands where the gradient was no finite number before the end.

"""

WARMED = f"""
## Which layers need the warm-up

Post-norm again, at 0.006, 180 steps and nine seeds; these layers alone have the warm-up, and all else begins at the
full rate. (The first layer is the one that reads the embeddings.) How many seeds have learned, their loss being below
{END[2]}, and the lowest and the highest loss.

"""

SMALL = """
## Smaller at the start

At 0.006, without a warm-up, 180 steps and nine seeds: the last matrix of each attention and of each network, with its
bias, multiplied by this number before the first step, and never again. How many have learned, and the range of losses.
Six layers where nothing else is said.

"""

TO_THE_END = f"""
## Trained to the end

The four at a rate of {END[0]}, without a warm-up, for as long as {END[1]:,} steps, and three that are smaller at the
start: after how many the mean loss of 20 steps is below {END[2]}, or what it is at the end.

"""


def normal(x: Tensor) -> Tensor:
    """Layer normalisation without scale and shift."""
    return layer_norm(x, x.shape[-1:])


WAYS: dict[str, Callable[..., Tensor]] = {
    "norm(f(x))": lambda x, f: normal(f(x)),
    "x + f(x)": lambda x, f: x + f(x),
    "post-norm": lambda x, f: normal(x + f(x)),
    "pre-norm": lambda x, f: x + f(normal(x)),
}
KINDS: dict[str, Callable[..., Tensor]] = {
    "attention": lambda x, attend, network: attend(x),
    "attention, network": lambda x, attend, network: network(attend(x)),
    "network alone": lambda x, attend, network: network(x),
    "attention, normalised": lambda x, attend, network: normal(attend(x)),
    "x + attention": lambda x, attend, network: x + attend(x),
    "norm(x + attention)": lambda x, attend, network: normal(x + attend(x)),
    "x + attention of the normalised x": lambda x, attend, network: x + attend(normal(x)),
    "the same, times the size of x": lambda x, attend, network: x + x.square().mean().sqrt() * attend(normal(x)),
}


def page() -> str:
    """All tables, as Markdown."""
    return HEAD + spreads() + TRAINED + losses() + WARMED + warmed() + SMALL + smaller() + TO_THE_END + to_the_end()


@torch.no_grad()
def spreads() -> str:
    """For every kind of layer a row, the spread after some of the layers."""
    rows = [["layers of", *(f"after {n}" for n in AFTER)], [":---"] + ["---:"] * len(AFTER)]
    found: dict[str, list[list[float]]] = {name: [] for name in KINDS}
    for seed in DRAWS:
        torch.manual_seed(seed)
        words = torch.randn(16, 64)
        attentions = [MultiHeadAttention(64, 4) for _ in range(DEPTH)]
        networks = [FeedForward(64, 256) for _ in range(DEPTH)]
        for name, step in KINDS.items():
            x, one = words, []
            for attention, network in zip(attentions, networks, strict=True):
                x = step(x, lambda x, attention=attention: attention(x).out, network)
                one.append(((x - x.mean(dim=0)).norm() / x.norm()).item())
            found[name].append([one[n - 1] for n in AFTER])
    for name, draws in found.items():
        rows.append([name, *(_extent(column) for column in zip(*draws, strict=True))])
    after, added = ([draw[-1] for draw in found[name]] for name in ("norm(x + attention)", "x + attention"))
    closer = sum(a < b for a, b in zip(after, added, strict=True))
    said = f"After {DEPTH} layers, norm(x + attention) has less than x + attention in {closer} of {len(DRAWS)} draws."
    return f"{table(rows)}\n{said}\n"


def _extent(values: Sequence[float]) -> str:
    low, high = (f"{max(value, 1e-12):.2g}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def losses() -> str:
    """For every rate and warm-up a row, the losses of all seeds in each cell."""
    rows = [["rate", *WAYS], [":---"] * (1 + len(WAYS))]
    total = len(WAYS) * sum(steps * len(seeds) for _, steps, _, seeds in SETTINGS.values())
    with tqdm(total=total, desc="steps") as bar:
        for name, (rate, steps, warmup, seeds) in SETTINGS.items():
            cells = []
            for way in WAYS.values():
                cells.append(listed([final_loss(way, rate, steps, warmup, seed) for seed in seeds], digits=2))
                bar.update(steps * len(seeds))
            rows.append([name, *cells])
    return table(rows)


def final_loss(way: Callable[..., Tensor], rate: float, steps: int, warmup: int, seed: int, **options: Any) -> float:
    """What the lesson's function of this name gives; options are those of `trained`."""
    try:
        return sum(trained(way, rate, steps, warmup, seed, **options)[-20:]) / 20
    except FloatingPointError:
        return nan


def warmed() -> str:
    """What post-norm has learned when some of its layers alone have the warm-up."""
    rows = [["layers with a warm-up", "learned (loss)"], [":---"] * 2]
    for name, layers in tqdm(LAYERS.items(), desc="warm-ups"):
        ends = [final_loss(WAYS["post-norm"], 0.006, 180, 1, seed, warm=layers) for seed in range(9)]
        rows.append([name, _learned(ends)])
    return table(rows)


def _learned(losses: Sequence[float]) -> str:
    return f"{sum(loss < END[2] for loss in losses)} of {len(losses)} ({min(losses):.2f} to {max(losses):.2f})"


def smaller() -> str:
    """What is learned where all that the parts write is made smaller at the start."""
    rows = [["at the start", *WAYS], [":---"] * (1 + len(WAYS))]
    for name, (times, depth) in tqdm(STARTS.items(), desc="smaller"):
        options = {"start": times, "depth": depth}
        ends = [[final_loss(way, 0.006, 180, 1, seed, **options) for seed in range(9)] for way in WAYS.values()]
        rows.append([name, *map(_learned, ends)])
    return table(rows)


def warming(stack: Stack, layers: Sequence[int], steps: int = 60) -> Callable[[Iterable[Tensor], float], Optimizer]:
    """The optimizer of `fit`, with a warm-up for these layers of the stack alone."""
    warm = {id(p) for i in layers for part in (stack.attentions[i], stack.networks[i]) for p in part.parameters()}

    def optimizer(parameters: Iterable[Tensor], lr: float) -> Optimizer:
        split: list[list[Tensor]] = [[], []]
        for parameter in parameters:
            split[id(parameter) in warm].append(parameter)
        found, done = adamw([{"params": part} for part in split], lr), count(1)

        def slow(found: Optimizer, *_: object) -> None:
            found.param_groups[1]["lr"] *= min(1, next(done) / steps)

        found.register_step_pre_hook(slow)
        return found

    return optimizer


def trained(
    way: Callable[..., Tensor],
    rate: float,
    steps: int,
    warmup: int,
    seed: int,
    *,
    warm: Sequence[int] = (),
    start: float = 1,
    depth: int = 6,
) -> list[float]:
    """The loss of every step.

    With ``warm`` these layers alone have a warm-up; what the parts write begins ``start`` times as large.
    """
    torch.manual_seed(seed)
    stack = Stack(way, depth)
    writers = [attend.out_proj for attend in stack.attentions] + [network.linear2 for network in stack.networks]
    with torch.no_grad():
        for writer in writers:
            for parameter in writer.parameters():
                parameter *= start
    history = fit(
        stack,
        lambda step: tasks.lookback(16, 16, offset=1, seed=(seed, step)),
        lambda model, batch: cross_entropy(model(batch.tokens).mT, batch.target, ignore_index=tasks.IGNORE),
        steps=steps,
        lr=rate,
        schedule=lambda step: min(1, (step + 1) / warmup),
        optimizer=warming(stack, warm) if warm else None,
        progress=False,
    )
    return history.loss


def to_the_end() -> str:
    """When each of the four, and three that begin smaller, have learned the task, seed by seed."""
    rate, steps, enough = END
    rows = [["", "seed 0", "seed 1", "seed 2"], [":---"] * 4]
    residual = ("pre-norm", "post-norm", "x + f(x)")
    for name, start in [(name, 1) for name in (*residual, "norm(f(x))")] + [(name, 0.1) for name in residual]:
        row = [name if start == 1 else f"a tenth at the start: {name}"]
        for seed in range(3):
            loss = np.convolve(trained(WAYS[name], rate, steps, 1, seed, start=start), np.full(20, 1 / 20), "valid")
            done = (loss < enough).any()
            row.append(f"{20 + np.argmax(loss < enough):,} steps" if done else f"never ({loss[-1]:.2f})")
        rows.append(row)
    return table(rows)


class Stack(nn.Module):
    """The lesson's layers, in one of the ways."""

    def __init__(self, way: Callable[..., Tensor], depth: int, d: int = 32) -> None:
        super().__init__()
        self.embed, self.places, self.way = nn.Embedding(8, d), nn.Parameter(torch.randn(16, d)), way
        self.attentions = nn.ModuleList(MultiHeadAttention(d, 4) for _ in range(depth))
        self.networks = nn.ModuleList(FeedForward(d, 4 * d) for _ in range(depth))
        self.head = nn.Linear(d, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        """The logits of every place."""
        x = self.embed(tokens) + self.places
        for attend, network in zip(self.attentions, self.networks, strict=True):
            x = self.way(self.way(x, lambda x, attend=attend: attend(x).out), network)
        return self.head(normal(x))
