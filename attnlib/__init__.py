"""Attention, from kernel regression to the Transformer: the library behind the course.

>>> import numpy as np
>>> from attnlib import attention
>>> attention(np.zeros((1, 2)), np.eye(2), np.array([[1.0], [3.0]])).out
array([[2.]])
"""

from __future__ import annotations

from importlib import import_module

# Names are loaded when they are first used, so that `import attnlib` brings in neither torch nor scikit-learn.
_HOME = {
    "Attended": "core",
    "MultiHeadAttention": "heads",
    "NadarayaWatson": "regression",
    "additive": "scores",
    "attention": "core",
    "bilinear": "scores",
    "causal": "masks",
    "check": "exercises",
    "check_close": "display",
    "check_environment": "environment",
    "dot": "scores",
    "gaussian": "scores",
    "hint": "exercises",
    "masked_softmax": "core",
    "merge_heads": "heads",
    "padding": "masks",
    "progress": "exercises",
    "scaled_dot": "scores",
    "show": "display",
    "show_source": "display",
    "solution": "exercises",
    "split_heads": "heads",
    "squared_distance": "scores",
}
_MODULES = [
    "claims",
    "core",
    "course",
    "data",
    "decoding",
    "display",
    "heads",
    "interventions",
    "kernels",
    "layers",
    "masks",
    "plotting",
    "positions",
    "probes",
    "recurrent",
    "regression",
    "scores",
    "tasks",
    "text",
    "training",
    "transformer",
    "translation",
    "variants",
]

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"attnlib.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"attnlib.{name}")
    raise AttributeError(f"module 'attnlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
