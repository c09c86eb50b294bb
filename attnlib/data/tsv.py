"""Pairs of texts in a file: a source, a tab and its translation on each line."""

from __future__ import annotations

from pathlib import Path

__all__ = ["read_pairs"]


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    r"""The pairs in a file of UTF-8, without the spaces around them; empty lines are left out.

    Raises ``ValueError`` when there is no such file, it is no text, or a line has not two columns: which line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Path(folder, "texts.tsv").write_text("yes\toui\nno\tnon\n", encoding="utf-8")
    ...     read_pairs(Path(folder, "texts.tsv"))
    15
    [('yes', 'oui'), ('no', 'non')]
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"pairs must be a file of UTF-8 with two columns; {path}: {error}") from None
    pairs = []
    for number, line in enumerate(text.split("\n"), 1):
        columns = [column.strip() for column in line.split("\t")]
        if columns == [""]:
            continue
        if len(columns) != 2 or not all(columns):
            got = "an empty one" if len(columns) == 2 else f"{len(columns)}"
            raise ValueError(
                f"pairs must have two columns on each line, with a tab between; {path} has {got} on line {number}"
            )
        pairs.append((columns[0], columns[1]))
    return pairs
