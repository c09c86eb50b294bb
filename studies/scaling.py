"""Loss against size and data, for lesson 23, three seeds of each. ``make studies`` writes ``scaling.md``."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib._base.seeds import generator
from attnlib.models import GPT, GPTConfig
from attnlib.pretraining.documentation import documents
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import listed, table

SEEDS, WIDTHS, LETTERS = range(3), (12, 24, 48, 96), (2**14, 2**16, 2**18, 2**20)
RATES, STEPS, LOOKS, ROWS, LENGTH = (4e-3, 8e-3, 16e-3), (800, 2400), 8, 16, 64
N_TOKENS, HELD_OUT = 128, 2**16
FEW_RATES = (1e-3, 2e-3, 4e-3)

FEW = f"""
## Smaller rates

With {min(LETTERS):,} letters, after {min(STEPS)} steps: the losses of seeds {min(SEEDS)} to {max(SEEDS)} by rate.

"""

PAGE = f"""\
# Loss against size and data

Made by `make studies`, on {described()}.

GPTs of two layers and four heads that read docstrings and comments of NumPy, SciPy and scikit-learn letter by letter,
in steps of {ROWS} rows of {LENGTH} letters, whatever the number of letters that they are drawn from. Rates have a
cosine schedule; each size has the best of {", ".join(f"{1000 * rate:.0f}e-3" for rate in RATES)}, by a seed of its
own after {min(STEPS)} steps on all letters, far more than in the tables. The loss is in nats a letter, seeds
{min(SEEDS)} to {max(SEEDS)}: after every eighth of the steps {HELD_OUT // 2:,} letters of other texts of the same
packages say whether the network is the best so far, and as many others what its loss is. (One text is cut, half of it
to be read. No paragraph stands in both parts, but sentences may.) Numbers of weights do not count embeddings.

"""


def letters() -> tuple[Tensor, Tensor]:
    """Letters to learn from and letters held out, as numbers below 128; texts in an order drawn once."""
    texts = documents(("numpy", "scipy", "sklearn"))
    joined = "\0".join(texts[i] for i in generator(0).permutation(len(texts)))
    codes = torch.from_numpy(np.frombuffer(joined.encode("ascii", "replace"), np.uint8).astype(np.int64))
    return codes[HELD_OUT:], codes[:HELD_OUT]


def best_loss(width: int, read: Tensor, held_out: Tensor, seed: int, steps: int, rate: float) -> tuple[int, float]:
    """The number of weights in the layers, and the loss on one half of the held-out letters.

    It is that of the look at which the loss on the other half was lowest.
    """
    torch.manual_seed(seed)
    model = GPT(GPTConfig(n_tokens=N_TOKENS, n_max=LENGTH, d_model=width, n_heads=4, n_layers=2))
    rng, found = generator(seed), []
    rows = held_out[: len(held_out) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)

    def loss(model: GPT, rows: Tensor) -> Tensor:
        return cross_entropy(model(rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())

    def batches(step: int) -> Tensor:
        if step and step % (steps // LOOKS) == 0:
            look()
        starts = torch.from_numpy(rng.integers(len(read) - LENGTH, size=ROWS))
        return read[starts[:, None] + torch.arange(LENGTH + 1)]

    @torch.no_grad()
    def look() -> None:
        halves = rows.chunk(2)
        found.append([float(np.mean([loss(model, part).item() for part in half.split(128)])) for half in halves])

    schedule = warmup_cosine(steps // 10, steps)
    fit(model, batches, loss, steps=steps, lr=rate, schedule=schedule, seed=seed, progress=False)
    look()
    return sum(p.numel() for p in model.layers.parameters()), min(found)[1]


def best_rate(width: int, read: Tensor, held_out: Tensor) -> float:
    """Of three, by a seed that no table has, and by the half that no loss is of."""
    turned, seed = held_out.roll(HELD_OUT // 2), max(SEEDS) + 1
    return min(RATES, key=lambda rate: best_loss(width, read, turned, seed, min(STEPS), rate)[1])


def page() -> str:
    """The page, all runs done."""
    read, held_out = letters()
    rates = {width: best_rate(width, read, held_out) for width in tqdm(WIDTHS, desc="rates")}
    parts = [PAGE + "Rates: " + "; ".join(f"width {w}, {1000 * rate:.0f}e-3" for w, rate in rates.items()) + ".\n"]
    for steps in STEPS:
        rows = [["weights", "letters", *(f"seed {seed}" for seed in SEEDS)], ["---:"] * (2 + len(SEEDS))]
        for width, n in tqdm(list(product(WIDTHS, LETTERS)), desc=f"{steps} steps"):
            runs = [best_loss(width, read[:n], held_out, seed, steps, rates[width]) for seed in SEEDS]
            rows.append([f"{runs[0][0]:,}", f"{n:,}", *(f"{loss:.3f}" for _, loss in runs)])
        parts.append(f"\n## {steps:,} steps\n\n{table(rows)}")
    return "".join(parts) + few_letters(read, held_out)


def few_letters(read: Tensor, held_out: Tensor) -> str:
    """Whether larger models are held back by their rates where letters are few."""
    rows = [["weights", *(f"{1000 * rate:.0f}e-3" for rate in FEW_RATES)], ["---:"] * (1 + len(FEW_RATES))]
    for width in tqdm(WIDTHS[1:], desc="few letters"):
        runs = [
            [best_loss(width, read[: min(LETTERS)], held_out, seed, min(STEPS), rate) for seed in SEEDS]
            for rate in FEW_RATES
        ]
        rows.append([f"{runs[0][0][0]:,}", *(listed([loss for _, loss in three], 2) for three in runs)])
    return f"{FEW}{table(rows)}"
