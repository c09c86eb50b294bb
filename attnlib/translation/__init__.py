"""Translators: two small languages or your own, a model and its training, and how to score what it writes.

They may use every part of the package but the course. Names are loaded when they are used, so that
``python -m attnlib.translation.train --help`` answers at once.
"""

from attnlib._base.lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    "attnlib",
    {
        "data.corpus": ["CORPORA", "Corpus", "french", "numbers"],
        "data.examples": ["Example"],
        "data.french": ["because", "other_gender"],
        "data.numbers": ["english", "german", "number"],
        "training.label_smoothing": ["smoothed_cross_entropy", "smoothing_floor"],
        "translation.memory": ["TranslationMemory", "letter_pieces"],
        "translation.saved": ["Vocabularies", "open_translator", "save_translator"],
        "translation.model": ["loss", "recipe", "translate", "translator"],
        "translation.training": ["train_translator"],
        "translation.quality": ["bleu", "exact_match", "text_scores"],
    },
)
