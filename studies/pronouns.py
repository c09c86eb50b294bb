"""What lesson 13 asks of translators, eleven seeds of them. ``make studies`` writes ``pronouns.md``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib import translation
from attnlib.data.corpus import Corpus
from attnlib.interventions import cut
from attnlib.nn import Transformer, shift_right
from attnlib.training import fit
from attnlib.translation import because
from studies.machine import described
from studies.pronoun_jury import (
    ADJECTIVE,
    DISTRACTOR,
    IT,
    KINDS,
    LIES,
    PRONOUN,
    REFERENT,
    WROTE,
    WROTE_OTHER,
    Way,
    batch,
    by_kind,
    by_pronoun,
    closed,
    corpus,
    each,
)
from studies.tables import extent, listed, table

SEEDS, LONGER, STEPS = range(11), (0, 2, 7), 800
SIZES, RATE = {"d_model": 48, "d_ff": 96}, 5e-3

HEAD = f"""\
# Where eleven translators get a pronoun from

Made by `make studies`, on {described()}.

Translators as lesson 13 trains them, {STEPS} steps of 32 sentences in double precision; it shows the seeds 0, 1 and 7.
Below them three that were trained three times as long. Asked are the held-out sentences in which the animal and the
place differ in gender. Unless something else is said, numbers are pronouns that are wrong, in per cent, about animals
and about places. A way is closed in all layers and heads.
"""
GLANCE = {
    "weight on the place": ("Its weights", "places"),
    "nothing closed": ("Left alone", "pronouns wrong"),
    "*it* without the referent": ("The row of it", "without the referent"),
    "*it* hidden": ("Rows hidden", "it"),
    "all three hidden": ("Rows hidden", "all three"),
    "another referent written": ("Another noun", "another referent written"),
    "another referent read": ("Another noun", "another referent read"),
}
GLANCE_WORDS = """\
From the tables below. First the weight on the place in the row of *it*: when it is the answer, and when it is not.
With another referent, in what was written or in what is read: the pronouns that are wrong then."""
TAGGERS = """
## Taggers

An encoder of one head that names in the row of *it* the word that *it* stands for, 300 steps. Names that are wrong;
the word with the largest weight of *it* in the last layer (% of sentences about animals, about places); then names
that are wrong when *it* may not read a word, in both layers or in one.

"""
HEADS_ALONE = """
## Heads alone

Taggers of four heads, and translators of one, else as above: names or pronouns that are wrong; those when *it* may
not read a noun in the encoder; the weight on the place in the row of *it*, when it is the answer and when it is not,
in the head in which it changes most.

"""

SECTIONS = {
    "Left alone": "Held-out sentences translated without a mistake. Of the first 200 of the jury, those with a wrong "
    "word, the right beginning given: as it is, and without any attention in the encoder.",
    "Rows hidden": "The row of a word is hidden from every other row and from the decoder.",
    "The row of it": "In the encoder *it* may not read a noun.",
    "Its weights": "The head whose mean weight on an animal differs most between the sentences in which it is the "
    "answer and those in which the place is: both means; the same for places. The largest mean weight of any head on "
    "the referent or on the distractor. Then, from head to head: in how many per cent of the sentences about animals "
    "the right noun has more weight than the wrong one, plus the same about places. Last, of *animal* and *street* "
    "the animal's share, with *tired* and *wide*, in the head in which it changes most; and the largest change of "
    "either weight.",
    "The noun closed": "At the position that writes the pronoun, as it was read and as it was written.",
    "By pronoun": "The same by the pronoun that is right, *il* and *elle*.",
    "Another noun": "Pronouns that change when a noun is replaced by one of the other gender, in what was written or "
    "in what is read.",
    "Another noun, by pronoun": "The same by the pronoun that was right, *il* and *elle*.",
    "The adjective closed": "At the position that writes the pronoun; then animals and places by the pronoun that is "
    "right, *il* and *elle*.",
    "Heads closed": "One at a time: how many of eight can go with less than 5 more of the first 200 sentences in a "
    "hundred wrong than with none closed; and how many more the head breaks that is missed most.",
}


def page() -> str:
    """All tables, as Markdown."""
    runs = [(seed, STEPS) for seed in SEEDS] + [(seed, 3 * STEPS) for seed in LONGER]
    with tqdm(total=len(runs), desc="translators") as bar:
        asked = {}
        for seed, steps in runs:
            asked[str(seed) if steps == STEPS else f"{seed}, {steps:,} steps"] = answers(trained(seed, steps))
            bar.update()
    glance = {
        run: {name: found[section][column] for name, (section, column) in GLANCE.items()}
        for run, found in asked.items()
        if run.isdecimal()
    }
    parts = [HEAD, f"## At a glance\n\n{GLANCE_WORDS}\n\n{one_row_each(glance)}"]
    for name, words in SECTIONS.items():
        rows = one_row_each({run: found[name] for run, found in asked.items()})
        parts.append(f"## {name}\n\n{words}\n\n{rows}")
    taggers = {str(seed): of_tagger(tagger(seed)) for seed in tqdm(SEEDS, desc="taggers")}
    return "\n".join(parts) + TAGGERS + one_row_each(taggers) + HEADS_ALONE + one_row_each(heads_alone())


def heads_alone() -> dict[str, dict[str, str]]:
    """Taggers with as many heads as a translator has, translators with as many as a tagger."""
    taggers = {f"tagger, four heads: {seed}": tagger(seed, n_heads=4) for seed in tqdm(range(5), desc="four heads")}
    one = {
        f"translator, one head: {seed}": trained(seed, STEPS, n_heads=1) for seed in tqdm(range(4), desc="one head")
    }
    return {name: of_heads(model) for name, model in (taggers | one).items()}


@torch.no_grad()
def of_heads(model: Tagger | Transformer) -> dict[str, str]:
    """What it needs in the row of *it*, and what its maps show there."""
    layers = [layer.self_attention for layer in model.encoder.layers]

    def wrong(*ways: Way) -> str:
        with closed(*ways):
            return by_kind(misnamed(model) if isinstance(model, Tagger) else changed(model))

    rows = model.rows_of_it() if isinstance(model, Tagger) else rows_of_it(model, batch.source, IT)
    return {
        "wrong": wrong(),
        "without the referent": wrong((layers, IT, REFERENT)),
        "without the distractor": wrong((layers, IT, DISTRACTOR)),
        "weight on the place": turn(rows, KINDS["places"]),
    }


def one_row_each(found: dict[str, dict[str, str]]) -> str:
    """A table with a row for each run."""
    columns = list(next(iter(found.values())))
    rows = [["seed", *columns], [":---"] + len(columns) * ["---:"]]
    return table([*rows, *([run, *cells.values()] for run, cells in found.items())])


def trained(seed: int, steps: int, texts: Corpus = corpus, n_heads: int = 4) -> Transformer:
    """A translator as lesson 13 trains it, on its own texts or on others."""
    model = translation.translator(texts, seed=seed, n_heads=n_heads, **SIZES)
    recipe = translation.recipe(steps, RATE)
    fit(model, texts.batches(32, seed=seed), translation.loss(), seed=seed, progress=False, **recipe)
    return model


def answers(model: Transformer) -> dict[str, dict[str, str]]:
    """Everything that is asked of one translator: section, column, cell."""
    encoder = [layer.self_attention for layer in model.encoder.layers]
    decoder = [layer.self_attention for layer in model.decoder.layers]
    cross = [layer.cross_attention for layer in model.decoder.layers]
    hide = {word: (encoder + cross, None, IT + i) for i, word in enumerate(("it", "was", "too"))}  # from every row
    read, wrote = (cross, PRONOUN, REFERENT), (decoder, PRONOUN, WROTE)

    def wrong(*ways: Way) -> Tensor:
        with closed(*ways):
            return changed(model)

    nouns = {
        "as read": wrong(read),
        "as written": wrong(wrote),
        "both": wrong(read, wrote),
        "both, it hidden": wrong(read, wrote, hide["it"]),
    }
    controls = {
        "the other as read": wrong((cross, PRONOUN, DISTRACTOR)),
        "the other as written": wrong((decoder, PRONOUN, WROTE_OTHER)),
    }
    no_adjective = wrong((cross, PRONOUN, ADJECTIVE))
    lies = {name: changed(model, **lie) for name, lie in LIES.items()}
    whole, alone = sentences_wrong(model), sentences_wrong(model, (encoder, None, None))
    return {
        "Left alone": {
            "sentences right": f"{100 * translation.exact_match(model, corpus):.1f}",
            "pronouns wrong": by_kind(wrong()),
            "sentences wrong": f"{100 * whole:.0f}",
            "without any attention in the encoder": f"{100 * alone:.0f}",
        },
        "Rows hidden": {word: by_kind(wrong(way)) for word, way in hide.items()}
        | {"all three": by_kind(wrong(*hide.values()))},
        "The row of it": {
            "without the referent": by_kind(wrong((encoder, IT, REFERENT))),
            "without the distractor": by_kind(wrong((encoder, IT, DISTRACTOR))),
        },
        "Its weights": weights_of_it(model),
        "The noun closed": {name: by_kind(found) for name, found in (nouns | controls).items()},
        "By pronoun": {
            f"{name}, {kind}": by_pronoun(found, among)
            for name, found in nouns.items()
            for kind, among in KINDS.items()
        },
        "Another noun": {name: by_kind(found) for name, found in lies.items()},
        "Another noun, by pronoun": {
            f"{name}, {kind}": by_pronoun(found, among)
            for name, found in lies.items()
            if "referent" in name
            for kind, among in KINDS.items()
        },
        "The adjective closed": {"animals, places": by_kind(no_adjective)}
        | {f"{kind}: il, elle": by_pronoun(no_adjective, among) for kind, among in KINDS.items()},
        "Heads closed": {
            name: without_each_head(model, layers, whole)
            for name, layers in {"encoder": encoder, "decoder": decoder, "cross": cross}.items()
        },
    }


@torch.no_grad()
def changed(model: Transformer, source: Tensor = batch.source, target: Tensor = batch.target) -> Tensor:
    """Whether the likeliest pronoun is another than the right one, sentence by sentence."""
    return model(source, shift_right(target)).logits[each, PRONOUN].argmax(-1) != batch.target[each, PRONOUN]


@torch.no_grad()
def sentences_wrong(model: Transformer, *ways: Way, n: int = 200) -> float:
    """In what share of the first sentences any word goes wrong, the right beginning given."""
    target = batch.target[:n]
    with closed(*ways):
        said = model(batch.source[:n], shift_right(target)).logits.argmax(-1)
    return ((said != target) & (target != 0)).any(dim=1).double().mean().item()


def without_each_head(model: Transformer, layers: Sequence[nn.Module], whole: float) -> str:
    """How many heads can go, and how much more the one breaks that is missed most."""
    more = []
    for layer in layers:
        for head in range(4):
            with cut(layer, None, None, heads=[head]):
                more.append(sentences_wrong(model) - whole)
    return f"{sum(share < 0.05 for share in more)}, {100 * max(more):.0f}"


@torch.no_grad()
def rows_of_it(model: Transformer, source: Tensor, it: Tensor) -> Tensor:
    """The weights of every encoder head in the row of *it*: (sentence, head, word)."""
    maps = model(source, torch.ones_like(source[:, :1]), weights=True).encoder
    return torch.cat(maps, dim=1)[torch.arange(len(source)), :, it]


def weights_of_it(model: Transformer) -> dict[str, str]:
    """What the maps of the encoder show: preferences, evidence, and a mixture."""
    rows, cells = rows_of_it(model, batch.source, IT), {}
    heavier = (rows[each, :, REFERENT] > rows[each, :, DISTRACTOR]).double()
    for kind, answer in KINDS.items():
        cells[kind] = turn(rows, answer)
    cells["largest mean"] = f"{max(rows[each, :, word].mean(0).max().item() for word in (REFERENT, DISTRACTOR)):.2f}"
    added = sum(100 * heavier[among].mean(0) for among in KINDS.values())
    cells["heavier, added"] = extent(added.tolist())
    pair = [because("animal", "street", adjective) for adjective in ("tired", "wide")]
    weights = rows_of_it(model, corpus.batch(pair).source, torch.tensor([e.facts["it"] for e in pair]))
    animal, street = pair[0].facts["referent"], pair[0].facts["distractor"]
    shares = weights[:, :, animal] / (weights[:, :, animal] + weights[:, :, street])
    head = (shares[0] - shares[1]).abs().argmax()
    cells["the animal's share"] = listed(shares[:, head].tolist(), 2)
    cells["largest change"] = f"{(weights[0] - weights[1])[:, [animal, street]].abs().max().item():.2f}"
    return cells


def turn(rows: Tensor, answer: Tensor) -> str:
    """The weight on a kind of noun when it is the answer and when not, in the head in which that changes most."""
    noun = rows[each, :, torch.where(answer, REFERENT, DISTRACTOR)]  # (sentence, head)
    when, otherwise = noun[answer].mean(0), noun[~answer].mean(0)
    head = (when - otherwise).abs().argmax()
    return f"{when[head]:.2f}, {otherwise[head]:.2f}"


class Tagger(nn.Module):
    """An encoder, of one head in lesson 13, and a linear layer that answers in the row of *it*."""

    def __init__(self, seed: int, n_answers: int, n_heads: int = 1) -> None:
        super().__init__()
        body = translation.translator(corpus, seed=seed, n_heads=n_heads, **SIZES)
        self.words, self.encoder, self.answer = body.source_embedding, body.encoder, nn.Linear(48, n_answers)

    def forward(self, source: Tensor, it: Tensor, weights: bool = False) -> tuple[Tensor, Sequence[Tensor]]:
        """Logits, and the maps of both layers."""
        rows, alphas = self.encoder(self.words(source), mask=(source != 0)[:, None], weights=weights)
        return self.answer(rows[torch.arange(len(source)), it]), alphas

    def rows_of_it(self) -> Tensor:
        """The weights of every head in the row of *it*, in the jury: (sentence, head, word)."""
        return torch.cat([alphas[each, :, IT] for alphas in self(batch.source, IT, weights=True)[1]], dim=1)


def tagger(seed: int, steps: int = 300, n_heads: int = 1) -> Tagger:
    """A tagger as lesson 13 trains it, to name the referent."""
    stories = [e for e in corpus.train if "referent" in e.facts]
    source = corpus.batch(stories).source
    it, referent = (torch.tensor([e.facts[fact] for e in stories]) for fact in ("it", "referent"))
    names = source[torch.arange(len(source)), referent]
    torch.manual_seed(seed)
    model = Tagger(seed, int(names.max()) + 1, n_heads)
    order = torch.randint(len(source), (steps, 64))

    def loss(model: Tagger, i: Tensor) -> Tensor:
        return cross_entropy(model(source[i], it[i])[0], names[i])

    fit(model, order.__getitem__, loss, seed=seed, progress=False, **translation.recipe(steps, RATE))
    return model


@torch.no_grad()
def misnamed(model: Tagger) -> Tensor:
    """Whether the word that it names is another than the right one, sentence by sentence."""
    return model(batch.source, IT)[0].argmax(-1) != batch.source[each, REFERENT]


@torch.no_grad()
def of_tagger(model: Tagger) -> dict[str, str]:
    """Where it points, and what it needs."""
    layers = [layer.self_attention for layer in model.encoder.layers]
    first, last = (alphas[each, 0, IT].argmax(-1) for alphas in model(batch.source, IT, weights=True)[1])

    def wrong(*ways: Way) -> str:
        with closed(*ways):
            return by_kind(misnamed(model))

    points = {"referent": last == REFERENT, "distractor": last == DISTRACTOR, "adjective": last == ADJECTIVE}
    cuts = {
        "no referent": (layers, IT, REFERENT),
        "no distractor": (layers, IT, DISTRACTOR),
        "no adjective in the last": (layers[1:], IT, ADJECTIVE),
        "no adjective in the first": (layers[:1], IT, ADJECTIVE),
        "no adjective": (layers, IT, ADJECTIVE),
    }
    return {
        "wrong": wrong(),
        **{f"on the {name}": by_kind(found) for name, found in points.items()},
        "first layer: on the adjective": by_kind(first == ADJECTIVE),
        **{name: wrong(way) for name, way in cuts.items()},
    }
