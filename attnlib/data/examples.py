"""One sentence in two languages, with what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Example"]


class Example(NamedTuple):
    """Tokens of the ``source`` and of the ``target``, which source token each target token translates, and ``facts``.

    Where a target token has no counterpart, its ``alignment`` is -1. Of a corpus of whole sentences, ``source`` and
    ``target`` are strings.

    >>> Example(("ja",), ("yes",), (0,)).facts
    {}
    """

    source: tuple[str, ...] | str
    target: tuple[str, ...] | str
    alignment: tuple[int, ...] = ()
    facts: Mapping[str, object] = {}
