"""A translator in a folder: its weights, its settings and the words that it knows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from attnlib._checks import check_folder
from attnlib.data.corpus import Corpus
from attnlib.data.text import Vocabulary
from attnlib.nn.config import TransformerConfig
from attnlib.nn.transformer import Transformer
from attnlib.training.weights import load, save

__all__ = ["Vocabularies", "open_translator", "save_translator"]

SOURCE, TARGET, CONFIG, WEIGHTS = "source.json", "target.json", "config.json", "model.safetensors"


class Vocabularies(NamedTuple):
    """The words of the two languages, which is all of a `Corpus` that `attnlib.translation.translate` needs.

    >>> Vocabularies._fields
    ('source', 'target')
    """

    source: Vocabulary
    target: Vocabulary


def save_translator(model: Transformer, corpus: Corpus | Vocabularies, folder: str | Path) -> None:
    """Write the weights and settings of ``model`` and the vocabularies of ``corpus`` to ``folder``, made if need be.

    >>> from tempfile import TemporaryDirectory
    >>> from attnlib.translation import numbers, translator
    >>> corpus = numbers(30, 5)
    >>> with TemporaryDirectory() as folder:
    ...     save_translator(translator(corpus), corpus, folder)
    ...     model, words = open_translator(folder)
    >>> words.source == corpus.source
    True
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    corpus.source.save(folder / SOURCE)
    corpus.target.save(folder / TARGET)
    (folder / CONFIG).write_text(json.dumps(asdict(model.config), indent=1) + "\n", encoding="utf-8")
    save(model, folder / WEIGHTS)


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
    words = Vocabularies(*(Vocabulary.load(folder / name) for name in (SOURCE, TARGET)))
    return load(Transformer(config), folder / WEIGHTS).eval(), words
