"""Attention itself: one function, what it is made of, and the ways to compute it without holding all weights.

It knows arrays, scores and masks, and no layer, model or training.
"""

from attnlib.core.attention import Attended, attention
from attnlib.core.blockwise import blockwise
from attnlib.core.softmax import exponentials, masked_softmax

__all__ = ["Attended", "attention", "blockwise", "exponentials", "masked_softmax"]
