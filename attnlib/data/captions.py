r"""Pictures with captions: one drawn shape in one colour, "a red ring". Some combinations are held out.

Pictures have values from 0 to 1 and channels first; a caption is four tokens, the last of them `END`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_not_negative
from attnlib._base.seeds import Seed, generator, tensors
from attnlib.data.shapes import SHAPES, draw

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = ["COLOURS", "END", "HELD_OUT", "PAIRS", "SEEN", "WORDS", "Captioned", "captioned", "captions", "text"]

COLOURS = {
    "red": (0.9, 0.1, 0.1),
    "green": (0.1, 0.8, 0.1),
    "blue": (0.2, 0.3, 1.0),
    "yellow": (0.9, 0.9, 0.1),
    "pink": (0.9, 0.2, 0.9),
    "white": (0.9, 0.9, 0.9),
}
WORDS = ("[end]", "a", *COLOURS, *SHAPES)
END = 0
PAIRS = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)
HELD_OUT = tuple((colour, SHAPES[i % len(SHAPES)]) for i, colour in enumerate(COLOURS))  # one of each colour
SEEN = tuple(pair for pair in PAIRS if pair not in HELD_OUT)


class Captioned(NamedTuple):
    """Pictures ``(batch, 3, side, side)``, their captions ``(batch, 4)``, and the place of each pair in `PAIRS`.

    >>> Captioned._fields
    ('pictures', 'captions', 'pair')
    """

    pictures: Float[Tensor, "batch 3 side side"]
    captions: Int[Tensor, "batch 4"]
    pair: Int[Tensor, " batch"]


def captions(pairs: Iterable[tuple[str, str]] = PAIRS) -> Int[Tensor, "n_pairs 4"]:
    """The caption of each pair of a colour and a shape.

    Raises ``ValueError`` for a pair that is not in `PAIRS`.

    >>> captions([("red", "ring")])
    tensor([[1, 2, 8, 0]])
    """
    rows = [[WORDS.index("a"), WORDS.index(PAIRS[i][0]), WORDS.index(PAIRS[i][1]), END] for i in _places(pairs)]
    return tensors(np.array(rows))[0]


def text(tokens: Iterable[int]) -> str:
    """The words of a caption, up to its end.

    >>> text(captions([("pink", "bar")])[0])
    'a pink bar'
    """
    words = [WORDS[int(token)] for token in tokens]
    return " ".join(words[: words.index(WORDS[END])] if WORDS[END] in words else words)


def captioned(
    pairs: Sequence[tuple[str, str]] = SEEN, *, each: int = 1, side: int = 16, noise: float = 0.1, seed: Seed
) -> Captioned:
    r"""``each`` pictures of every pair, with captions: place, size and the ground's brightness are random.

    .. math:: \text{picture} = \text{draw}(\text{shape}, \text{colour}, s, (x, y)) + \varepsilon

    A shape is 8 to 11 pixels wide and lies inside the picture; the ground is grey, 0 to 0.3, and ``noise`` the
    standard deviation of :math:`\varepsilon`. Values are cut off at 0 and 1. Draws come from ``seed`` and from
    nothing else; the pictures are float32.

    Raises ``TypeError`` or ``ValueError`` for a pair that is not in `PAIRS`, a side below 12, or a noise that is
    negative or no number.

    >>> batch = captioned([("red", "ring"), ("blue", "bar")], each=3, seed=0)
    >>> batch.pictures.shape, batch.captions.shape
    (torch.Size([6, 3, 16, 16]), torch.Size([6, 4]))
    """
    places, n = _places(pairs), check_at_least_one("each", each)
    if check_at_least_one("side", side) < 12:
        raise ValueError(f"side must be at least 12, so that each shape has room; got {side}")
    check_not_negative("noise", noise)
    rng, pair = generator(seed), np.repeat(places, n)
    pictures = np.stack([_picture(rng, *PAIRS[i], side) for i in pair])
    pictures = np.clip(pictures + noise * rng.normal(size=pictures.shape), 0, 1).astype(np.float32)
    shown, which = tensors(np.moveaxis(pictures, -1, 1), pair)
    return Captioned(shown, captions(PAIRS[i] for i in pair), which)


def _picture(rng: np.random.Generator, colour: str, shape: str, side: int) -> np.ndarray:
    size, ground = rng.uniform(8, 11), rng.uniform(0, 0.3)
    at = rng.uniform(size / 2, side - size / 2, size=2)
    return draw(shape, COLOURS[colour], size, tuple(at), np.full((side, side, 3), ground))


def _places(pairs: Iterable[tuple[str, str]]) -> list[int]:
    pairs = [tuple(pair) for pair in pairs]
    for pair in pairs:
        if pair not in PAIRS:
            raise ValueError(f"pairs must hold (colour, shape) of {PAIRS[0]} to {PAIRS[-1]}; got {pair}")
    if not pairs:
        raise ValueError("pairs must hold at least one (colour, shape); got none")
    return [PAIRS.index(pair) for pair in pairs]
