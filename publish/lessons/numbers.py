"""Numbers that were trained: how far each may move on another CPU, and whether it has moved farther.

A code cell says so with ``:within: 0.05`` for all of its numbers, or ``:within: {loss: 0.05, exact: 2}`` for
those that follow these words. What may move:

- a number with a decimal point or an exponent, and one in per cent, by the distance in the printed unit;
- a whole number only where it directly follows a word that ``within`` names, `right 412`, and no colon comes
  after it: the 0 of `run 0: 46 %` is a label.

Everything else is compared exactly: all words, how many numbers there are, shapes such as `(2, 3)`, and
whatever is glued to letters (`run2`, `x_1`, `64d`) or starts with a nought (`05.1`). How far numbers and
columns stand apart on a line does not count, since 0.5 is narrower than 0.46.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import zip_longest
from math import isfinite

from nbformat import NotebookNode

Within = float | dict[str, float]

# A distance may be at most a quarter of each number that it lets move. Near zero, where a quarter is nothing,
# it may be this much:
SHARE, NEAR_ZERO, NEAR_ZERO_PERCENT, NEAR_ZERO_WHOLE = 0.25, 0.1, 10, 2
TEXTS = ("text/plain", "text/html", "text/markdown")
NUMBER = re.compile(
    r"(?P<shape>\(\d+,(?: ?\d+,?)*\))"
    # The sign belongs to it unless something stands right before, as in 3-4. numpy writes 1. for 1.0, before
    # another number or a bracket; before anything else the point ends a sentence.
    r"|(?<![\w.])(?:(?<![\w.)\]])[-+−])?(?:\d{1,3}(?:,\d{3})+|0|[1-9]\d*)"
    r"(?P<soft>(?:\.\d+|\.(?=\s*[-\d\]]))?(?:[eE][-+]?\d+)?)(?!\w|\.\d)"
    r"(?P<percent>(?=\s?(?:%|per\s?cent\b)))?"
)
ENTRY = re.compile(r"^[^\W\d]", re.MULTILINE)  # a line that starts with a letter starts something new


@dataclass(frozen=True)
class Number:
    """A number as it is printed, on which line, and how far it may move (None: not at all)."""

    text: str
    line: str
    distance: float | None
    limit: float  # the largest distance that still says something about it

    @property
    def value(self) -> float:
        """What it says."""
        return value_of(self.text)


def value_of(text: str) -> float:
    """What a printed number says."""
    return float(text.replace(",", "").replace("−", "-"))


def well_formed(within: object) -> bool:
    """Whether it is a positive number, or a positive number for each of some words."""
    named = within if isinstance(within, Mapping) else {"": within}
    return bool(named) and all(
        isinstance(word, str) and isinstance(d, int | float) and not isinstance(d, bool) and isfinite(d) and d > 0
        for word, d in named.items()
    )


def numbers(text: str, within: Within | None) -> list[Number]:
    """The numbers of a text, in order."""
    return [part for part in _parts(text, within) if isinstance(part, Number)]


def _parts(text: str, within: Within | None) -> list[str | Number]:
    """The words and the numbers of a text, in order."""
    parts, end = [], 0
    for match in NUMBER.finditer(text):
        if not match["shape"]:
            parts += [*text[end : match.start()].split(), _number(text, match, within)]
            end = match.end()
    return parts + text[end:].split()


def _number(text: str, match: re.Match, within: Within | None) -> Number:
    whole, percent = not match["soft"], match["percent"] is not None
    distance, follows = within, False
    if isinstance(within, dict):
        entry = max((found.start() for found in ENTRY.finditer(text, 0, match.start() + 1)), default=0)
        distance, follows = _named(text[entry : match.start()], within)
    if whole and not percent and (not follows or text.startswith(":", match.end())):
        distance = None
    floor = NEAR_ZERO_PERCENT if percent else NEAR_ZERO_WHOLE if whole else NEAR_ZERO
    line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0].strip()
    return Number(match.group(), line, distance, max(SHARE * abs(value_of(match.group())), floor))


def _named(before: str, within: dict[str, float]) -> tuple[float | None, bool]:
    """The distance of the last word of ``within`` in a text, and whether no other word comes after it."""
    ends = {m.end(): d for word, d in within.items() for m in re.finditer(_whole_word(word), before)}
    if not ends:
        return None, False
    return ends[max(ends)], not re.search(r"[^\W\d]", before[max(ends) :])


def _whole_word(word: str) -> str:
    return rf"(?<!\w){re.escape(word)}(?!\w)"


def moved(stored: str, fresh: str, within: Within | None) -> str:
    """Say what differs between a stored text and a fresh one beyond what may; empty if nothing does."""
    if stored == fresh:
        return ""
    old, new = numbers(stored, within), numbers(fresh, within)
    if len(old) != len(new):
        return f"{len(old)} numbers are stored, a fresh run prints {len(new)}\n{_first_lines(stored, fresh)}"
    for a, b in zip_longest(_words(stored), _words(fresh), fillvalue="nothing"):
        if a != b:
            return f"{a} is stored, a fresh run has {b} there\n{_first_lines(stored, fresh)}"
    return "\n".join([said for a, b in zip(old, new, strict=True) if (said := _too_far(a, b))][:3])


def _words(text: str) -> list[str]:
    """The words of a text, quoted, numbers aside."""
    return ["a number" if isinstance(part, Number) else f"`{part}`" for part in _parts(text, None)]


def _too_far(stored: Number, fresh: Number) -> str:
    # Printed %g, a number loses its point now and then: it moves if either form may.
    distance = fresh.distance if stored.distance is None else stored.distance
    apart = abs(stored.value - fresh.value)
    if apart <= (distance or 0) * (1 + 1e-9):
        return ""
    allowed = f"within allows {stored.distance:g}" if stored.distance else "which may not move"
    lines = f"  stored: {stored.line}\n  fresh:  {fresh.line}"
    return f"{stored.text} became {fresh.text}: {apart:.6g} apart, {allowed}\n{lines}"


def _first_lines(stored: str, fresh: str) -> str:
    pairs = zip_longest(stored.splitlines(), fresh.splitlines(), fillvalue="")
    a, b = next(((a, b) for a, b in pairs if _words(a) != _words(b)), (stored, fresh))
    return f"  stored: {a.strip()}\n  fresh:  {b.strip()}"


def texts(outputs: Sequence[NotebookNode]) -> Iterator[tuple[str, NotebookNode, str]]:
    """Each text among a cell's outputs: its kind, and where it is kept. HTML beside text says the same again."""
    for output in outputs:
        if output.output_type == "stream":
            yield output.name, output, "text"
        data = output.get("data", {})
        again = data.keys() >= {"text/plain", "text/html"} and not data["text/plain"].startswith("<")
        for kind in TEXTS:
            if kind in data and not (again and kind == "text/html"):
                yield kind, data, kind


def settle(
    stored: Sequence[NotebookNode], fresh: Sequence[NotebookNode], within: Within | None
) -> tuple[list[NotebookNode], str]:
    """Fresh outputs with the stored text wherever it is near enough, and what is wrong with the first that is not."""
    settled, wrong = deepcopy(list(fresh)), ""
    old = defaultdict(list)
    for kind, home, key in texts(stored):
        old[kind].append({key: home[key] for key in (key, *TEXTS) if key in home})
    for kind, home, key in texts(settled):
        if old[kind]:
            kept = old[kind].pop(0)
            if problem := moved(kept[key], home[key], within):
                wrong = wrong or problem
            else:
                home |= kept
    return settled, wrong


def distance_problems(outputs: Sequence[NotebookNode], within: object) -> Iterator[str]:
    """What is wrong with how far a cell lets its stored numbers move."""
    if not well_formed(within):
        yield f"has within: {within!r}; expected a distance above 0, or one for each word: {{loss: 0.05}}"
        return
    shown = [home[key] for _, home, key in texts(outputs)]
    free = [number for text in shown for number in numbers(text, within) if number.distance is not None]
    if not free:
        yield "has `within` and prints no number that may move: one with a decimal point, or in per cent"
    for word in within if isinstance(within, Mapping) else ():
        if not any(re.search(_whole_word(word), text) for text in shown):
            yield f"has `within` for {word!r} and prints no such word"
    for number in free:
        if number.distance > number.limit:
            yield (
                f"lets {number.text} move by {number.distance:g}, which says nothing about it: "
                f"`within` may be {number.limit:g} here. Print what varies less, or move the claim to a test"
            )
            return
