"""What a decoder keeps from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attnlib._base.renamed import renamed
from attnlib.nn.cache import Cache

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor

    from attnlib.nn.fast_decode import Plan

__all__ = ["DecoderState", "check_state"]


@dataclass
class DecoderState:
    """What a decoder keeps: the caches of its layers, and the ``mask`` of the source, True at tokens, None for all.

    A layer has a growing cache, and one for the memory if it attends to one.

    ``plan`` makes a step of one position fast, if it is there: see `attnlib.nn.fast_decode`.

    >>> import torch
    >>> from attnlib.nn.transformer import Transformer
    >>> from attnlib.nn.config import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> model.prefill(torch.tensor([[4, 5, 6]]), n_max=7).length
    0
    """

    caches: list[tuple[Cache, ...]]
    mask: Bool[Tensor, "batch 1 n_source"] | None
    plan: Plan | None = field(default=None, repr=False, compare=False)
    real = renamed("mask")

    @property
    def length(self) -> int:
        """How many target positions were read."""
        return self.caches[0][0].length

    def select(self, rows: Int[Tensor, " n_rows"]) -> DecoderState:
        """A state of its own for these ``rows`` of the batch, as a search needs when it goes on with some.

        >>> import torch
        >>> from attnlib.nn.transformer import Transformer
        >>> from attnlib.nn.config import TransformerConfig
        >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
        >>> model.prefill(torch.tensor([[4, 5, 0]]), n_max=7).select(torch.tensor([0, 0])).mask.shape
        torch.Size([2, 1, 3])
        """
        caches = [tuple(cache.select(rows) for cache in pair) for pair in self.caches]
        return DecoderState(caches, None if self.mask is None else self.mask[rows], self.plan)

    def rewind(self, length: int) -> None:
        """Forget all target positions from ``length`` on.

        >>> import torch
        >>> from attnlib.nn.transformer import Transformer
        >>> from attnlib.nn.config import TransformerConfig
        >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2)).eval()
        >>> state = model.prefill(torch.tensor([[4, 5, 6]]), n_max=7)
        >>> _ = model.step(torch.tensor([[1, 4, 5]]), state)
        >>> state.rewind(1)
        >>> state.length
        1
        """
        for own, *_ in self.caches:
            own.length = min(own.length, length)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"plan": None}  # a copy, or what is pickled, does not hold the model


def check_state(state: object, kind: type) -> None:
    """Raise unless ``state`` is of the ``kind`` that a model's ``prefill`` returns."""
    if not isinstance(state, kind):
        raise TypeError(f"state must be what `prefill` returned; got {type(state).__name__}")
