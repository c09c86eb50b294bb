"""Other people's attentions, watched and masked from outside while they run: torch's, and those of `transformers`.

A model of `transformers` looks up by name the function that attends, and others may be registered. While an attention
is `diverted`, it finds ours, which calls the plain one of the same model: a fast kernel keeps no weights.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Closing = Callable[[int, int, int, int], Bool[Tensor, "batch heads n_q n_k"]]
    Keeping = Callable[[Float[Tensor, "batch heads n_q n_k"]], None]

__all__ = ["as_keywords", "diverted", "is_published"]

NAME = "attnlib"
_plans: WeakKeyDictionary[nn.Module, list[tuple[Closing | None, Keeping | None]]] = WeakKeyDictionary()


def is_published(module: nn.Module) -> bool:
    """Is this an attention of `transformers`, one that looks up the function that attends?

    >>> is_published(nn.Linear(2, 2))
    False
    """
    forward = inspect.unwrap(type(module).forward)
    return "ALL_ATTENTION_FUNCTIONS" in getattr(forward, "__code__", is_published.__code__).co_names and (
        _plain(module) is not None and hasattr(module, "config")
    )


@contextmanager
def diverted(module: nn.Module, *, close: Closing | None = None, keep: Keeping | None = None) -> Iterator[None]:
    """Inside the ``with``, an attention that `is_published` has ``close`` in its mask, and hands weights to ``keep``.

    ``close(batch, heads, n_q, n_k)`` is True where nothing may be read. What has nothing left to read gives zeros.

    Raises ``ValueError`` when the model has made a mask for flash or flex attention, which has no weights.
    """
    from transformers import AttentionInterface  # whoever has such a module has it

    AttentionInterface.register(NAME, _attend)
    config, plans = module.config, _plans.setdefault(module, [])
    before = config._attn_implementation
    module.config = copy(config)
    if before != NAME:  # a fast kernel hides the future without a mask; a copy of the model must know it too
        module.config._hides_the_future = before not in (None, "eager")
    module.config._attn_implementation_internal = NAME  # of this copy alone, not of the configurations inside
    plans.append((close, keep))
    try:
        yield
    finally:
        plans.pop()
        module.config = config


def as_keywords(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """All that a module is called with, by name.

    >>> sorted(as_keywords(nn.MultiheadAttention(4, 1), (1, 2), {"value": 3}))
    ['key', 'query', 'value']
    """
    found = inspect.signature(module.forward).bind(*args, **options)
    return {**found.arguments, **found.arguments.pop("kwargs", {})}


def _plain(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """The function of the module's own file that attends without a fast kernel."""
    homes = (sys.modules.get(kind.__module__) for kind in type(module).__mro__)
    return next((home.eager_attention_forward for home in homes if hasattr(home, "eager_attention_forward")), None)


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor]:
    """What `transformers` calls: queries are ``(batch, heads, n_q, d)``, what comes out ``(batch, n_q, heads, d)``."""
    batch, heads, n_q, n_k = *query.shape[:3], key.shape[2]
    added = _added(module, query, n_k, attention_mask, options)
    plans = _plans.get(module, ())  # a copy that somebody made in the meantime has none
    closed = [close(batch, heads, n_q, n_k) for close, _ in plans if close is not None]
    empty = None
    if closed:
        lowest = torch.finfo(query.dtype).min / 2  # where it says "hidden", and is no number to go on with
        added = query.new_zeros(()) if added is None else added
        hidden = (added <= lowest) | torch.stack(closed).any(0).to(query.device)  # (batch, heads, n_q, n_k)
        empty = hidden.all(-1, keepdim=True)
        added = torch.where(hidden & ~empty, -torch.inf, torch.where(hidden, 0.0, added)).to(query.dtype)
    out, weights = _plain(module)(module, query, key, value, added, **options)
    if empty is not None:
        out, weights = out.masked_fill(empty.transpose(1, 2), 0.0), weights.masked_fill(empty, 0.0)
    for _, keep in plans:
        if keep is not None:
            keep(weights)
    return out, weights


def _added(
    module: nn.Module, query: Tensor, n_k: int, mask: Tensor | None, options: dict[str, Any]
) -> Float[Tensor, "batch heads n_q n_k"] | None:
    """The mask that the model has made, in numbers to be added; a fast kernel needs none where all see the past."""
    n_q = query.shape[2]
    if mask is None:
        causal = options.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        if not (causal and n_q > 1 and module.config._hides_the_future):
            return None
        mask = torch.ones(n_q, n_k, dtype=torch.bool, device=query.device).tril(n_k - n_q)
    if not isinstance(mask, Tensor) or mask.ndim not in (2, 4) or (mask.ndim == 2 and mask.shape != (n_q, n_k)):
        raise ValueError(
            f"{type(module).__name__} must run with attn_implementation 'eager' or 'sdpa'; "
            f"its mask is for another one: {tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__}"
        )
    if mask.dtype != torch.bool:
        return mask[..., :n_k]
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, torch.finfo(query.dtype).min)[..., :n_k]
