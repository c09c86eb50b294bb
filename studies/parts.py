"""The wrong answers of lesson 24, each as a part of a translator. ``make studies`` writes ``parts.md``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from attnlib import translation
from attnlib.course.capstone import PARTS, Mine, mistakes
from attnlib.nn import shift_right
from attnlib.training import fit
from studies.machine import described
from studies.tables import listed, table

STEPS, RATE, BATCH, ASKED = 300, 5e-3, 32, 50
LOWEST, NEW, MORE_ASKED = 5, range(3, 11), 200
CORPUS = translation.numbers()

HEAD = f"""\
# Wrong answers as parts, three seeds each

Made by `make studies`, on {described()}.

The translator of lesson 24, one layer a side, two heads, 32 numbers a row; {STEPS} steps of {BATCH} examples of
`attnlib.translation.numbers()`. Every wrong answer that `check` knows to one of the exercises whose answer is a part,
and that stands alone, was put in its place, and the model trained with it. *Differs* is the largest difference
between the part and the library's on a batch of sentences of several lengths. (In training a batch has one length,
as a rule: three mistakes of `mean_loss`, which concern the padding, differ there in hardly any
batch.) *Leaks* is the largest change of a log-probability of one of the first three words when the words from the
third on are exchanged, in the run of seed 0. *Loss* is the mean of the last 50 steps, *right* how many of {ASKED}
held-out numbers are translated without a mistake by two beams; one number a seed.
"""

AGAIN = f"""\
## The lowest, with new seeds

Of the parts that differ, let no later word through and never fall below the worst run without a mistake, the {LOWEST}
that did least well with three seeds may be there by chance alone. So they were trained with seeds 3 to 10, each
beside the model without a mistake of the same seed, and asked {MORE_ASKED} held-out numbers. *Behind* says in
how many of the {len(NEW)} it got fewer right.
"""


def page() -> str:
    """All tables, as Markdown."""
    torch.set_default_dtype(torch.float64)
    wrong = [(exercise, name, part) for exercise in PARTS for name, part in mistakes(exercise).items()]
    with tqdm(total=11 + 3 * len(wrong) + LOWEST * len(NEW), desc="models") as bar:
        right = [trained(Mine(), seed, bar) for seed in range(11)]
        none = [written(model) for model, _ in right]
        rows = {(exercise, name): _row(exercise, name, part, bar) for exercise, name, part in wrong}
        beside = [written(right[seed][0], MORE_ASKED) for seed in NEW]
        again = once_more(lowest(rows, min(none)), beside, bar)
    head = [["part", "mistake", "differs", "leaks", "loss", "right"], [":---", ":---", "---:", "---:", "---:", "---:"]]
    alone = ["none", "", "0", _leak(right[0][0]), listed((loss for _, loss in right), 2), listed(none)]
    return "\n".join([HEAD, "## Each mistake\n", table([*head, alone, *rows.values()]), AGAIN, again])


def lowest(rows: dict[tuple[str, str], list[str]], least: int) -> list[tuple[str, str]]:
    """The parts that did least well among those that three runs do not tell from the right ones."""
    found = {}
    for key, (_, _, differs, leaks, _, right) in rows.items():
        counts = [int(count) for count in right.split(", ") if count.isdigit()]
        if counts and differs != "0" and leaks == "0" and min(counts) >= least:
            found[key] = sum(counts)
    return sorted(found, key=found.get)[:LOWEST]


def once_more(keys: Sequence[tuple[str, str]], beside: Sequence[int], bar: tqdm) -> str:
    """These parts with new seeds, beside what the right ones of the same seeds get right."""
    rows = [["part", "mistake", "right", "without", "behind"], [":---", ":---", "---:", "---:", "---:"]]
    for exercise, name in keys:
        mine = Mine()
        mine.put(exercise, mistakes(exercise)[name])
        right = [written(trained(mine, seed, bar)[0], MORE_ASKED) for seed in NEW]
        behind = sum(one < other for one, other in zip(right, beside, strict=True))
        rows.append([PARTS[exercise], name, listed(right), listed(beside), str(behind)])
    return table(rows)


def _row(exercise: str, name: str, part: Callable[..., Any], bar: tqdm) -> list[str]:
    """What came of one mistake, or why nothing can be trained with it."""
    mine = Mine()
    mine.put(exercise, part)
    try:
        runs = [trained(mine, seed, bar) for seed in range(3)]
    except Exception as error:  # a part may fail in any way
        return [PARTS[exercise], name, re.split("[:,\n]", str(error))[0][:60], "", "", ""]
    [far] = mine.compare(CORPUS).values()
    differs = far if isinstance(far, str) else f"{far:.2g}" if far > 1e-9 else "0"
    try:
        right = listed(written(model) for model, _ in runs)
    except Exception as error:
        right = type(error).__name__
    return [PARTS[exercise], name, differs, _leak(runs[0][0]), listed((loss for _, loss in runs), 2), right]


def trained(mine: Mine, seed: int, bar: tqdm) -> tuple[nn.Module, float]:
    """A model of these parts after training, and its last loss."""
    bar.update()
    model = mine.model(CORPUS, seed=seed)
    if not model.at_once:
        raise ValueError("only sentence by sentence")
    batches = CORPUS.batches(BATCH, seed=seed)
    options = translation.recipe(STEPS, lr=RATE)
    history = fit(model, batches, lambda m, b: m.loss(b.source, b.target), seed=seed, **options)
    return model.eval(), sum(history.loss[-50:]) / 50


def written(model: nn.Module, asked: int = ASKED) -> int:
    """How many of the first held-out numbers it gets right."""
    examples = CORPUS.held_out[:asked]
    sources = [torch.tensor(CORPUS.source.encode(example.source)) for example in examples]
    texts = [CORPUS.target.decode(model.write(source, n_max=14)) for source in sources]
    return sum(text == list(example.target) for text, example in zip(texts, examples, strict=True))


@torch.no_grad()
def _leak(model: nn.Module) -> str:
    batch = CORPUS.batch(CORPUS.held_out[:32])
    target = shift_right(batch.target)
    other = target.clone()
    other[:, 3:] = other[:, 3:].roll(1, dims=0)  # the later words of another number
    change = (model(batch.source, target) - model(batch.source, other))[:, :3].abs().max().item()
    return f"{change:.1f}" if change > 1e-9 else "0"
