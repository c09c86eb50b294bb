"""What lesson 21 has no time to train, five seeds of each or eight. ``make studies`` writes ``pictures.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from attnlib import attention, dot
from attnlib.data import digits
from attnlib.data.scenes import NOTHING, Scenes, scenes
from attnlib.interventions import cut
from attnlib.models import DETR, ViT, ViTConfig, detecting
from attnlib.models.detecting import ORDERS, score, small_detr, train
from attnlib.models.matching import match
from attnlib.probes.rollout import rollout
from attnlib.training import fit, save, warmup_cosine
from studies.machine import described
from studies.tables import listed, spread, table

SEEDS, SCENE_SEEDS = range(5), range(8)
NUMBERS, CUT = (100, 200, 400, 800, 1400), 4
SHIPPED = Path(__file__).parents[1] / "attnlib" / "models" / "shipped" / "scenes" / "model.safetensors"

WORDS = f"""\
# What lesson 21 does not train, on five seeds or eight

Made by `make studies`, on {described()}.

## Digits

The 397 digits of lesson 00, read by models that saw so many of the other 1,400, drawn by the seed: per cent right,
the mean of five seeds and in brackets the lowest and the highest. The kernel is lesson 00's, bandwidth 0.03,
untrained. The ViT (patches of 2 by 2, 32 wide, two layers) and the convolution have 18,218 and 16,654 parameters and
300 steps of 64 pictures, at a rate of 0.01: of 0.001, 0.003 and 0.01 the best for the convolution on these digits,
for the ViT as good as 0.003. The logistic regression is scikit-learn's. Seeds 0, 1 and 2 are those of the lesson,
which trains in double precision: its numbers differ by a point or two. "Pixels shuffled": all 64 in another order,
alike in all pictures.

"""

LONGER = """
## More from 1,400

As above, from all 1,400 pictures: three and nine times as many steps, and as many with pictures that are moved by up
to one pixel in each direction, each in its own way at each step. The 2,700 steps are seeds 0, 1 and 2.

"""

ROLLOUT = f"""
## Rollout

The ViTs from 1,400 pictures: per cent of the 397 digits that are still read right without {CUT} of the 16 patches.
"Closed": no query attends to them. "Exchanged": these pixels come from another digit. "Mean rollout" takes the same
four patches for all digits. Mean, lowest and highest of five seeds.

"""

SCENES = """
## Scenes

The DETR of lesson 21 (five queries, 1,600 steps of 32 scenes), with the matching and with two fixed orders in its
place; 2,000 new scenes. Count: per cent of scenes with the right number of shapes; kind: per cent of shapes; place:
how far the middle of a box is off, in pixels; scene: per cent of scenes in which count and kinds are right, and all
middles within two pixels. Seed 0 with the matching is the model that the course ships.

"""

QUERIES = """
## Queries

The same models with the matching, after a cut: per cent of scenes with more answers than shapes, as they are, without
the attention between queries (both layers), and, as a control, without the first layer's attention to the picture.
"Trained without" are eight more models, which never had the attention between queries. Behind each, how far middles
are off, in pixels.

"""

COSTS = """
## What the matching compares

The same models, matched by both terms as in DETR, by the probability of the right kind alone, or by the boxes alone;
three seeds, in every cell one number a seed. The loss is the same for all. "Told the kind": in how many per cent of
the shapes of 1,000 scenes one guesses the query that answers, when one is told the kind of the shape, and knows which
query answered most often for it in 1,000 others; "told the place": the same from the ninth of the picture in which its
middle lies; "told nothing": the query that answered most often.

"""
SAME = torch.tensor([0.5, 0.5, 1.0, 1.0])  # one box for all, so that boxes do not count
MATCHED_BY = {
    "kind and boxes": match,
    "kind alone": lambda p, boxes, kinds, targets: match(p, SAME.expand_as(boxes), kinds, SAME.expand_as(targets)),
    "boxes alone": lambda p, boxes, kinds, targets: match(torch.zeros_like(p), boxes, kinds, targets),
}

Data = tuple[Tensor, Tensor]


def page() -> str:
    """All tables, as Markdown."""
    images, labels = digits()
    pictures = torch.tensor(images, dtype=torch.float32)[:, None], torch.tensor(labels)
    learn, test = [x[:1400] for x in pictures], [x[1400:] for x in pictures]
    trainings = len(SEEDS) * (3 * len(NUMBERS) + 5) + len(SCENE_SEEDS) * (1 + len(ORDERS)) + 15
    with tqdm(total=trainings, desc="readers of pictures") as bar:
        vits, first = _digits(learn, test, bar.update)
        rest = LONGER + _longer(learn, test, bar.update) + ROLLOUT + _rollout(vits, test)
        return WORDS + first + rest + SCENES + _scenes(bar.update) + COSTS + costs(bar.update)


def vit(position: str = "learned") -> ViT:
    """The ViT of lesson 21."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "position": position}
    return ViT(ViTConfig(n_classes=10, image_size=8, patch_size=2, channels=1, **sizes))


def convolution() -> nn.Module:
    """As many parameters, in three convolutions."""
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 36, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10)]
    return nn.Sequential(*layers)


def learned(make: Callable[[], nn.Module], data: Data, seed: int, n: int = 1400, steps: int = 300, moved: int = 0):
    """A model trained on ``n`` of the pictures; ``moved`` is by how many pixels they move at most."""
    torch.manual_seed(seed)
    model, order = make(), np.random.default_rng(seed).permutation(1400)[:n]
    pictures, labels = data[0][order], data[1][order]

    def batch(step: int) -> Data:
        rng = np.random.default_rng([seed, step])
        rows = rng.integers(0, n, 64)
        down, right = rng.integers(2 * moved + 1, size=(2, 64))  # another way for each picture
        windows = F.pad(pictures[rows], [moved] * 4).unfold(2, 8, 1).unfold(3, 8, 1)  # (64, 1, ways, ways, 8, 8)
        return windows[range(64), :, down, right], labels[rows]

    def loss(model: nn.Module, batch: Data) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1])

    fit(model, batch, loss, steps=steps, lr=1e-2, schedule=warmup_cosine(20, steps), seed=seed, progress=False)
    return model


@torch.no_grad()
def right(model: nn.Module, data: Data) -> float:
    """Per cent of the digits that are read right."""
    return 100 * float((model(data[0]).argmax(-1) == data[1]).double().mean())


def _digits(learn: Data, test: Data, tick: Callable[[], object]) -> tuple[list[ViT], str]:
    rows = [["", *(f"{n:,}" for n in NUMBERS)], ["---", *["---:"] * len(NUMBERS)]]
    for name, read in (("lesson 00's kernel", _kernel), ("logistic regression", _logistic), ("1 neighbour", _one)):
        rows.append([name, *(spread([read(learn, test, seed, n) for seed in SEEDS]) for n in NUMBERS)])
    vits: list[ViT] = []
    for name, make, seen in (
        ("convolution", convolution, _as_they_are),
        ("pixels shuffled: convolution", convolution, _shuffled),
        ("ViT", vit, _as_they_are),
    ):
        cells = []
        for n in NUMBERS:
            models = [_ticked(learned(make, seen(learn, seed), seed, n), tick) for seed in SEEDS]
            cells.append(spread([right(model, seen(test, seed)) for seed, model in zip(SEEDS, models, strict=True)]))
            vits = models
        rows.append([name, *cells])
    return vits, table(rows)


def _as_they_are(data: Data, seed: int) -> Data:
    return data


def _shuffled(data: Data, seed: int) -> Data:
    """All pixels in another order, which the seed draws."""
    order = np.random.default_rng([seed, 1]).permutation(64)
    return data[0].flatten(2)[..., order].unflatten(2, (8, 8)), data[1]


def _longer(learn: Data, test: Data, tick: Callable[[], object]) -> str:
    rows = [["", "900 steps", "900 steps, moved", "2,700 steps", "2,700 steps, moved"], ["---", *["---:"] * 4]]
    for name, make in (("ViT", vit), ("convolution", convolution)):
        cells = []
        for steps in (900, 2700) if make is vit else (900,):
            for moved in (0, 1):
                seeds = SEEDS if steps == 900 else SEEDS[:3]
                models = [_ticked(learned(make, learn, seed, steps=steps, moved=moved), tick) for seed in seeds]
                cells.append(spread([right(model, test) for model in models]))
        rows.append([name, *cells, *[""] * (4 - len(cells))])
    without = [right(_ticked(learned(lambda: vit("none"), learn, seed), tick), test) for seed in SEEDS]
    return table(rows) + f"\nA ViT without positions, 300 steps: {spread(without)}.\n"


@torch.no_grad()
def _rollout(vits: Sequence[ViT], test: Data) -> str:
    pictures, labels = test
    n, found = len(labels), {}
    for seed, model in enumerate(vits):
        weights = model.encode(pictures, weights=True).weights
        rolled, attentions = rollout(weights)[:, 0, 1:], [layer.self_attention for layer in model.layers]
        chosen = {
            "none": None,
            "at random": torch.rand(n, 16, generator=torch.Generator().manual_seed(seed)),
            "most ink": pictures.reshape(n, 4, 2, 4, 2).mean((2, 4)).flatten(1),
            "last layer's weights": weights[-1].mean(1)[:, 0, 1:],
            "first layer's weights": weights[0].mean(1)[:, 0, 1:],
            "least rollout": -rolled,
            "mean rollout": rolled.mean(0).expand(n, -1),
            "rollout": rolled,
        }
        for name, by in chosen.items():
            top = torch.zeros(n, 0, dtype=torch.long) if by is None else by.topk(CUT).indices
            with cut(attentions, None, (top + 1).tolist()):
                closed = right(model, test)
            other = right(model, (exchanged(pictures, top, seed), labels))
            found.setdefault(name, []).append((closed, other))
    rows = [["patches", "closed", "exchanged"], ["---", "---:", "---:"]]
    for name, pairs in found.items():
        rows.append([name, *(spread(list(column)) for column in zip(*pairs, strict=True))])
    return table(rows)


def exchanged(pictures: Tensor, patches: Tensor, seed: int) -> Tensor:
    """The pictures, with the pixels of some of their 2 by 2 patches taken from another of them."""
    tiles = pictures.reshape(-1, 4, 2, 4, 2).transpose(2, 3).reshape(len(pictures), 16, 4)
    others = tiles[torch.randperm(len(tiles), generator=torch.Generator().manual_seed(seed))]
    chosen = torch.zeros(tiles.shape[:2], dtype=torch.bool).scatter(1, patches, value=True)
    tiles = torch.where(chosen[..., None], others, tiles)
    return tiles.reshape(-1, 4, 4, 2, 2).transpose(2, 3).reshape(pictures.shape)


def _scenes(tick: Callable[[], object]) -> str:
    test = scenes(2000, seed=99)
    rows = [["", "seed", "count", "kind", "place", "scene"], ["---", *["---:"] * 5]]
    after = [["seed", "as it is", "between queries", "first layer, to the picture", "trained without"], ["---:"] * 5]
    for order in ORDERS:
        for seed in SCENE_SEEDS:
            model = _ticked(train(order, seed=seed, progress=False), tick)
            found = score(model, test)
            shares = [f"{100 * share:.0f}" for share in (found.count, found.kind, found.scene)]
            rows.append([order, str(seed), *shares[:2], f"{found.place:.2f}", shares[2]])
            if order == ORDERS[0]:
                cuts = [nullcontext(), apart(model), cut(model.decoder[0].cross_attention, None, None)]
                never = _ticked(never_together(seed), tick)
                whole = [*((model, a_cut) for a_cut in cuts), (never, apart(never))]
                after.append([str(seed), *(_too_many(one, test, a_cut) for one, a_cut in whole)])
            if (order, seed) == (ORDERS[0], 0):
                SHIPPED.parent.mkdir(exist_ok=True)
                save(model, SHIPPED)
    return table(rows) + QUERIES + table(after)


def apart(model: DETR) -> AbstractContextManager[None]:
    """Inside the ``with``, no query attends to a query."""
    return cut([layer.self_attention for layer in model.decoder], None, None)


def never_together(seed: int) -> DETR:
    """The model of the seed, trained without attention between queries."""
    torch.manual_seed(seed)
    model = small_detr()
    with apart(model):
        return train(seed=seed, model=model, progress=False)


@torch.no_grad()
def _too_many(model: DETR, test: Scenes, a_cut: AbstractContextManager[None]) -> str:
    with a_cut:
        said, place = model(test.pictures.float()).logits.argmax(-1), score(model, test).place
    more = (said < NOTHING).sum(1) > (test.kinds < NOTHING).sum(1)
    return f"{100 * more.double().mean():.0f} ({place:.2f})"


def costs(tick: Callable[[], object]) -> str:
    """For every cost a row: how good the models are, and what tells which query answers."""
    test = scenes(2000, seed=99)
    rows = [["matched by", "count", "kind", "place", "told nothing", "told the kind", "told the place"], ["---"] * 7]
    for name, cheapest in MATCHED_BY.items():
        found = []
        for seed in range(3):
            with patch.object(detecting, "match", cheapest):
                model = _ticked(train(seed=seed, progress=False), tick)
            scored = score(model, test)
            found.append((100 * scored.count, 100 * scored.kind, scored.place, *told(model, test)))
        rows.append(
            [name, *(listed(column, digits=2 * (i == 2)) for i, column in enumerate(zip(*found, strict=True)))]
        )
    return table(rows)


@torch.no_grad()
def told(model: DETR, test: Scenes) -> list[float]:
    """In how many per cent the query that answers is guessed from nothing, from the kind, from the place."""
    kinds, boxes = test.kinds, test.boxes.float()
    found = model(test.pictures.float())
    query = match(found.logits, found.boxes, kinds, boxes)
    real = kinds < NOTHING
    ninth = (3 * boxes[..., :2]).long().clamp(0, 2) @ torch.tensor([1, 3])
    return [_guessed(query, known, real) for known in (torch.zeros_like(kinds), kinds, ninth)]


def _guessed(query: Tensor, known: Tensor, real: Tensor) -> float:
    """Per cent of the second half's queries that are the most frequent for what is known, in the first half."""
    half = torch.arange(len(real))[:, None] < len(real) // 2
    learn, test = real & half, real & ~half
    often = torch.zeros(9, 5).index_put((known[learn], query[learn]), torch.ones(()), accumulate=True)
    return 100 * (often.argmax(1)[known[test]] == query[test]).double().mean().item()


def _kernel(learn: Data, test: Data, seed: int, n: int) -> float:
    order = np.random.default_rng(seed).permutation(1400)[:n]
    k, q = (x[0].flatten(1) / x[0].flatten(1).norm(dim=1, keepdim=True) for x in (learn, test))
    out = attention(q / 0.03, k[order], F.one_hot(learn[1][order], 10).float(), score=dot).out
    return 100 * float((out.argmax(-1) == test[1]).double().mean())


def _fitted(model: object, learn: Data, test: Data, seed: int, n: int) -> float:
    order = np.random.default_rng(seed).permutation(1400)[:n]
    x, y = (part.flatten(1).numpy() if part.ndim > 1 else part.numpy() for part in learn)
    return 100 * model.fit(x[order], y[order]).score(test[0].flatten(1).numpy(), test[1].numpy())


def _logistic(*arguments: object) -> float:
    return _fitted(LogisticRegression(max_iter=1000), *arguments)


def _one(*arguments: object) -> float:
    return _fitted(KNeighborsClassifier(1), *arguments)


def _ticked(model: nn.Module, tick: Callable[[], object]) -> nn.Module:
    tick()
    return model
