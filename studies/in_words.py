"""What lesson 18 changes in its trainings, three seeds each. ``make studies`` writes ``in_words.md``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from attnlib import translation
from attnlib.data.asked import TASKS, asked
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.data.numbers import english, german
from attnlib.data.text import END, Vocabulary, by_length
from attnlib.nn import Transformer
from studies.asked_networks import (
    BATCH,
    SEEDS,
    SENTINELS,
    SIZES,
    STEPS,
    LanguageModel,
    Mixed,
    OneTask,
    answer_loss,
    by_answer,
    continued,
    gap_losses,
    gaps,
    own_choices,
    share,
    trained,
    translated,
)
from studies.interface_networks import TEXTS, interface
from studies.machine import described
from studies.operations import operations
from studies.tables import per_cent, table

LONG = "three times as long"

HEAD = f"""\
# What changes a network that is asked in words, three seeds each

Made by `make studies`, on {described()}. In every cell one number a seed.
"""

ASKED = f"""
## The tasks of lesson 18

{STEPS} steps of {BATCH} questions, unless something else is said; per cent right of 200 new questions of each task.
Operations are those of one forward pass over {BATCH} questions and their answers, in millions. T5's own choices are
norm, positions, scores without a scale, other scales of embeddings and logits, no biases, initial weights. The
language models have learned positions, GELU and other initial weights; without "smoothed" their loss is plain, while
that of all others is smoothed by 0.1.

"""

NEW_TASK = """
## Two prefixes at once

Two numbers up to 99 are asked about, as in *larger*. Per cent of the answers that are the digits of the larger number,
that are the larger number in words, and that are the digits of the smaller one.

"""

FEW = """
## From German to English with few pairs

Numbers below 10,000, per cent right of 200 new ones. The gaps are in 3,000 numbers in German and 3,000 other numbers
in English, which are no pairs.

"""


def page() -> str:
    """All tables, as Markdown."""
    tasks, models = asked_in_words()
    return "".join([HEAD, ASKED, tasks, NEW_TASK, new_task(models), FEW, few_pairs(), TEXTS, interface()])


# --- the tasks of lesson 18 ---

Way = tuple[Callable[[int], nn.Module], dict[str, Any]]


def ways(corpus: Corpus) -> dict[str, Way]:
    """How each row is built, and what its training has that the lesson's has not."""
    pairs = [(corpus.source.encode(e.source), [*corpus.target.encode(e.target), END]) for e in corpus.train]

    def usual(seed: int) -> Transformer:
        return translation.translator(corpus, seed=seed, **SIZES)

    def language(seed: int, prefix: bool) -> LanguageModel:
        torch.manual_seed(seed)
        return LanguageModel(len(corpus.source), prefix=prefix)

    smoothed = {"loss": partial(answer_loss, smoothing=0.1)}
    return {
        "as the lesson": (usual, {}),
        LONG: (usual, {"steps": 3 * STEPS}),
        "batches of like length": (usual, {"batches": partial(by_length, pairs, BATCH)}),
        "batches of one task": (usual, {"batches": partial(OneTask, corpus)}),
        "the loss of each answer counts alike": (usual, {"loss": by_answer}),
        "T5's own choices": (partial(own_choices, corpus), {}),
        "causal language model": (partial(language, prefix=False), {"loss": answer_loss}),
        "causal language model, smoothed": (partial(language, prefix=False), smoothed),
        "prefix language model": (partial(language, prefix=True), {"loss": answer_loss}),
        "prefix language model, smoothed": (partial(language, prefix=True), smoothed),
    }


def asked_in_words() -> tuple[str, dict[str, list[nn.Module]]]:
    """The table, and the networks of its first two rows."""
    corpus = asked()
    rows = [["", "parameters", "operations", *TASKS], [":---"] + 6 * ["---:"]]
    kept: dict[str, list[nn.Module]] = {}
    for name, way in ways(corpus).items():
        row, models = asked_row(corpus, name, way)
        rows.append(row)
        kept |= {name: models} if len(kept) < 2 else {}
        print(row, file=sys.stderr, flush=True)
    return table(rows), kept


def asked_row(corpus: Corpus, name: str, way: Way) -> tuple[list[str], list[nn.Module]]:
    """One row of the table, and its networks."""
    build, options = way
    models = [trained(build(seed), corpus, seed, **options) for seed in SEEDS]
    write = continued if isinstance(models[0], LanguageModel) else translated
    size = sum(p.numel() for p in models[0].parameters())
    loss = answer_loss if isinstance(models[0], LanguageModel) else translation.loss()
    cells = [f"{size:,}", f"{operations(partial(loss, models[0], Mixed(corpus, 0)(0))) / 1e6:.0f}"]
    for task in TASKS:
        some = [e for e in corpus.held_out if e.facts["task"] == task]
        cells.append(per_cent([share(write(model, corpus, some), some) for model in models]))
    return [name, *cells], models


def new_task(models: dict[str, list[nn.Module]]) -> str:
    """The digits of the larger number, for which no network was trained, and what one of them answers."""
    corpus = asked()
    pairs = [e for e in corpus.held_out if e.facts["task"] == "larger"]
    fronts = ("larger :", "digits larger :", "larger digits :", "digits :")
    digits, smaller = ([tuple(str(f(e.facts["numbers"]))) for e in pairs] for f in (max, min))
    rows = [["", "asked", "its digits", "in words", "digits of the smaller"], 2 * [":---"] + 3 * ["---:"]]
    for name, some in models.items():
        for front in fronts:
            questions = [e._replace(source=(*front.split(), *e.source[2:])) for e in pairs]
            written = [translated(model, corpus, questions) for model in some]
            shares = []
            for right in (digits, [e.target for e in pairs], smaller):
                wanted = [e._replace(target=target) for e, target in zip(pairs, right, strict=True)]
                shares.append(per_cent([share(one, wanted) for one in written]))
            rows.append([name, front, *shares])
    lines = [["", *(" or ".join(map(str, e.facts["numbers"])) for e in pairs[:4])], [":---"] + 4 * ["---:"]]
    for front in fronts[1:]:
        questions = [e._replace(source=(*front.split(), *e.source[2:])) for e in pairs[:4]]
        lines.append([front, *map(" ".join, translated(models[LONG][0], corpus, questions))])
    return table(rows) + f"\nThe first network that was trained {LONG} answers:\n\n" + table(lines)


# --- few pairs ---


def few_pairs() -> str:
    """German to English, with 100 pairs and with 400."""
    numbers = np.random.default_rng(0).permutation(10_000).tolist()
    texts = [german(n) for n in numbers[1000:4000]] + [english(n) for n in numbers[4000:7000]]
    new = [german(n) for n in numbers[7000:8000]] + [english(n) for n in numbers[8000:9000]]
    words = Vocabulary([*texts, ["english", "fill", ":", *SENTINELS]])
    test, *some = (from_german(numbers[a:b]) for a, b in ((0, 200), (200, 300), (200, 600)))
    corpora = [Corpus(pairs, test, words, words) for pairs in some]
    fresh = [translation.translator(corpora[0], seed=seed, **SIZES) for seed in SEEDS]
    fill = {"steps": STEPS, "batches": partial(gaps, texts, words)}
    filled = [trained(deepcopy(model), corpora[0], seed, **fill) for seed, model in enumerate(fresh)]
    rows = [["", "steps on gaps", "steps on pairs", "100 pairs", "400 pairs"], [":---"] + 4 * ["---:"]]
    for name, first, begun in (("from scratch", 0, fresh), ("pretrained", STEPS, filled)):
        for steps in (2 * STEPS, STEPS):
            row = [name, str(first), f"{steps:,}"]
            for corpus in corpora:
                models = [trained(deepcopy(model), corpus, seed, steps=steps) for seed, model in enumerate(begun)]
                row.append(per_cent([translation.exact_match(model, corpus) for model in models]))
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    losses = [gap_losses(model, new, words) for model in filled]
    said = "; ".join(f"{own:.2f}, and with the source of another text {other:.2f}" for own, other in losses)
    return (
        table(rows)
        + f"\nNats for a token taken out of new numbers, marks aside, after {STEPS} steps on gaps: {said}.\n"
    )


def from_german(numbers: Sequence[int]) -> list[Example]:
    """To be put into English."""
    return [Example(("english", ":", *german(n)), tuple(english(n))) for n in numbers]
