"""What models are pretrained on, and by which loss; and a small GPT, trained on technical English that is installed.

``make pretrain`` trains it; `attnlib.models.pretrained` opens what the course ships, and `shipped_scores` says what it
is worth.
"""

from importlib.util import find_spec

from attnlib._base.needs import needs

if find_spec("torch") is not None:  # python -m attnlib.pretraining.train --help answers without
    from attnlib.pretraining.documentation import HELD_OUT, PACKAGES, documents
    from attnlib.pretraining.masking import Gapped, gapped_batches, mask_tokens, masked_token_loss
    from attnlib.pretraining.shipped import held_out_sample, shipped_scores, six_gram_log_probabilities
    from attnlib.pretraining.spans import Corrupted, corrupt_spans, draw_spans, restore_spans, sentinel
    from attnlib.pretraining.tokens import byte_pairs, encode
    from attnlib.pretraining.windows import log_probabilities, next_token_loss, windows

__all__ = [
    "HELD_OUT",
    "PACKAGES",
    "Corrupted",
    "Gapped",
    "byte_pairs",
    "corrupt_spans",
    "documents",
    "draw_spans",
    "encode",
    "gapped_batches",
    "held_out_sample",
    "log_probabilities",
    "mask_tokens",
    "masked_token_loss",
    "next_token_loss",
    "restore_spans",
    "sentinel",
    "shipped_scores",
    "six_gram_log_probabilities",
    "windows",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        needs("torch", extra="torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
