"""What was measured when the GPT that the course ships was trained: see `attnlib.pretraining.report`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlib.models.shipping import folder_of
from attnlib.pretraining.documentation import HELD_OUT, documents
from attnlib.training.weights import read

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["held_out_sample", "shipped_scores", "six_gram_log_probabilities"]

NAME, SCORES, SIX_GRAMS = "technical-english", "scores.json", "six_grams.safetensors"
SAMPLE = 400  # texts


def shipped_scores() -> dict[str, Any]:
    """Bits per character of the shipped GPT, of n-grams and of xz, all of it; and the curve of its training.

    >>> scores = shipped_scores()["bits per character"]
    >>> scores["GPT"] < scores["6-gram of tokens"] < scores["6-gram of bytes"]
    True
    """
    return json.loads((folder_of(NAME) / SCORES).read_text(encoding="utf-8"))


def held_out_sample() -> list[str]:
    """The first texts of the package that the shipped GPT has never seen.

    >>> len(held_out_sample())
    400
    """
    return documents(HELD_OUT)[:SAMPLE]


def six_gram_log_probabilities() -> Float[np.ndarray, " n"]:
    """What 6-grams of tokens, counted in all that the shipped GPT was trained on, give each token of that sample.

    >>> six_gram_log_probabilities().max() <= 0
    np.True_
    """
    return read(folder_of(NAME) / SIX_GRAMS)[0]["log_p"].double().numpy()
