"""A translator in a folder: its weights, its settings and the words, or pieces of words, that it knows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from attnlib._base.checks import check_folder
from attnlib.data.corpus import Corpus
from attnlib.data.subwords import BytePairs
from attnlib.data.text import Vocabulary
from attnlib.nn.config import TransformerConfig
from attnlib.nn.transformer import Transformer
from attnlib.training.weights import load, save

__all__ = ["CONFIG", "PIECES", "WEIGHTS", "Vocabularies", "open_translator", "save_settings", "save_translator"]

SOURCE, TARGET, PIECES = "source.json", "target.json", "pieces.json"
CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Vocabularies(NamedTuple):
    """The words of the two languages, which is all of a `Corpus` that `attnlib.translation.translate` needs.

    Both are one where pieces of words were learned.

    >>> Vocabularies._fields
    ('source', 'target')
    """

    source: Vocabulary | BytePairs
    target: Vocabulary | BytePairs


def save_translator(model: Transformer, corpus: Corpus | Vocabularies, folder: str | Path) -> None:
    """Write the weights and settings of ``model`` and the vocabularies of ``corpus`` to ``folder``, made if need be.

    Raises ``ValueError`` when they are not the ones that it was made for, by their numbers of words.

    >>> from tempfile import TemporaryDirectory
    >>> from attnlib.translation import numbers, translator
    >>> corpus = numbers(30, 5)
    >>> with TemporaryDirectory() as folder:
    ...     save_translator(translator(corpus), corpus, folder)
    ...     model, words = open_translator(folder)
    >>> words.source == corpus.source
    True
    """
    save_settings(model, corpus, folder)
    save(model, Path(folder) / WEIGHTS)


def save_settings(model: Transformer, corpus: Corpus | Vocabularies, folder: str | Path) -> None:
    """Write all but the weights: what does not change while ``model`` is trained."""
    _check_sizes("corpus", corpus, model.config)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {SOURCE: corpus.source, TARGET: corpus.target}
    if isinstance(corpus.source, BytePairs):
        files = {PIECES: corpus.source}
    for name in {SOURCE, TARGET, PIECES} - files.keys():
        (folder / name).unlink(missing_ok=True)  # of a translator that was here before
    for name, vocabulary in files.items():
        vocabulary.save(folder / name)
    (folder / CONFIG).write_text(json.dumps(asdict(model.config), indent=1) + "\n", encoding="utf-8")


def open_translator(folder: str | Path) -> tuple[Transformer, Vocabularies]:
    """The translator in ``folder``, ready to be used, and the words that it knows.

    Raises ``ValueError`` when a file is not what `save_translator` writes, ``FileNotFoundError`` when there is none.

    >>> open_translator("a folder without a translator")
    Traceback (most recent call last):
    ...
    FileNotFoundError: folder must be there; there is no folder a folder without a translator
    """
    folder = check_folder("folder", folder)
    try:
        config = TransformerConfig(**json.loads((folder / CONFIG).read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / CONFIG} must hold the settings of a Transformer; {error}") from None
    if (folder / PIECES).exists():
        pieces = BytePairs.load(folder / PIECES)
        words = Vocabularies(pieces, pieces)
    else:
        words = Vocabularies(*(Vocabulary.load(folder / name) for name in (SOURCE, TARGET)))
    _check_sizes(folder, words, config)
    return load(Transformer(config), folder / WEIGHTS).eval(), words


def _check_sizes(name: object, words: Corpus | Vocabularies, config: TransformerConfig) -> None:
    known, wanted = (len(words.source), len(words.target)), (config.n_source, config.n_target)
    if known != wanted:
        raise ValueError(f"{name} must hold as many words as the model's settings say, {wanted}; got {known}")
