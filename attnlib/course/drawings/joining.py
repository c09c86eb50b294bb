"""Ways to join two places as graphs: which rows a layer links, and the shortest way from the first to the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from matplotlib.patches import Ellipse

from attnlib.plotting.canvas import Canvas, text_size
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["joins_diagram"]

Node = tuple[int, int]  # the row it is in, counted from the inputs up, and its place in the row
Link = tuple[Node, Node]
ACROSS, UP, SIZE = 0.55, 0.95, 0.2  # inches


def joins_diagram(ways: Mapping[str, Iterable[Link]], *, title: str) -> Picture:
    """Each way's links as lines, and in bold the shortest way from the first input to the last output.

    A link is ``((row, place), (row, place))``; inputs are in row 0, outputs in the highest.

    Raises ``ValueError`` when no way leads there.

    >>> chain = [((0, 0), (1, 0)), ((0, 1), (1, 1)), ((1, 0), (1, 1))]
    >>> joins_diagram({"recurrence": chain, "all": [((0, 0), (1, 1))]}, title="A chain is longer")
    A chain is longer. Ways: recurrence, 3 links, the shortest way has 2; all, 1 link, the shortest way has 1.
    """
    page, left = Canvas(), 0.0
    for name, links in ways.items():
        links = list(links)
        shortest = _shortest(name, links)
        words = f"{_count(shortest)} on the way"
        wide = ACROSS * max(place for link in links for _, place in link)
        room = max(wide, text_size(name)[0], text_size(words)[0])
        corner = left + (room - wide) / 2
        _graph(page, links, shortest, corner)
        page.text(name, (left + room / 2, -0.4), bold=True)
        page.text(words, (left + room / 2, -0.65))
        page.say("Ways", f"{name}, {_count(links)}, the shortest way has {len(shortest)}")
        left += room + 0.55
    return page.picture(title)


def _count(links: list[Link]) -> str:
    return f"{len(links)} link" + "s" * (len(links) != 1)


def _shortest(name: str, links: list[Link]) -> list[Link]:
    """The links of a shortest way, found level by level."""
    nodes = {node for link in links for node in link}
    goal = max(nodes, default=(0, 0))
    ways: dict[Node, list[Link]] = {(0, 0): []}
    reached = list(ways)
    for node in reached:
        for start, end in links:
            if start == node and end not in ways:
                ways[end] = [*ways[node], (start, end)]
                reached.append(end)
    if not ways.get(goal):
        raise ValueError(f"{name} must lead from the first input (0, 0) to the last output {goal}; no way does")
    return ways[goal]


def _graph(page: Canvas, links: list[Link], shortest: list[Link], left: float) -> None:
    def at(node: Node) -> tuple[float, float]:
        return left + node[1] * ACROSS, node[0] * UP

    for link in sorted(links, key=shortest.__contains__):
        bold = link in shortest
        page.put(partial(_line, ends=[at(node) for node in link], bold=bold), *map(at, link))
    top = max(row for link in links for row, _ in link)
    for node in sorted({node for link in links for node in link}):
        colour = KEY if node[0] == 0 else OUTPUT if node[0] == top else "white"
        (x, y), half = at(node), SIZE / 2
        page.put(partial(_node, middle=(x, y), colour=colour), (x - half, y - half), (x + half, y + half))


def _line(ax: Axes, ends: list[tuple[float, float]], *, bold: bool) -> None:
    look = {"color": INK, "linewidth": 3.2, "zorder": 2} if bold else {"color": PALE, "linewidth": 0.9, "zorder": 1}
    ax.plot(*zip(*ends, strict=True), linestyle="-", **look)


def _node(ax: Axes, middle: tuple[float, float], colour: str) -> None:
    ax.add_patch(Ellipse(middle, SIZE, SIZE, facecolor=colour, edgecolor=INK, linewidth=1.1, zorder=3))
