"""How the pages of ``make seeds`` write a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as Markdown; the second says on which side its column is lined up, as ``---:`` does."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
