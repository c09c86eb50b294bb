"""Models that come with the course: small ones, of others and its own, and their tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attnlib._base.checks import check_one_of
from attnlib.models.bert import BERT
from attnlib.models.gpt import GPT
from attnlib.models.loading import FromHuggingFace, tokenizer_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["SHIPPED", "Pretrained", "folder_of", "pretrained"]

SHIPPED: dict[str, type[FromHuggingFace]] = {"rxnmapper": BERT, "technical-english": GPT}


class Pretrained(NamedTuple):
    """What `pretrained` returns: the model, in evaluation mode, and its tokenizer.

    >>> Pretrained._fields
    ('model', 'tokenizer')
    """

    model: Any
    tokenizer: Tokenizer


def pretrained(name: str) -> Pretrained:
    """A model that comes with the course, and its tokenizer. Its card is README.md in `folder_of` the name.

    ``"rxnmapper"`` is a `BERT` that fills gaps in chemical reactions (Schwaller et al., 2021), ``"technical-english"``
    a `GPT` of three million parameters that was trained on docstrings and comments.

    Raises ``ValueError`` for another name.

    >>> model, tokenizer = pretrained("rxnmapper")
    >>> tokenizer.encode("CC(=O)O>>CCO").tokens
    ['[CLS]', 'C', 'C', '(', '=', 'O', ')', 'O', '>>', 'C', 'C', 'O', '[SEP]']
    """
    folder = folder_of(name)
    return Pretrained(SHIPPED[name].from_pretrained(folder), tokenizer_of(folder))


def folder_of(name: str) -> Path:
    """Where the files of a model lie that comes with the course. Raises as `pretrained`.

    >>> (folder_of("technical-english") / "README.md").exists()
    True
    """
    return Path(__file__).parent / "shipped" / _known(name)


def _known(name: str) -> str:
    check_one_of("name", name, SHIPPED)
    return name
