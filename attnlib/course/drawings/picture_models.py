"""Drawings of models of pictures and words. Every size in them is one that a forward pass of the real model had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlib.plotting.canvas import Box, Canvas, Point, as_words
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.flow import Call, calls_of
from attnlib.plotting.picture import KEY, OUTPUT, QUERY, VALUE, Picture

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["clip_diagram", "dalle_diagram", "flamingo_diagram"]

FROZEN, LEARNED = "#d5d5d5", "white"
STEP, APART = 0.98, 4.3  # inches from one box up to the next, and from one column to the other


def clip_diagram(model: nn.Module, pictures: Tensor, tokens: Tensor, *, title: str) -> Picture:
    """Two columns, one that reads pictures and one that reads captions, and the scores of each with each.

    >>> import torch
    >>> from attnlib.models import CLIP, CLIPConfig
    >>> sizes = {"n_tokens": 9, "side": 8, "patch": 4, "d_model": 8, "n_heads": 2, "d_text": 8, "n_text_heads": 2}
    >>> model = CLIP(CLIPConfig(**sizes, n_layers=1, n_text_layers=1))
    >>> pictures, captions = torch.zeros(3, 3, 8, 8), torch.zeros(3, 4, dtype=torch.int64)
    >>> clip_diagram(model, pictures, captions, title="Two encoders").alt[:66]
    'Two encoders. Pictures, boxes: Conv2d, 4×4 pixels to (8, 2, 2); 5 '
    """
    calls = calls_of(model, pictures, tokens)
    at, page = {call.name: call for call in calls}, Diagram()
    layers = {side: [at[name] for name in at if _is_layer(name, side)] for side in ("pictures", "text")}
    read, written = (layers[side][0].inputs[0].shape for side in ("pictures", "text"))
    left = _column(
        page,
        (0, 0),
        "Pictures",
        f"pictures {as_words(pictures.shape)}",
        [
            (_stem(model.pictures.stem, at["pictures.stem"]), ""),
            (f"{read[1]} rows of {read[2]}\none learned, one a patch, + positions", ""),
            (_layers(layers["pictures"]), as_words(read)),
            (f"first row\nLayerNorm, Linear {_linear(at['pictures.project'])}", as_words(read)),
        ],
    )
    right = _column(
        page,
        (APART, 0),
        "Captions",
        f"captions {as_words(tokens.shape)}",
        [
            (f"embedding of {model.text.token_embedding.num_embeddings} tokens\n+ positions", ""),
            (_layers(layers["text"]), as_words(written)),
            (f"row of the end token\nLayerNorm, Linear {_linear(at['text.project'])}", as_words(written)),
        ],
    )
    scores, y = calls[-1].outputs[0].numpy(), left.y + 2.3
    grid = page.grid("scores", scores, (APART / 2, y), colour="signed", caption="")
    above = grid.side("top")[1] + 0.5
    arrows = (
        (left, "pictures", QUERY, [(left.x, grid.y), grid.side("left")]),
        (right, "text", KEY, [(right.x, above), (grid.x, above), grid.side("top")]),
    )
    for (start, side, colour, corners), word in zip(arrows, ("row", "column"), strict=True):
        shape = as_words(at[f"{side}.project"].outputs[0].shape)
        words = f"{shape}\na {word}"
        page.arrow(start.side("top"), *corners, words=words, colour=colour, said=f"{start.name} to scores")
    below = grid.side("bottom")[1] - 0.36
    page.text(f"scores {as_words(scores.shape)}", (grid.x, below))
    page.text("cosines × a learned number", (grid.x, below - 0.26))
    return page.picture(title)


def flamingo_diagram(model: nn.Module, tokens: Tensor, rows: Tensor, *, title: str) -> Picture:
    """A language model with a new layer in it that reads a picture's rows; what is frozen is grey and says so.

    >>> import torch
    >>> from attnlib.models import GPT, GPTConfig
    >>> from attnlib.models.flamingo import Flamingo
    >>> language = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2))
    >>> tokens, rows = torch.zeros(3, 5, dtype=torch.int64), torch.zeros(3, 9, 12)
    >>> flamingo_diagram(Flamingo(language, d_rows=12, every=2), tokens, rows, title="One new layer").alt[:60]
    'One new layer. Boxes: rows, Linear 12 → 16, trained; eye; em'
    """
    calls, page = calls_of(model, tokens, rows), Canvas()
    at = {call.name: call for call in calls}
    n_layers, shape = len(model.language.layers), at["language.layers.0"].inputs[0].shape
    new = sorted(int(name) for name in model.layers)
    table = model.language.token_embedding
    parts: list[tuple[str, nn.Module, str]] = [(f"embedding of {table.num_embeddings:,} tokens", table, "embedding")]
    start = 0
    for i in [*new, n_layers]:
        if i > start:
            many = f"layers {start} to {i - 1}" if i - start > 1 else f"layer {start}"
            parts.append((f"{many}\nEncoderLayer, causal", model.language.layers[start], many.replace(" to ", "–")))
        if i < n_layers:
            gate = model.layers[str(i)].attention_gate.item()
            words = f"gated cross-attention\nand gated FFN; gates at {gate:.2f}"
            parts.append((words, model.layers[str(i)], "gated cross-attention"))
        start = i
    parts.append((f"output, {calls[-1].outputs[0].shape[-1]:,} tokens", model.language.lm_head, "output"))
    page.text(f"tokens {as_words(tokens.shape)}", (0, 0), bold=True)
    below = Box("tokens", 0, 0, 3.2, 0.26)
    words = f"picture's rows {as_words(rows.shape)}\nLinear {_linear(at['project'])}, trained"
    memory = page.box(words, (-APART, 2 * STEP), name="rows", width=2.6, colour=OUTPUT)
    eye = page.box("encoder of pictures, frozen", (-APART, STEP), name="eye", width=2.6, fill=FROZEN, colour="#000000")
    page.arrow(eye.side("top"), memory.side("bottom"), said="eye to rows")
    for words, part, name in parts:
        frozen = not any(p.requires_grad for p in part.parameters())
        first, *more = words.split("\n")
        words = "\n".join([f"{first}, {'frozen' if frozen else 'trained'}", *more])
        fill = FROZEN if frozen else LEARNED
        box = page.box(
            words, (0, below.y + STEP), name=name, width=3.2, fill=fill, colour="#000000" if frozen else OUTPUT
        )
        label = as_words(shape) if name != "embedding" else ""
        page.arrow(below.side("top"), box.side("bottom"), words=label, said=f"{below.name} to {box.name}")
        if name == "gated cross-attention":
            turn = (memory.x, box.y)
            page.arrow(
                memory.side("top"), turn, box.side("left"), words="keys and values", colour=KEY, said="rows to it"
            )
        below = box
    top = (0, below.side("top")[1] + 0.4)
    page.arrow(below.side("top"), top, said="output to logits")
    page.text(f"logits {as_words(calls[-1].outputs[0].shape)}", (0, top[1] + 0.14), bold=True)
    return page.picture(title)


def dalle_diagram(words: Sequence[str], codes: Sequence[int], *, title: str, shown: int = 4) -> Picture:
    """A caption and then a picture's codes in one row, each written from all that stand before it.

    Raises ``ValueError`` when there are fewer than two codes, or none would be left out.

    >>> dalle_diagram(["a", "red", "bar"], [7, 7, 2, 5, 5, 1], title="One row", shown=3).alt[:60]
    'One row. Words: a; red; bar. Codes: 7; 7; 2. Boxes: causal l'
    """
    if len(codes) <= shown or shown < 1:
        raise ValueError(f"codes must be more than shown = {shown}, which is at least 1; got {len(codes)}")
    page, wide = Canvas(), 0.92
    cells = [(word, KEY, "Words") for word in words] + [(str(code), VALUE, "Codes") for code in codes[:shown]]
    low = [
        page.box(word, (wide * i, 0), width=wide - 0.14, colour=colour, kind=kind)
        for i, (word, colour, kind) in enumerate(cells)
    ]
    middle, end = wide * (len(cells) - 1) / 2, wide * len(cells)
    page.text(f"⋯ {len(codes)} codes in all", (end - 0.3, 0), align="left")
    gpt = page.box("causal language model (GPT)", (middle, 1.0), width=wide * len(cells), fill="#ececec")
    for i, box in enumerate(low):
        page.arrow(box.side("top"), (box.x, gpt.side("bottom")[1]))
        if i >= len(words) - 1:
            code = codes[i + 1 - len(words)]
            out = page.box(str(code), (box.x, 2.0), width=wide - 0.14, colour=OUTPUT, kind="Written")
            page.arrow((box.x, gpt.side("top")[1]), out.side("bottom"), colour=OUTPUT)
    page.say("Arrows", "each word and code to the model, and from the last word on the next code out of it")
    page.text("caption", (wide * (len(words) - 1) / 2, -0.42), colour=KEY)
    page.text("picture, patch by patch", (wide * (len(words) + (shown - 1) / 2), -0.42), colour=VALUE)
    return page.picture(title)


def _column(page: Canvas, at: Point, of: str, words: str, boxes: Sequence[tuple[str, str]]) -> Box:
    """Boxes one upon the other, each with the shape that goes into it beside its arrow. Returns the last."""
    page.text(words, at, bold=True)
    below = Box(words.split()[0], *at, 3.0, 0.26)
    for inside, label in boxes:
        height = below.y + (STEP if below.y > at[1] else 0.75)
        fill = "#ececec" if "EncoderLayer" in inside else LEARNED
        first = inside.split("\n")[0]
        box = page.box(inside, (at[0], height), name=first, width=3.5, fill=fill, kind=f"{of}, boxes")
        page.arrow(below.side("top"), box.side("bottom"), words=label)
        page.say(f"{of}, arrows", f"{below.name} to {box.name}{label and f', {label}'}")
        below = box
    return below


def _is_layer(name: str, side: str) -> bool:
    return name.startswith(f"{side}.layers.") and name.count(".") == 2


def _layers(calls: Sequence[Call]) -> str:
    heads = calls[0].part.self_attention
    causal = ", causal" if "causal" in calls[0].options else ""
    return f"{len(calls)} × EncoderLayer{causal}\n{heads.n_heads} heads of {heads.d_head}"


def _stem(stem: nn.Module, call: Call) -> str:
    size = getattr(stem, "kernel_size", None)
    made = as_words(call.outputs[0].shape[1:])
    return f"{type(stem).__name__}\n{f'{size[0]}×{size[1]} pixels to ' if size else 'to '}{made}"


def _linear(call: Call) -> str:
    return f"{call.inputs[0].shape[-1]} → {call.outputs[0].shape[-1]}"
