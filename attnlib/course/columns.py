"""Rows of values under named columns: a table in a notebook, lined up where there is no HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import starmap

LEFT, RIGHT = 'style="text-align: left"', 'style="text-align: right"'


@dataclass(frozen=True)
class Table:
    """Names of columns, and rows by their names; a row that is one string is of no column, and stands alone.

    >>> Table(["run 0", "run 1"], {"right": ["5 %", "100 %"], "guessing": "4 %"})
           run 0  run 1
    right    5 %  100 %
    guessing: 4 %
    """

    columns: Sequence[str]
    rows: Mapping[str, Sequence[str] | str]

    def __repr__(self) -> str:
        whole = {"": self.columns} | {name: row for name, row in self.rows.items() if not isinstance(row, str)}
        lines = [[name, *row] for name, row in whole.items()]
        first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))

        def line(name: str, row: Sequence[str] | str) -> str:
            if isinstance(row, str):
                return f"{name}: {row}"
            return "  ".join([name.ljust(first), *map(str.rjust, row, widths)])

        return "\n".join([line("", self.columns), *starmap(line, self.rows.items())])

    def _repr_html_(self) -> str:
        # A line for each row, as decks pick them. Themes know the class: it is that of a data frame.
        names = "".join(f'<th scope="col" {RIGHT}>{escape(name)}</th>' for name in self.columns)
        head = ['<table class="dataframe">', f"<thead><tr><td></td>{names}</tr></thead><tbody>"]
        return "\n".join([*head, *starmap(self._html_row, self.rows.items()), "</tbody></table>"])

    def _html_row(self, name: str, row: Sequence[str] | str) -> str:
        if isinstance(row, str):
            return f'<tr><td colspan="{1 + len(self.columns)}" {LEFT}>{escape(f"{name}: {row}")}</td></tr>'
        values = "".join(f"<td {RIGHT}>{escape(value).replace(' ', '&nbsp;')}</td>" for value in row)
        return f'<tr><th scope="row" {LEFT}>{escape(name)}</th>{values}</tr>'


def in_columns(columns: str | Sequence[object], values: Mapping[str, list[str] | str]) -> Table:
    """``values``, each as it is printed, under names, or under one name and numbers; errors say which row is wrong."""
    rows = {" ".join(name.replace("_", " ").split()): row for name, row in values.items()}
    longest = max((len(row) for row in rows.values() if isinstance(row, list)), default=1)
    names = [f"{columns} {i}" for i in range(longest)] if isinstance(columns, str) else list(map(str, columns))
    for name, row in rows.items():
        if isinstance(row, list) and len(row) != len(names):
            raise ValueError(
                f"{name!r} has {len(row)} values, and there are {len(names)} columns: {', '.join(names)}. "
                "A row has a value for each of them, or a single number"
            )
    if len(names) == 1:
        return Table(names, {name: [row] if isinstance(row, str) else row for name, row in rows.items()})
    return Table(names, rows)
