"""The fourteen patients, trained: each with the mistake that the chart says, or with none."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import attnlib._base.needs.torch  # noqa: F401
from attnlib._base.checks import check_size
from attnlib.course.lab.bugs import BUGS
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lab.patients import STEPS, Patient, born
from attnlib.training.history import History

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["patient"]


def patient(n: int, *, seed: int = 0, steps: int = STEPS) -> Patient:
    """Patient ``n`` of fourteen, trained for ``steps`` steps in double precision, which takes about a second.

    Twelve have one mistake each, two have none. If you ask for it again, it comes as it was at first.

    Raises ``ValueError`` when there is no such patient.

    >>> patient(3, steps=20).history.steps
    20
    """
    state, history = _trained(n, seed, steps)
    one = _untrained(n, seed)
    one.model.load_state_dict(state)
    one.history = history
    return one


@cache
def _trained(n: int, seed: int, steps: int) -> tuple[dict[str, Tensor], History]:
    one = _untrained(n, seed)
    history = one.train(seed=seed, steps=steps)
    return one.model.state_dict(), history


def _untrained(n: int, seed: int) -> Patient:
    if check_size("n", n) not in PATIENTS:
        raise ValueError(f"n must be from 1 to {len(PATIENTS)}; got {n}")
    one = PATIENTS[n]
    return born(n, BUGS[one.cause], seed=seed, complaint=one.complaint, dropout=one.dropout)
