"""Lesson 13's translators, trained on sentences in which either noun may come first. For ``orders.md``."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from attnlib.data.corpus import Corpus
from attnlib.nn import Transformer, shift_right
from attnlib.translation import Example, because, other_gender
from studies.machine import described
from studies.pronoun_jury import closed, corpus, jury
from studies.pronouns import STEPS, trained
from studies.tables import per_cent, table

SEEDS = range(5)

# What stands first: the noun that is meant, or the other.
KINDS = {"animals": ("animal", "place"), "places": ("place", "animal")}

LONGER = 3 * STEPS

CHANGED = ("closed", "the other closed", "lie", "lie about the other")
WAYS = ["nothing closed", *(f"{what}, as {told}" for what in CHANGED for told in ("read", "written"))]

WORDS = f"""\
# Where a pronoun comes from, with both orders in the corpus

Made by `make studies`, on {described()}.

The sentences of lesson 13, but half of those to train on, drawn by lot, have the place first: *The street did not
cross the animal because it was too wide*. Five seeds. Asked is the jury of the lesson in both orders. In every cell
shares of pronouns that are wrong, in per cent.

## After {STEPS:,} steps

Where *it* is the first noun, and where it is the second.

"""

CROSSED = f"""
## After {LONGER:,} steps

Animals, then places, both orders together; *apart* is how far the shares for the first noun and for the second differ
at most, in any cell of the column. A way to the noun that is meant, or to the other, is closed at the position that
writes the pronoun, in all layers and heads. In the last four rows nothing is closed, but the text that is read, or the
one that is written, tells a lie: a noun of the other gender, first in place of the noun that is meant, then in place
of the other noun.

"""


def page() -> str:
    """Both tables, as Markdown."""
    both = mixed(corpus)
    found = {}
    for steps, seed in tqdm(list(product((STEPS, LONGER), SEEDS)), desc="translators"):
        model = trained(seed, steps, both)
        for kind, order in KINDS.items():
            texts = [[placed(e, first) for e in jury if _about(e) == kind] for first in order]
            found[steps, kind, seed] = np.array([asked(model, both, examples) for examples in texts])
    short = [["about", *(f"seed {seed}" for seed in SEEDS)], [":---"] * (1 + len(SEEDS))]
    short += [[kind, *(per_cent(found[STEPS, kind, seed][:, 0]) for seed in SEEDS)] for kind in KINDS]
    long = np.array([[found[LONGER, kind, seed] for kind in KINDS] for seed in SEEDS])  # seed, kind, order, way
    rows = [["", *short[0][1:]], short[1], ["apart", *(per_cent([one]) for one in np.ptp(long, axis=2).max((1, 2)))]]
    for name, shares in zip(WAYS, long.mean(axis=2).transpose(2, 0, 1), strict=True):
        rows.append([name, *map(per_cent, shares)])
    return WORDS + table(short) + CROSSED + table(rows)


def mixed(one_order: Corpus) -> Corpus:
    """The corpus with the two nouns of half its sentences of this kind exchanged."""
    lots = np.random.default_rng(0)
    train = [placed(e, "place") if "made of" in e.facts and lots.random() < 0.5 else e for e in one_order.train]
    return Corpus.of(train, one_order.held_out)


def placed(example: Example, first: str) -> Example:
    """The same with this kind of noun first."""
    return because(**example.facts["made of"] | {"first": first})


def _about(example: Example) -> str:
    return "animals" if example.source[example.facts["referent"]] == example.facts["made of"]["animal"] else "places"


@torch.no_grad()
def asked(model: Transformer, both: Corpus, examples: list[Example]) -> list[float]:
    """The shares of wrong pronouns, way by way."""
    batch, each = both.batch(examples), torch.arange(len(examples))
    pronoun = torch.tensor([e.facts["pronoun"] for e in examples])
    decoder = [layer.self_attention for layer in model.decoder.layers]
    cross = [layer.cross_attention for layer in model.decoder.layers]

    def wrong(source: Tensor = batch.source, target: Tensor = batch.target) -> Tensor:
        logits = model(source, shift_right(target)).logits[each, pronoun]
        return (logits.argmax(-1) != batch.target[each, pronoun]).double().mean()

    shares, nouns = [wrong()], ("referent", "distractor")
    for noun in nouns:
        read = torch.tensor([e.facts[noun] for e in examples])
        wrote = [[i + 1 for i in e.facts[f"wrote_{noun}"]] for e in examples]
        for way in ((cross, pronoun, read), (decoder, pronoun, wrote)):
            with closed(way):
                shares.append(wrong())
    for noun in nouns:
        lie = both.batch([other_gender(e, noun) for e in examples])
        shares += wrong(source=lie.source), wrong(target=lie.target)
    return [share.item() for share in shares]
