"""Does a model do what its drawing says? Probes find out from outside, by changing inputs and asking gradients.

They take any model and may use `attnlib.plotting` to show what they found. `alignment` asks where heads point,
`gaps` what a masked language model fills in. `attnlib.probes.pytest` asks in tests.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.probes.alignment import points_right
from attnlib.probes.behaviour import batch_independence, causality, padding, permutation
from attnlib.probes.difference import first_difference
from attnlib.probes.gaps import fill_gaps
from attnlib.probes.maps import attention_maps
from attnlib.probes.mean import scaling, weighted_mean
from attnlib.probes.parameters import gradients, overfits
from attnlib.probes.report import Report
from attnlib.probes.sequences import padded_loss, step_by_step

__all__ = [
    "Report",
    "attention_maps",
    "batch_independence",
    "causality",
    "fill_gaps",
    "first_difference",
    "gradients",
    "overfits",
    "padded_loss",
    "padding",
    "permutation",
    "points_right",
    "scaling",
    "step_by_step",
    "weighted_mean",
]
