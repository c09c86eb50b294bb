"""Attention, from kernel regression to the Transformer: the library behind the course.

>>> import numpy as np
>>> from attnlib import attention
>>> attention(np.zeros((1, 2)), np.eye(2), np.array([[1.0], [3.0]])).out
array([[2.]])
"""

from __future__ import annotations

from attnlib._base.lazy import lazy

# Names are loaded when they are first used, so that `import attnlib` brings in neither torch nor scikit-learn.
_NAMES = {
    "core": ["Attended", "attention", "masked_softmax"],
    "masks": ["causal", "padding"],
    "nn": ["MultiHeadAttention", "Transformer", "TransformerConfig", "merge_heads", "split_heads"],
    "regression": ["NadarayaWatson", "NadarayaWatsonClassifier"],
    "scores": ["additive", "bilinear", "dot", "gaussian", "scaled_dot", "squared_distance"],
}
# What lessons import from here, and `dir` leaves out: it is no part of the library.
_COURSE = {
    "course.display": ["check_close", "show", "show_source"],
    "course.environment": ["check_environment"],
    "course.grading": ["check", "hint", "progress", "solution"],
}
_MODULES = {
    "": [
        "core",
        "course",
        "data",
        "decoding",
        "interventions",
        "masks",
        "models",
        "ngrams",
        "nn",
        "parallel",
        "plotting",
        "positions",
        "pretraining",
        "probes",
        "regression",
        "scores",
        "training",
        "translation",
        "variants",
    ],
    "course.": ["claims", "display"],
    "data.": ["functions", "prompts", "tasks", "text"],
    "nn.": ["heads", "layers", "recurrent", "transformer"],
    "regression.": ["kernels"],
}
__all__, __getattr__, _ = lazy(__name__, _NAMES | _COURSE, _MODULES)
__version__ = "1.0.0"


def __dir__() -> list[str]:
    return sorted([name for names in (*_NAMES.values(), _MODULES[""]) for name in names])
