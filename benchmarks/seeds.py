"""The translators of lesson 12, five seeds of each: what one seed cannot say. ``make seeds`` writes ``SEEDS.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from machine import described
from tables import table
from tqdm import tqdm

from attnlib import translation
from attnlib.data.text import END, PAD
from attnlib.nn import Transformer, shift_right
from attnlib.training import fit
from attnlib.translation import Corpus, Example, exact_match, number

SEEDS, STEPS, RATE, BATCH, LATER = range(5), 500, 5e-3, 64, 4
SIZES = {"d_model": 48, "d_ff": 96}
torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

WORDS = f"""\
# Five seeds of the translators of lesson 12

Made by `make seeds`, on {described()}.

From German numbers to English ones, {STEPS} steps of {BATCH} in double precision, greedy decoding. Seeds 0, 1 and 2
are the runs of the lesson. A new number is none of those that were trained on.

How many per cent are translated without a mistake, seed by seed, and of how many. Trained on `numbers(draw=...)`:
"uniform", all numbers alike; "short", where numbers of few digits come often; "round", where zeros do; "mixed", where
both do:

"""

BETWEEN = f"""
The same numbers drawn uniformly, as shares. The last columns are new numbers of three words: without a thousand, with
one and more after it, and round thousands; and how often the end is the likeliest after the right words of those
without, as they are and with all positions of the decoder {LATER} further on:

"""


def page() -> str:
    """Both tables, as Markdown."""
    corpora = {draw: translation.numbers(draw=draw) for draw in ("uniform", "short", "round", "mixed")}
    with tqdm(total=len(corpora) * len(SEEDS), desc="translators") as bar:
        models = {draw: [_trained(corpus, seed, bar) for seed in SEEDS] for draw, corpus in corpora.items()}
    uniform, mixed = corpora["uniform"], corpora["mixed"]
    return WORDS + _by_draw(models, corpora) + BETWEEN + _uniform(models["uniform"], uniform, mixed)


def _by_draw(models: dict[str, list[Transformer]], corpora: dict[str, Corpus]) -> str:
    """For every way to draw a row, with the shares of all seeds in each cell."""
    rows = [["drawn", "held out, drawn alike", "new, 1 to 999", "new round thousands", "new, drawn uniformly"]]
    rows.append([":---"] * len(rows[0]))
    for draw, corpus in corpora.items():
        asked = [
            corpus.held_out,
            _new([number(n) for n in range(1, 1000)], corpus),  # who never saw 0 does not know the word
            _new([number(1000 * k) for k in range(1, 1000)], corpus),
            _new(corpora["uniform"].held_out, corpus),
        ]
        shares = [[exact_match(model, corpus, some) for model in models[draw]] for some in asked]
        cells = [
            f"{', '.join(f'{100 * share:.0f}' for share in found)} of {len(some)}"
            for found, some in zip(shares, asked, strict=True)
        ]
        rows.append([draw, *cells])
    return table(rows)


def _uniform(models: list[Transformer], corpus: Corpus, mixed: Corpus) -> str:
    """What the numbers drawn uniformly teach about numbers of three words, and about where they end."""
    small = [number(n) for n in range(1000)]
    thousands = [number(1000 * k) for k in range(1, 1000)]
    short = [e for e in _new([*small, *mixed.train, *thousands], corpus) if len(e.target) == 3]
    is_round = [e.target[-1] == "thousand" for e in short]
    below, above = (
        [e for e, r in zip(short, is_round, strict=True) if not r and ("thousand" in e.target) == has]
        for has in (False, True)
    )
    three = {"below": below, "above": above, "round": [e for e, r in zip(short, is_round, strict=True) if r]}
    asked = {"held out": corpus.held_out, "0 to 999": small} | three
    heads = ["seed", *(f"{name} ({len(some)})" for name, some in asked.items()), "ends as it is"]
    heads.append(f"ends {LATER} later")
    rows = [heads, ["---:"] * len(heads)]
    for seed, model in zip(SEEDS, models, strict=True):
        shares = [exact_match(model, corpus, some) for some in asked.values()]
        shares += [_ends(model, corpus, below, later) for later in (0, LATER)]
        rows.append([str(seed), *(f"{share:.3f}" for share in shares)])
    return table(rows)


def _trained(corpus: Corpus, seed: int, bar: tqdm) -> Transformer:
    model, batches = translation.translator(corpus, seed=seed, **SIZES), corpus.batches(BATCH, seed=seed)
    fit(model, batches, translation.loss(), seed=seed, progress=False, **translation.recipe(STEPS, RATE))
    bar.update()
    return model


@torch.no_grad()
def _ends(model: Transformer, corpus: Corpus, examples: Sequence[Example], later: int) -> float:
    """How often END is the likeliest after the right words, with the decoder's positions ``later`` further on."""
    batch = corpus.batch(examples)
    real = (batch.source != PAD)[:, None]
    memory, _ = model.encoder(model.source_embedding(batch.source), mask=real)
    rows, _ = model.decoder(
        model.target_embedding(shift_right(batch.target), later), memory, causal=True, memory_mask=real
    )
    return (model.out(rows).argmax(-1) == END)[batch.target == END].float().mean().item()


def _new(examples: Iterable[Example], corpus: Corpus) -> list[Example]:
    """Each once, without those that are trained on."""
    known = {example.facts["number"] for example in corpus.train}
    different = {example.facts["number"]: example for example in examples}
    return [example for n, example in different.items() if n not in known]


if __name__ == "__main__":
    (Path(__file__).parent / "SEEDS.md").write_text(page(), encoding="utf-8")
