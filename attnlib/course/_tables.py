"""The tables of this folder."""

from __future__ import annotations

import csv
from importlib import resources

__all__ = ["rows_of"]


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of the table ``name``, by the names of its columns.

    >>> rows_of("claims")[0]["lessons"]
    '01'
    """
    with (resources.files("attnlib.course") / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
