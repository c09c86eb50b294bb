"""A small `DETR` for drawn scenes: its features, its training, how it is scored, and the one that is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from attnlib._base.checks import check_at_least_one, check_one_of, check_size
from attnlib.data.scenes import NOTHING, Scenes, scenes
from attnlib.models.detr import DETR, DETROutput
from attnlib.models.matching import match, set_loss
from attnlib.models.picture_configs import DETRConfig
from attnlib.training.fit import fit
from attnlib.training.schedules import warmup_cosine
from attnlib.training.weights import load

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ORDERS", "PlacedFeatures", "Scored", "assigned", "score", "small_detr", "train", "trained_detr"]

SIZE, GRID = 24, 6  # of a scene in pixels, and of its features
NEAR = 2.0  # pixels by which a middle may be off, to count as found
SCENES, BATCH, RATE, NONE = 8000, 32, 4e-3, 0.5  # of the training; NONE is what "no object" weighs
ORDERS = ("matched", "left to right", "as listed")


class PlacedFeatures(nn.Module):
    r"""Three convolutions that make a grid of 6 by 6 features of 24 by 24 pixels, and learned places added to them.

    .. math:: f = \text{conv}(\text{picture}) + P

    DETR adds positions to queries and keys only. What it carries on are values, and from features that do not know
    where they are it could hardly say where an object is; in a deep backbone they know it from the picture's edges.

    >>> PlacedFeatures(8)(torch.rand(2, 1, 24, 24)).shape
    torch.Size([2, 8, 6, 6])
    """

    def __init__(self, channels: int, grid: int = GRID) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, check_at_least_one("channels", channels), 3, padding=1),
            nn.ReLU(),
        )
        self.places = nn.Parameter(0.5 * torch.randn(1, channels, grid, grid))

    def forward(self, pictures: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch channels grid grid"]:
        """The features."""
        return self.conv(pictures) + self.places


def small_detr(n_queries: int = 5, d_model: int = 48) -> DETR:
    """An untrained `DETR` for `attnlib.data.scenes`: one encoder layer, two decoder layers.

    >>> small_detr()(torch.rand(2, 1, 24, 24)).boxes.shape
    torch.Size([2, 5, 4])
    """
    sizes = {"d_model": d_model, "n_heads": 4, "d_ff": 2 * d_model, "n_encoder_layers": 1, "n_decoder_layers": 2}
    return DETR(DETRConfig(n_classes=NOTHING, channels=d_model, n_queries=n_queries, **sizes), PlacedFeatures(d_model))


def assigned(found: DETROutput, kinds: Tensor, boxes: Tensor, order: str) -> Int[Tensor, "batch n"]:
    """Which query answers for each object: "matched", or by number "left to right" or "as listed".

    Raises ``ValueError`` for another order.

    >>> boxes = torch.tensor([[[0.8, 0.1, 0.2, 0.2], [0.3, 0.1, 0.2, 0.2]]])
    >>> assigned(None, torch.tensor([[1, 2]]), boxes, "left to right")
    tensor([[1, 0]])
    """
    check_one_of("order", order, ORDERS)
    if order == "matched":
        return match(found.logits, found.boxes, kinds, boxes)
    if order == "as listed":
        return torch.arange(kinds.shape[1]).expand(len(kinds), -1)
    return boxes[..., 0].masked_fill(kinds == NOTHING, torch.inf).argsort(1).argsort(1)


def train(
    order: str = "matched", *, seed: int = 0, steps: int = 1600, model: DETR | None = None, progress: bool = True
) -> DETR:
    """A `small_detr`, trained on scenes of one to three shapes; ``order`` says which query learns which object.

    ``model`` is trained in its place, if given: a `small_detr` with something cut, say.

    Raises ``ValueError`` for another order.

    >>> train(steps=2, progress=False).training
    False
    """
    check_one_of("order", order, ORDERS)
    torch.manual_seed(check_size("seed", seed))
    model = small_detr() if model is None else model
    data = [x.to(torch.get_default_dtype()) if x.is_floating_point() else x for x in scenes(SCENES, seed=(seed, 0))]

    def batch(step: int) -> list[Tensor]:
        rows = np.random.default_rng([seed, step]).integers(0, SCENES, BATCH)
        return [part[rows] for part in data]

    def loss(model: DETR, batch: list[Tensor]) -> Tensor:
        pictures, kinds, boxes = batch
        found = model(pictures)
        return set_loss(found.logits, found.boxes, kinds, boxes, assigned(found, kinds, boxes, order), nothing=NONE)

    schedule = warmup_cosine(min(50, steps - 1), steps)
    fit(model, batch, loss, steps=steps, lr=RATE, schedule=schedule, seed=seed, progress=progress)
    return model


class Scored(NamedTuple):
    """Shares of scenes of the right ``count``, of shapes of the right ``kind``, of scenes with all right (``scene``).

    ``place`` is how far, in pixels, the middle of a box is from its shape's. ``scene`` asks for the right count, and
    every kind right and every middle within two pixels.

    >>> Scored._fields
    ('count', 'kind', 'place', 'scene')
    """

    count: float
    kind: float
    place: float
    scene: float


@torch.no_grad()
def score(model: DETR, data: Scenes) -> Scored:
    """How good a `DETR` is on scenes; each shape is compared with the query that is matched with it.

    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <...>
    >>> score(small_detr(), scenes(20, seed=0)).scene
    0.0
    """
    kinds, boxes = data.kinds, data.boxes.to(torch.get_default_dtype())
    found = model(data.pictures.to(torch.get_default_dtype()))
    said, real = found.logits.argmax(-1), kinds < NOTHING
    scene, which = real.nonzero(as_tuple=True)
    query = match(found.logits, found.boxes, kinds, boxes)[scene, which]
    off = SIZE * (found.boxes[scene, query] - boxes[scene, which])[:, :2].norm(dim=-1)
    right, counted = said[scene, query] == kinds[scene, which], (said < NOTHING).sum(1) == real.sum(1)
    wrong = torch.zeros(len(kinds)).index_add(0, scene, (~right | (off > NEAR)).to(torch.get_default_dtype()))
    shares = (counted, right, off, counted & (wrong == 0))
    return Scored(*(float(part.double().mean()) for part in shares))


def trained_detr() -> DETR:
    """The `DETR` for drawn scenes that comes with the course: seed 0 of ``studies/pictures.md``.

    >>> score(trained_detr(), scenes(100, seed=99)).count > 0.7
    True
    """
    model = small_detr().to(torch.float32)
    load(model, Path(__file__).parent / "shipped" / "scenes" / "model.safetensors")
    return model.to(torch.get_default_dtype()).eval()
