"""Dropout of weights, which does nothing until a model is trained with it."""

from __future__ import annotations

from attnlib._arrays import Array

__all__ = ["dropped"]


def dropped(alpha: Array, dropout: float) -> Array:
    """Some weights set to zero and the others grown, as in training.

    >>> import numpy as np
    >>> dropped(np.ones(2), 0.0)
    array([1., 1.])
    """
    if not dropout:
        return alpha
    from torch.nn.functional import dropout as drop

    return drop(alpha, dropout)
