"""Training that survives interruption: `fit` a model, in one process or several, and save what it learned.

It may use `attnlib.data` and `attnlib.plotting`, and takes any module of torch.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.training.fit import fit
from attnlib.training.history import History
from attnlib.training.label_smoothing import smoothed_cross_entropy, smoothing_floor
from attnlib.training.schedules import noam, warmup_cosine
from attnlib.training.weights import load, save

__all__ = [
    "History",
    "fit",
    "load",
    "noam",
    "save",
    "smoothed_cross_entropy",
    "smoothing_floor",
    "warmup_cosine",
]
