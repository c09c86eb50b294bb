"""The debugging lab of lesson 15: fourteen translators, twelve of them with one mistake, and how to find it.

Read `patients` and `experiments`. `bugs`, `causes`, `chart` and `ward` say what is wrong with whom.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.course.lab.diagnosis import diagnose
from attnlib.course.lab.experiments import EXPERIMENTS, NUMBERS
from attnlib.course.lab.patients import Patient
from attnlib.course.lab.table import decisions
from attnlib.course.lab.ward import patient

__all__ = ["EXPERIMENTS", "NUMBERS", "Patient", "decisions", "diagnose", "patient"]
