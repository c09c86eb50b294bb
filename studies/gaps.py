"""What lesson 17 changes in BERT, three seeds of each change. ``make studies`` writes ``gaps.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div
from tqdm import tqdm

from attnlib.data.agreement import CLS, KINDS, MASK, Sentences, judged, language, other_number, sentences
from attnlib.models import BERT, BERTConfig
from attnlib.pretraining import Gapped, gapped_batches, mask_tokens, masked_token_loss
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.operations import operations
from studies.tables import listed, per_cent, table

SEEDS, STEPS, RATE, BATCH, SHARE = range(3), 450, 4e-3, 64, 0.3
WORDS = language().words
SIZES = {"n_tokens": len(WORDS), "n_max": 32, "d_model": 64, "n_heads": 4, "n_layers": 2, "std": 0.1}
MASKING = {"mask": MASK, "special": (CLS,)}
TEXTS = torch.from_numpy(sentences(6000, seed=0).tokens)
FEW = 200  # of them, where there are few
NEW = sentences(500, seed=1)
ASKED = mask_tokens(torch.from_numpy(NEW.tokens), len(WORDS), seed=9, share=0.15, **MASKING)
Loss = Callable[[BERT, Gapped], tuple[Tensor, int]]

HEAD = f"""\
# Changes to BERT, three seeds each

Made by `make studies`, on {described()}.

{len(TEXTS)} texts of `attnlib.data.agreement`. Unless something else is said: {SIZES["n_layers"]} layers of
{SIZES["d_model"]}, {STEPS} steps of {BATCH} texts, {100 * SHARE:.0f} % of the tokens chosen. In every cell one
number a seed. *Bits* are for a hidden token of new texts, of which 15 % are shown as [MASK]. *Verbs* are the
new texts, in per cent, in which the hidden verb's own number is likelier than the other.
"""


def page() -> str:
    """All tables, as Markdown."""
    with tqdm(total=176, desc="models") as bar:
        parts = [HEAD, stages(bar), changes(bar), few_texts(bar), half(bar), labels(bar), following(bar)]
    return "\n".join(parts)


def stages(bar: tqdm) -> str:
    """In what order the verb's number is learned, eleven seeds."""
    texts = sentences(1000, seed=1)
    nouns = (texts.kinds == KINDS.index("noun")).sum(axis=1)
    the = texts.tokens[:, 1] == WORDS.index("the")  # the determiner that shows no number
    misled = texts.nearest != texts.plural
    groups = {
        "one noun": nouns == 1,
        "misled": misled,
        "misled, *the*": misled & the,
        "misled, others": misled & ~the,
    }
    at = (100, 150, 200, 250, 300, 450)
    rows = [["seed", *(f"{step}" for step in at), *list(groups)[2:]], [":---"] + (len(at) + 2) * ["---:"]]
    for seed in range(11):
        found: list[dict[str, float]] = []

        def look(model: BERT, found: list[dict[str, float]] = found) -> float:
            right = likelier(model, texts)
            found.append({name: 100 * float(right[group].mean()) for name, group in groups.items()})
            return found[-1]["misled"]

        trained(seed, bar, n_max=16, metrics={"verbs": look})
        seen = [found[step // 50 - 1] for step in at]
        ends = (f"{found[-1][name]:.0f}" for name in list(groups)[2:])
        rows.append([str(seed), *(f"{one['one noun']:.0f} / {one['misled']:.0f}" for one in seen), *ends])
    words = f"""\
Verbs right, in per cent of 1,000 new sentences, by the step: those of sentences with one noun, and those whose
nearest noun misleads. In the last two columns, after all steps, the misled ones whose first word is *the*, which
shows no number, and the others, whose first word does, as in {100 * (~the).mean():.0f} % of all sentences."""
    return f"\n## How the verb is learned\n\n{words}\n\n{table(rows)}"


def changes(bar: tqdm) -> str:
    """One thing changed at a time."""
    known = ASKED.chosen.numpy()
    best = language().missing(NEW.tokens, known)
    floor = -np.log2(np.take_along_axis(best, NEW.tokens[..., None], axis=-1)[known]).mean()
    kinds = {
        "as the lesson": {},
        "15 % chosen": {"share": 0.15},
        "50 % chosen": {"share": 0.5},
        "one layer": {"n_layers": 1},
        "two layers that are one (ALBERT)": {"share_layers": True},
        "embeddings of 16, widened (ALBERT)": {"d_embedding": 16},
    }
    rows = [["", "parameters", "operations a text", "bits", "verbs"], [":---"] + 4 * ["---:"]]
    for name, options in kinds.items():
        models = [trained(seed, bar, **options) for seed in SEEDS]
        n = sum(p.numel() for p in models[0].parameters())
        work = operations(partial(models[0], torch.from_numpy(NEW.tokens[:1])))
        rows.append([name, f"{n:,}", f"{work:,}", *measured(models)])
    rows.append(["the best there can be", "", "", listed([floor], 2), ""])
    return f"\n## One change at a time\n\n{table(rows)}"


def few_texts(bar: tqdm) -> str:
    """Gaps drawn once, as in BERT's first edition, or anew each time, as in RoBERTa."""
    fixed = mask_tokens(TEXTS[:FEW], len(WORDS), seed=5, share=SHARE, **MASKING)

    def static(seed: int, step: int) -> Gapped:
        rows = torch.from_numpy(np.random.default_rng((seed, step)).integers(FEW, size=BATCH))
        return Gapped(*(part[rows] for part in fixed))

    rows = [["gaps", "bits", "verbs"], [":---", "---:", "---:"]]
    for name, batches in {"drawn once": static, "drawn anew": None}.items():
        models = [trained(s, bar, texts=TEXTS[:FEW], batches=batches and partial(batches, s)) for s in SEEDS]
        rows.append([name, *measured(models)])
    return f"\n## {FEW} texts, each seen {STEPS * BATCH // FEW} times\n\n{table(rows)}"


def half(bar: tqdm) -> str:
    """DistilBERT: a student of one layer, with and without what it gets from a teacher of two."""
    teachers = [trained(seed, bar) for seed in SEEDS]

    def taught(teacher: BERT) -> Loss:
        def loss(model: BERT, batch: Gapped) -> tuple[Tensor, int]:
            with torch.no_grad():
                wanted = teacher(batch.shown, mask=batch.real)[batch.chosen].log_softmax(-1)
            given = model.mlm_logits(model.encode(batch.shown, mask=batch.real).out[batch.chosen]).log_softmax(-1)
            return kl_div(given, wanted, reduction="sum", log_target=True), len(wanted)

        return loss

    columns = [f"{what}, {n:,} texts" for n in (FEW, len(TEXTS)) for what in ("bits", "verbs")]
    rows = [["a student of one layer", *columns], [":---"] + 4 * ["---:"]]
    ways = {
        "by itself": ("", 0, 150),
        "by itself, 600 steps": ("", 0, 600),
        "begins with the teacher's first layer": ("layer", 0, 150),
        "begins with its embeddings and output": ("rest", 0, 150),
        "begins with both": ("layer and rest", 0, 150),
        "taught by the teacher": ("", 1, 150),
        "begins with both, and is taught": ("layer and rest", 1, 150),
    }
    for name, (taken, learns, steps) in ways.items():
        row = [name]
        for n in (FEW, len(TEXTS)):
            models = []
            for seed, teacher in zip(SEEDS, teachers, strict=True):
                start = {
                    key: weight
                    for key, weight in teacher.state_dict().items()
                    if ("layer" if key.startswith("layers") else "rest") in taken
                }
                loss = taught(teacher) if learns else masked_token_loss
                models.append(trained(seed, bar, texts=TEXTS[:n], start=start, loss=loss, steps=steps, n_layers=1))
            row += measured(models)
        rows.append(row)
    rows.append([f"the teachers, {STEPS} steps", "", "", *measured(teachers)])
    words = f"150 steps unless more are named; the teachers, of two layers, had {STEPS}, and {len(TEXTS):,} texts\n"
    words += "in every column."
    return f"\n## Half the layers (DistilBERT)\n\n{words}\n\n{table(rows)}"


def labels(bar: tqdm) -> str:
    """Is the verb's number wrong? By the number of labels, with and without pretraining."""
    tokens, wrong, right = judged(1000, seed=2)
    asked, answer = torch.from_numpy(tokens), torch.from_numpy(wrong)
    nearest = (right.nearest == right.plural).mean()  # going by the nearest noun judges these alone rightly
    bag = most_nouns(right)

    def tuned(seed: int, n: int, model: BERT, steps: int, rate: float, *, frozen: bool = False) -> float:
        x, y, _ = judged(n, seed=(3, seed))
        x, y = torch.from_numpy(x), torch.from_numpy(y)

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rows = torch.from_numpy(np.random.default_rng((seed, step)).integers(n, size=32))
            return x[rows], y[rows]

        def loss(model: BERT, batch: tuple[Tensor, Tensor]) -> Tensor:
            return cross_entropy(model.next_sentence_logits(model.encode(batch[0], mask=batch[0] != 0).out), batch[1])

        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not frozen or name.startswith(("pooler", "next_sentence_head")))
        schedule = warmup_cosine(steps // 10, steps)
        fit(model, batch, loss, steps=steps, lr=rate, seed=seed, schedule=schedule, progress=False)
        bar.update()
        with torch.no_grad():
            return (
                (model.next_sentence_logits(model.encode(asked, mask=asked != 0).out).argmax(-1) == answer)
                .float()
                .mean()
                .item()
            )

    pairs = zip(NEW.tokens.flat, NEW.kinds.flat, strict=True)
    kinds = {int(token): KINDS[kind] for token, kind in pairs if kind >= 0}

    def pretrained(*shown: str) -> list[dict[str, Tensor]]:
        """Weights of three models that had no gap in words of these kinds."""
        special = (CLS, *(token for token, kind in kinds.items() if kind in shown))
        return [trained(seed, bar, special=special).state_dict() for seed in SEEDS]

    everywhere = pretrained()
    scratch = [{}] * len(SEEDS)
    counts = (16, 64, 256, 1024)
    rows = [["", *(f"{n} labels" for n in counts)], [":---"] + len(counts) * ["---:"]]
    ways = {
        "pretrained, 150 steps": (everywhere, 150, 1e-3, False),
        "pretrained without a gap in a verb, 150 steps": (pretrained("verb"), 150, 1e-3, False),
        "… nor in a noun or determiner, 150 steps": (pretrained("verb", "noun", "determiner"), 150, 1e-3, False),
        "pretrained, only the output's two linear layers trained further, 150 steps": (everywhere, 150, 1e-2, True),
        "from scratch, 150 steps": (scratch, 150, 1e-3, False),
        "from scratch, 600 steps": (scratch, 600, 2e-3, False),
        "from scratch, 2,000 steps": (scratch, 2000, 2e-3, False),
    }
    for name, (begins, steps, rate, frozen) in ways.items():
        row = [name]
        for n in counts:
            shares = []
            for seed, state in zip(SEEDS, begins, strict=True):
                torch.manual_seed(seed)
                model = BERT(BERTConfig(**SIZES))
                model.load_state_dict(model.state_dict() | state)
                shares.append(tuned(seed, n, model, steps, rate, frozen=frozen))
            row.append(per_cent(shares))
        rows.append(row)
    rows.append(["going by the nearest noun", *len(counts) * [per_cent([nearest])]])
    rows.append(["going by the number that most nouns have", *len(counts) * [per_cent([bag])]])
    words = (
        "Per cent of 1,000 new texts. Guessing gets 50. Rates: 0.001, of the output alone 0.01, from 600 steps on\n"
    )
    words += "0.002."
    return f"\n## Is the verb's number wrong?\n\n{words}\n\n{table(rows)}"


def following(bar: tqdm) -> str:
    """Does the second sentence follow? It is of the first one's theme, or drawn anew."""

    def pairs(n: int, seed: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, np.ndarray]:
        a, b = sentences(2 * n, seed=(*seed, 0)), sentences(2 * n, seed=(*seed, 1))
        follows = np.random.default_rng(seed).permutation(np.arange(n) % 2)
        second = np.empty(n, int)
        for theme in range(2):  # for each first sentence one of its theme, where it follows
            rows = np.flatnonzero((a.theme[:n] == theme) & (follows == 1))
            second[rows] = np.flatnonzero(b.theme == theme)[: len(rows)]
        second[follows == 0] = np.random.default_rng((*seed, 2)).permutation(2 * n)[: (follows == 0).sum()]
        x = np.concatenate([a.tokens[:n], b.tokens[second]], axis=1)
        same = a.theme[:n] == b.theme[second]
        segments = np.repeat([[0] * 16 + [1] * 16], n, axis=0)
        return torch.from_numpy(x), torch.from_numpy(segments), torch.from_numpy(follows), same

    def loss(model: BERT, batch: tuple[Gapped, Tensor, Tensor]) -> Tensor:
        gapped, segments, follows = batch
        out = model.encode(gapped.shown, mask=gapped.real, segments=segments).out
        filled = cross_entropy(model.mlm_logits(out[gapped.chosen]), gapped.tokens[gapped.chosen])
        return filled + cross_entropy(model.next_sentence_logits(out), follows)

    def batch(seed: int, step: int) -> tuple[Gapped, Tensor, Tensor]:
        x, segments, follows, _ = pairs(BATCH, (4, seed, step))
        gaps = mask_tokens(x, len(WORDS), seed=(seed, step), share=SHARE, **MASKING)
        return gaps, segments, follows

    x, segments, follows, same = pairs(1000, (5,))
    shares = {"the model": [], "by the odds of a shared theme": [_by_theme(x.numpy(), follows.numpy())]}
    shares["knowing both themes"] = [(same == (follows == 1).numpy()).mean()]
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = BERT(BERTConfig(**SIZES))
        schedule = warmup_cosine(STEPS // 10, STEPS)
        fit(model, partial(batch, seed), loss, steps=STEPS, lr=RATE, seed=seed, schedule=schedule, progress=False)
        bar.update()
        with torch.no_grad():
            guess = model.next_sentence_logits(model.encode(x, mask=x != 0, segments=segments).out).argmax(-1)
        shares["the model"].append((guess == follows).float().mean().item())
    rows = [["", "right"], [":---", "---:"]]
    rows += [[name, per_cent(found)] for name, found in shares.items()]
    words = "Per cent of 1,000 new pairs, half of which follow: the second sentence is of the first one's theme. The\n"
    words += "others are drawn anew, and half of them are of the same theme, too. Trained together with the gaps."
    return f"\n## Does the second sentence follow?\n\n{words}\n\n{table(rows)}"


def most_nouns(texts: Sentences) -> float:
    """In what share most nouns have the subject's number; where as many have the other, half are counted."""
    ending = np.array([word.endswith("s") for word in WORDS])[texts.tokens]
    nouns = texts.kinds == KINDS.index("noun")
    lead = (nouns & ending).sum(axis=1) - (nouns & ~ending).sum(axis=1)
    return float(np.where(lead == 0, 0.5, (lead > 0) == (texts.plural == 1)).mean())


def _by_theme(x: np.ndarray, follows: np.ndarray) -> float:
    """The best there can be without grammar: is it likelier that both are of one theme?"""
    themes = [language(theme) for theme in range(2)]
    first, second = (np.stack([one.log_probability(part) for one in themes]) for part in (x[:, :16], x[:, 16:]))
    apart = np.logaddexp(*first) + np.logaddexp(*second) - 2 * np.log(2)
    together = np.logaddexp(*(first + second)) - np.log(2)
    return ((together > apart) == (follows == 1)).mean()


def trained(
    seed: int,
    bar: tqdm,
    *,
    texts: Tensor = TEXTS,
    share: float = SHARE,
    special: Sequence[int] = (CLS,),
    steps: int = STEPS,
    batches: Callable[[int], Gapped] | None = None,
    start: Mapping[str, Tensor] | None = None,
    loss: Loss = masked_token_loss,
    metrics: dict[str, Callable[[BERT], float]] | None = None,
    **sizes: object,
) -> BERT:
    """A model that fills gaps. It begins with the weights of ``start``, as far as it has layers for them."""
    torch.manual_seed(seed)
    model = BERT(BERTConfig(**SIZES | sizes))
    drawn = model.state_dict()
    model.load_state_dict(drawn | {name: x for name, x in (start or {}).items() if name in drawn})
    masking = MASKING | {"special": special}
    batches = batches or gapped_batches(texts, BATCH, len(WORDS), seed=seed, share=share, **masking)
    options = {"steps": steps, "lr": RATE, "seed": seed, "schedule": warmup_cosine(steps // 10, steps)}
    fit(model, batches, loss, **options, progress=False, metrics=metrics, every=50)
    bar.update()
    return model


@torch.no_grad()
def bits(model: BERT) -> float:
    """For a hidden token of the new texts."""
    shown = ASKED.tokens.masked_fill(ASKED.chosen, MASK)
    logits = model(shown, mask=ASKED.real)[ASKED.chosen]
    return cross_entropy(logits, ASKED.tokens[ASKED.chosen]).item() / np.log(2)


def verbs(model: BERT) -> float:
    """Per cent of the new texts in which the verb's own number is likelier."""
    return 100 * float(likelier(model, NEW).mean())


@torch.no_grad()
def likelier(model: BERT, texts: Sentences) -> np.ndarray:
    """Is the hidden verb's own number likelier than the other, in each text?"""
    x, rows, places = torch.from_numpy(texts.tokens), torch.arange(len(texts.tokens)), torch.from_numpy(texts.verb)
    verb = x[rows, places]
    other = torch.tensor([other_number(int(token)) for token in verb])
    shown = x.clone()
    shown[rows, places] = MASK
    logits = model(shown, mask=x != 0)[rows, places]
    return (logits[rows, verb] > logits[rows, other]).numpy()


def measured(models: Sequence[BERT]) -> list[str]:
    """Bits and verbs of each, as two cells of a table."""
    return [listed(map(bits, models), 2), listed(map(verbs, models))]
