"""What lesson 19 has no time to train, five seeds of each. ``make studies`` writes ``in_context.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from attnlib import attention, gaussian
from attnlib.data.functions import Examples, planes
from attnlib.models import InContext
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import table

SEEDS, NOISE = range(5), 0.2
torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

WORDS = f"""\
# Five seeds of what lesson 19 does not train

Made by `make studies`, on {described()}.

## Planes

The learner of lesson 19 (three layers, 1,200 steps of 32 prompts, and then trained anew with 3,600): mean square error
of the next y, by the number of examples before it, then with 10 examples whose x are three times as large. 5,000 new
prompts; the noise alone is {NOISE**2:.2f}. Kernel regression and the gradient step have the best setting for each
column. Seeds 0, 1 and 2 with 1,200 steps are the runs of the lesson.

"""


def page() -> str:
    """The table, as Markdown."""

    def ridge(x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        return query @ torch.linalg.solve(x.mT @ x + NOISE**2 * torch.eye(2), x.mT @ y)

    def least_squares(x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        return query @ torch.linalg.pinv(x) @ y

    def step(rate: float, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        return rate * (query @ x.mT) @ y / x.shape[1]

    at = (2, 3, 4, 10)
    test, far = planes(5000, 11, seed=(99, 0)), planes(5000, 11, scale=3.0, seed=(99, 1))

    def row(name: str, *methods: Callable[..., Tensor]) -> list[str]:
        """The best of ``methods`` in each column."""
        grid = [[*_by_number(method, test, at), *_by_number(method, far, at[-1:])] for method in methods]
        return [name, *(min(column, key=float) for column in zip(*grid, strict=True))]

    rows = [["", *(f"{n} examples" for n in at), "10, three times as large"]]
    rows += [["---:"] * len(rows[0]), row("ridge", ridge), row("least squares", least_squares)]
    rows.append(row("kernel regression", *(partial(_kernel, h) for h in np.geomspace(0.1, 6, 42))))
    rows.append(row("one gradient step", *(partial(step, rate) for rate in np.geomspace(0.02, 1.5, 87))))
    for steps, seed in tqdm([(steps, seed) for steps in (1200, 3600) for seed in SEEDS], desc="learners"):
        model = _learner(steps, seed)
        found = [_errors(model, data) for data in (test, far)]
        rows.append([f"seed {seed}, {steps:,} steps", *(f"{found[0][n]:.3f}" for n in at), f"{found[1][10]:.3f}"])
    return WORDS + table(rows)


def _kernel(h: float, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
    return attention(query, x, y, score=partial(gaussian, bandwidth=h)).out


def _learner(steps: int, seed: int) -> InContext:
    torch.manual_seed(seed)
    model = InContext(2, 1)
    schedule = warmup_cosine(60, steps)
    loss = lambda model, data: ((model(data.x, data.y) - data.y) ** 2).mean()  # noqa: E731
    fit(model, lambda s: planes(32, 11, seed=(seed, s)), loss, steps=steps, lr=1e-2, schedule=schedule, progress=False)
    return model


@torch.no_grad()
def _errors(model: InContext, data: Examples) -> Tensor:
    return ((model(data.x, data.y) - data.y) ** 2).mean((0, 2))


def _by_number(method: Callable[..., Tensor], data: Examples, at: Iterable[int]) -> list[str]:
    found = (method(data.x[:, :n], data.y[:, :n], data.x[:, n : n + 1]) - data.y[:, n : n + 1] for n in at)
    return [f"{(error**2).mean():.3f}" for error in found]
