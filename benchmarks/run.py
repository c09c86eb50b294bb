"""How fast is the library beside others? ``make bench`` runs this: it writes ``RESULTS.md`` and ``results.png`` here.

``SECTIONS`` lists what is compared. Each section is a function that yields lists of rows, one case after another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import layers
import long_sequences
import matplotlib
import memory
import models
import numpy as np
import regression
from machine import described
from measure import TURNS, Row
from tqdm import tqdm

from attnlib.plotting.picture import INK, OUTPUT, PALE, QUERY, Picture, in_style, label, new_figure

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


@in_style
def picture(rows: list[Row]) -> Picture:
    """Every ratio as a dot with its quartiles, its target as a stroke, and a line where both take the same."""
    fig, ax = new_figure(10, 0.26 * len(rows) + 1.4)
    places = np.arange(len(rows))[::-1]
    low, middle, high = np.array([row.quartiles for row in rows]).T
    ax.hlines(places, low, high, color=PALE, linewidth=3)
    ax.scatter(middle, places, s=26, color=[QUERY if row.reached else OUTPUT for row in rows], zorder=3)
    aims = [(row.target, place) for row, place in zip(rows, places, strict=True) if row.target]
    ax.scatter(*zip(*aims, strict=True), marker="|", s=90, color=INK, zorder=4)
    ax.axvline(1, color=INK, linewidth=1)
    ax.set_xscale("log")
    ax.set_xticks([0.5, 1, 2, 5, 10, 50, 200], ["0.5", "1", "2", "5", "10", "50", "200"])
    ax.minorticks_off()
    names = [f"{row.case.replace('`', '').replace('**', '')} | {row.peer.replace('`', '')}" for row in rows]
    ax.set_yticks(places, names, fontsize=8)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    label(ax, ("what the peer takes, divided by what we take", ""))
    missed = sum(not row.reached for row in rows)
    title = f"{len(aims) - missed} of {len(aims)} targets are reached"
    said = f"One dot for each of {len(rows)} comparisons, by ratio, and a stroke at each target. Red: {missed} missed."
    return Picture(fig, title, said)


def main() -> None:
    """Run all sections, print each row as it comes, and write the page and the figure."""
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
    picture(rows).save(HERE / "results.png")
    missed = [row for row in rows if not row.reached]
    print(f"{len(rows)} rows in {time.perf_counter() - started:.0f} s, {len(missed)} targets missed")


if __name__ == "__main__":
    matplotlib.use("agg")
    main()
