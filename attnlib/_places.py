"""One module for every kind of position, so that a model can take any of them by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnlib import positions

__all__ = ["KINDS", "Places"]

KINDS = ("none", "sinusoidal", "learned", "relative", "alibi", "rotary")


class Places(nn.Module):
    """Positions of one ``kind``: what is added to the inputs, and what every layer's attention is told.

    >>> import torch
    >>> places = Places("alibi", d_model=8, n_heads=2, n_max=16, bidirectional=True)
    >>> places.told(3, 3, like=torch.zeros(1))["bias"].shape
    torch.Size([2, 3, 3])
    """

    def __init__(self, kind: str, *, d_model: int, n_heads: int, n_max: int, bidirectional: bool) -> None:
        super().__init__()
        self.kind, self.d_model, self.n_heads = kind, d_model, n_heads
        self.table: Tensor | None = None  # no part of the model's state
        if kind == "learned":
            self.learned = positions.Learned(n_max, d_model)
        if kind == "relative":
            self.relative = positions.RelativeBias(n_heads, bidirectional=bidirectional)

    def added(self, x: Tensor, start: int = 0) -> Tensor:
        """``x`` ``(..., n, d_model)`` with the codes of positions from ``start`` on."""
        if self.kind == "sinusoidal":
            return x + self._codes(start, start + x.shape[-2], like=x)
        return x + self.learned(x.shape[-2], start) if self.kind == "learned" else x

    def check(self, n_max: int) -> None:
        """Raise unless there are ``n_max`` positions."""
        if self.kind == "learned" and n_max > self.learned.n_max:
            raise ValueError(
                f"n_max must not exceed the {self.learned.n_max} positions that were learned; got {n_max}"
            )

    def _codes(self, start: int, stop: int, like: Tensor) -> Tensor:
        """The sinusoidal codes of these positions, from a table that is computed once, with some to spare."""
        table = self.table
        if table is None or len(table) < stop or (table.dtype, table.device) != (like.dtype, like.device):
            with torch.inference_mode(False):  # a table made in that mode could not be trained with
                table = positions.sinusoidal(1 << (stop - 1).bit_length(), self.d_model, like=like)
            self.table = table
        return table[start:stop]

    def told(self, n_q: int, n_k: int, like: Tensor) -> dict[str, Any]:
        """The options for `attnlib.heads.MultiHeadAttention`: a bias, a rotation, or nothing."""
        if self.kind == "relative":
            return {"bias": self.relative(n_q, n_k)}
        if self.kind == "alibi":
            return {"bias": positions.alibi(self.n_heads, n_q, n_k, like=like)}
        rotate: Callable[..., Tensor] = partial(positions.rotary, layout="halves")
        return {"rotate": rotate} if self.kind == "rotary" else {}
