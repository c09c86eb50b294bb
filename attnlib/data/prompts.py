r"""Prompts of symbols: questions and answers under a rule, and sequences that repeat themselves.

Every function draws from its ``seed`` and from nothing else. Errors are named alike: ``TypeError`` when a size or the
seed is not an integer, ``ValueError`` when it is out of range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_size
from attnlib._base.seeds import Seed, generator, tensors

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["Answered", "Repeated", "answered", "repeated", "rules"]


def rules(n_rules: int, n_questions: int = 8, n_answers: int = 8, *, seed: Seed) -> Int[Tensor, "n_rules n_questions"]:
    """Random rules: row r says which answer each question has under rule r.

    >>> rules(2, n_questions=5, n_answers=3, seed=0)
    tensor([[1, 2, 2, 1, 0],
            [2, 0, 2, 2, 0]])
    """
    shape = check_at_least_one("n_rules", n_rules), check_at_least_one("n_questions", n_questions)
    (table,) = tensors(generator(seed).integers(check_at_least_one("n_answers", n_answers), size=shape))
    return table


class Answered(NamedTuple):
    """What `answered` returns: ``questions`` and ``answers`` ``(batch, n)``, and which rule, ``rule`` ``(batch,)``.

    >>> Answered._fields
    ('questions', 'answers', 'rule')
    """

    questions: Int[Tensor, "batch n"]
    answers: Int[Tensor, "batch n"]
    rule: Int[Tensor, " batch"]


def answered(batch: int, n: int, table: Int[Tensor, "n_rules n_questions"], *, seed: Seed) -> Answered:
    r"""Prompts of ``n`` questions with their answers, each prompt under one rule of ``table``.

    .. math:: y_i = \text{table}_{r,\, x_i}, \qquad r, x_i \text{ uniform}

    Raises ``ValueError`` too when ``table`` is not ``(n_rules, n_questions)``.

    >>> data = answered(1, 4, rules(3, seed=0), seed=0)
    >>> bool((rules(3, seed=0)[data.rule][0, data.questions[0]] == data.answers[0]).all())
    True
    """
    if getattr(table, "ndim", 0) != 2:
        raise ValueError(f"table must be (n_rules, n_questions), as rules() makes it; got {table!r:.60}")
    rng, table = generator(seed), np.asarray(table)
    shape = check_at_least_one("batch", batch), check_at_least_one("n", n)
    rule = rng.integers(table.shape[0], size=shape[0])
    questions = rng.integers(table.shape[1], size=shape)
    return Answered(*tensors(questions, table[rule[:, None], questions], rule))


class Repeated(NamedTuple):
    """What `repeated` returns: ``tokens`` ``(batch, n)`` and ``period`` ``(batch,)``.

    >>> Repeated._fields
    ('tokens', 'period')
    """

    tokens: Int[Tensor, "batch n"]
    period: Int[Tensor, " batch"]


def repeated(batch: int, n: int, period: tuple[int, int], *, n_symbols: int = 32, seed: Seed) -> Repeated:
    r"""A random sequence that begins again after its period: whoever finds the earlier copy knows what comes next.

    .. math:: x_t = x_{t - p}, \qquad p \text{ uniform from low to high}

    Tokens are 0 to ``n_symbols - 1``, drawn alike and independently; ``period`` is ``(low, high)``, both included.

    Raises ``ValueError`` too when ``low`` exceeds ``high``.

    Source: Olsson et al. (2022), *repeated random tokens*.

    >>> repeated(1, 8, (3, 3), seed=0).tokens
    tensor([[16, 28, 31, 16, 28, 31, 16, 28]])
    """
    low, high = (check_at_least_one(f"period[{i}]", p) for i, p in enumerate(period))
    if low > high:
        raise ValueError(f"period must be (low, high) with low not above high; got {tuple(period)}")
    rng, shape = generator(seed), (check_at_least_one("batch", batch), check_size("n", n))
    periods = rng.integers(low, high, size=shape[0], endpoint=True)
    block = rng.integers(check_at_least_one("n_symbols", n_symbols), size=(shape[0], high))
    place = np.arange(n) % periods[:, None]
    return Repeated(*tensors(np.take_along_axis(block, place, axis=1), periods))
