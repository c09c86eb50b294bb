"""Every kind of small CLIP that lesson 22 compares: how it reads, what it is shown, what training calls wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib.data.captions import COLOURS, END, HELD_OUT, PAIRS, SEEN, WORDS, captioned, captions, text
from attnlib.data.shapes import SHAPES
from attnlib.models import CLIP, CLIPConfig, contrastive_loss
from attnlib.training import fit, warmup_cosine

STEPS, N = 500, len(SHAPES)
ALL = torch.ones(len(COLOURS), N, dtype=torch.bool)
SIZES = {"n_tokens": len(WORDS), "n_max": 4, "end": END, "side": 16, "patch": 4, "d_model": 32, "n_heads": 4}
SIZES |= {"n_layers": 2, "d_ff": 64, "d_text": 32, "n_text_heads": 4, "n_text_layers": 1, "d_text_ff": 64}
SIZES |= {"d_shared": 32}


class Bag(nn.Module):
    """A caption without order or attention: the mean of its words' rows, then what the captions' encoder ends in."""

    def __init__(self, n_words: int = len(WORDS)) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(n_words, 32), nn.LayerNorm(32)
        self.project = nn.Linear(32, 32, bias=False)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """A row for each caption."""
        return self.project(self.norm(self.table(tokens).mean(1)))


class Letters(Bag):
    """A caption of which no word is read: the mean of its letters' rows, blanks among them."""

    def __init__(self) -> None:
        super().__init__(128)

    def forward(self, tokens: Tensor) -> Tensor:
        """A row for each caption."""
        means = [self.table(torch.tensor([ord(letter) for letter in text(row)])).mean(0) for row in tokens]
        return self.project(self.norm(torch.stack(means)))


class Whole(Bag):
    """A caption that shares no row with others: each of the 24 is one word of its own."""

    def __init__(self) -> None:
        super().__init__(len(PAIRS))

    def forward(self, tokens: Tensor) -> Tensor:
        """A row for each caption."""
        which = (tokens[:, None] == captions()).all(-1).long().argmax(1)
        return super().forward(which[:, None])


class Lists(nn.Module):
    """In place of captions: a learned row for each colour and for each shape."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(0.02 * torch.randn(len(COLOURS) + N, 32))

    def forward(self, tokens: Tensor) -> Tensor:
        """The rows, whatever the tokens."""
        return self.rows


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


def classified(model: CLIP, pictures: Tensor, places: Tensor, counted: Tensor = ALL) -> Tensor:
    """No captions: one choice among six colours, and one among four shapes, of pairs that are ``counted``."""
    colours, shapes = model(pictures, captions()).split([len(COLOURS), N], dim=1)
    colours = colours.masked_fill(~counted.T[places % N], -torch.inf)
    shapes = shapes.masked_fill(~counted[places // N], -torch.inf)
    return (F.cross_entropy(colours, places // N) + F.cross_entropy(shapes, places % N)) / 2


def unaccused(model: CLIP, pictures: Tensor, places: Tensor) -> Tensor:
    """The same, but that no shape is called wrong that was never shown in this colour, and no such colour."""
    shown = torch.zeros(len(PAIRS), dtype=torch.bool).scatter(0, places, value=True)
    return classified(model, pictures, places, shown.view_as(ALL))


Pairs = Sequence[tuple[str, str]]


def without(held: Pairs) -> Pairs:
    """The seen pairs, when these are held out."""
    return tuple(pair for pair in PAIRS if pair not in held)


def turned(times: int) -> Pairs:
    """The seen pairs, when each held-out shape is replaced by one that stands so many places later."""
    return without([(colour, SHAPES[(SHAPES.index(shape) + times) % N]) for colour, shape in HELD_OUT])


def in_turn(*held: str) -> Pairs:
    """The seen pairs, when of each colour one of these shapes is held out, in turn."""
    return without([(colour, held[i % len(held)]) for i, colour in enumerate(COLOURS)])


def linked() -> Pairs:
    """Twelve pairs: a colour has two neighbours in the ring of shapes, and the next colour shares one of them."""
    return tuple((c, s) for i, c in enumerate(COLOURS) for j, s in enumerate(SHAPES) if (j - i) % N < 2)


def halves(*first: str) -> Pairs:
    """Twelve pairs: these colours are squares and bars, the others rings and crosses."""
    return tuple((c, s) for c in COLOURS for s in SHAPES if (c in first) == (s in ("square", "bar")))


EACH_ONCE = {f"choice {times + 1}": turned(times) for times in range(N)}  # so often each pair is held out
CHOICES = EACH_ONCE | {"rings and squares": in_turn("ring", "square"), "crosses and bars": in_turn("cross", "bar")}

Loss = Callable[[CLIP, Tensor, Tensor], Tensor]
QUESTIONS: dict[str, dict[str, dict[str, object]]] = {
    "How is the picture read?": {
        "patches": {},
        "two layers on each patch": {"stem": two_layers},
        "a small convolution": {"stem": convolution},
        "form and colour read apart": {"stem": Apart},
    },
    "How is the caption read?": {
        "patches, captions as bags of words": {"text": Bag},
        "a convolution, captions as bags of words": {"stem": convolution, "text": Bag},
        "patches, captions as bags of letters": {"text": Letters},
        "a convolution, captions as bags of letters": {"stem": convolution, "text": Letters},
        "patches, a row for each caption": {"text": Whole},
        "a convolution, a row for each caption": {"stem": convolution, "text": Whole},
    },
    "How long is it trained?": {
        "patches, three times the steps": {"steps": 3 * STEPS},
        "a convolution, three times the steps": {"stem": convolution, "steps": 3 * STEPS},
    },
    "How many combinations are shown?": {
        "patches, 18, of which 12 in a step": {"at_once": 12},
        "a convolution, 18, of which 12 in a step": {"stem": convolution, "at_once": 12},
        "patches, 12, linked": {"seen": linked()},
        "a convolution, 12, linked": {"stem": convolution, "seen": linked()},
        "patches, 12 in two halves": {"seen": halves("red", "blue", "pink")},
        "a convolution, 12 in two halves": {"stem": convolution, "seen": halves("red", "blue", "pink")},
        "patches, 12 in two other halves": {"seen": halves("red", "green", "blue")},
        "a convolution, 12 in two other halves": {"stem": convolution, "seen": halves("red", "green", "blue")},
    },
    "What does training call wrong?": {
        "patches, all 24 captions": {"loss": named},
        "a convolution, all 24 captions": {"stem": convolution, "loss": named},
        "a convolution, two lists": {"stem": convolution, "text": Lists, "loss": classified},
        "a convolution, two lists, nothing unseen": {"stem": convolution, "text": Lists, "loss": unaccused},
    },
}


@cache
def learned(
    seed: int,
    pool: Tensor,
    *,
    stem: Callable[[], nn.Module] | None = None,
    text: Callable[[], nn.Module] | None = None,
    loss: Loss = own,
    steps: int = STEPS,
    seen: Pairs = SEEN,
    at_once: int | None = None,
) -> CLIP:
    """One run, with pictures of ``pool`` ``(pair, n, channels, side, side)``, of ``at_once`` of the pairs a step.

    Several tables ask for the same run: it is trained once.
    """
    torch.manual_seed(seed)
    model, places = CLIP(CLIPConfig(**SIZES)), torch.tensor([PAIRS.index(pair) for pair in seen])
    if stem:
        model.pictures.stem = stem()
    if text:
        model.text = text()
    draws = torch.Generator().manual_seed(seed)
    lots = torch.randint(pool.shape[1], (steps,), generator=draws)
    some = [torch.randperm(len(places), generator=draws)[:at_once] if at_once else slice(None) for _ in lots]
    run = lambda model, step: loss(model, pool[places[some[step]], lots[step]], places[some[step]])  # noqa: E731
    schedule = warmup_cosine(steps // 10, steps)
    fit(model, lambda step: step, run, steps=steps, lr=3e-3, schedule=schedule, seed=seed, progress=False)
    return model


@torch.no_grad()
def scores(model: CLIP, pictures: Tensor) -> Tensor:
    """Of every picture with every caption, or with every colour and shape of two lists."""
    found = model(pictures.double(), captions())
    if not isinstance(model.text, Lists):
        return found
    colours, shapes = found.split([len(COLOURS), N], dim=1)
    return (colours.log_softmax(1)[:, :, None] + shapes.log_softmax(1)[:, None]).flatten(1)


def shares(model: CLIP, seen: Pairs) -> tuple[float, float, float, float]:
    """Per cent: right among seen pairs, held-out ones, held-out ones with no other captions; and false alarms."""
    test, unseen = captioned(PAIRS, each=50, seed=99), torch.tensor([pair not in seen for pair in PAIRS])
    found, new = scores(model, test.pictures), unseen[test.pair]
    said, alone = found.argmax(1), found.masked_fill(~unseen, -torch.inf).argmax(1)
    some = (said == test.pair)[~new], (said == test.pair)[new], (alone == test.pair)[new], unseen[said][~new]
    return tuple(100 * part.double().mean().item() for part in some)
