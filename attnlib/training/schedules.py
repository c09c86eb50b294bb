"""How the learning rate changes over a run: functions that make a function from the step to a factor."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi

from attnlib._base.checks import check_at_least_one, check_size

__all__ = ["noam", "warmup_cosine"]


def warmup_cosine(warmup: int, steps: int) -> Callable[[int], float]:
    r"""A schedule that rises in a straight line for ``warmup`` steps, then falls along a cosine to zero at ``steps``.

    .. math:: f(s) = \begin{cases} (s + 1) / w & s < w \\
              \tfrac12 \left(1 + \cos \pi \tfrac{s - w}{n - w}\right) & w \le s < n \end{cases}

    Raises ``TypeError`` when a number is not an integer, ``ValueError`` unless ``warmup`` is below ``steps``.

    Source: Loshchilov, Hutter (2017), section 3, equation 5, after a linear rise.

    >>> factor = warmup_cosine(2, 6)
    >>> [round(factor(step), 2) for step in range(7)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    warmup, steps = check_size("warmup", warmup), check_at_least_one("steps", steps)
    if warmup >= steps:
        raise ValueError(f"warmup must be below steps = {steps}; got {warmup}")

    def factor(step: int) -> float:
        if check_size("step", step) < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + cos(pi * min(1.0, (step - warmup) / (steps - warmup))))

    return factor


def noam(d_model: int, warmup: int = 4000) -> Callable[[int], float]:
    r"""The schedule of the first Transformer: up for ``warmup`` steps, then down as one over the root of the step.

    .. math:: f(s) = d_\text{model}^{-1/2} \min\left((s + 1)^{-1/2},\; (s + 1)\, w^{-3/2}\right)

    It is a learning rate by itself: give ``lr=1.0`` with it.

    Raises ``TypeError`` when a number is not an integer, ``ValueError`` when it is below one.

    Source: Vaswani et al. (2017), section 5.3, equation 3.

    >>> factor = noam(64, warmup=100)
    >>> [round(factor(step), 4) for step in (0, 99, 399)]
    [0.0001, 0.0125, 0.0063]
    """
    d_model, warmup = check_at_least_one("d_model", d_model), check_at_least_one("warmup", warmup)

    def factor(step: int) -> float:
        nth = check_size("step", step) + 1
        return d_model**-0.5 * min(nth**-0.5, nth * warmup**-1.5)

    return factor
