"""What a pretrained GPT is worth: its bits per character on held-out text, beside n-grams and a compressor.

``python -m attnlib.pretraining.report FOLDER --to SHIPPED`` reads what `attnlib.pretraining.train` left in ``FOLDER``
and writes the model in half precision, its tokenizer and its scores to ``SHIPPED``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlib.models.loading import CONFIG, WEIGHTS
from attnlib.ngrams import KneserNey
from attnlib.pretraining.card import card
from attnlib.pretraining.shipped import SCORES, SIX_GRAMS, held_out_sample
from attnlib.training.weights import read, write

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["compressed_bits", "main", "ngram_bits", "texts_of"]


def ngram_bits(tokens: np.ndarray, held_out: np.ndarray, order: int, n_tokens: int, n_characters: int) -> float:
    """Bits per character of Kneser–Ney n-grams of ``order`` that have counted ``tokens``.

    >>> row = np.tile([1, 2, 3], 50)
    >>> round(ngram_bits(row, row[:30], 2, 4, 30), 1)
    0.1
    """
    return _bits(KneserNey(order, n_tokens).fit(tokens).log_probabilities(held_out), n_characters)


def _bits(log_p: np.ndarray, n_characters: int) -> float:
    return float(-log_p.sum() / np.log(2) / n_characters)


def compressed_bits(text: str, held_out: str) -> float:
    """Bits per character that ``held_out`` adds to ``text`` in an xz archive.

    >>> round(compressed_bits("the cat sat " * 99, "the cat sat " * 9), 1) < 1
    True
    """
    whole, alone = (len(lzma.compress(x.encode(), preset=9)) for x in (text + held_out, text))
    return 8 * (whole - alone) / len(held_out)


def texts_of(tokenizer: Tokenizer, tokens: np.ndarray, end: int = 0) -> list[str]:
    """The texts of which a row of tokens was made, with an end before each and after the last.

    >>> from attnlib.pretraining.tokens import byte_pairs, encode
    >>> tokenizer = byte_pairs(["ab"] * 9, n_tokens=258)
    >>> texts_of(tokenizer, encode(tokenizer, ["ab", "b"]))
    ['ab', 'b']
    """
    edges = np.flatnonzero(tokens == end)
    rows = [tokens[i + 1 : j].tolist() for i, j in pairwise(edges)]
    return tokenizer.decode_batch(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the model in a folder, ship it, and return the exit status.

    >>> main(["--help"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    parser = argparse.ArgumentParser(prog="python -m attnlib.pretraining.report", description=__doc__)
    parser.add_argument("folder", type=Path, help="what attnlib.pretraining.train was given as --checkpoint")
    parser.add_argument("--to", type=Path, required=True, metavar="SHIPPED", help="where the model is to lie")
    options = parser.parse_args(arguments)
    scores = _shipped(options.folder, options.to)
    (options.to / SCORES).write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    settings = json.loads((options.to / CONFIG).read_text(encoding="utf-8"))
    n_parameters = sum(tensor.numel() for tensor in read(options.to / WEIGHTS)[0].values())
    (options.to / "README.md").write_text(card(scores, settings, n_parameters), encoding="utf-8")
    print(json.dumps(scores["bits per character"], indent=1))
    return 0


def _shipped(folder: Path, to: Path) -> dict[str, Any]:
    import torch

    from attnlib.models import GPT, tokenizer_of
    from attnlib.pretraining.tokens import encode
    from attnlib.pretraining.train import BATCH, HELD_OUT_TEXT, LENGTH, SOURCES, TEXT, TOKENIZER
    from attnlib.pretraining.windows import log_probabilities
    from attnlib.training.checkpoint import FILE

    GPT.from_pretrained(folder).save_published(to, torch.float16)
    shutil.copyfile(folder / TOKENIZER, to / TOKENIZER)
    model, tokenizer = GPT.from_pretrained(to), tokenizer_of(to)  # as a reader will have it
    sources = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
    tokens, held_out = (np.load(folder / name).astype(np.int64) for name in (TEXT, HELD_OUT_TEXT))
    n_tokens, n_characters = tokenizer.get_vocab_size(), sources["characters"]["held out"]
    text, held_out_text = ("\0".join(texts_of(tokenizer, row)) for row in (tokens, held_out))
    letters, held_out_letters = (np.frombuffer(x.encode(), np.uint8).astype(np.int64) for x in (text, held_out_text))
    bits = {"GPT": _bits(log_probabilities(model, held_out), n_characters)}
    for k in range(1, 7):
        counted = KneserNey(k, n_tokens).fit(tokens)
        bits[f"{k}-gram of tokens"] = _bits(counted.log_probabilities(held_out), n_characters)
    for k in range(1, 10):
        bits[f"{k}-gram of bytes"] = ngram_bits(letters, held_out_letters, k, 256, n_characters)
    sample = encode(tokenizer, held_out_sample())  # of which readers see where the longest of them fail
    log_p = torch.from_numpy(counted.log_probabilities(sample))
    write(to / SIX_GRAMS, {"log_p": log_p.to(torch.float16)})
    bits["xz"] = compressed_bits(text, held_out_text)
    history = json.loads(read(folder / FILE)[1]["attnlib"])
    steps, curve = next(iter(history["metrics"].values()))
    return {
        "bits per character": {name: round(value, 4) for name, value in bits.items()},
        "while it was trained": {"steps": steps, "bits per character": [round(value, 4) for value in curve]},
        "tokens a step": BATCH * LENGTH,
        "hours": round(history["seconds"] / 3600, 2),
        **sources,
        "tokens": {"trained on": len(tokens), "held out": len(held_out)},
    }


if __name__ == "__main__":
    sys.exit(main())
