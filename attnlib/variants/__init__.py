"""Other ways to attend: a drawn key, two levels, a pointer, sums in advance. Each brings a choice, none a softmax.

They may use `attnlib.core`.
"""

from attnlib._base.lazy import lazy
from attnlib.variants.features import elu_plus_one, linear_score, positive_features, random_directions
from attnlib.variants.linear import LinearAttended, LinearState, linear_attention
from attnlib.variants.two_level import TwoLevel, two_level

# These need torch, and are loaded when they are used.
_LATE, __getattr__, _ = lazy(
    __name__,
    {"hard": ["Chosen", "hard_attention", "score_function_loss"], "pointer": ["Pointed", "PointerNetwork"]},
)
__all__ = [
    "LinearAttended",
    "LinearState",
    "TwoLevel",
    "elu_plus_one",
    "linear_attention",
    "linear_score",
    "positive_features",
    "random_directions",
    "two_level",
    *_LATE,
]
