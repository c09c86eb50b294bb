"""Where the works that lessons quote can be read, from `references.csv`. Nothing there is ever fetched."""

from __future__ import annotations

from functools import cache

from attnlib.course._tables import rows_of

__all__ = ["address", "addresses"]


@cache
def addresses() -> dict[str, str]:
    """The title of each work, as lessons print it, and its DOI, arXiv or other lasting address ("": we know none)."""
    return {row["title"]: row["address"] for row in rows_of("references")}


def address(title: str) -> str:
    """Where a work can be read, "" where we know no lasting address.

    Raises `KeyError` for a work that no lesson quotes.

    >>> address("Attention Is All You Need")
    'https://arxiv.org/abs/1706.03762'
    """
    return addresses()[title]
