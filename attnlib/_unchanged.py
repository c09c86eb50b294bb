"""Is a module still what it was? Whoever takes its weights once and computes without it has to ask at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import eq, is_

from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from attnlib import heads
from attnlib.heads import MultiHeadAttention
from attnlib.layers import DecoderLayer, FeedForward, Residual

__all__ = ["is_plain", "watch"]

# What each kind of module computes with, besides its weights and its parts. One of its own may stand in the instance.
KNOWN: dict[type[nn.Module], tuple[str, ...]] = {
    DecoderLayer: ("forward",),
    MultiHeadAttention: (
        "forward",
        "_attend",
        "_queries_keys_values",
        "_projected",
        "n_heads",
        "n_kv_heads",
        "d_head",
    ),
    FeedForward: ("forward", "activation", "gated"),
    Residual: ("forward", "before", "after", "norm_first"),
    nn.LayerNorm: ("forward", "normalized_shape", "eps"),
    nn.RMSNorm: ("forward", "normalized_shape", "eps"),
    **dict.fromkeys((nn.Linear, nn.Dropout, nn.Identity, nn.ModuleList), ("forward",)),
}
METHODS = [(kind, name, vars(kind)[name]) for kind, names in KNOWN.items() for name in names if name in vars(kind)]


def is_plain(modules: Iterable[nn.Module]) -> bool:
    """Are all of them of a known kind, with its methods?

    >>> is_plain([nn.Linear(2, 2), Residual(2)]), is_plain([nn.Tanh()])
    (True, False)
    """
    methods = {name for _, name, _ in METHODS}
    return all(type(module) in KNOWN and methods.isdisjoint(vars(module)) for module in modules)


def watch(modules: list[nn.Module]) -> Callable[[], bool]:
    """A function that says whether all are in evaluation mode, without hooks, and made of the same parts as now.

    >>> layer = nn.Linear(2, 2).eval()
    >>> unchanged = watch([layer])
    >>> handle = layer.register_forward_hook(print)
    >>> unchanged(), handle.remove(), unchanged()
    (False, None, True)
    """
    parts = [(vars(module), "training", False) for module in modules] + [(vars(heads), "attention", heads.attention)]
    for module in modules:
        parts += [(vars(module), name, vars(module).get(name)) for name in KNOWN.get(type(module), ("forward",))]
        parts += [(held, *item) for held in (module._modules, module._parameters) for item in held.items()]
    held, names, values = zip(*parts, strict=True)
    owners, methods, functions = zip(*METHODS, strict=True)
    hooks = [torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks]
    hooks += [hooks for module in modules for hooks in (module._forward_hooks, module._forward_pre_hooks)]
    parameters = [p for module in modules for p in module._parameters.values() if p is not None]
    children = [module._modules for module in modules]
    types, sizes, places = (
        list(map(of, x)) for of, x in ((type, modules), (len, children), (Tensor.data_ptr, parameters))
    )

    def unchanged() -> bool:  # every loop in C, since it runs for each token
        return (
            not any(hooks)
            and all(map(is_, map(dict.get, held, names), values))
            and all(map(is_, map(type, modules), types))
            and all(map(is_, map(getattr, owners, methods), functions))
            and all(map(eq, map(len, children), sizes))
            and all(map(eq, map(Tensor.data_ptr, parameters), places))
        )

    return unchanged
