"""Byte-pair encoding, trained on the spot, and texts as one long row of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.checks import check_size

if TYPE_CHECKING:
    from jaxtyping import Int
    from tokenizers import Tokenizer

__all__ = ["END", "byte_pairs", "encode"]

END = "<|endoftext|>"  # as GPT-2 calls it; its number is 0


def byte_pairs(texts: Iterable[str], n_tokens: int = 4096) -> Tokenizer:
    """A byte-pair encoding of ``n_tokens`` tokens: the 256 bytes, then the pairs that are most frequent.

    Every text can be encoded and comes back as it was. Token 0 is `END`.

    Raises ``ValueError`` when there are fewer tokens than bytes.

    Source: Sennrich, Haddow, Birch (2016); bytes as in Radford et al. (2019). The work is that of `tokenizers`.

    >>> tokenizer = byte_pairs(["the cat", "the dog", "the end"] * 9, n_tokens=260)
    >>> tokenizer.encode("the hat").tokens
    ['the', 'Ġ', 'h', 'at']
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # which takes its time

    if check_size("n_tokens", n_tokens) < 257:
        raise ValueError(f"n_tokens must be at least 257, one for each byte and the end; got {n_tokens}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> Int[np.ndarray, " n"]:
    """All texts in one row, an `END` before each and after the last.

    >>> tokenizer = byte_pairs(["ab"] * 9, n_tokens=258)
    >>> encode(tokenizer, ["ab", "b"])
    array([  0, 257,   0,  66,   0])
    """
    end = tokenizer.token_to_id(END)
    rows = [[end, *encoding.ids] for encoding in tokenizer.encode_batch(texts)]
    return np.concatenate([*map(np.asarray, rows), [end]]).astype(np.int64)
