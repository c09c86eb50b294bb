"""What lesson 22 has no time to train, five seeds of each. ``make seeds`` writes ``SEEDS_PICTURES_AND_WORDS.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path

import torch
from machine import described
from tables import table
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from attnlib.data.captions import COLOURS, END, HELD_OUT, PAIRS, SEEN, WORDS, captioned, captions, text
from attnlib.data.shapes import SHAPES
from attnlib.models import CLIP, CLIPConfig, contrastive_loss, pretrained
from attnlib.models.dalle import DALLE, PatchCodes
from attnlib.models.flamingo import Flamingo
from attnlib.training import fit, warmup_cosine

SEEDS, STEPS = range(5), 500
BOARD = tuple(pair for i, pair in enumerate(PAIRS) if (i // 4 + i % 4) % 2)  # as the white squares of a chessboard
SIZES = {"n_tokens": len(WORDS), "n_max": 4, "end": END, "side": 16, "patch": 4, "d_model": 32, "n_heads": 4}
SIZES |= {"n_layers": 2, "d_ff": 64, "d_text": 32, "n_text_heads": 4, "n_text_layers": 1, "d_text_ff": 64}
SIZES |= {"d_shared": 32}
torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

PAGE = f"""\
# Five seeds of what lesson 22 does not train

Made by `make seeds`, on {described()}.

## What decides

The CLIP of lesson 22, {STEPS} steps of one picture of each seen pair, with one thing changed in each row. Shares in
per cent, 50 new pictures of each pair: of the seen pairs (lowest to highest of five seeds), of the held-out pairs with
all 24 captions to choose from, seed by seed, and with the held-out captions alone. Seeds 0, 1 and 2 of the first,
second and last but two rows are the runs of the lesson.

"""


FLAMINGOS = """
## Flamingos

Those of lesson 22, with the eye of the convolution of the same seed, and with a new layer before each of the five
layers instead of the last alone. Captions written exactly, in per cent: seen pairs, then held-out ones; ten pictures
of each pair.

"""

PAINTERS = """
## Painters

Those of the excursion on DALL·E, and four times as many steps. What the judge of that excursion reads as it was asked
for, in per cent: seen pairs, then held-out ones; 50 drawings of each pair.

"""


class Bag(nn.Module):
    """A caption without order: the mean of its words' rows, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.project = nn.Embedding(len(WORDS), 32), nn.Linear(32, 32)

    def forward(self, tokens: Tensor) -> Tensor:
        """A row for each caption."""
        return self.project(self.table(tokens).mean(1))


class Apart(nn.Module):
    """A stem that reads patches of the brightest channel, where nobody sees a colour, and adds the colour to all.

    The colour is the mean over the pixels, weighted by a softmax of their brightness.
    """

    def __init__(self) -> None:
        super().__init__()
        self.form, self.colour = nn.Conv2d(1, 32, 4, stride=4, bias=False), nn.Linear(3, 32, bias=False)

    def forward(self, pictures: Tensor) -> Tensor:
        """Rows for the patches, (batch, 32, 4, 4)."""
        bright = pictures.amax(1, keepdim=True)
        weights = (20 * bright.flatten(2)).softmax(-1)
        mean = (pictures.flatten(2) * weights).sum(-1)  # (batch, 3)
        return self.form(bright) + self.colour(mean)[..., None, None]


def convolution() -> nn.Module:
    """Two small convolutions that end in as many rows as there are patches."""
    return nn.Sequential(nn.Conv2d(3, 10, 3, stride=2, padding=1), nn.GELU(), nn.Conv2d(10, 32, 2, stride=2))


def large() -> nn.Module:
    """The judge's three convolutions."""
    first, second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
    return nn.Sequential(first, nn.GELU(), second, nn.GELU(), nn.Conv2d(16, 32, 3, stride=2, padding=1))


def two_layers() -> nn.Module:
    """Two linear layers on each patch, of the convolutions' size."""
    return nn.Sequential(nn.Conv2d(3, 18, 4, stride=4), nn.GELU(), nn.Conv2d(18, 32, 1))


def own(model: CLIP, pictures: Tensor, places: Tensor) -> Tensor:
    """The loss of CLIP."""
    return contrastive_loss(model(pictures, captions()[places]))


def named(model: CLIP, pictures: Tensor, places: Tensor) -> Tensor:
    """The same, and a picture chooses among all captions, those that are never shown too."""
    scores = model(pictures, captions())
    back = F.cross_entropy(scores[:, places].T, torch.arange(len(places)))
    return (F.cross_entropy(scores, places) + back) / 2


def classified(model: CLIP, pictures: Tensor, places: Tensor) -> Tensor:
    """No captions: one choice among six colours, and one among four shapes."""
    colours, shapes = model.text(model.pictures(pictures)).split([len(COLOURS), len(SHAPES)], dim=1)
    return F.cross_entropy(colours, places // len(SHAPES)) + F.cross_entropy(shapes, places % len(SHAPES))


Loss = Callable[[CLIP, Tensor, Tensor], Tensor]
VARIANTS: dict[str, dict[str, object]] = {
    "patches": {},
    "a small convolution": {"stem": convolution},
    "two layers on each patch": {"stem": two_layers},
    "form and colour read apart": {"stem": Apart},
    "patches, three times the steps": {"steps": 3 * STEPS},
    "a convolution, three times the steps": {"stem": convolution, "steps": 3 * STEPS},
    "patches, captions as bags of words": {"text": Bag},
    "a convolution, captions as bags of words": {"stem": convolution, "text": Bag},
    "patches, 12 of 24 pairs seen": {"seen": BOARD},
    "a convolution, 12 of 24 pairs seen": {"stem": convolution, "seen": BOARD},
    "patches, unseen captions among the wrong ones": {"loss": named},
    "a convolution, unseen captions among the wrong ones": {"stem": convolution, "loss": named},
    "a convolution, colour and shape classified": {"stem": convolution, "loss": classified},
}


def learned(
    seed: int,
    pool: Tensor,
    stem: Callable[[], nn.Module] | None = None,
    text: Callable[[], nn.Module] | None = None,
    loss: Loss = own,
    steps: int = STEPS,
    seen: Sequence[tuple[str, str]] = SEEN,
) -> CLIP:
    """One run, with pictures of ``pool`` ``(pair, n, channels, side, side)``."""
    torch.manual_seed(seed)
    model, places = CLIP(CLIPConfig(**SIZES)), torch.tensor([PAIRS.index(pair) for pair in seen])
    if stem:
        model.pictures.stem = stem()
    if text:
        model.text = text()
    if loss is classified:
        model.text = nn.Linear(32, len(COLOURS) + len(SHAPES))
    lots = torch.randint(pool.shape[1], (steps,), generator=torch.Generator().manual_seed(seed))
    run = lambda model, lot: loss(model, pool[places, lot], places)  # noqa: E731
    schedule = warmup_cosine(steps // 10, steps)
    fit(model, lots.__getitem__, run, steps=steps, lr=3e-3, schedule=schedule, seed=seed, progress=False)
    return model


@torch.no_grad()
def shares(model: CLIP, loss: Loss, seen: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    """Right of 100 among seen pairs, held-out ones, and held-out ones with no other captions."""
    test, unseen = captioned(PAIRS, each=50, seed=99), torch.tensor([pair not in seen for pair in PAIRS])
    if loss is classified:
        logits = model.text(model.pictures(test.pictures.double())).log_softmax(-1)
        colours, shapes = logits[:, : len(COLOURS), None], logits[:, None, len(COLOURS) :]
        scores = (colours.log_softmax(1) + shapes.log_softmax(2)).flatten(1)
    else:
        scores = model(test.pictures.double(), captions())
    new = unseen[test.pair]
    right, among = scores.argmax(1) == test.pair, scores.masked_fill(~unseen, -torch.inf).argmax(1) == test.pair
    return tuple(100 * some.double().mean().item() for some in (right[~new], right[new], among[new]))


def page() -> str:
    """All tables, as Markdown."""
    pool = captioned(PAIRS, each=300, seed=0).pictures.double().unflatten(0, (len(PAIRS), 300))
    return PAGE + _decides(pool) + FLAMINGOS + _flamingos(pool) + PAINTERS + _painters(pool)


def _decides(pool: Tensor) -> str:
    rows = [["", "parameters that read pictures", "seen", *(f"held out, seed {s}" for s in SEEDS), "held out alone"]]
    rows.append(["---", *["---:"] * (len(rows[0]) - 1)])
    for name, options in tqdm(VARIANTS.items()):
        found = []
        for seed in SEEDS:
            model = learned(seed, pool, **options)
            found.append(shares(model, options.get("loss", own), options.get("seen", SEEN)))
        seen, held, alone = zip(*found, strict=True)
        size = sum(p.numel() for p in model.pictures.parameters())
        rows.append([name, f"{size:,}", _spread(seen), *(f"{share:.0f}" for share in held), _spread(alone)])
    return table(rows)


def _flamingos(pool: Tensor) -> str:
    language, tokenizer = pretrained("technical-english")
    lines = [tokenizer.encode(f"shows {text(row)}.").ids for row in captions()]
    start = torch.tensor(tokenizer.encode("shows").ids)
    ways = {"80 steps": (5, 80), "240 steps": (5, 240), "80 steps, five new layers": (1, 80)}
    rows = [["", *ways], ["---"] + ["---:"] * len(ways)]
    for seed in tqdm(SEEDS, desc="flamingos"):
        eye = learned(seed, pool, convolution).pictures
        rows.append([f"seed {seed}"])
        for every, steps in ways.values():
            torch.manual_seed(seed)
            model = Flamingo(deepcopy(language), d_rows=32, every=every).float()
            _tell(model, eye, pool, lines, len(start), seed, steps)
            rows[-1].append(_written(model, eye, lines, start))
    return table(rows)


def _tell(
    model: Flamingo, eye: nn.Module, pool: Tensor, lines: list[list[int]], start: int, seed: int, steps: int
) -> None:
    places, longest = torch.tensor([PAIRS.index(pair) for pair in SEEN]), max(map(len, lines))
    tokens = torch.tensor([line + [0] * (longest - len(line)) for line in lines])[places]
    asked = torch.tensor([[start <= i < len(line) for i in range(longest)] for line in lines])[places, 1:]
    lots = torch.randint(pool.shape[1], (steps,), generator=torch.Generator().manual_seed(seed))

    def loss(model: Flamingo, pictures: Tensor) -> Tensor:
        rows = eye.rows(pictures).detach().float()
        return F.cross_entropy(model(tokens[:, :-1], rows).logits[asked], tokens[:, 1:][asked])

    schedule = warmup_cosine(steps // 10, steps)
    batches = lambda s: pool[places, lots[s]]  # noqa: E731
    fit(model, batches, loss, steps=steps, lr=3e-3, schedule=schedule, seed=seed, progress=False)


def _written(model: Flamingo, eye: nn.Module, lines: list[list[int]], start: Tensor) -> str:
    test, longest = captioned(PAIRS, each=10, seed=99), max(map(len, lines))
    with torch.no_grad():
        tokens = model.write(eye.rows(test.pictures.double()).float(), start, longest - len(start))
    wanted = [lines[pair][len(start) :] for pair in test.pair]
    right = torch.tensor([a[: len(b)].tolist() == b for a, b in zip(tokens, wanted, strict=True)])
    return _seen_and_held_out(right, test.pair)


def _painters(pool: Tensor) -> str:
    places, test = torch.tensor([PAIRS.index(pair) for pair in SEEN]), captioned(PAIRS, each=50, seed=99)
    codes = PatchCodes.fit(pool[places, :40].flatten(0, 1), 64, 4, seed=0)
    coded, words = codes.encode(pool.flatten(0, 1)).unflatten(0, pool.shape[:2]), captions(SEEN)
    judge, rows = learned(0, pool, large, seen=PAIRS), [["", "350 steps", "1,400 steps"], ["---", "---:", "---:"]]
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
                rows[-1].append(_seen_and_held_out(judge(drawn, captions()).argmax(1) == test.pair, test.pair))
    return table(rows)


def _seen_and_held_out(right: Tensor, pair: Tensor) -> str:
    new = torch.tensor([pair in HELD_OUT for pair in PAIRS])[pair]
    return ", ".join(f"{100 * right[which].double().mean().item():.0f}" for which in (~new, new))


def _spread(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}"


if __name__ == "__main__":
    target = Path(__file__).parent / "SEEDS_PICTURES_AND_WORDS.md"
    target.write_text(page(), encoding="utf-8")
    print(f"{target.name} written")
