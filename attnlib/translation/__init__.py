"""Translators: two small languages, a model and its training, and how to score what it writes.

They may use every part of the package but the course.
"""

from attnlib.data.corpus import CORPORA, Corpus, french, numbers
from attnlib.data.examples import Example
from attnlib.data.french import because, other_gender
from attnlib.data.numbers import english, german, number
from attnlib.translation.translator import bleu, exact_match, loss, recipe, translate, translator

__all__ = [
    "CORPORA",
    "Corpus",
    "Example",
    "because",
    "bleu",
    "english",
    "exact_match",
    "french",
    "german",
    "loss",
    "number",
    "numbers",
    "other_gender",
    "recipe",
    "translate",
    "translator",
]
