"""A flow drawn as a tower: its parts one upon the other, what goes around them beside it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from attnlib.plotting.canvas import LINE, PAD, Box, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.flow import Call, Edge, Flow, outermost
from attnlib.plotting.picture import INK, KEY, OUTPUT, QUERY, VALUE

__all__ = ["ROLES", "WIDTH", "Side", "Tower", "is_attention", "listed", "words_of"]

WIDTH, MOST_SIGNS = 3.0, 32  # of a box, in inches, and of a line in it
ATTENTION, NETWORK = "#d5d5d5", "#ececec"  # fills that greyscale tells apart from the white of all else
ROLES = {"queries": QUERY, "keys": KEY, "values": VALUE}
# Which of an attention's inputs become what: one for all, one that asks and one that answers, or three.
PLACES = {1: [list(ROLES)], 2: [["queries"], ["keys", "values"]], 3: [[role] for role in ROLES]}
ORDINALS = ("", "second ", "third ", "fourth ", "fifth ", "sixth ", "seventh ", "eighth ")


class Side(NamedTuple):
    """An arrow that has to come from outside the tower: its edge, the box that it goes to, and what it becomes there.

    >>> Side._fields
    ('edge', 'box', 'roles')
    """

    edge: Edge
    box: Box
    roles: Sequence[str]


def words_of(call: Call, calls: Sequence[Call]) -> str:
    """What is written into the box of a part: what it is, and what the forward pass showed of its inside.

    >>> import torch
    >>> from attnlib.plotting.flow import calls_of
    >>> calls = calls_of(torch.nn.Linear(4, 3), torch.ones(2, 4))
    >>> words_of(calls[0], calls)
    'Linear 4 → 3'
    """
    kind, name = type(call.part).__name__, call.name.rsplit(".", 1)[-1].replace("_", "-")
    if is_attention(call):
        told = ", ".join([f"{call.part.n_heads} heads of {call.part.d_head}", *_told(call)])
        return "\n".join([name, *wrap(told, MOST_SIGNS)])
    inside = outermost(calls, of=call.name) if call.name else []
    sizes = [part.inputs[0].shape[-1] for part in inside if type(part.part).__name__ == "Linear"]
    if sizes:
        return f"{name}\n{' → '.join(map(str, [*sizes, call.outputs[0].shape[-1]]))}"
    if kind == "Linear":
        return f"Linear {call.inputs[0].shape[-1]} → {call.outputs[0].shape[-1]}"
    return kind


def is_attention(call: Call) -> bool:
    """Is the part one that has heads, so that its inputs become queries, keys and values?"""
    return hasattr(call.part, "n_heads") and hasattr(call.part, "d_head")


class Tower:
    """A column of boxes with its middle at ``x``, drawn on a page from ``y`` upwards.

    ``of`` is what alt text calls the tower. What goes around a part runs on the ``skip`` side, the shapes stand
    on the other; without ``shapes`` there are none, and the tower is lower.

    >>> import torch
    >>> from attnlib.plotting.flow import calls_of, flow_of
    >>> x, page = torch.ones(2, 4), Diagram()
    >>> calls = calls_of(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)), x)
    >>> tower = Tower(page, calls, 0, 0)
    >>> tower.begin("x", "x (2, 4)")
    >>> tower.add(flow_of({"x": x}, outermost(calls), calls[-1].outputs[0]))
    []
    >>> page.describe()
    'Boxes: Linear 4 → 4; LayerNorm. Arrows: x to Linear 4 → 4, (2, 4); Linear 4 → 4 to LayerNorm, (2, 4).'
    """

    def __init__(
        self,
        page: Diagram,
        calls: Sequence[Call],
        x: float,
        y: float,
        *,
        of: str = "",
        skip: str = "left",
        shapes: bool = True,
    ) -> None:
        self.page, self.calls, self.x, self.y, self.shapes = page, calls, x, y, shapes
        self.parts, self.arrows = (f"{of}, boxes", f"{of}, arrows") if of else ("Boxes", "Arrows")
        self.skip, self.other = skip, "right" if skip == "left" else "left"
        self.last = ""
        self.boxes: dict[str, Box] = {}
        self._names: list[str] = []
        self._attentions: list[str] = []

    def begin(self, name: str, words: str) -> None:
        """Words at the foot of the tower, for the input ``name``."""
        self.page.text(words, (self.x, self.y), bold=True)
        self._standing(name, Box(name, self.x, self.y, WIDTH, 0.22))

    def add(self, flow: Flow, outside: Sequence[str] = ()) -> list[Side]:
        """Put a flow on top. Returns the arrows that come from inputs ``outside``, for the caller to draw."""
        sides = []
        for name, call in flow.nodes.items():
            edges = [edge for edge in flow.edges if edge.end == name]
            own = [edge for edge in edges if edge.start not in outside]
            sides += self._place(name, call, own, [edge for edge in edges if edge.start in outside])
        return sides

    def enter(self, name: str, shape: Sequence[int]) -> Box:
        """Room above the last box, where a frame can start: the place is the input ``name`` of what is in it."""
        start = self.boxes[self.last]
        place = Box(start.name, self.x, start.side("top")[1] + 0.32, WIDTH, 0)
        words = "" if self.shapes else as_words(shape)  # where all arrows have them, that inside says it
        self.page.arrow(start.side("top"), (self.x, place.y), words=words, side=self.other, head=False)
        self._standing(name, place)
        return place

    def end(self, words: str, shape: Sequence[int]) -> None:
        """Words on top, with an arrow to them."""
        start = self.boxes[self.last]
        top = self.x, start.side("top")[1] + 0.4
        end = Box(words, self.x, top[1] + 0.13, WIDTH, 0.26)
        self.page.arrow(start.side("top"), top)
        self.page.text(f"{words} {as_words(shape)}", (self.x, end.y), bold=True)
        self._say("to", start, end, shape)

    def box(self, name: str, words: str, edge: Edge, *, after_frame: bool = False) -> Box:
        """A box for the node ``name`` on top, with a straight arrow to it along ``edge``."""
        self.check(name, [edge])
        start = self.boxes[self.last]
        gap = 0.5 if after_frame else 0.4 if self.shapes else 0.16
        box = self._box(name, words, start.side("top")[1] + gap, NETWORK if "\n" in words else "white")
        self._up(start, box, edge, label=not after_frame)
        if after_frame:  # beside the frame's own words
            self.page.text(as_words(edge.shape), (self.x + 0.1, start.side("top")[1] + 0.25), align="left")
        return box

    def check(self, name: str, edges: Sequence[Edge]) -> None:
        """Raise ``ValueError`` unless the part ``name`` reads what stands below it."""
        for edge in edges:
            if self.boxes.get(edge.start) != self.boxes[self.last]:
                raise ValueError(f"{name} must read what {self.last} gives, to be drawn as a tower; got {edge.start}")

    def rename(self, name: str) -> None:
        """What stands on top is also the node ``name``."""
        self._standing(name, self.boxes[self.last])

    def _box(self, name: str, words: str, low: float, fill: str) -> Box:
        first, *more = words.split("\n")
        y = low + (LINE * (1 + len(more)) + PAD) / 2
        box = self.page.box(words, (self.x, y), name=self._named(first), width=WIDTH, fill=fill, kind=self.parts)
        self._standing(name, box)
        return box

    def _place(self, name: str, call: Call | None, own: Sequence[Edge], beside: Sequence[Edge]) -> list[Side]:
        if call is None:
            self._sum(name, own)
        elif is_attention(call):
            return self._attention(call, own, beside)
        else:
            self.box(name, words_of(call, self.calls), own[0])
        return []

    def _attention(self, call: Call, own: Sequence[Edge], beside: Sequence[Edge]) -> list[Side]:
        self.check(call.name, own)
        start, roles = self.boxes[self.last], PLACES[len(call.inputs)]
        become = [role for edge in own for role in roles[edge.place]]
        foot = start.side("top")[1] + (0.3 if self.shapes else 0.1 if len(become) > 1 else 0)
        box = self._box(call.name, words_of(call, self.calls), foot + 0.33, ATTENTION)
        self._fan(start, box, become, foot, own[0])
        self._attentions.append(call.name)
        return [Side(edge, box, roles[edge.place]) for edge in beside]

    def _fan(self, start: Box, box: Box, roles: Sequence[str], foot: float, edge: Edge) -> None:
        """From the box below, one arrow for each of what the attention makes of it."""
        ends = [box.side("bottom", share) for share in ([0.5] if len(roles) == 1 else [0.14, 0.5, 0.78])]
        ends = ends[: len(roles)]
        if foot > start.side("top")[1]:
            self.page.arrow(start.side("top"), (self.x, foot), head=False, **self._label(edge.shape))
        if len(roles) > 1:
            self.page.arrow((ends[0][0], foot), (ends[-1][0], foot), head=False)
        for role, end in zip(roles, ends, strict=True):
            self.page.arrow((end[0], foot), end, words=role, colour=ROLES[role])
        self._say(f"as {listed(roles)} to", start, box, edge.shape)

    def _sum(self, name: str, edges: Sequence[Edge]) -> None:
        start, gap = self.boxes[self.last], 0.4 if self.shapes else 0.15
        dot = self.page.dot("+", (self.x, start.side("top")[1] + gap + 0.12), name=self._named("sum"))
        self._standing(name, dot)
        for edge in edges:
            if self.boxes[edge.start] == start:
                self._up(start, dot, edge)
            else:
                self._around(dot, edge)

    def _up(self, start: Box, box: Box, edge: Edge, *, label: bool = True) -> None:
        """A straight arrow to the next box; what an attention gives has the colour of an output."""
        colour = OUTPUT if edge.start in self._attentions else INK
        words = self._label(edge.shape) if label else {}
        self.page.arrow(start.side("top"), box.side("bottom"), colour=colour, **words)
        self._say("to", start, box, edge.shape)

    def _around(self, box: Box, edge: Edge) -> None:
        start, sign = self.boxes[edge.start], 1 if self.skip == "right" else -1
        low, out = start.side("top")[1] + 0.05, self.x + sign * (WIDTH / 2 + 0.2)
        self.page.arrow((self.x, low), (out, low), (out, box.y), box.side(self.skip))
        self._say("also straight to", start, box, edge.shape)

    def _label(self, shape: Sequence[int]) -> dict[str, str]:
        return {"words": as_words(shape), "side": self.other} if self.shapes else {}

    def _say(self, words: str, start: Box, end: Box, shape: Sequence[int]) -> None:
        self.page.say(self.arrows, f"{start.name} {words} {end.name}, {as_words(shape)}")

    def _standing(self, name: str, box: Box) -> None:
        self.boxes[name], self.last = box, name

    def _named(self, words: str) -> str:
        self._names.append(words)
        return f"{ORDINALS[self._names.count(words) - 1]}{words}"


def _told(call: Call) -> list[str]:
    """What the call was told beyond its inputs: what is hidden from it, and what is added to its scores."""
    told = call.options
    words = ["causal"] if "causal" in told else []
    words += [f"{name} {as_words(told[name].shape)}" for name in ("mask", "bias") if name in told]
    return words + (["rotated"] if "rotate" in told else [])


def listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> listed(["queries", "keys", "values"])
    'queries, keys and values'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
