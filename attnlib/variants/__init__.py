"""Other ways to attend: a drawn or a best key, two levels, a pointer. Each brings a choice, none its own softmax.

They may use `attnlib.core`.
"""

from attnlib.variants.hard import Chosen, hard_attention, score_function_loss
from attnlib.variants.pointer import Pointed, PointerNetwork
from attnlib.variants.two_level import TwoLevel, two_level

__all__ = [
    "Chosen",
    "Pointed",
    "PointerNetwork",
    "TwoLevel",
    "hard_attention",
    "score_function_loss",
    "two_level",
]
