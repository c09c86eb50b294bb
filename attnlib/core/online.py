"""What moved to `attnlib.core.softmax`."""

from attnlib._renamed import moved

_HOME = "attnlib.core.softmax"
__getattr__ = moved(
    __name__,
    {"Kept": f"{_HOME}.OnlineSoftmax", "carry_on": f"{_HOME}.online_update", "mean_of": f"{_HOME}.online_mean"},
)
