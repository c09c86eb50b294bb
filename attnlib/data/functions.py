r"""Prompts of examples: each row of a batch has a random function of its own, seen through some noisy values.

Every function here draws a new batch from its ``seed`` and from nothing else, in double precision, and returns
`Examples`. Errors are named alike: ``TypeError`` when a size or the seed is not an integer or a level not a number,
``ValueError`` when it is out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_integers, check_not_negative, check_positive
from attnlib._base.seeds import Seed, generator, tensors

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

__all__ = ["Examples", "hills", "planes", "smooth"]


class Examples(NamedTuple):
    """Inputs ``x`` ``(batch, n, d)``, what was measured there, ``y``, and without noise, ``truth``: ``(batch, n, 1)``.

    >>> Examples._fields
    ('x', 'y', 'truth')
    """

    x: Float[Tensor, "batch n d"]
    y: Float[Tensor, "batch n 1"]
    truth: Float[Tensor, "batch n 1"]


def hills(batch: int, n: int, *, waves: Sequence[int] = (1, 3), noise: float = 0.2, seed: Seed) -> Examples:
    r"""How far up does a step in direction x go? Directions are points of a circle; each row is another hill.

    .. math:: f(\theta) = \frac{1}{c} \sum_{w} \frac{a_w \cos w\theta + b_w \sin w\theta}{w}, \qquad
              x = (\cos\theta, \sin\theta), \quad y = f(\theta) + \varepsilon

    The :math:`a_w, b_w` are standard normal, directions uniform, and :math:`c^2 = \sum_w w^{-2}`, so that f has
    variance 1. With odd ``waves`` the opposite direction has the opposite value: what goes up one way goes down the
    other. ``noise`` is the standard deviation of :math:`\varepsilon`.

    >>> data = hills(1, 3, seed=0)
    >>> data.x.shape, data.y.shape, data.x.norm(dim=-1).round(decimals=3)
    (torch.Size([1, 3, 2]), torch.Size([1, 3, 1]), tensor([[1., 1., 1.]], dtype=torch.float64))
    """
    rng, shape = generator(seed), (check_at_least_one("batch", batch), check_at_least_one("n", n))
    speeds = check_integers("waves", waves)
    if not speeds or min(speeds) < 1:
        raise ValueError(f"waves must hold at least one number, from 1 up; got {waves!r}")
    angle = rng.uniform(0, 2 * np.pi, shape)
    truth = np.zeros(shape)
    for speed in speeds:
        a, b = rng.normal(size=(2, shape[0], 1)) / speed
        truth += a * np.cos(speed * angle) + b * np.sin(speed * angle)
    truth /= np.sqrt(sum(speed**-2.0 for speed in speeds))
    return _measured(rng, np.stack([np.cos(angle), np.sin(angle)], axis=-1), truth, noise)


def planes(batch: int, n: int, d: int = 2, *, noise: float = 0.2, scale: float = 1.0, seed: Seed) -> Examples:
    r"""Random linear functions: how high is a plane through the origin above each of some places?

    .. math:: y = x \cdot w + \varepsilon, \qquad w \sim N(0, I_d), \quad x \sim N(0, \text{scale}^2 I_d)

    Source: Garg et al. (2022), section 3, the class of linear functions.

    >>> data = planes(1, 4, seed=0)
    >>> weights = np.linalg.lstsq(data.x[0].numpy(), data.truth[0].numpy())[0]
    >>> np.allclose(data.x[0].numpy() @ weights, data.truth[0].numpy())
    True
    """
    rng, shape = generator(seed), (check_at_least_one("batch", batch), check_at_least_one("n", n))
    check_positive("scale", scale)
    w = rng.normal(size=(shape[0], check_at_least_one("d", d), 1))
    x = scale * rng.normal(size=(*shape, d))
    return _measured(rng, x, (x @ w)[..., 0], noise)


def smooth(batch: int, n: int, *, length: float = 0.5, noise: float = 0.2, scale: float = 1.0, seed: Seed) -> Examples:
    r"""Random smooth curves over the line: draws of a Gaussian process.

    .. math:: f \sim \text{GP}(0, k), \qquad k(x, x') = e^{-(x - x')^2 / 2\ell^2}, \quad
              x \text{ uniform in } [-\text{scale}, \text{scale}]

    ``length`` is :math:`\ell`: places much nearer than that have much the same value.

    Source: Rasmussen, Williams (2006), section 2.2.

    >>> data = smooth(2, 5, noise=0.0, seed=0)
    >>> data.x.shape, bool((data.y == data.truth).all())
    (torch.Size([2, 5, 1]), True)
    """
    rng, shape = generator(seed), (check_at_least_one("batch", batch), check_at_least_one("n", n))
    check_positive("length", length)
    check_positive("scale", scale)
    x = rng.uniform(-scale, scale, (*shape, 1))
    covariance = np.exp(-((x - x.transpose(0, 2, 1)) ** 2) / (2 * length**2))
    root = np.linalg.cholesky(covariance + 1e-8 * np.eye(n))  # two places may be nearly one
    return _measured(rng, x, (root @ rng.normal(size=(*shape, 1)))[..., 0], noise)


def _measured(rng: np.random.Generator, x: np.ndarray, truth: np.ndarray, noise: float) -> Examples:
    check_not_negative("noise", noise)
    y = truth + noise * rng.normal(size=truth.shape)
    return Examples(*tensors(x, y[..., None], truth[..., None]))
