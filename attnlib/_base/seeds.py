"""Where the random numbers of generated data come from: a seed, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.checks import check_size

__all__ = ["Seed", "extended", "generator", "tensors"]

Seed = int | Sequence[int]


def generator(seed: Seed) -> np.random.Generator:
    """A new stream of random numbers for ``seed``, an integer or several: ``(r, s)`` for step s of run r.

    NumPy fills a short seed up with zeros, so that to it 5, (5, 0) and (5, 0, 0) are one seed. Here (5, 0) is
    another than 5, since the number of integers is handed on as well: data that were made to test with 5 must
    not be those of step 0 in run 5.

    Raises ``TypeError`` when ``seed`` is not of integers, ``ValueError`` when one is negative or there is none.

    >>> bool(generator(5).random() == generator((5, 0)).random())
    False
    """
    if isinstance(seed, str | bool):
        raise TypeError(f"seed must be an integer or a tuple of integers; got {type(seed).__name__}")
    if not isinstance(seed, Sequence):
        return np.random.default_rng([check_size("seed", seed), 1])
    if not seed:
        raise ValueError("seed must hold at least one integer; got none")
    return np.random.default_rng([*(check_size(f"seed[{i}]", part) for i, part in enumerate(seed)), len(seed)])


def extended(seed: Seed, *parts: int) -> tuple[int, ...]:
    """The seed of a part of what ``seed`` makes: other random numbers than those of the whole, and of other parts.

    >>> extended(5, 0), extended((5, 0), 7)
    ((5, 0), (5, 0, 7))
    """
    return (*(seed if isinstance(seed, tuple | list) else (seed,)), *parts)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    """The same numbers as torch tensors.

    >>> tensors(np.array([3, 4]))
    [tensor([3, 4])]
    """
    return [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
