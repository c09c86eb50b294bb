"""Drawings of models. They show what one forward pass of the real module did: `attnlib.plotting.flow` watches it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from attnlib.plotting.canvas import Box, Point, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.flow import Call, Flow, calls_of, flow_of, outermost
from attnlib.plotting.picture import Picture
from attnlib.plotting.towers import ROLES, WIDTH, Side, Tower, is_attention, listed, words_of

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["layer_diagram", "transformer_diagram"]

AXES = ("batch", "n", "d_model")
APART = 5.4  # inches from the middle of the encoder to that of the decoder
GATE = 1.06  # inches before an attention, where what comes from outside parts into keys and values
EDGE = 0.34  # inches from a box to the frame around it


def layer_diagram(layer: nn.Module, *inputs: Tensor, title: str, **options: Any) -> Picture:
    """One layer, encoder's or decoder's, as one forward pass with these ``inputs`` and ``options`` finds it.

    Whether it normalises before or after, what is added to what, all shapes and masks are read from that pass, and
    nothing from the layer's options.

    Raises ``ValueError`` when a part's input is neither what another gave nor the sum of two: an arrow would be a
    guess.

    >>> import torch
    >>> from attnlib.nn import EncoderLayer
    >>> layer_diagram(EncoderLayer(16, 4, 64), torch.ones(2, 5, 16), title="Two sums").alt[:97]
    'Two sums. Boxes: LayerNorm; self-attention, 4 heads of 4; second LayerNorm; feed-forward, 16 → 64'
    """
    calls = calls_of(layer, *inputs, **options)
    names = list(inspect.signature(layer.forward).parameters)[: len(inputs)]
    flow = flow_of(dict(zip(names, inputs, strict=True)), outermost(calls), calls[-1].outputs[0])
    page, shape = Diagram(), tuple(inputs[0].shape)
    tower = Tower(page, calls, 0, 0, skip="left" if len(inputs) == 1 else "right")
    tower.begin(names[0], f"{names[0]} {as_words(shape, AXES if len(shape) == 3 else ())}")
    entry = tower.enter(names[0], shape)
    for side in tower.add(flow, outside=names[1:]):
        words = f"{side.edge.start} {as_words(side.edge.shape)}"
        at = side.box.side("left")[0] - GATE - 1.5, side.box.y
        page.text(words, at, bold=True)
        _across(page, side, side.edge.start, [(at[0] + 0.9, at[1])])
    _frame(tower, flow, entry, type(layer).__name__)
    tower.end("out", flow.shape)
    return page.picture(title)


def transformer_diagram(model: nn.Module, source: Tensor, target: Tensor, *, title: str) -> Picture:
    """The encoder–decoder model, two towers, as one forward pass with these tokens finds it.

    What something of the target reaches stands on the right. Layers of a stack that did the same are drawn once and
    counted. Everything else is as in `layer_diagram`, errors too.

    >>> import torch
    >>> from attnlib.nn import Transformer, TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2, n_encoder_layers=3))
    >>> tokens = torch.full((1, 4), 5)
    >>> "3 × EncoderLayer" in transformer_diagram(model, tokens, tokens[:, :2], title="Two towers").alt
    True
    """
    calls = calls_of(model, source, target)
    stacks = [call.name for call in calls if hasattr(call.part, "layers")]
    whole = flow_of({"source": source, "target": target}, outermost(calls, opened=stacks), calls[-1].outputs[0])
    right = _reached_by("target", whole)
    page = Diagram()
    reader = Tower(page, calls, 0, 0, of="Encoder", shapes=False)
    reader.begin("source", f"source {as_words(source.shape, AXES[:2])}")
    _build(reader, whole, [name for name in whole.nodes if name not in right])
    writer = Tower(page, calls, APART, 0, of="Decoder", skip="right", shapes=False)
    writer.begin("target", f"target {as_words(target.shape, AXES[:2])}")
    for side in _build(writer, whole, right):
        start = reader.boxes[side.edge.start]
        high, gate = start.side("top")[1] + 0.42, side.box.side("left")[0] - GATE
        _across(page, side, f"encoder's {start.name}", [start.side("top"), (start.x, high), (gate, high)])
    writer.end("logits", whole.shape)
    return page.picture(title)


def _reached_by(start: str, flow: Flow) -> list[str]:
    """The nodes that something of ``start`` reaches."""
    reached = [start]
    for name in flow.nodes:
        if any(edge.start in reached for edge in flow.edges if edge.end == name):
            reached.append(name)
    return reached[1:]


def _build(tower: Tower, whole: Flow, names: Sequence[str]) -> list[Side]:
    """Draw the nodes ``names`` of a model, equal layers once. Returns the arrows that have to come from elsewhere."""
    sides, framed = [], False
    for signature, run in groupby(names, key=lambda name: _signature(whole, name, tower.calls)):
        for name in run if signature is None else ():
            edge = next(edge for edge in whole.edges if edge.end == name)
            tower.box(name, _words(whole.nodes[name], tower.calls), edge, after_frame=framed)
            framed = False
        if signature is not None:
            sides, framed = sides + _layers(tower, whole, list(run)), True
    return sides


def _layers(tower: Tower, whole: Flow, names: Sequence[str]) -> list[Side]:
    """The first of these equal layers in a frame that counts them."""
    edges = {edge.place: edge for edge in whole.edges if edge.end == names[0]}
    tower.check(names[0], [edges[0]])
    for below, name in pairwise(names):
        if (below, name, 0) not in [edge[:3] for edge in whole.edges]:
            raise ValueError(f"{name} must read what {below} gives, to be drawn as a tower; it does not")
    flow, entry = _inside(whole.nodes[names[0]], tower.calls), tower.enter("input 0", edges[0].shape)
    sides = tower.add(flow, outside=[f"input {place}" for place in edges if place])
    _frame(tower, flow, entry, f"{len(names)} × {type(whole.nodes[names[0]].part).__name__}")
    tower.rename(names[-1])
    return [side._replace(edge=edges[int(side.edge.start.split()[1])]) for side in sides]


def _signature(whole: Flow, name: str, calls: Sequence[Call]) -> object:
    """What a layer did: those with one signature may share a drawing. None for what is no layer."""
    flow = _inside(whole.nodes[name], calls)
    if flow is None:
        return None
    parts = [(key.removeprefix(name), call and words_of(call, calls)) for key, call in flow.nodes.items()]
    edges = [(start.removeprefix(name), end.removeprefix(name), *rest) for start, end, *rest in flow.edges]
    return str((parts, edges, [edge.start for edge in whole.edges if edge.end == name and edge.place]))


def _inside(call: Call | None, calls: Sequence[Call]) -> Flow | None:
    """How a layer's inputs flow through its parts; None for what is no layer, as it has no attention."""
    parts = outermost(calls, of=call.name) if call else []
    if not any(is_attention(part) for part in parts):
        return None
    return flow_of({f"input {i}": given for i, given in enumerate(call.inputs)}, parts, call.outputs[0])


def _words(call: Call, calls: Sequence[Call]) -> str:
    """As `words_of`; for an embedding what it adds to its table, and for another's table that it is one."""
    inside = {part.name.rsplit(".", 1)[-1]: part for part in outermost(calls, of=call.name)}
    if "token_embedding" not in inside:
        tables = [each.part.weight for each in calls if hasattr(each.part, "num_embeddings")]
        tied = any(getattr(call.part, "weight", None) is table for table in tables)
        return words_of(call, calls) + ("\nthe embedding's table" if tied else "")
    rows = inside["token_embedding"].outputs[0] * getattr(call.part, "scale", 1)
    lines = [f"embedding of {inside['token_embedding'].part.num_embeddings} tokens"]
    if not rows.equal(inside["norm"].inputs[0]):
        lines.append(f"+ {call.part.positional.kind} positions")
    kind = type(inside["norm"].part).__name__
    return "\n".join(lines + [kind] * (kind != "Identity"))


def _across(page: Diagram, side: Side, start: str, points: Sequence[Point]) -> None:
    """From ``points`` to the left side of an attention, one arrow for each of what it makes of what comes."""
    shape, shares = as_words(side.edge.shape), [0.5] if len(side.roles) == 1 else [0.8, 0.2]
    ends = [side.box.side("left", share) for share in shares]
    gate = ends[0][0] - GATE
    page.arrow(*points, (gate, side.box.y), words=shape if len(points) > 1 else "", head=False)
    page.arrow((gate, ends[0][1]), (gate, ends[-1][1]), head=False)
    for role, end, lift in zip(side.roles, ends, (0.14, -0.16), strict=False):
        page.arrow((gate, end[1]), end, colour=ROLES[role])
        page.text(role, (gate + (GATE - EDGE) / 2, end[1] + lift), colour=ROLES[role])
    page.say("Across", f"{start} as {listed(side.roles)} to {side.box.name}, {shape}")


def _frame(tower: Tower, flow: Flow, entry: Box, words: str) -> None:
    """A frame around what the tower holds of a flow."""
    first, last = (tower.boxes[name] for name in (next(iter(flow.nodes)), flow.last))
    half, high = WIDTH / 2 + EDGE, last.side("top")[1] + 0.1
    tower.page.frame(words, [(tower.x - half, entry.y - 0.05), (tower.x + half, high)])
    tower.page.say("Frames", f"{words}, from the first {first.name} to {last.name}")
