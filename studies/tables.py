"""How the pages of ``make studies`` write a table, and what several runs gave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as Markdown; the second says on which side its column is lined up, as ``---:`` does."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def listed(values: Iterable[float], digits: int = 0) -> str:
    """Every run: ``94, 61, 92``."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def per_cent(shares: Iterable[float]) -> str:
    """Every run's share, in per cent."""
    return listed(100 * share for share in shares)


def extent(values: Sequence[float]) -> str:
    """The lowest and the highest: ``61 to 94``."""
    return f"{min(values):.0f} to {max(values):.0f}"


def spread(values: Sequence[float]) -> str:
    """Their mean, lowest and highest: ``82 (61 to 94)``."""
    return f"{sum(values) / len(values):.0f} ({extent(values)})"
