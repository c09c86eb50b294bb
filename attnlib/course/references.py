"""Where the works that lessons quote can be read, from `references.csv`. Nothing there is ever fetched."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

__all__ = ["address", "addresses"]


@cache
def addresses() -> dict[str, str]:
    """The title of each work, as lessons print it, and its DOI, arXiv or other lasting address ("": we know none)."""
    with (resources.files("attnlib.course") / "references.csv").open(encoding="utf-8", newline="") as file:
        return {row["title"]: row["address"] for row in csv.DictReader(file)}


def address(title: str) -> str:
    """Where a work can be read, "" where we know no lasting address.

    Raises `KeyError` for a work that no lesson quotes.

    >>> address("Attention Is All You Need")
    'https://arxiv.org/abs/1706.03762'
    """
    return addresses()[title]
