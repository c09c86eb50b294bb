"""Attention itself: one function, what it is made of, and the ways to compute it without holding all weights.

It knows arrays, scores and masks, and no layer, model or training. The last two axes are rows and what they hold,
``(..., n, d)``; ``...`` stands for any axes before them, sentences or heads, which broadcast as in NumPy. ``q @ k.mT``
are all inner products of a row of ``q`` and a row of ``k``, ``(..., n_q, n_k)``.
"""

from attnlib.core.attention import Attended, attention
from attnlib.core.softmax import OnlineSoftmax, exponentials, masked_softmax, online_mean, online_update
from attnlib.core.tiles import blockwise

__all__ = [
    "Attended",
    "OnlineSoftmax",
    "attention",
    "blockwise",
    "exponentials",
    "masked_softmax",
    "online_mean",
    "online_update",
]
