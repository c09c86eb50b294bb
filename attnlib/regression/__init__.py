"""Kernel regression: attention whose score is the logarithm of a kernel, with scikit-learn's conventions.

It may use `attnlib.core`, and needs no torch.
"""

from attnlib.regression.classifier import NadarayaWatsonClassifier
from attnlib.regression.nadaraya_watson import NadarayaWatson

__all__ = ["NadarayaWatson", "NadarayaWatsonClassifier"]
