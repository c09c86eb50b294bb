"""Models that read pictures as drawings: ViT and DETR, with the shapes that one forward pass showed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlib.plotting.canvas import Box, Point, as_words, text_size
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.flow import Call, calls_of
from attnlib.plotting.picture import INK, KEY, OUTPUT, QUERY, VALUE, Picture
from attnlib.plotting.towers import ATTENTION, NETWORK

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["detr_diagram", "vit_diagram"]

GAP = 0.62  # inches of an arrow from one part to the next
CELL = (0.16, 0.16)
LOWER = -1.5  # how far down the second line of the ViT stands


def vit_diagram(model: nn.Module, pictures: Tensor, *, title: str) -> Picture:
    """A `ViT` from the first of these pictures to its logits, with the shapes of one forward pass.

    >>> import torch
    >>> from attnlib.models import ViT, ViTConfig
    >>> sizes = dict(image_size=8, patch_size=2, channels=1, d_model=16, n_heads=4, n_layers=2)
    >>> picture = vit_diagram(ViT(ViTConfig(n_classes=10, **sizes)), torch.rand(1, 1, 8, 8), title="Patches are rows")
    >>> "class token and positions to 2 × EncoderLayer, (17, 16)" in picture.alt
    True
    """
    calls = {call.name: call for call in calls_of(model, pictures)}
    page, patch = Diagram(), model.config.patch_size
    pixels = page.grid("picture", pictures[0, 0].numpy(), (0, 0), cell=CELL, caption="picture")
    words = f"patches of {patch} × {patch}\nas rows, times E:\na convolution of stride {patch}"
    rows = _after(page, pixels, words, as_words(pictures.shape[1:]), name="patches times E")
    d, high, wide = calls["patches.project"].outputs[0].shape[1:]
    name = "class token and positions"
    words = "class token before them" + ("\nand positions added" if hasattr(model.patches, "positions") else "")
    placed = _after(page, rows, words, as_words((high * wide, d)), name=name)
    words, name = _stack(model.layers)
    layers = page.box(words, (placed.x, LOWER), name=name, fill=ATTENTION)
    shape = _rows(calls["layers.0"].inputs[0])
    page.arrow(placed.side("bottom"), layers.side("top"), words=shape, said=f"{placed.name} to {name}")
    words = f"LayerNorm, row 0,\nLinear {_sizes(calls['out'])}"
    out = page.box(words, (rows.x, LOWER), name="LayerNorm, row 0, Linear")
    shape = _rows(calls["norm"].inputs[0])
    page.arrow(layers.side("left"), out.side("right"), words=shape, said=f"{name} to {out.name}", colour=OUTPUT)
    end = pixels.side("right")[0] + 0.1
    page.arrow(out.side("left"), (end, LOWER), said=f"{out.name} to logits", colour=OUTPUT)
    shape = as_words(calls[""].outputs[0].shape[1:]).replace(",)", ")")
    page.text(f"logits\n{shape}", (end - 0.1, LOWER), bold=True, align="right")
    return page.picture(title)


def detr_diagram(model: nn.Module, pictures: Tensor, *, title: str) -> Picture:
    """A `DETR` from the first of these pictures to kinds and boxes, with the shapes of one forward pass.

    >>> import torch
    >>> from attnlib.models.detecting import small_detr
    >>> picture = detr_diagram(small_detr(), torch.rand(1, 1, 24, 24), title="Queries ask a picture")
    >>> "memory to 2 × PlacedDecoderLayer as keys (with places) and values, (36, 48)" in picture.alt
    True
    """
    calls = {call.name: call for call in calls_of(model, pictures)}
    page, features = Diagram(), calls["backbone"].outputs[0]
    shown = pictures[0, 0].unflatten(0, (8, -1)).unflatten(2, (8, -1)).mean((1, 3)).numpy()
    pixels = page.grid("picture, drawn smaller,", shown, (0, 0), cell=CELL, caption="picture")
    backbone = _after(page, pixels, "convolutions,\nplaces added", as_words(pictures.shape[1:]), name="backbone")
    rows = _after(page, backbone, "each place\na row", as_words(features.shape[1:]), name="rows")
    words, name = _stack(model.encoder)
    encoder = _after(page, rows, words, _rows(calls["encoder.0"].inputs[0]), name=name, fill=ATTENTION)
    words, name = _stack(model.decoder)
    decoder = page.box(words, (encoder.x, -2.3), name=name, fill=ATTENTION)
    memory = _rows(calls["decoder.0"].inputs[1])
    for share, colour, role in ((0.3, KEY, "keys,\nwith places"), (0.7, VALUE, "values")):
        start, end = encoder.side("bottom", share), decoder.side("top", share)
        page.arrow(start, end, colour=colour)
        side = -1 if share < 0.5 else 1
        page.text(role, (start[0] + side * 0.08, (start[1] + end[1]) / 2), colour=colour,
                  align="right" if side < 0 else "left")  # fmt: skip
    page.say("Arrows", f"memory to {decoder.name} as keys (with places) and values, {memory}")
    asked = page.grid(
        "object queries", model.queries.weight.detach().numpy(), (pixels.x, -2.3), colour=QUERY, cell=CELL
    )
    words = "all at once; each is known by its row of Q"
    page.arrow(asked.side("right"), decoder.side("left"), words=words, said=f"queries to {decoder.name}", colour=QUERY)
    for y, name, call in ((-1.85, "kind", calls["kind"]), (-2.75, "box", calls["box.4"])):
        words = f"{name if name == 'box' else 'kind, or no object'}\n{as_words(call.outputs[0].shape[1:])}"
        head = page.box(words, (decoder.side("right")[0] + 1.5, y), name=name, fill=NETWORK)
        start = decoder.side("right", 0.75 if name == "kind" else 0.25)
        bend = decoder.side("right")[0] + 0.3
        points = [start, (bend, start[1]), (bend, y), head.side("left")]
        page.arrow(*points, said=f"{decoder.name} to {name}", colour=OUTPUT)
    return page.picture(title)


def _after(
    page: Diagram,
    before: Box,
    words: str,
    shape: str,
    *,
    name: str | None = None,
    fill: str = "white",
    colour: str = INK,
) -> Box:
    """A box to the right of another, with an arrow to it that says what shape goes along."""
    gap, width = max(GAP, text_size(shape)[0] + 0.25), text_size(words)[0] + 0.24
    at: Point = (before.side("right")[0] + gap + width / 2, before.y)
    box = page.box(words, at, name=name, fill=fill)
    page.arrow(before.side("right"), box.side("left"), words=shape, said=f"{before.name} to {box.name}", colour=colour)
    return box


def _stack(layers: Sequence[nn.Module]) -> tuple[str, str]:
    """How many layers of which kind and how many heads each has, as words for a box, and what alt text calls it."""
    name = f"{len(layers)} × {type(layers[0]).__name__}"
    return f"{name},\n{layers[0].self_attention.n_heads} heads", name


def _rows(tensor: Tensor) -> str:
    return as_words(tensor.shape[1:])


def _sizes(call: Call) -> str:
    return f"{call.inputs[0].shape[-1]} → {call.outputs[0].shape[-1]}"
