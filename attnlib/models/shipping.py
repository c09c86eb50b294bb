"""Models that come with the course: small ones that others have published, and their tokenizers."""

from __future__ import annotations

from importlib.resources import as_file, files

from attnlib._checks import check_one_of
from attnlib.models.bert import BERT
from attnlib.models.loading import FromHuggingFace, Pretrained

__all__ = ["SHIPPED", "pretrained"]

SHIPPED: dict[str, type[FromHuggingFace]] = {"rxnmapper": BERT}


def pretrained(name: str) -> Pretrained:
    """A model that comes with the course, and its tokenizer. Its card is ``shipped/NAME/README.md`` beside this file.

    ``"rxnmapper"`` is a `BERT` that fills gaps in chemical reactions (Schwaller et al., 2021).

    Raises ``ValueError`` for another name.

    >>> model, tokenizer = pretrained("rxnmapper")
    >>> tokenizer.encode("CC(=O)O>>CCO").tokens
    ['[CLS]', 'C', 'C', '(', '=', 'O', ')', 'O', '>>', 'C', 'C', 'O', '[SEP]']
    """
    check_one_of("name", name, SHIPPED)
    with as_file(files("attnlib.models").joinpath("shipped", name)) as folder:
        return SHIPPED[name].from_pretrained(folder)
