"""One sentence in two languages, with what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Example"]


class Example(NamedTuple):
    """Tokens of the ``source`` and of the ``target``, which source token each target token translates, and ``facts``.

    Where a target token has no counterpart, its ``alignment`` is -1.

    >>> Example(("ja",), ("yes",), (0,)).facts
    {}
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int, ...] = ()
    facts: Mapping[str, object] = {}
