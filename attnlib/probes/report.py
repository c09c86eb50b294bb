"""What a probe of `attnlib.probes` returns: a finding that reads as a sentence, counts as a truth value and draws."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isnan
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from attnlib.plotting.picture import Picture

__all__ = ["Report", "batch_sentence", "causal_sentence", "order_sentence", "padding_sentence", "round_two"]


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """The finding of a probe.

    ``probe`` names it, ``ok`` says whether all is well (and so does ``bool(report)``), ``sentence`` says what was
    found (and so does ``print(report)``). ``matrix`` holds what `picture` draws, or None: booleans ``[t, s]``, "output
    t reads input s", or a row of numbers. ``labels`` name its axes, across and up. ``amounts`` are the changes behind
    the booleans, as shares of the size of the output. ``fit`` is False where the model did not allow the question.

    >>> report = Report("causality", False, "Position 0 reads position 1: not causal.", np.ones((2, 2), bool))
    >>> report
    Position 0 reads position 1: not causal.
    >>> bool(report)
    False
    """

    probe: str
    ok: bool
    sentence: str
    matrix: Bool[np.ndarray, "rows columns"] | Float[np.ndarray, " n"] | None = None
    labels: tuple[str, str] = ("input position", "output position")
    amounts: Float[np.ndarray, "rows columns"] | None = None
    fit: bool = True

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return self.sentence

    def picture(self, title: str | None = None) -> Picture:
        """The matrix as a map, dark where an output reads an input; a row of numbers as a line.

        Raises ``ValueError`` when the probe has no matrix.

        >>> Report("causality", True, "Causal.", np.tri(3, dtype=bool)).picture()
        Causal. One plot. Across: input position. Up: output position. Grid of numbers: 3×3.
        """
        if self.matrix is None:
            raise ValueError(f"{self.probe} has no matrix to draw; it says: {self.sentence}")
        from attnlib import plotting

        title = title or self.sentence.rstrip(".")
        if self.matrix.ndim == 1:
            curve = {self.labels[1]: (np.arange(len(self.matrix)), self.matrix)}
            return plotting.lines(curve, title=title, labels=self.labels)
        rows, columns = self.matrix.shape
        ticks = (_some_of(columns), _some_of(rows))
        reads = self.matrix.astype(float)
        return plotting.weight_map(reads, title=title, labels=self.labels, ticks=ticks, scale=None)


def round_two(value: float) -> str:
    """A number with two significant digits, all that a sentence may say if it is to be the same everywhere.

    >>> round_two(0.012345), round_two(1234.5), round_two(2.0)
    ('0.012', '1.2e+03', '2')
    """
    return f"{value:.2g}"


def _some_of(n: int) -> dict[int, str]:
    return {i: str(i) for i in range(0, n, ceil(n / 10))}


def causal_sentence(reads: Bool[Tensor, "n n"], changed: Bool[Tensor, "n n"], reason: str) -> str:
    """What `attnlib.probes.causality` found, in words."""
    n, leaks = len(reads), reads.triu(1).nonzero().tolist()
    blind = f" The gradient was not looked at: {reason}." if reason else ""
    if not leaks:
        nothing = "" if reads.any() else " Nor when any other does: this model reads nothing."
        return f"Causal: no output changes when a later input does ({n} positions).{nothing}{blind}"
    t, s = leaks[0]
    faint = "" if changed.triu(1).any() else " Only the gradient shows it."
    return (
        f"Position {t} reads position {s}: not causal ({len(leaks)} of {n * (n - 1) // 2} such pairs).{faint}{blind}"
    )


def padding_sentence(
    reads: Bool[Tensor, "batch n n"],
    shown: list[float],
    apart: list[tuple[int, int | None]],
    pooled: bool,
    random: bool,
    inverted: bool,
    under_heads: bool,
    empty: list[int],
) -> str:
    """What `attnlib.probes.padding` found, in words; ``shown`` are the sizes of padding that showed ``reads``."""
    said, pairs = [], reads.nonzero().tolist()
    if pairs:
        b, t, s = pairs[0]
        who = f"The output of sequence {b}" if pooled else f"Position {t} of sequence {b}"
        said.append(f"{who} reads padding position {s} ({len(pairs)} such pair{'s' * (len(pairs) != 1)}).")
        if shown[0] != 1:
            size = "that is NaN" if isnan(shown[0]) else f"of {shown[0]:,.0f} times the size of x"
            said.append(f"Only padding {size} shows it.")
    if apart:
        b, t = apart[0]
        where = "" if not t else f", first at position {t}"
        more = f" ({len(apart)} sequences do)" if len(apart) > 1 else ""
        said.append(f"Sequence {b} answers differently without padding{where}{more}.")
    if inverted:
        said.append("Real positions read one another only under the opposite mask: it is the wrong way round.")
    if under_heads:
        said.append("One sequence more breaks the model: the axis of the sequences stands under that of the heads.")
    if empty:
        said.append(f"Sequence {empty[0]}, of length 0, gives NaN: gradients of a loss on the others may be NaN too.")
    if not said:
        alone = "" if random else ", and without it"
        count = f"{len(reads)} sequence{'s' * (len(reads) != 1)}"
        said.append(f"Padding is ignored: real outputs are the same whatever stands in it{alone} ({count}).")
    if random:
        said.append("Sequences were not run alone: the model draws random numbers.")
    return " ".join(said)


def order_sentence(equivariant: bool, invariant: bool, pooled: bool, n: int) -> str:
    """What `attnlib.probes.permutation` found, in words."""
    if invariant:
        same = "the output is the same" if pooled else "outputs are the same"
        also = " Equivariant too: all positions have the same output." if equivariant else ""
        return f"Invariant: {same} in every order of the inputs ({n} positions).{also}"
    if equivariant:
        return f"Equivariant: outputs move with their inputs ({n} positions)."
    return f"Neither equivariant nor invariant: the order of the inputs matters ({n} positions)."


def batch_sentence(mixed: Bool[Tensor, "batch batch"], apart: list[int], random: bool) -> str:
    """What `attnlib.probes.batch_independence` found, in words."""
    said, pairs, batch = [], mixed.nonzero().tolist(), len(mixed)
    if pairs:
        b, a = pairs[0]
        total = batch * (batch - 1)
        said.append(f"Sequence {b} reads sequence {a}: the batch is mixed ({len(pairs)} of {total} such pairs).")
    if apart:
        said.append(f"Sequence {apart[0]} answers differently alone.")
    if not said:
        alone = "no sequence reads another" if random else "every sequence answers as if it were alone"
        said.append(f"Independent: {alone} ({batch} sequences).")
    if random:
        said.append("None was run alone: the model draws random numbers.")
    return " ".join(said)
