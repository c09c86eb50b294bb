r"""Scenes: small pictures of several drawn shapes, with a kind and a box for each, to be found again.

Every scene comes from its ``seed`` and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_integers, check_not_negative
from attnlib._base.seeds import Seed, generator, tensors
from attnlib.data.shapes import SHAPES, draw, extent

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = ["NOTHING", "Scenes", "scenes"]

NOTHING = len(SHAPES)  # the kind that fills up where a scene has fewer shapes
SIZES = 6, 10  # of a shape, in pixels
TRIES = 30  # before a scene is begun anew, and as many scenes before that is given up


class Scenes(NamedTuple):
    """``pictures`` ``(batch, 1, size, size)``, ``kinds`` ``(batch, n)``, `NOTHING` where there is none, and ``boxes``.

    A box ``(batch, n, 4)`` is the middle, to the right and down, then width and height, all as shares of the picture.

    >>> Scenes._fields
    ('pictures', 'kinds', 'boxes')
    """

    pictures: Float[Tensor, "batch 1 size size"]
    kinds: Int[Tensor, "batch n"]
    boxes: Float[Tensor, "batch n 4"]


def scenes(batch: int, *, n: tuple[int, int] = (1, 3), size: int = 24, noise: float = 0.05, seed: Seed) -> Scenes:
    r"""Scenes of rings, squares, crosses and bars that do not touch, each at a random place, size and brightness.

    .. math:: \text{picture} = \text{the shapes, of brightness } 0.6 \text{ to } 1, + \varepsilon

    ``n`` are the fewest and the most shapes of a scene, each as likely as what lies between; ``noise`` is the standard
    deviation of :math:`\varepsilon`. The shapes come in random order.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when one is out of range or the shapes find no
    room.

    >>> some = scenes(2, seed=0)
    >>> some.pictures.shape, some.boxes.shape
    (torch.Size([2, 1, 24, 24]), torch.Size([2, 3, 4]))
    >>> [[SHAPES[kind] for kind in scene if kind < NOTHING] for scene in some.kinds]
    [['cross', 'bar'], ['cross', 'bar', 'cross']]
    """
    rng, batch, size = generator(seed), check_at_least_one("batch", batch), check_at_least_one("size", size)
    counts = check_integers("n", n)
    if len(counts) != 2 or not 0 <= counts[0] <= counts[1] or counts[1] == 0:
        raise ValueError(f"n must be two numbers, the fewest shapes and the most, at least one; got {n}")
    if size < SIZES[1]:
        raise ValueError(f"size must be at least {SIZES[1]} pixels, that of the largest shape; got {size}")
    check_not_negative("noise", noise)
    pictures = noise * rng.normal(size=(batch, 1, size, size))
    kinds, boxes = np.full((batch, counts[1]), NOTHING), np.zeros((batch, counts[1], 4))
    for b in range(batch):
        count = rng.integers(counts[0], counts[1] + 1)
        kinds[b, :count] = rng.integers(NOTHING, size=count)
        boxes[b, :count] = _places(rng, [SHAPES[kind] for kind in kinds[b, :count]], size)
        for kind, (*middle, width, _) in zip(kinds[b, :count], boxes[b], strict=False):
            colour, empty = rng.uniform(0.6, 1), np.zeros((size, size))
            pictures[b, 0] += draw(SHAPES[kind], colour, width, tuple(middle), empty)
    return Scenes(*tensors(pictures, kinds, boxes / size))


def _places(rng: np.random.Generator, shapes: Sequence[str], size: int) -> np.ndarray:
    """A box for each shape, in pixels, inside the picture and at least one pixel from the others."""
    for _ in range(TRIES):
        taken = np.zeros((0, 4))
        for shape in shapes:
            around = np.array(extent(shape, rng.uniform(*SIZES)))
            middles = rng.uniform(around / 2, size - around / 2, (TRIES, 2))
            apart = abs(taken[:, :2] - middles[:, None]) - (taken[:, 2:] + around) / 2  # (tries, shapes, 2)
            free = middles[(apart.max(axis=2) >= 1).all(axis=1)]
            if len(free) == 0:
                break
            taken = np.vstack([taken, [*free[0], *around]])
        else:
            return taken
    raise ValueError(f"n must leave room for {len(shapes)} shapes in {size} by {size} pixels; it does not")
