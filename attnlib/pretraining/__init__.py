"""A small GPT, trained on real technical English that every installation of the course contains.

``make pretrain`` trains it; `attnlib.models.pretrained` opens what the course ships.
"""

from attnlib.pretraining.documentation import HELD_OUT, PACKAGES, documents
from attnlib.pretraining.tokens import byte_pairs, encode

__all__ = ["HELD_OUT", "PACKAGES", "byte_pairs", "documents", "encode"]
