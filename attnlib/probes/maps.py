"""The weights of every attention in a model, ours or somebody else's, from one forward pass."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["attention_maps"]

# What Hugging Face's models call the weights that they return, and what we call them.
PUBLISHED = {
    "attentions": "layer",
    "encoder_attentions": "encoder layer",
    "decoder_attentions": "decoder layer",
    "cross_attentions": "cross layer",
}


@torch.no_grad()
def attention_maps(model: nn.Module, *inputs: Any, **options: Any) -> dict[str, Tensor]:
    """Run ``model(*inputs, **options)``, and return the weights of each attention in it, ``{name: weights}``.

    Weights are ``(batch, heads, n_q, n_k)``. Names are those of the modules, in the order in which they ran; one that
    runs several times, as a shared layer does, has the number of the time after it. Found are
    `attnlib.nn.MultiHeadAttention`, `torch.nn.MultiheadAttention`, and the attentions of models of `transformers`,
    which are named "layer 0" and so on. The model is as it was afterwards, and not in training mode meanwhile.

    Raises ``TypeError`` when ``model`` is no module, ``ValueError`` when no attention of these kinds has run.

    >>> layer = MultiHeadAttention(8, 2)
    >>> maps = attention_maps(nn.Sequential(layer), torch.randn(1, 5, 8))
    >>> {name: tuple(weights.shape) for name, weights in maps.items()}
    {'0': (1, 2, 5, 5)}
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    seen: list[tuple[str, Tensor]] = []
    training = model.training
    model.eval()
    try:
        if hasattr(model, "set_attn_implementation"):
            seen = _published(model, inputs, options)
        else:
            with ExitStack() as stack:
                for name, module in model.named_modules():
                    _watch(module, name, seen, stack)
                model(*inputs, **options)
    finally:
        model.train(training)
    if not seen:
        raise ValueError(
            "model must have an attention of attnlib, torch or transformers that runs on these inputs; none has run"
        )
    return _named(seen)


def _watch(module: nn.Module, name: str, seen: list[tuple[str, Tensor]], stack: ExitStack) -> None:
    """Make an attention return its weights, and keep them."""
    if isinstance(module, MultiHeadAttention):
        asked: dict[str, Any] = {"weights": True}
    elif isinstance(module, nn.MultiheadAttention):
        asked = {"need_weights": True, "average_attn_weights": False}
    else:
        return

    def ask(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        return args, kwargs | asked

    def keep(module: nn.Module, args: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        seen.append((name or "attention", output[1]))

    stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
    stack.callback(module.register_forward_hook(keep).remove)


def _published(model: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> list[tuple[str, Tensor]]:
    """Those of a model of `transformers`, which returns its weights if it computes them as such."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        output = model(*inputs, **options, output_attentions=True)
    finally:
        model.set_attn_implementation(before)
    found = {word: getattr(output, name, None) or () for name, word in PUBLISHED.items()}
    return [(f"{word} {i}", weights) for word, some in found.items() for i, weights in enumerate(some)]


def _named(seen: list[tuple[str, Tensor]]) -> dict[str, Tensor]:
    names = [name for name, _ in seen]
    counts: dict[str, int] = {}
    found = {}
    for name, weights in seen:
        counts[name] = counts.get(name, -1) + 1
        found[f"{name}, time {counts[name]}" if names.count(name) > 1 else name] = weights
    return found
