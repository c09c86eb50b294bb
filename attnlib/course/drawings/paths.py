"""Ways into one place of a model, and what it costs to close each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnlib.plotting.canvas import Canvas, text_size
from attnlib.plotting.picture import OUTPUT, PALE, Picture

__all__ = ["paths_diagram"]

APART, ACROSS = 0.65, 1.1  # from one start to the next, and from the end of the words to the end, in inches


def paths_diagram(
    costs: Mapping[str, Mapping[str, Sequence[float]]], end: str, *, title: str, harmless: float = 0.05
) -> Picture:
    """Every start with an arrow to ``end``, beside it the share of answers that go wrong when that way is closed.

    ``costs`` are ``{start: {kind of sentence: one share for each run}}``. An arrow is dashed where no share is above
    ``harmless``.

    Raises ``ValueError`` when there is no start, or a share is not from 0 to 1.

    >>> paths_diagram({"noun": {"animals": [0.5, 1.0]}, "verb": {"animals": [0, 0.01]}}, "pronoun", title="Two").alt
    'Two. Boxes: pronoun; noun; verb. Arrows: noun to pronoun, animals 50, 100 %; verb to pronoun, animals 0, 1 %.'
    """
    shares = [share for kinds in costs.values() for runs in kinds.values() for share in runs]
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"costs must hold shares from 0 to 1 for at least one start; got {costs}")
    page = Canvas()
    words = {start: _words(kinds) for start, kinds in costs.items()}
    wide = max(text_size(start)[0] for start in costs) + 0.3
    bend = wide / 2 + max(text_size(line)[0] for line in words.values()) + 0.3
    heights = [-APART * i for i in range(len(costs))]
    middle = sum(heights) / len(heights)
    goal = page.box(end, (bend + ACROSS + text_size(end)[0] / 2, middle))
    for i, (start, y) in enumerate(zip(costs, heights, strict=True)):
        box = page.box(start, (0, y), width=wide)
        needed = max(max(runs) for runs in costs[start].values()) > harmless
        into = goal.side("left", 1 - (i + 0.5) / len(costs))
        page.arrow(box.side("right"), (bend, y), into, colour=OUTPUT if needed else PALE, dashed=not needed)
        page.text(words[start], ((wide / 2 + bend) / 2, y + 0.14))
        page.say("Arrows", f"{start} to {' '.join(end.split())}, {words[start]}")
    return page.picture(title)


def _words(kinds: Mapping[str, Sequence[float]]) -> str:
    """The shares of each kind, one for each run, in per cent."""
    shares = {kind: ", ".join(f"{100 * share:.0f}" for share in runs) for kind, runs in kinds.items()}
    return " · ".join(f"{kind} {numbers} %" for kind, numbers in shares.items())
