"""Does a model do what its drawing says? Probes find out from outside, by changing inputs and asking gradients.

They take any model and may use `attnlib.plotting` to show what they found.
"""

from attnlib.probes.behaviour import batch_independence, causality, padding, permutation
from attnlib.probes.maps import attention_maps
from attnlib.probes.parameters import gradients, overfits
from attnlib.probes.report import Report

__all__ = [
    "Report",
    "attention_maps",
    "batch_independence",
    "causality",
    "gradients",
    "overfits",
    "padding",
    "permutation",
]
