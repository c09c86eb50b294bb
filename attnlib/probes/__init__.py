"""Does a model do what its drawing says? Probes find out from outside, by changing inputs and asking gradients.

They take any model and may use `attnlib.plotting` to show what they found. `alignment` asks where heads point,
`gaps` what a masked language model fills in.
"""

import attnlib._needs.torch  # noqa: F401
from attnlib.probes.alignment import points_right
from attnlib.probes.behaviour import batch_independence, causality, padding, permutation
from attnlib.probes.gaps import fill_gaps
from attnlib.probes.maps import attention_maps
from attnlib.probes.parameters import gradients, overfits
from attnlib.probes.report import Report

__all__ = [
    "Report",
    "attention_maps",
    "batch_independence",
    "causality",
    "fill_gaps",
    "gradients",
    "overfits",
    "padding",
    "permutation",
    "points_right",
]
