"""What lesson 22 has no time to train, five seeds of each. ``make studies`` writes ``pictures_and_words.md``."""

from __future__ import annotations

from copy import deepcopy
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from attnlib.data.captions import COLOURS, HELD_OUT, PAIRS, SEEN, WORDS, captioned, captions, text
from attnlib.data.shapes import SHAPES
from attnlib.models import pretrained
from attnlib.models.dalle import DALLE, PatchCodes
from attnlib.models.flamingo import Flamingo
from attnlib.training import fit, warmup_cosine
from studies.clip_variants import (
    CHOICES,
    EACH_ONCE,
    QUESTIONS,
    STEPS,
    N,
    convolution,
    large,
    learned,
    scores,
    shares,
)
from studies.machine import described
from studies.tables import extent, listed, spread, table

SEEDS = range(5)
torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

PAGE = f"""\
# Five seeds of what lesson 22 does not train

Made by `make studies`, on {described()}.

All are the CLIP of lesson 22, {STEPS} steps of one picture of each seen pair, but for what is said; 50 new pictures of
each pair. Shares are per cent. "Seen": right among pictures of seen pairs, lowest to highest of five seeds. "Held
out": right among pictures of held-out pairs, with all 24 captions to choose from, seed by seed. "Held out alone": the
same pictures with the held-out captions alone to choose from. "False alarms": pictures of seen pairs that are called
by a held-out caption. Who knows the colour and guesses the shape has 25.
"""

MORE = """
## Ten more seeds

The six pairs of the lesson again, seeds 5 to 14.

"""

OTHER_PAIRS = """
## Choice by choice

The six pairs of the lesson, and three other choices: each is the one before with every shape replaced by the next, so
that each of the 24 pairs is held out in one of them. In the last two columns six rings and squares are held out, in
turn from colour to colour, or six crosses and bars. Right among held-out pairs, mean of five seeds, and in brackets
lowest and highest.

"""

FLAMINGOS = """
## Flamingos

Those of lesson 22, with the eye of the convolution of the same seed, and with a new layer before each of the five
layers instead of the last alone. Captions written exactly, of seen and of held-out pairs; and how many held-out ones
are right when it does not write, but chooses the likeliest of the 24 captions. "Nothing unseen": in training, no shape
is among the wrong next words that was never shown in the colour before it. 50 pictures of each pair, for the eye's own
CLIP too.

"""

PAINTERS = """
## Painters

Those of the excursion on DALL·E, and four times as many steps. What the judge of that excursion reads, 50 drawings of
each pair: the pair as it was asked for, seen and held out; of the held-out ones, the colour and the shape.

"""


EXPLAINED = {
    "How is the caption read?": (
        "In a bag a caption is the mean of one row a word, or one row a letter, with no order and no attention. With "
        "a row for\neach caption it shares no row with others."
    ),
    "How many combinations are shown?": (
        "Twelve pairs are linked when colours share shapes with other colours, so that from each colour and shape a "
        "chain of\nseen pairs leads to each other; in two halves red, blue and pink are squares and bars only, and "
        "the other colours rings\nand crosses; in two other halves red, green and blue are the squares and bars. The "
        "first two rows have all 18 pairs, and\nbatches of 12 of them."
    ),
    "What does training call wrong?": (
        "With all 24 captions each picture is told that the six unseen ones are wrong, too. Two lists: no captions, "
        'but six\ncolours and four shapes, a softmax over each; "nothing unseen" leaves out of it the shapes that '
        "were never shown in\nthe picture's colour, and the colours that were never shown in its shape."
    ),
}


def page() -> str:
    """All tables, as Markdown."""
    pool = captioned(PAIRS, each=300, seed=0).pictures.double().unflatten(0, (len(PAIRS), 300))
    parts = [PAGE, *(_question(title, pool) for title in QUESTIONS), MORE, _more(pool), OTHER_PAIRS, _choices(pool)]
    return "".join([*parts, FLAMINGOS, _flamingos(pool), PAINTERS, _painters(pool)])


def _choices(pool: Tensor) -> str:
    test = captioned(PAIRS, each=50, seed=99)
    called_wrong = QUESTIONS["What does training call wrong?"]["a convolution, all 24 captions"]
    stems = QUESTIONS["How is the picture read?"] | {"all 24 captions, a small convolution": called_wrong}
    right = torch.zeros(len(SEEDS), len(PAIRS))  # of patches, each pair in the choice that holds it out
    rows = [["", *CHOICES], ["---", *["---:"] * len(CHOICES)]]
    for name, options in stems.items():
        cells = []
        for choice, seen in tqdm(CHOICES.items(), desc=f"choice by choice, {name}"):
            new = torch.tensor([pair not in seen for pair in PAIRS])
            shown, runs = {} if seen == SEEN else {"seen": seen}, torch.zeros(len(SEEDS), len(PAIRS))
            for seed in SEEDS:
                ok = scores(learned(seed, pool, **options, **shown), test.pictures).argmax(1) == test.pair
                runs[seed] = 100 * ok.double().unflatten(0, (len(PAIRS), -1)).mean(1)
            cells.append(spread(runs[:, new].mean(1).tolist()))
            if name == "patches" and choice in EACH_ONCE:
                right[:, new] = runs[:, new]
        rows.append([name, *cells])
    by_pair = [["patches", *SHAPES], ["---", *["---:"] * N]]
    for colour, line in zip(COLOURS, right.mean(0).unflatten(0, (-1, N)), strict=True):
        by_pair.append([colour, *(f"{share:.0f}" for share in line)])
    return f"{table(rows)}\n## Pair by pair, patches\n\n{table(by_pair)}"


def _question(title: str, pool: Tensor) -> str:
    rows = [["", "seen", "held out", "held out alone", "false alarms"], ["---", *["---:"] * 4]]
    for name, options in tqdm(QUESTIONS[title].items(), desc=title):
        models = [learned(seed, pool, **options) for seed in SEEDS]
        found = [shares(model, options.get("seen", SEEN)) for model in models]
        seen, held, alone, alarms = zip(*found, strict=True)
        size = sum(p.numel() for p in models[0].pictures.parameters())
        named = f"{name} ({size:,} parameters)" if title == next(iter(QUESTIONS)) else name
        rows.append([named, extent(seen), listed(held), extent(alone), extent(alarms)])
    words = f"{EXPLAINED[title]}\n\n" if title in EXPLAINED else ""
    return f"\n## {title}\n\n{words}{table(rows)}"


def _more(pool: Tensor) -> str:
    rows = [["", "seen", "held out"], ["---", "---:", "---:"]]
    for name in ("a small convolution", "patches"):
        options = QUESTIONS["How is the picture read?"][name]
        models = (learned(seed, pool, **options) for seed in tqdm(range(5, 15), desc=f"ten more seeds, {name}"))
        seen, held, *_ = zip(*(shares(model, SEEN) for model in models), strict=True)
        rows.append([name, extent(seen), listed(held)])
    return table(rows)


def _flamingos(pool: Tensor) -> str:
    language, tokenizer = pretrained("technical-english")
    lines = [tokenizer.encode(f"shows {text(row)}.").ids for row in captions()]
    start, test = torch.tensor(tokenizer.encode("shows").ids), captioned(PAIRS, each=50, seed=99)
    ways = {f"{steps} steps": (5, steps, True) for steps in (80, 240)}
    ways |= {f"{steps} steps, five new layers": (1, steps, True) for steps in (80, 240)}
    ways |= {"80 steps, nothing unseen": (5, 80, False), "80 steps, five new layers, nothing unseen": (1, 80, False)}
    rows = [["", "CLIP, held out", *ways], ["---", "---:"] + ["---:"] * len(ways)]
    for seed in tqdm(SEEDS, desc="flamingos"):
        clip = learned(seed, pool, stem=convolution)
        rows.append([f"seed {seed}", f"{shares(clip, SEEN)[1]:.0f}"])
        for every, steps, accuses in ways.values():
            torch.manual_seed(seed)
            model = Flamingo(deepcopy(language), d_rows=32, every=every).float()
            _tell(model, clip.pictures, pool, lines, len(start), seed, steps, accuses=accuses)
            with torch.no_grad():
                seen = clip.pictures.rows(test.pictures.double()).float()
            written, chosen = _written(model, seen, lines, start), likeliest(model, seen, lines, len(start))
            _, of_24 = _seen_and_held_out(chosen == test.pair, test.pair)
            rows[-1].append(f"{listed(_seen_and_held_out(written == test.pair, test.pair))}; {of_24:.0f}")
    return table(rows)


def _tell(
    model: Flamingo,
    eye: nn.Module,
    pool: Tensor,
    lines: list[list[int]],
    start: int,
    seed: int,
    steps: int,
    *,
    accuses: bool,
) -> None:
    """Train it to write; unless it ``accuses``, shapes never shown in a colour are not called wrong after it."""
    places, longest = torch.tensor([PAIRS.index(pair) for pair in SEEN]), max(map(len, lines))
    tokens = torch.tensor([line + [0] * (longest - len(line)) for line in lines])[places]
    asked = torch.tensor([[start <= i < len(line) for i in range(longest)] for line in lines])[places, 1:]
    spared = torch.zeros(*tokens[:, 1:].shape, model.language.config.n_tokens, dtype=torch.bool)
    for line, other in product([] if accuses else HELD_OUT, SEEN):
        if line[0] == other[0]:
            there = lines[PAIRS.index(line)]
            parts = next(i for i, (a, b) in enumerate(zip(there, lines[PAIRS.index(other)], strict=False)) if a != b)
            spared[SEEN.index(other), parts - 1, there[parts]] = True
    lots = torch.randint(pool.shape[1], (steps,), generator=torch.Generator().manual_seed(seed))

    def loss(model: Flamingo, pictures: Tensor) -> Tensor:
        rows = eye.rows(pictures).detach().float()
        logits = model(tokens[:, :-1], rows).logits.masked_fill(spared, -torch.inf)
        return F.cross_entropy(logits[asked], tokens[:, 1:][asked])

    schedule = warmup_cosine(steps // 10, steps)
    batches = lambda s: pool[places, lots[s]]  # noqa: E731
    fit(model, batches, loss, steps=steps, lr=3e-3, schedule=schedule, seed=seed, progress=False)


def _written(model: Flamingo, rows: Tensor, lines: list[list[int]], start: Tensor) -> Tensor:
    """Which caption the model writes about each picture; -1 where it is none."""
    tokens = model.write(rows, start, max(map(len, lines)) - len(start)).tolist()
    known = {tuple(line[len(start) :]): i for i, line in enumerate(lines)}
    found = [[known[line[:n]] for n in range(len(line) + 1) if line[:n] in known] for line in map(tuple, tokens)]
    return torch.tensor([places[0] if places else -1 for places in found])


@torch.no_grad()
def likeliest(model: Flamingo, rows: Tensor, lines: list[list[int]], start: int) -> Tensor:
    """Which of the captions ``lines`` has the largest probability for each picture."""
    surprise = []
    for line in lines:
        tokens = torch.tensor(line).expand(len(rows), -1)
        logits = model(tokens[:, :-1], rows).logits[:, start - 1 :]
        surprise.append(F.cross_entropy(logits.mT, tokens[:, start:], reduction="none").sum(1))
    return torch.stack(surprise).argmin(0)


def _painters(pool: Tensor) -> str:
    places, test = torch.tensor([PAIRS.index(pair) for pair in SEEN]), captioned(PAIRS, each=50, seed=99)
    codes = PatchCodes.fit(pool[places, :40].flatten(0, 1), 64, 4, seed=0)
    coded, words = codes.encode(pool.flatten(0, 1)).unflatten(0, pool.shape[:2]), captions(SEEN)
    heads = [f"{name}, {n:,} steps" for n in (350, 1400) for name in ("pair, seen and held out", "colour, shape")]
    judge, rows = learned(0, pool, stem=large, seen=PAIRS), [["", *heads], ["---"] + ["---:"] * len(heads)]
    for seed in tqdm(SEEDS, desc="painters"):
        rows.append([f"seed {seed}"])
        for steps in (350, 1400):
            torch.manual_seed(seed)
            model = DALLE(len(WORDS), 64, 4, 16, d_model=48, n_heads=4, n_layers=2, d_ff=96).float()
            lots = torch.randint(pool.shape[1], (steps, 2), generator=torch.Generator().manual_seed(seed))
            twice, schedule = words.repeat_interleave(2, dim=0), warmup_cosine(steps // 10, steps)
            batches = lambda s: coded[places][:, lots[s]].flatten(0, 1)  # noqa: B023, E731
            loss = lambda model, z: model(twice, z)  # noqa: B023, E731
            fit(model, batches, loss, steps=steps, lr=4e-3, schedule=schedule, seed=seed, progress=False)
            with torch.no_grad():
                drawn = codes.decode(model.draw(test.captions, seed=5))
                read = judge(drawn, captions()).argmax(1)
            halves = read // N == test.pair // N, read % N == test.pair % N
            rows[-1].append(listed(_seen_and_held_out(read == test.pair, test.pair)))
            rows[-1].append(listed([_seen_and_held_out(half, test.pair)[1] for half in halves]))
    return table(rows)


def _seen_and_held_out(right: Tensor, pair: Tensor) -> tuple[float, float]:
    new = torch.tensor([pair in HELD_OUT for pair in PAIRS])[pair]
    return 100 * right[~new].double().mean().item(), 100 * right[new].double().mean().item()
