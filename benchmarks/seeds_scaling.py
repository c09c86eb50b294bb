"""Loss against size and data, for lesson 23, three seeds of each. ``make seeds`` writes ``SEEDS_SCALING.md``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from machine import described
from tables import table
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib._seeds import generator
from attnlib.models import GPT, GPTConfig
from attnlib.pretraining.documentation import documents
from attnlib.training import fit, warmup_cosine

SEEDS, WIDTHS, LETTERS = range(3), (12, 24, 48, 96), (2**14, 2**16, 2**18, 2**20)
STEPS, ROWS, LENGTH, EVERY = 800, 16, 64, 100
N_TOKENS, HELD_OUT = 128, 2**16

PAGE = f"""\
# Loss against size and data

Made by `make seeds`, on {described()}.

GPTs of two layers and four heads that read docstrings and comments of NumPy, SciPy and scikit-learn letter by letter:
{STEPS} steps of {ROWS} rows of {LENGTH} letters, whatever the number of letters that they are drawn from, at a rate of
8e-3, cosine schedule. The loss is in nats a letter, on {HELD_OUT:,} letters of other texts of the same packages: the
lowest of those after every {EVERY} steps, seeds {min(SEEDS)} to {max(SEEDS)}. Numbers of the layers' weights do not
count embeddings.

"""

LONGER = f"""
## Three times the steps

The largest model on the two largest amounts, {3 * STEPS} steps; the loss after every {3 * EVERY}.

"""


def letters() -> tuple[Tensor, Tensor]:
    """Letters to learn from and letters held out, as numbers below 128; texts in an order drawn once."""
    texts = documents(("numpy", "scipy", "sklearn"))
    joined = "\0".join(texts[i] for i in generator(0).permutation(len(texts)))
    codes = torch.from_numpy(np.frombuffer(joined.encode("ascii", "replace"), np.uint8).astype(np.int64))
    return codes[HELD_OUT:], codes[:HELD_OUT]


def best_loss(width: int, read: Tensor, held_out: Tensor, seed: int, steps: int = STEPS) -> tuple[int, float]:
    """The number of weights in the layers, and the lowest loss on held-out letters."""
    torch.manual_seed(seed)
    model = GPT(GPTConfig(n_tokens=N_TOKENS, n_max=LENGTH, d_model=width, n_heads=4, n_layers=2))
    rng, found = generator(seed), []
    rows = held_out[: len(held_out) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)

    def loss(model: GPT, rows: Tensor) -> Tensor:
        return cross_entropy(model(rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())

    def batches(step: int) -> Tensor:
        if step and step % (EVERY * steps // STEPS) == 0:
            found.append(evaluated())
        starts = torch.from_numpy(rng.integers(len(read) - LENGTH, size=ROWS))
        return read[starts[:, None] + torch.arange(LENGTH + 1)]

    @torch.no_grad()
    def evaluated() -> float:
        return float(np.mean([loss(model, part).item() for part in rows.split(128)]))

    fit(model, batches, loss, steps=steps, lr=8e-3, schedule=warmup_cosine(steps // 10, steps), seed=seed)
    found.append(evaluated())
    return sum(p.numel() for p in model.layers.parameters()), min(found)


def study() -> str:
    """The page, all runs done."""
    (read, held_out), rows = letters(), [("weights", "letters", *(f"seed {seed}" for seed in SEEDS))]
    rows.append(("---:",) * len(rows[0]))
    for width in tqdm(WIDTHS):
        for n in LETTERS:
            runs = [best_loss(width, read[:n], held_out, seed) for seed in SEEDS]
            rows.append((f"{runs[0][0]:,}", f"{n:,}", *(f"{loss:.3f}" for _, loss in runs)))
    longer = [rows[0], rows[1]]
    for n in LETTERS[-2:]:
        runs = [best_loss(WIDTHS[-1], read[:n], held_out, seed, 3 * STEPS) for seed in SEEDS]
        longer.append((f"{runs[0][0]:,}", f"{n:,}", *(f"{loss:.3f}" for _, loss in runs)))
    return PAGE + table(rows) + LONGER + table(longer)


if __name__ == "__main__":
    Path(__file__).with_name("SEEDS_SCALING.md").write_text(study(), encoding="utf-8")
