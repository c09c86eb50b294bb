"""The weights of every attention in a model, ours or somebody else's, from the pass that makes the output."""

from __future__ import annotations

from contextlib import ExitStack
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from attnlib.nn.foreign import as_keywords, diverted, is_published
from attnlib.nn.heads import MultiHeadAttention
from attnlib.probes.outputs import TOLERANCE, first_tensor
from attnlib.probes.subject import undisturbed

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

    The pass that gives these weights has made the ``output``. Fast kernels keep none, so that they are switched off
    in it: torch's layers go without their fast path and nested tensors (``need_weights=True``), those of
    `transformers` as with ``attn_implementation="eager"``; outputs at padding may then be others. A model that returns
    its weights itself runs once more without them, and must give the same output. The model is as it was afterwards,
    and not in training mode meanwhile.

    Raises ``TypeError`` when ``model`` is no module, ``ValueError`` when no attention of these kinds has run, or what
    one gives is no map: raw scores, rows that sum to neither one nor zero, or a band instead of all keys.

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
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    with ExitStack() as stack, undisturbed(model, training=False, device=device):
        watched = [_watch(module, name or "attention", seen, stack) for name, module in model.named_modules()]
        returns = not any(watched) and hasattr(getattr(model, "config", None), "output_attentions")
        if returns:
            output = _returning(model, inputs, options, stack, device)
            found = {word: getattr(output, name, None) or () for name, word in RETURNED.items()}
            seen += [(f"{word} {i}", w) for word, some in found.items() for i, w in enumerate(some) if w is not None]
        else:
            output = model(*inputs, **options)
    for name, weights in seen:
        if wrong := (returns and _no_map(model, name, weights)) or _no_shares(weights, whole=returns):
            raise ValueError(f"{type(model).__name__} gives no map of {name}: {wrong}")
    if not seen:
        raise ValueError(
            "model must have an attention of attnlib, torch or transformers that runs on these inputs; none has run"
            + _strange(model)
        )
    return Maps(_named(seen), output=output)


class _DetachedCopies(TorchFunctionMode):
    """Tensors of a graph can be copied as well, by themselves."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.__deepcopy__:
            return args[0].detach().clone()
        return function(*args, **(kwargs or {}))


def _returning(model: Any, inputs: Any, options: dict[str, Any], stack: ExitStack, device: torch.device) -> Any:
    """The output, with the weights that the model returns itself; the pass without them must give the same."""
    with _DetachedCopies():
        again, named = deepcopy((inputs, options))  # a cache is written into
    with undisturbed(model, training=False, device=device):
        plain = model(*again, **named | {"output_attentions": False})
    for config in {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values():
        before = getattr(config, "_attn_implementation_internal", None)
        if before is not None:  # masks are made for the kernel that is named here
            stack.callback(setattr, config, "_attn_implementation_internal", before)
            config._attn_implementation_internal = "eager"
    output = model(*inputs, **options | {"output_attentions": True})
    one, other = (o[0] if hasattr(o, "__getitem__") else first_tensor(o) for o in (plain, output))
    real = as_keywords(model, inputs, options).get("attention_mask")
    if isinstance(real, torch.Tensor) and real.shape == one.shape[:2]:  # queries in the padding may read nothing
        one, other = one[real > 0], other[real > 0]
    gap = float((one - other).abs().max())
    if gap > _tolerance(one) * float(one.abs().max()):
        raise ValueError(
            f"{type(model).__name__} gives no maps: with output_attentions=True its output is another one, by up to "
            f"{gap:.2g}. Load it with attn_implementation='eager' if that is the model you mean"
        )
    return output


def _tolerance(like: Tensor) -> float:
    """Up to which share numbers of two kernels are the same; a softmax is often in float32."""
    return max(10 * TOLERANCE[torch.float32], TOLERANCE.get(like.dtype, 0.0))


def _no_map(model: Any, name: str, weights: Any) -> str:
    """Why that which a model of `transformers` returns is no weight for each query and key, if so."""
    if not isinstance(weights, torch.Tensor) or weights.ndim != 4:
        got = tuple(weights.shape) if isinstance(weights, torch.Tensor) else type(weights).__name__
        return f"expected (batch, heads, n_q, n_k); got {got}"
    n_q, n_k = weights.shape[2:]
    of_tokens = getattr(model, "main_input_name", "") == "input_ids" and not name.startswith("cross")
    if hasattr(model.config, "attention_window") or (of_tokens and n_k < n_q):
        return f"expected a weight for each query and key; got {tuple(weights.shape)}, a part of the keys only"
    return ""


def _no_shares(weights: Tensor, *, whole: bool) -> str:
    """Why rows are no shares, if so. Not ``whole``, they may sum to less: some models have a sink without a value."""
    sums = weights.sum(-1, dtype=torch.float32)
    tolerance = _tolerance(weights)
    wrong = (sums > 1 + tolerance) | (sums < -tolerance) | (weights < 0).any(-1)
    if whole:
        wrong |= (sums < 1 - tolerance) & (sums > tolerance)
    if not wrong.any():
        return ""
    place = wrong.nonzero()[0].tolist()
    row = weights[tuple(place)]
    total = float(sums[tuple(place)])
    return (
        f"expected rows of weights that sum to one or zero; the row at {place} sums to {total:.2g}, "
        f"from {float(row.min()):.2g} to {float(row.max()):.2g}"
    )


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
