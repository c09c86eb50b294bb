"""The decision table: which experiment finds which cause, computed from the fourteen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlib.course.lab.causes import CAUSES
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lab.experiments import EXPERIMENTS
from attnlib.course.lab.patients import STEPS
from attnlib.course.lab.ward import patient

__all__ = ["decisions"]


def decisions(seeds: Sequence[int] = (0, 1, 2), *, steps: int = STEPS) -> tuple[list[str], list[str], np.ndarray]:
    """Causes, experiments, and in how many of the trainings the experiment found something, ``(causes, experiments)``.

    A row is a cause, not a patient; the two patients without a mistake share one.

    >>> causes, experiments, found = decisions(seeds=[0], steps=20)
    >>> found.shape, found[causes.index("nothing")].sum().item()
    ((13, 13), 0.0)
    """
    found = np.zeros((len(CAUSES), len(EXPERIMENTS)))
    for row, cause in enumerate(CAUSES):
        ill = [n for n, entry in PATIENTS.items() if entry.cause == cause]
        ones = [patient(n, seed=seed, steps=steps) for n in ill for seed in seeds]
        found[row] = np.mean([[not ask(one) for ask in EXPERIMENTS.values()] for one in ones], axis=0)
    return list(CAUSES), list(EXPERIMENTS), found
