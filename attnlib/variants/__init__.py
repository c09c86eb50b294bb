"""Other ways to attend: a drawn key, two levels, a pointer, sums in advance. Each brings a choice, none a softmax.

They may use `attnlib.core`.
"""

from attnlib._lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "features": ["elu_plus_one", "linear_score", "positive_features", "random_directions"],
        "hard": ["Chosen", "hard_attention", "score_function_loss"],
        "linear": ["LinearAttended", "LinearState", "linear_attention"],
        "pointer": ["Pointed", "PointerNetwork"],
        "two_level": ["TwoLevel", "two_level"],
    },
)
