"""The weights of every attention in a model, ours or somebody else's, from the pass that makes the output."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attnlib.nn.foreign import as_keywords, diverted, is_published
from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Maps", "attention_maps"]

# What models of `transformers` call the weights that they return, and what we call them.
RETURNED = {
    "attentions": "layer",
    "encoder_attentions": "encoder layer",
    "decoder_attentions": "decoder layer",
    "cross_attentions": "cross layer",
}


class Maps(dict):
    """Weights by the name of the attention, and the ``output`` of the model that they have made.

    >>> Maps({"0": torch.ones(1, 1, 1, 1)}, output=torch.zeros(1)).output
    tensor([0.])
    """

    def __init__(self, weights: dict[str, Tensor], *, output: Any) -> None:
        super().__init__(weights)
        self.output = output


@torch.no_grad()
def attention_maps(model: nn.Module, *inputs: Any, **options: Any) -> Maps:
    """Run ``model(*inputs, **options)``, and return the weights of each attention in it, ``{name: weights}``.

    Weights are ``(batch, heads, n_q, n_k)``. Names are those of the modules, in the order in which they ran; one that
    runs several times, as a shared layer does, has the number of the time after it. Found are
    `attnlib.nn.MultiHeadAttention`, `torch.nn.MultiheadAttention`, and the attentions of models of `transformers`;
    in those few whose attention cannot be exchanged, as Bloom's, they are named "layer 0" and so on.

    There is one pass, and these weights have made its ``output``. Fast kernels keep none, so that they are switched
    off in it: torch's layers go without their fast path and nested tensors (``need_weights=True``), those of
    `transformers` as with ``attn_implementation="eager"``. The model is as it was afterwards, and not in training
    mode meanwhile.

    Raises ``TypeError`` when ``model`` is no module, ``ValueError`` when no attention of these kinds has run.

    >>> layer = MultiHeadAttention(8, 2)
    >>> maps = attention_maps(nn.Sequential(layer), torch.randn(1, 5, 8))
    >>> {name: tuple(weights.shape) for name, weights in maps.items()}
    {'0': (1, 2, 5, 5)}
    >>> maps.output.out.shape
    torch.Size([1, 5, 8])
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    seen: list[tuple[str, Tensor]] = []
    with ExitStack() as stack:
        for module in model.modules():
            stack.callback(setattr, module, "training", module.training)
        model.eval()
        watched = [_watch(module, name or "attention", seen, stack) for name, module in model.named_modules()]
        returns = not any(watched) and hasattr(getattr(model, "config", None), "output_attentions")
        output = model(*inputs, **options, **({"output_attentions": True} if returns else {}))
        if returns:
            found = {word: getattr(output, name, None) or () for name, word in RETURNED.items()}
            seen += [(f"{word} {i}", w) for word, some in found.items() for i, w in enumerate(some) if w is not None]
    if not seen:
        raise ValueError(
            "model must have an attention of attnlib, torch or transformers that runs on these inputs; none has run"
            + _strange(model)
        )
    return Maps(_named(seen), output=output)


def _watch(module: nn.Module, name: str, seen: list[tuple[str, Tensor]], stack: ExitStack) -> bool:
    """Make an attention keep its weights while it runs; is it one?"""
    if isinstance(module, MultiHeadAttention):
        asked: dict[str, Any] = {"weights": True}
    elif isinstance(module, nn.MultiheadAttention):
        asked = {"need_weights": True, "average_attn_weights": False}
    elif is_published(module):
        stack.enter_context(diverted(module, keep=lambda weights: seen.append((name, weights))))
        return True
    elif isinstance(module, nn.TransformerEncoder):
        stack.callback(setattr, module, "use_nested_tensor", module.use_nested_tensor)
        module.use_nested_tensor = False  # whose attention has no weights
        return False
    else:
        return False

    def ask(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        return (), as_keywords(module, args, options) | asked

    def keep(module: nn.Module, args: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        seen.append((name, output[1] if output[1].ndim > 3 else output[1][None]))

    stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
    stack.callback(module.register_forward_hook(keep).remove)
    return True


def _strange(model: nn.Module) -> str:
    """The names of attentions, to judge by their names, that are of another kind."""
    kinds = (MultiHeadAttention, nn.MultiheadAttention)
    names = {type(m).__name__ for m in model.modules() if not (isinstance(m, kinds) or is_published(m))}
    found = sorted(name for name in names if "attention" in name.lower())
    return f". {', '.join(found)} can be probed, but not watched" if found else ""


def _named(seen: list[tuple[str, Tensor]]) -> dict[str, Tensor]:
    names = [name for name, _ in seen]
    counts: dict[str, int] = {}
    found = {}
    for name, weights in seen:
        counts[name] = counts.get(name, -1) + 1
        found[f"{name}, time {counts[name]}" if names.count(name) > 1 else name] = weights
    return found
