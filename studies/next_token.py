"""What lesson 16 has no time to train, three seeds. ``make studies`` writes ``next_token.md``."""

from __future__ import annotations

import numpy as np
import torch

from attnlib.models import GPT, GPTConfig
from attnlib.ngrams import KneserNey
from attnlib.pretraining import (
    byte_pairs,
    documents,
    encode,
    held_out_sample,
    log_probabilities,
    next_token_loss,
    windows,
)
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import listed, table

SEEDS, RUNS = range(3), ((160, 3e-3), (640, 3e-3), (1280, 3e-3), (1280, 1.5e-3))  # steps, largest rate

WORDS = f"""\
# A small GPT, trained for longer

Made by `make studies`, on {described()}.

## The same text, more steps

The small GPT of lesson 16 (two layers, 96 wide) reads NumPy's documentation for as many steps of 1,024 tokens, three
seeds each, each run with a schedule of its own: bits per character on the first hundred pages of NetworkX. The
text has %s tokens, so that the longest training reads each %s times. 6-grams of tokens that count all of it pay %s,
9-grams of letters %s.

"""


def page() -> str:
    """The table, as Markdown."""
    read, new = documents(["numpy"]), held_out_sample()[:100]
    pieces = byte_pairs(read, 4096)
    tokens, held_out = encode(pieces, read), encode(pieces, new)

    def bits(log_p: np.ndarray) -> float:
        return float(-log_p.sum() / np.log(2) / (sum(map(len, new)) + len(new)))

    def trained(seed: int, steps: int, rate: float) -> float:
        torch.manual_seed(seed)
        model = GPT(GPTConfig(n_tokens=4096, n_max=64, d_model=96, n_heads=4, n_layers=2))
        schedule = warmup_cosine(20, steps)
        batches = windows(tokens, 64, 16, seed=seed)
        fit(model, batches, next_token_loss, steps=steps, lr=rate, seed=seed, schedule=schedule, progress=False)
        return bits(log_probabilities(model, held_out))

    rows = [["steps", "largest rate", "bits per character"], ["---:", "---:", ":---"]]
    for steps, rate in RUNS:
        rows.append([f"{steps:,}", f"{rate:g}", listed([trained(seed, steps, rate) for seed in SEEDS], digits=2)])
    counted = bits(KneserNey(6, 4096).fit(tokens).log_probabilities(held_out)[1:])
    joined = ("\0".join([*texts, ""]).encode() for texts in (read, new))
    letters, new_letters = (np.frombuffer(one, np.uint8).astype(int) for one in joined)
    by_letter = bits(KneserNey(9, 256).fit(letters).log_probabilities(new_letters))
    said = f"{len(tokens):,}", f"{RUNS[-1][0] * 1024 / len(tokens):.0f}", f"{counted:.2f}", f"{by_letter:.2f}"
    return WORDS % said + table(rows)
