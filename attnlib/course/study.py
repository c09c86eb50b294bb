"""Tables of a page of measurements, for a lesson to show or to compute with."""

from __future__ import annotations

from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.display import Markdown

__all__ = ["Study"]


class Study:
    r"""A page that a benchmark wrote, in Markdown: a table is asked for by the line before it.

    Parameters
    ----------
    path : str or Path
        The page.

    Raises
    ------
    ValueError
        If there is no such line, or no table after it.

    Examples
    --------
    >>> page = getfixture("tmp_path") / "page.md"
    >>> _ = page.write_text("## Speed\n\nIn seconds.\n\n| way | words | time |\n| --- | ---: | ---: |\n"
    ...                     "| mask | 1,024 | 0.5 |\n| window | 1,024 | 0.1 |\n")
    >>> study = Study(page)
    >>> print(study.table("Speed", "win").data)
    | way | words | time |
    | --- | ---: | ---: |
    | window | 1,024 | 0.1 |
    >>> study.rows("Speed")
    [['mask', '1024', '0.5'], ['window', '1024', '0.1']]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lines = self.path.read_text(encoding="utf-8").splitlines()

    def table(self, after: str, *rows: str) -> Markdown:
        """The first table after the line (a heading, or words) that begins with ``after``, for a cell's last line.

        With ``rows``, only those that begin with one of these words.
        """
        from IPython.display import Markdown

        names, rule, *found = self._table(after)
        kept = [line for line in found if not rows or line.startswith(tuple(f"| {row}" for row in rows))]
        if not kept:
            raise ValueError(f"no row of the table after {after!r} in {self.path} begins with {' or '.join(rows)}")
        return Markdown("\n".join([names, rule, *kept]))

    def rows(self, after: str) -> list[list[str]]:
        """The cells of that table, row by row, without its head; numbers without commas."""
        return [line.strip("| ").replace(",", "").split(" | ") for line in self._table(after)[2:]]

    def _table(self, after: str) -> list[str]:
        rest = dropwhile(lambda line: not line.lstrip("# ").startswith(after), self._lines)
        lines = dropwhile(lambda line: not line.startswith("|"), rest)
        table = list(takewhile(lambda line: line.startswith("|"), lines))
        if not table:
            headings = ", ".join(line.lstrip("# ") for line in self._lines if line.startswith("## "))
            raise ValueError(f"{self.path} has no table after a line that begins with {after!r}; it has: {headings}")
        return table
