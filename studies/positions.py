"""What lesson 08 asks of rotary's clocks and of ALiBi's slopes. ``make studies`` writes ``positions.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib import MultiHeadAttention, causal, positions, tasks
from attnlib.data.tasks import Latest, Lookback
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import extent, table

D, HEADS, LONG = 32, 4, 128
GROUPS = np.arange(4, LONG, 4)  # places are counted in groups of four; the first has nothing to look back at
ENOUGH = 0.8
SEEDS, FEWER = range(10), range(5)
BASES = (100, 1_000, 10_000, 100_000, 1_000_000, 100_000_000)
USUAL = positions.alibi_slopes(HEADS)
SLOPES = {
    "the usual: ¼, 1/16, 1/64, 1/256": USUAL,
    "1/8 in all heads": [1 / 8] * HEADS,
    "¼ in all heads": [1 / 4] * HEADS,
    "½ in all heads": [1 / 2] * HEADS,
    "1 in all heads": [1.0] * HEADS,
    "2 in all heads": [2.0] * HEADS,
    "the usual, but the farther preferred": -USUAL,
}
LONGER = ("the usual: ¼, 1/16, 1/64, 1/256", "½ in all heads")

HEAD = f"""\
# How far rotary and ALiBi reach

Made by `make studies`, on {described()}.

The models of lesson 08: one causal layer, four heads of eight numbers, 200 steps on sentences of 16. Right answers in
per cent, or the first place from which fewer than {100 * ENOUGH:.0f} are right (in groups of four places,
up to {LONG - 1}): the lowest and the highest of all runs.

"""
CLOCKS = f"""\
## Clocks

Each head has four clocks; the first turns by 1 radian a step, whatever the base. {len(SEEDS)} runs.

"""
LENGTHS = f"""
## Length of training

Looking back, with a base of 10,000, trained on sentences of another length. {len(FEWER)} runs.

"""
BIASES = f"""
## Slopes

ALiBi at looking back. {len(FEWER)} runs.

"""


def page() -> str:
    """All tables, as Markdown."""
    torch.set_default_dtype(torch.float64)
    return HEAD + CLOCKS + clocks() + LENGTHS + lengths() + BIASES + slopes()


def clocks() -> str:
    """How far models reach whose clocks turn more slowly, or one of whose clocks does."""
    usual, slow = clock_rates(10_000), clock_rates(1_000_000)
    kinds = {f"a base of {base:,}": clock_rates(base) for base in BASES}
    kinds["10,000, only the second as with 1,000,000"] = np.where(np.arange(4) == 1, slow, usual)
    kinds["1,000,000, only the second as with 10,000"] = np.where(np.arange(4) == 1, usual, slow)
    heads = ["clocks", "second is halfway at step", "looking back, fails from", "looking back, 56 to 63"]
    rows = [[*heads, "last mark, 56 to 63"], [":---"] + 4 * ["---:"]]
    for name, rates in tqdm(kinds.items(), desc="clocks"):
        back, last = (
            [by_place(trained(seed, task, rates=rates), task) for seed in SEEDS]
            for task in (tasks.lookback, tasks.latest)
        )
        rows.append([name, f"{np.pi / rates[1]:.0f}", fails(back), between(back, 56, 64), between(last, 56, 64)])
    return table(rows)


def lengths() -> str:
    """How far models reach that were trained on shorter and on longer sentences."""
    rows = [["trained on", "fails from"], ["---:"] * 2]
    for n in tqdm((8, 12, 16, 24, 32, 48, 64), desc="lengths"):
        models = [trained(seed, tasks.lookback, rates=clock_rates(10_000), n=n) for seed in FEWER]
        rows.append([str(n), fails([by_place(model, tasks.lookback) for model in models])])
    return table(rows)


def slopes() -> str:
    """How well ALiBi looks back with other slopes, and with more steps."""
    rows = [["slopes", "steps", "places 4 to 15", "places 56 to 63"], [":---"] + 3 * ["---:"]]
    kinds = [(name, 200) for name in SLOPES] + [(name, 2000) for name in LONGER]
    for name, steps in tqdm(kinds, desc="slopes"):
        models = [trained(seed, tasks.lookback, slopes=SLOPES[name], steps=steps) for seed in FEWER]
        found = [by_place(model, tasks.lookback) for model in models]
        rows.append([name, f"{steps:,}", between(found, 4, 16), between(found, 56, 64)])
    return table(rows)


def clock_rates(base: float) -> np.ndarray:
    """How far each clock of a head turns in a step."""
    return base ** (-np.arange(0, 8, 2) / 8)


class Reader(nn.Module):
    """The lesson's layer, with clocks that turn at some rates, or with ALiBi's bias."""

    def __init__(self, rates: Sequence[float] | None, slopes: Sequence[float] | None) -> None:
        super().__init__()
        self.embed, self.attend = nn.Embedding(16, D), MultiHeadAttention(D, HEADS)
        self.head = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 8))
        self.rates, self.slopes = rates, slopes

    def forward(self, tokens: Tensor) -> Tensor:
        """The logits of every place."""
        x, n = self.embed(tokens), tokens.shape[1]
        options: dict[str, Any] = {"mask": causal(n, like=x)}
        if self.rates is not None:
            options["rotate"] = self.turned
        else:
            back = torch.arange(n)[:, None] - torch.arange(n)
            options["bias"] = -torch.tensor(self.slopes)[:, None, None] * back
        return self.head(x + self.attend(x, **options).out)

    def turned(self, x: Tensor, start: int = 0) -> Tensor:
        """Queries or keys, turned by their place."""
        angles = torch.arange(start, start + x.shape[-2])[:, None] * torch.tensor(self.rates)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), dim=-1)


def trained(
    seed: int,
    task: Callable[..., Lookback | Latest],
    *,
    rates: Sequence[float] | None = None,
    slopes: Sequence[float] | None = None,
    n: int = 16,
    steps: int = 200,
) -> Reader:
    """A model as the lesson trains it."""
    torch.manual_seed(seed)
    model = Reader(rates, slopes)
    fit(
        model,
        lambda step: task(32, n, seed=(seed, step)),
        lambda model, batch: cross_entropy(model(batch.tokens).mT, batch.target, ignore_index=tasks.IGNORE),
        steps=steps,
        lr=0.01,
        schedule=warmup_cosine(30, steps),
        progress=False,
    )
    return model


@torch.no_grad()
def by_place(model: Reader, task: Callable[..., Lookback | Latest]) -> np.ndarray:
    """The share of right answers in each group of places."""
    test = task(200, LONG, seed=99_999)
    right = (model(test.tokens).argmax(-1) == test.target).double()
    right[test.target == tasks.IGNORE] = torch.nan
    return right[:, 4:].reshape(200, len(GROUPS), 4).nanmean((0, 2)).numpy()


def fails(found: Sequence[np.ndarray]) -> str:
    """The first place of the first group that is not right often enough, over all runs."""
    starts = [int(GROUPS[np.argmax(shares < ENOUGH)]) if (shares < ENOUGH).any() else LONG for shares in found]
    words = ["never" if start == LONG else str(start) for start in (min(starts), max(starts))]
    return words[0] if words[0] == words[1] else " to ".join(words)


def between(found: Sequence[np.ndarray], first: int, last: int) -> str:
    """The mean of some places, in per cent: the lowest and the highest run."""
    return extent([100 * shares[(first - 4) // 4 : (last - 4) // 4].mean() for shares in found])
