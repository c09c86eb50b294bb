"""The translators of lesson 12, eleven seeds of each: what one seed cannot say. For ``translators.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from tqdm import tqdm

from attnlib import translation
from attnlib.data.text import END, PAD
from attnlib.nn import Transformer, shift_right
from attnlib.training import fit
from attnlib.translation import Corpus, Example, exact_match, number
from studies.machine import described
from studies.tables import listed, per_cent, table

SEEDS, STEPS, RATE, BATCH = range(11), 500, 5e-3, 64
LONG_SEEDS, LONG_STEPS = (0, 1, 2, 6), 1500
LATER = range(7)
SIZES = {"d_model": 48, "d_ff": 96}
torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

WORDS = f"""\
# Eleven seeds of the translators of lesson 12

Made by `make studies`, on {described()}.

From German numbers to English ones, {STEPS} steps of {BATCH} in double precision, greedy decoding. Where
{LONG_STEPS:,} steps are said, only seeds {listed(LONG_SEEDS)}. Seeds 0, 1 and 2 are the runs of the
lesson. A new number is none of those that were trained on.

How many per cent are translated without a mistake, seed by seed, and of how many. Trained on `numbers(draw=...)`:
"uniform", all numbers alike; "short", where numbers of few digits come often; "round", where zeros do; "mixed", where
both do:

"""

SHORT = """
By how many English words it has, how many per cent of numbers are right after training on numbers drawn uniformly. All
are new but 18, which is also one of those from 1 to 20. The last two rows have a thousand in their three words, with
something after it or not:

"""

ENDS = """
Given later positions: all positions of the decoder are some places further on, after training on numbers drawn
uniformly. In how many per cent of the new numbers of three words below a thousand the end is the likeliest after the
right words and nowhere before, and in how many it is so somewhere before:

"""

BLIND = """
Told no place: the decoder has no positions, in training and afterwards. In how many per cent the held-out numbers are
right, and the new ones below a thousand; and in how many per cent of its mistakes below a thousand all the right words
come, and then more:

"""

WEIGHTS = """
Under the largest weight: in how many per cent of the words of the held-out numbers that is the right morpheme, in the
cross-attention of a layer, averaged over its heads, after training on numbers drawn "mixed":

"""


def page() -> str:
    """All tables, as Markdown."""
    corpora = {draw: translation.numbers(draw=draw) for draw in ("uniform", "short", "round", "mixed")}
    longer = f"uniform, {LONG_STEPS:,} steps"
    with tqdm(total=(len(corpora) + 1) * len(SEEDS) + len(LONG_SEEDS), desc="translators") as bar:
        models = {draw: [trained(corpus, seed, STEPS, bar) for seed in SEEDS] for draw, corpus in corpora.items()}
        models[longer] = [trained(corpora["uniform"], seed, LONG_STEPS, bar) for seed in LONG_SEEDS]
        blind = [trained(corpora["uniform"], seed, STEPS, bar, blind=True) for seed in SEEDS]
    corpora = {"uniform": corpora["uniform"], longer: corpora["uniform"]} | corpora
    uniform, mixed = corpora["uniform"], corpora["mixed"]
    by_words = _by_words({STEPS: models["uniform"], LONG_STEPS: models[longer]}, uniform, mixed)
    places = {"as in the lesson": models["uniform"], "none": blind}
    tables = {WORDS: _by_draw(models, corpora), SHORT: by_words, ENDS: _ends(models["uniform"], uniform)}
    tables |= {BLIND: _blind(places, uniform), WEIGHTS: _weights(models["mixed"], mixed)}
    return "".join(words + found for words, found in tables.items())


def _by_draw(models: dict[str, list[Transformer]], corpora: dict[str, Corpus]) -> str:
    """For every way to draw a row, with the shares of all seeds in each cell."""
    rows = [["drawn", "held out, drawn alike", "new, 1 to 999", "new round thousands", "new, drawn uniformly"]]
    rows.append([":---"] * len(rows[0]))
    for draw, corpus in corpora.items():
        asked = [
            corpus.held_out,
            _new(_below(1000), corpus),
            _new([number(1000 * k) for k in range(1, 1000)], corpus),
            _new(corpora["uniform"].held_out, corpus),
        ]
        shares = [_right(models[draw], corpus, some) for some in asked]
        rows.append([draw, *(f"{found} of {len(some)}" for found, some in zip(shares, asked, strict=True))])
    return table(rows)


def _by_words(models: dict[int, list[Transformer]], corpus: Corpus, mixed: Corpus) -> str:
    """What numbers drawn uniformly teach about short ones: for every length of training a column."""
    small = _new(_below(1000), corpus)
    asked = {"18, trained on": [number(18)], "1 to 20": _below(21), "1 to 999": small}
    for n, word in enumerate(("one word", "two words", "three words", "four words"), start=1):
        asked[word] = [e for e in small if len(e.target) == n]
    above = [e for e in mixed.train if e.facts["number"] >= 1000] + [number(1000 * k) for k in range(1, 1000)]
    above = [e for e in _new(above, corpus) if len(e.target) == 3]
    asked["three, with a thousand"] = [e for e in above if e.target[-1] != "thousand"]
    asked["three, round thousand"] = [e for e in above if e.target[-1] == "thousand"]
    rows = [["numbers", "how many", *(f"{steps:,} steps" for steps in models)], [":---", "---:", ":---", ":---"]]
    for name, examples in asked.items():
        rows.append([name, str(len(examples)), *(_right(some, corpus, examples) for some in models.values())])
    return table(rows)


@torch.no_grad()
def _ends(models: list[Transformer], corpus: Corpus) -> str:
    """How often END is first the likeliest after the right words, and how often before, for every lie a row."""
    batch = corpus.batch([e for e in _new(_below(1000), corpus) if len(e.target) == 3])
    real = (batch.source != PAD)[:, None]
    end = batch.target == END
    rows = [["places later", "ends after the right words", "ends before"], ["---:", ":---", ":---"]]
    for later in LATER:
        shares = []
        for model in models:
            memory, _ = model.encoder(model.source_embedding(batch.source), mask=real)
            entered = model.target_embedding(shift_right(batch.target), later)
            says_end = (
                model.lm_head(model.decoder(entered, memory, causal=True, memory_mask=real)[0]).argmax(-1) == END
            )
            early = (says_end & ~end).any(1)
            right = (says_end & end).any(1) & ~early
            shares.append([some.double().mean().item() for some in (right, early)])
        after, before = zip(*shares, strict=True)
        rows.append([str(later), per_cent(after), per_cent(before)])
    return table(rows)


def _blind(models: dict[str, list[Transformer]], corpus: Corpus) -> str:
    """How well decoders with and without positions do, and whether their mistakes are the same."""
    small = _new(_below(1000), corpus)
    rows = [["positions of the decoder", "held out", "new, 1 to 999", "right, and then more"], [":---"] * 4]
    for name, some in models.items():
        more = per_cent(_goes_on(model, corpus, small) for model in some)
        rows.append([name, *(_right(some, corpus, examples) for examples in (corpus.held_out, small)), more])
    return table(rows)


def _goes_on(model: Transformer, corpus: Corpus, examples: Sequence[Example]) -> float:
    """The share of the mistakes that begin with all the right words."""
    written = translation.translate(model, corpus, [example.source for example in examples], n_max=12)
    wrong = [(words, e.target) for words, e in zip(written, examples, strict=True) if tuple(words) != e.target]
    return sum(tuple(words[: len(target)]) == target for words, target in wrong) / len(wrong)


@torch.no_grad()
def _weights(models: list[Transformer], corpus: Corpus) -> str:
    """Whether the largest weight is at the aligned morpheme, for *thousand* and for the other words."""
    batch = corpus.batch(corpus.held_out)
    aligned = torch.full(batch.target.shape, -1)
    for row, example in zip(aligned, corpus.held_out, strict=True):
        row[: len(example.alignment)] = torch.tensor(example.alignment)
    thousand = batch.target == corpus.target.encode(["thousand"])[0]
    kinds = {"thousand": thousand, "other words": (aligned >= 0) & ~thousand}
    rows = [["layer", *kinds], [":---"] * 3]
    found = []
    for model in models:
        cross = model(batch.source, shift_right(batch.target), weights=True).cross
        found.append([layer.mean(dim=1).argmax(-1) == aligned for layer in cross])
    for name, hits in zip(("first", "last"), zip(*found, strict=True), strict=True):
        rows.append([name, *(per_cent(hit[kind].double().mean().item() for hit in hits) for kind in kinds.values())])
    return table(rows)


def trained(corpus: Corpus, seed: int, steps: int, bar: tqdm, *, blind: bool = False) -> Transformer:
    """A translator of the lesson; ``blind``, without positions in the decoder."""
    model, batches = translation.translator(corpus, seed=seed, **SIZES), corpus.batches(BATCH, seed=seed)
    if blind:
        model.target_embedding.positional.kind = "none"
    fit(model, batches, translation.loss(), seed=seed, progress=False, **translation.recipe(steps, RATE))
    bar.update()
    return model


def _right(models: Sequence[Transformer], corpus: Corpus, examples: Sequence[Example]) -> str:
    return per_cent(exact_match(model, corpus, examples) for model in models)


def _below(limit: int) -> list[Example]:
    """The numbers from 1 on: who never saw 0 does not know the word."""
    return [number(n) for n in range(1, limit)]


def _new(examples: Iterable[Example], corpus: Corpus) -> list[Example]:
    """Each once, without those that are trained on."""
    known = {example.facts["number"] for example in corpus.train}
    different = {example.facts["number"]: example for example in examples}
    return [example for n, example in different.items() if n not in known]
