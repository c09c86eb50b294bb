"""Why the widest search of lesson 14 writes too little, five seeds each. ``make studies`` writes ``decoding.md``."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor
from tqdm import tqdm

from attnlib import translation
from attnlib.data.text import END, PAD
from attnlib.decoding import beam, greedy
from attnlib.nn import Transformer, shift_right
from attnlib.training import fit
from studies.machine import described
from studies.tables import listed, per_cent, table

SEEDS, STEPS, SMOOTHING, LONGEST = range(5), (150, 200, 300), (0.1, 0.0), 24
torch.set_default_dtype(torch.float64)

WORDS = f"""\
# What a wide search finds

Made by `make studies`, on {described()}.

## Smoothing and steps

The translators of lesson 14, from English to French, on forty new sentences; in every cell one number a seed. BLEU of
greedy decoding and of a search that keeps every word of the vocabulary as a beginning; "broken off": in how many per
cent of the sentences that the model writes greedily an end is somewhere likelier than all words that are left. Seeds
0, 1 and 2 are the runs of the lesson.

"""


def page() -> str:
    """The table, as Markdown."""
    corpus = translation.french()
    test = corpus.held_out[:40]
    source = corpus.batch(test).source
    rows = [["steps", "smoothing", "BLEU, greedy", "BLEU, widest", "broken off"], ["---:", "---:", *[":---"] * 3]]
    for steps, smoothing in tqdm(list(product(STEPS, SMOOTHING)), desc="translators"):
        found = []
        for seed in SEEDS:
            model = translation.translator(corpus, seed=seed, d_model=48, d_ff=96)
            recipe = translation.recipe(steps, lr=5e-3)
            fit(model, corpus.batches(32, seed=seed), translation.loss(smoothing), seed=seed, progress=False, **recipe)
            written = greedy(model, source, LONGEST)
            widest = beam(model, source, n_max=LONGEST, width=len(corpus.target)).tokens[:, 0]
            bleu = [translation.bleu([corpus.target.decode(row) for row in some], test) for some in (written, widest)]
            found.append((*bleu, broken_off(model, source, written)))
        plain, wide, broken = zip(*found, strict=True)
        rows.append([str(steps), str(smoothing), listed(plain), listed(wide), per_cent(broken)])
    return WORDS + table(rows)


@torch.no_grad()
def broken_off(model: Transformer, source: Tensor, written: Tensor) -> float:
    """The share of sentences in which an end is somewhere likelier than the words that are left, and their end."""
    log_p = model(source, shift_right(written)).logits.log_softmax(-1)
    word = log_p.gather(-1, written[..., None])[..., 0].where(written != PAD, 0.0)
    rest = word.flip(1).cumsum(1).flip(1)
    return float((log_p[..., END] > rest).where(written != PAD, False).any(1).double().mean())
