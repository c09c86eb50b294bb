"""Other ways to attend: a drawn key, two levels, a pointer, sums in advance. Each brings a choice, none a softmax.

They may use `attnlib.core`.
"""

from attnlib.variants.features import elu_plus_one, linear_score, positive_features, random_directions
from attnlib.variants.hard import Chosen, hard_attention, score_function_loss
from attnlib.variants.linear import LinearAttended, LinearState, linear_attention
from attnlib.variants.pointer import Pointed, PointerNetwork
from attnlib.variants.two_level import TwoLevel, two_level

__all__ = [
    "Chosen",
    "LinearAttended",
    "LinearState",
    "Pointed",
    "PointerNetwork",
    "TwoLevel",
    "elu_plus_one",
    "hard_attention",
    "linear_attention",
    "linear_score",
    "positive_features",
    "random_directions",
    "score_function_loss",
    "two_level",
]
