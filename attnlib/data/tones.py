r"""Tones: short sounds whose pitch rises, falls, stays or jumps, and pictures of them by a Fourier transform.

.. math:: w(t) = \sum_h \frac{1}{h} \sin\big(h\, \phi(t)\big) + \varepsilon, \qquad \phi'(t) = 2\pi f(t)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from attnlib._base.checks import check_at_least_one, check_not_negative
from attnlib._base.seeds import Seed, generator, tensors

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = ["MOVES", "RATE", "Tones", "spectrogram", "tones"]

MOVES = ("rises", "falls", "stays", "jumps up", "jumps down")
RATE, LENGTH = 4096, 2048  # samples a second, and in one sound: half a second
WINDOW, HOP, ROWS = 256, 57, 32  # 32 windows fit into a sound


class Tones(NamedTuple):
    """Sounds ``(n, 2048)`` at 4,096 samples a second, and what the pitch of each does, a place in `MOVES`: ``(n,)``.

    >>> Tones._fields
    ('waves', 'move')
    """

    waves: Float[Tensor, "n length"]
    move: Int[Tensor, " n"]


def tones(n: int, *, noise: float = 0.2, seed: Seed) -> Tones:
    r"""``n`` sounds of half a second: a tone of one or two partials that rises, falls, stays or jumps.

    .. math:: w(t) = \sin \phi(t) + b \sin 2\phi(t) + \varepsilon, \qquad b \in \{0, \tfrac12\}

    The pitch starts between 200 and 500 Hz, moves by 150 to 300 Hz, and is turned round for what falls; a jump comes
    within the middle half. ``noise`` is the standard deviation of :math:`\varepsilon`. Draws come from ``seed`` alone.

    Raises ``TypeError`` or ``ValueError`` for a number below one, or a noise that is negative or no number.

    >>> tones(3, seed=0).waves.shape
    torch.Size([3, 2048])
    """
    check_not_negative("noise", noise)
    rng, n = generator(seed), check_at_least_one("n", n)
    move, time = rng.integers(len(MOVES), size=n), np.linspace(0, 1, LENGTH)
    low, step = rng.uniform(200, 500, (n, 1)), rng.uniform(150, 300, (n, 1))
    jump = time > rng.uniform(0.25, 0.75, (n, 1))
    share = np.select([move[:, None] < 2, move[:, None] == 2], [time + 0 * jump, 0 * jump], jump)
    share = np.where(np.isin(move, (1, 4))[:, None], 1 - share, share)
    phase = 2 * np.pi * np.cumsum(low + step * share, axis=1) / RATE
    waves = np.sin(phase) + rng.choice([0, 0.5], (n, 1)) * np.sin(2 * phase) + noise * rng.normal(size=(n, LENGTH))
    return Tones(*tensors(waves, move))


def spectrogram(waves: Float[Tensor, "n length"]) -> Float[Tensor, "n 1 32 32"]:
    r"""How loud each pitch is at each time, as a picture with one channel: low pitch at the bottom, time to the right.

    .. math:: S_{kj} = \log\Big(1 + \Big|\sum_t h(t)\, w(t + j\, \text{hop})\, e^{-2\pi i k t / 256}\Big|\Big)

    :math:`h` is Hann's window of 256 samples, and the hop is 57. Two neighbouring pitches are one row, the louder of
    both: row r from the bottom is :math:`32 r` Hz and the 16 Hz above it, up to 1,024 Hz.

    Raises ``ValueError`` for another shape.

    >>> time = torch.arange(2048) / RATE
    >>> int(spectrogram(torch.sin(2 * torch.pi * 512 * time)[None])[0, 0, :, 8].argmax())
    15
    """
    if waves.ndim != 2 or waves.shape[1] != LENGTH:
        raise ValueError(f"waves must have shape (n, {LENGTH}); got {tuple(waves.shape)}")
    windows = waves.unfold(1, WINDOW, HOP) * torch.hann_window(WINDOW, dtype=waves.dtype)  # (n, 32, 256)
    loud = torch.fft.rfft(windows).abs().log1p()[..., : 2 * ROWS]
    return loud.unflatten(-1, (ROWS, 2)).amax(-1).mT.flip(1)[:, None]
