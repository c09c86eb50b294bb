"""Models that come with the course: small ones, of others and its own, and their tokenizers."""

from __future__ import annotations

from pathlib import Path

from attnlib._checks import check_one_of
from attnlib.models.gpt import GPT
from attnlib.models.loading import FromHuggingFace, Pretrained

__all__ = ["SHIPPED", "folder_of", "pretrained"]

SHIPPED: dict[str, type[FromHuggingFace]] = {"technical-english": GPT}


def pretrained(name: str) -> Pretrained:
    """A model that comes with the course, and its tokenizer. Its card is README.md in `folder_of` the name.

    ``"technical-english"`` is a `GPT` of three million parameters, trained on docstrings and comments.

    Raises ``ValueError`` for another name.

    >>> model, tokenizer = pretrained("technical-english")
    >>> tokenizer.encode("the matrix").tokens
    ['the', 'Ġmatrix']
    """
    return SHIPPED[check_name(name)].from_pretrained(folder_of(name))


def folder_of(name: str) -> Path:
    """Where the files of a model lie that comes with the course.

    >>> (folder_of("technical-english") / "README.md").exists()
    True
    """
    return Path(__file__).parent / "shipped" / check_name(name)


def check_name(name: str) -> str:
    """The name, if there is such a model."""
    check_one_of("name", name, SHIPPED)
    return name
