"""Old names of the online softmax, which `attnlib.core` offers."""

from attnlib._base.renamed import moved

_HOME = "attnlib.core"
__getattr__ = moved(
    __name__,
    {"Kept": f"{_HOME}.OnlineSoftmax", "carry_on": f"{_HOME}.online_update", "mean_of": f"{_HOME}.online_mean"},
)
