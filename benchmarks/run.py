"""How fast is the library beside others? ``make bench`` runs this: it writes ``RESULTS.md`` here.

``SECTIONS`` lists what is compared. Each section is a function that yields lists of rows, one case after another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import layers
import long_sequences
import memory
import models
import regression
from measure import TURNS, Row
from tqdm import tqdm

from studies.machine import described

HERE = Path(__file__).parent
SECTIONS: list[Callable[[], Iterator[list[Row]]]] = [
    layers.rows,
    models.rows,
    memory.rows,
    long_sequences.rows,
    regression.rows,
]
PEERS = ("transformers", "x-transformers", "statsmodels")

HEAD = """\
# Results

Made by `make bench`, on {machine}.

Everything runs in turns in one process, {turns} turns a row unless it takes long. A ratio is what the peer takes
divided by what we take, in the same turn: above 1, we take less. Between medians, the quartiles of the turns. The
matrix products alone, which no implementation can do without, are a peer whose ratio cannot be large.
"""


def table(rows: list[Row]) -> str:
    """All rows as Markdown."""
    lines = ["| case | peer | ratio | quartiles | target | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for row in rows:
        low, middle, high = row.quartiles
        spread = f"{_digits(low)} to {_digits(high)}" if len(row.ratios) > 1 else ""
        target = "" if row.target is None else f"{row.target:g}"
        lines.append(f"| {row.case} | {row.peer} | {_digits(middle)} | {spread} | {target} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def _digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def main() -> None:
    """Run all sections, print each row as it comes, and write the page."""
    started, rows = time.perf_counter(), []
    with tqdm(desc="comparisons", unit=" rows") as bar:
        for section in SECTIONS:
            for some in section():
                rows += some
                bar.update(len(some))
                for row in some:
                    bar.write(f"{_digits(row.quartiles[1]):>6}  {row.case} | {row.peer}")
    page = HEAD.format(machine=described(*PEERS), turns=TURNS) + "\n" + table(rows)
    (HERE / "RESULTS.md").write_text(page, encoding="utf-8")
    missed = [row for row in rows if not row.reached]
    print(f"{len(rows)} rows in {time.perf_counter() - started:.0f} s, {len(missed)} targets missed")


if __name__ == "__main__":
    main()
