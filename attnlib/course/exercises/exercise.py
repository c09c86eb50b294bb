"""What an exercise is: inputs, a reference, hints, and the mistakes people make."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_ID = re.compile(r"\d\d\.[1-9]\d?")


@dataclass(frozen=True)
class Misconception:
    """A wrong answer that people give, and the words for someone who gave it.

    Args:
        name: a short name, unique within the exercise, for tests.
        function: the wrong answer. It takes what the reference takes.
        words: what the learner reads, addressed to "you".

    >>> def total(x):
    ...     return x.sum()
    >>> m = Misconception("sum", total, "You returned the sum. Divide it by how many there are.")
    >>> m.name
    'sum'
    """

    name: str
    function: Callable[..., Any]
    words: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise: an answer is right if it agrees with `reference` on every one of `cases`.

    Args:
        id: lesson and number, "01.2".
        title: what is asked, in a few words.
        reference: the right answer. A function of the positional inputs, or, for an exercise that
            asks for a value, a function without arguments that finds it.
        hints: three strings, each saying more than the one before.
        misconceptions: the wrong answers that have words of their own.
        cases: makes the inputs, a list of tuples of positional arguments, from a seeded generator.
            Without it the exercise asks for a value: a number, a small array, a string.
        tolerance: `(rtol, atol)`, relative to the reference's output.
        adapt: applied to every output (the learner's, the reference's, the misconceptions') before
            the comparison, to pick the part that counts; beside `compare`, a string that it gives is
            a sentence about why nothing counts.
        compare: replaces the comparison of numbers: `compare(expected, got)` on adapted outputs is
            True where the answer is right, False or a sentence where it is not.
        solution: shown by `solution(id)` instead of the reference.
        seconds: how long an answer may run over all cases.

    Raises `ValueError` for an id that is not like "01.2", for more or fewer than three hints, and for two
    misconceptions of one name.

    >>> from statistics import fmean, median
    >>> exercise = Exercise(
    ...     id="01.1",
    ...     title="The mean",
    ...     reference=fmean,
    ...     cases=lambda rng: [(rng.normal(size=n),) for n in (3, 8)],
    ...     hints=("What is a fair share?", "Add, then divide.", "sum(x) / len(x)"),
    ...     misconceptions=[Misconception("median", median, "You took the middle one.")],
    ... )
    >>> exercise.lesson, exercise.asks_for_value
    ('01', False)
    """

    id: str
    title: str
    reference: Callable[..., Any]
    hints: Sequence[str]
    misconceptions: Sequence[Misconception]
    cases: Callable[[np.random.Generator], Sequence[tuple[Any, ...]]] | None = None
    tolerance: tuple[float, float] = (1e-6, 1e-6)
    adapt: Callable[[Any], Any] | None = None
    compare: Callable[[Any, Any], bool | str] | None = None
    solution: Callable[..., Any] | None = None
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"id: got {self.id!r}; expected lesson and number, like '01.2'")
        if isinstance(self.hints, str) or len(self.hints) != 3:
            raise ValueError(f"hints of {self.id}: got {self.hints!r}; expected three strings")
        names = [m.name for m in self.misconceptions]
        if len(set(names)) < len(names):
            raise ValueError(f"misconceptions of {self.id}: two have the same name, in {names}")

    @property
    def lesson(self) -> str:
        """The two digits of the lesson, "01"."""
        return self.id[:2]

    @property
    def asks_for_value(self) -> bool:
        """Whether the answer is a value rather than a function."""
        return self.cases is None
