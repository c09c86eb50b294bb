"""The translators of lesson 12, five seeds of each: what one seed cannot say. ``make seeds`` writes ``SEEDS.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter

import torch
from machine import described
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
are the runs of the lesson. A share is that of numbers translated without a mistake. A new number is none of those
that were trained on.

Trained on `numbers()`, where short and round numbers come often:

"""

BETWEEN = f"""
Trained on `numbers(draw="uniform")`, whose held-out numbers do not show what it lacks. The last columns are new
numbers of three words: without a thousand, with one and more after it, and round thousands; and how often the end is
the likeliest after the right words of those without, as they are and with all positions of the decoder {LATER} further
on:

"""


def page() -> str:
    """Both tables, as Markdown."""
    mixed, uniform = (translation.numbers(draw=draw) for draw in ("mixed", "uniform"))
    small = [number(n) for n in range(1000)]
    thousands = [number(1000 * k) for k in range(1, 1000)]
    short = [e for e in _new([*small, *mixed.train, *thousands], uniform) if len(e.target) == 3]
    is_round = [e.target[-1] == "thousand" for e in short]
    below, above = (
        [e for e, r in zip(short, is_round, strict=True) if not r and ("thousand" in e.target) == has]
        for has in (False, True)
    )
    three = {"below": below, "above": above, "round": [e for e, r in zip(short, is_round, strict=True) if r]}
    asked = {
        "held out": mixed.held_out,
        "0 to 999": small,
        "new, 0 to 999": _new(small, mixed),
        "new, round thousands": _new(thousands, mixed),
        "new, drawn uniformly": _new(uniform.held_out, mixed),
    }
    with tqdm(total=2 * len(SEEDS), desc="translators") as bar:
        first = _table(mixed, asked, bar)
        asked = {"held out": uniform.held_out, "0 to 999": small} | three
        second = _table(uniform, asked, bar, ends=below)
    return WORDS + first + BETWEEN + second


def _table(corpus: Corpus, asked: dict[str, Sequence[Example]], bar: tqdm, ends: Sequence[Example] = ()) -> str:
    heads = ["seed", "seconds", *(f"{name} ({len(some)})" for name, some in asked.items())]
    heads += ["ends as it is", f"ends {LATER} later"] if ends else []
    rows = [heads, ["---:"] * len(heads)]
    for seed in SEEDS:
        model, seconds = _trained(corpus, seed)
        shares = [exact_match(model, corpus, some) for some in asked.values()]
        shares += [_ends(model, corpus, ends, later) for later in (0, LATER)] if ends else []
        rows.append([str(seed), f"{seconds:.0f}", *(f"{share:.3f}" for share in shares)])
        bar.update()
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _trained(corpus: Corpus, seed: int) -> tuple[Transformer, float]:
    model, started = translation.translator(corpus, seed=seed, **SIZES), perf_counter()
    batches = corpus.batches(BATCH, seed=seed)
    fit(model, batches, translation.loss(), seed=seed, progress=False, **translation.recipe(STEPS, RATE))
    return model, perf_counter() - started


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
