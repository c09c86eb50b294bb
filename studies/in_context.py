"""What lesson 19 has no time to train, five seeds of each. ``make studies`` writes ``in_context.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from attnlib import attention, gaussian
from attnlib.data.functions import Examples, planes, smooth
from attnlib.data.prompts import Repeated, repeated
from attnlib.interventions import cut
from attnlib.models import GPT, GPTConfig, InContext
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import table

SEEDS, NOISE, LENGTH = range(5), 0.2, 0.5
SYMBOLS, PERIODS, TEXT = 16, (8, 16), 32
ONE, WIDE, TWO = (
    {"n_layers": 1, "n_heads": 1, "d_ff": 64},
    {"n_layers": 1, "n_heads": 2, "d_ff": 256},  # as many heads and, nearly, as many numbers as two layers
    {"n_layers": 2, "n_heads": 1, "d_ff": 64},
)
STEPS = {1: 4500, 2: 1500}  # one layer has three times as long
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

SMOOTH = f"""
## Smooth curves

The same learner on draws of a Gaussian process (length {LENGTH}, noise {NOISE}, x between -1 and 1), 2,400 steps of 32
prompts of up to 20 examples. The exact posterior mean is the best that there is; the kernel regression has the best
bandwidth for this number of examples.

"""


def page() -> str:
    """All three tables, as Markdown."""
    with tqdm(total=6 * len(SEEDS), desc="learners") as bar:
        return WORDS + _planes(bar.update) + SMOOTH + _smooth(bar.update) + _induction_words() + _induction(bar.update)


def _planes(tick: Callable[[], object]) -> str:
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
    for steps in (1200, 3600):
        for seed in SEEDS:
            model = _learner(partial(planes, 32, 11), 2, steps, seed)
            found = [_errors(model, data) for data in (test, far)]
            rows.append([f"seed {seed}, {steps:,} steps", *(f"{found[0][n]:.3f}" for n in at), f"{found[1][10]:.3f}"])
            tick()
    return table(rows)


def _smooth(tick: Callable[[], object]) -> str:
    def posterior(x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        k = torch.exp(-((x - x.mT) ** 2) / (2 * LENGTH**2)) + NOISE**2 * torch.eye(x.shape[1])
        return torch.exp(-((query - x.mT) ** 2) / (2 * LENGTH**2)) @ torch.linalg.solve(k, y)

    at, draw = (2, 5, 10, 20), partial(smooth, n=21, length=LENGTH, noise=NOISE)
    test = draw(5000, seed=(99, 0))
    grid = [_by_number(partial(_kernel, h), test, at) for h in np.geomspace(0.05, 1, 20)]
    rows = [["", *(f"{n} examples" for n in at)], ["---:"] * (len(at) + 1)]
    rows.append(["exact posterior", *_by_number(posterior, test, at)])
    rows.append(["kernel regression", *(min(column) for column in zip(*grid, strict=True))])
    rows.append(["nearest", *_by_number(partial(_kernel, 1e-3), test, at)])
    for seed in SEEDS:
        found = _errors(_learner(partial(draw, 32), 1, 2400, seed), test)
        rows.append([f"seed {seed}", *(f"{found[n]:.3f}" for n in at)])
        tick()
    return table(rows)


def _induction_words() -> str:
    return f"""
## Repeats

GPTs (64 wide, one head a layer, sinusoidal positions, initial weights five times as large as GPT-2's) read {SYMBOLS}
random symbols that begin again after a period of {PERIODS[0]} to {PERIODS[1]}, {TEXT} symbols in all. Nats
for a symbol after the first period: a uniform guess costs {np.log(SYMBOLS):.2f}. The first row is for whoever knows
how often each symbol has come so far, the second for whoever gives all symbols that stand {PERIODS[0]} to
{PERIODS[1]} places back the same chance; neither knows the period. The wide layer has two heads and an inner layer of
{WIDE["d_ff"]}, and so as many heads as two layers and about as many numbers to learn ({_size(WIDE):,} beside
{_size(TWO):,}). The last columns are two layers without the head of one. 64 texts a step, {STEPS[2]:,} steps for two
layers and {STEPS[1]:,} for one.

"""


def _induction(tick: Callable[[], object]) -> str:
    test = repeated(1000, TEXT, PERIODS, n_symbols=SYMBOLS, seed=99)
    rows = [["", "one layer", "one wide layer", "two layers", "without the first head", "without the second"]]
    rows.append(["---:"] * len(rows[0]))
    rows.append(["how often each has come", *[f"{_bag(test):.2f}"] * 3, "", ""])
    rows.append([f"what stood {PERIODS[0]} to {PERIODS[1]} back", *[f"{_window(test):.2f}"] * 3, "", ""])
    for seed in SEEDS:
        *_, two = models = [_reader(sizes, seed, tick) for sizes in (ONE, WIDE, TWO)]
        found = [_nats(model, test) for model in models]
        for layer in two.layers:
            with cut(layer.self_attention, None, None):
                found.append(_nats(two, test))
        rows.append([f"seed {seed}", *(f"{nats:.2f}" for nats in found)])
    return table(rows)


def _gpt(sizes: dict[str, int]) -> GPT:
    return GPT(GPTConfig(n_tokens=SYMBOLS, n_max=TEXT, d_model=64, **sizes, position="sinusoidal"))


def _size(sizes: dict[str, int]) -> int:
    return sum(p.numel() for p in _gpt(sizes).parameters())


def _kernel(h: float, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
    return attention(query, x, y, score=partial(gaussian, bandwidth=h)).out


def _learner(draw: Callable[..., Examples], d_x: int, steps: int, seed: int) -> InContext:
    torch.manual_seed(seed)
    model = InContext(d_x, 1)
    schedule = warmup_cosine(60, steps)
    loss = lambda model, data: ((model(data.x, data.y) - data.y) ** 2).mean()  # noqa: E731
    fit(model, lambda s: draw(seed=(seed, s)), loss, steps=steps, lr=1e-2, schedule=schedule, progress=False)
    return model


@torch.no_grad()
def _errors(model: InContext, data: Examples) -> Tensor:
    return ((model(data.x, data.y) - data.y) ** 2).mean((0, 2))


def _by_number(method: Callable[..., Tensor], data: Examples, at: Iterable[int]) -> list[str]:
    found = (method(data.x[:, :n], data.y[:, :n], data.x[:, n : n + 1]) - data.y[:, n : n + 1] for n in at)
    return [f"{(error**2).mean():.3f}" for error in found]


def _reader(sizes: dict[str, int], seed: int, tick: Callable[[], object]) -> GPT:
    torch.manual_seed(seed)
    model, steps = _gpt(sizes), STEPS[sizes["n_layers"]]
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 5 if weight.ndim == 2 else 1

    def loss(model: GPT, tokens: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens[:, :-1]).logits.flatten(0, 1), tokens[:, 1:].flatten())

    def batch(step: int) -> Tensor:
        return repeated(64, TEXT, PERIODS, n_symbols=SYMBOLS, seed=(seed, step)).tokens

    fit(model, batch, loss, steps=steps, lr=3e-3, schedule=warmup_cosine(50, steps), progress=False)
    tick()
    return model


def _second(data: Repeated) -> Tensor:
    """Which of the symbols that are predicted come after the first period, its first symbol aside."""
    return torch.arange(1, data.tokens.shape[1]) > data.period[:, None]


@torch.no_grad()
def _nats(model: GPT, data: Repeated) -> float:
    log_p = model(data.tokens[:, :-1]).logits.log_softmax(-1)
    return -log_p.gather(-1, data.tokens[:, 1:, None])[..., 0][_second(data)].mean().item()


def _bag(data: Repeated) -> float:
    counts = F.one_hot(data.tokens, SYMBOLS).cumsum(1)[:, :-1].double()
    share = counts.gather(-1, data.tokens[:, 1:, None])[..., 0] / counts.sum(-1)
    return -share[_second(data)].log().mean().item()


def _window(data: Repeated) -> float:
    tokens, (low, high) = data.tokens, PERIODS
    n = tokens.shape[1]
    found = torch.stack([F.pad(tokens[:, p:] == tokens[:, :-p], (p, 0)) for p in range(low, high + 1)]).double().sum(0)
    share = found / (torch.arange(n) - low + 1).clamp(1, high - low + 1)
    return -share[:, 1:][_second(data)].log().mean().item()
