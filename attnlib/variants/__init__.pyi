# What this folder offers, and loads when it is first used, for whatever reads types.

from attnlib.variants.features import elu_plus_one as elu_plus_one
from attnlib.variants.features import linear_score as linear_score
from attnlib.variants.features import positive_features as positive_features
from attnlib.variants.features import random_directions as random_directions
from attnlib.variants.hard import Chosen as Chosen
from attnlib.variants.hard import hard_attention as hard_attention
from attnlib.variants.hard import score_function_loss as score_function_loss
from attnlib.variants.linear import LinearAttended as LinearAttended
from attnlib.variants.linear import LinearState as LinearState
from attnlib.variants.linear import linear_attention as linear_attention
from attnlib.variants.pointer import Pointed as Pointed
from attnlib.variants.pointer import PointerNetwork as PointerNetwork
from attnlib.variants.two_level import TwoLevel as TwoLevel
from attnlib.variants.two_level import two_level as two_level

__all__: list[str]
