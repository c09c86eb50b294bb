"""The keys and values of positions that were already read, so that a decoder does not project them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib._base.checks import check_at_least_one

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Cache", "check_row_numbers"]


class Cache:
    """Keys and values ``(..., n_kv_heads, n_max, d_head)``, of which the first ``length`` positions are filled.

    The memory is taken once: growing a tensor by one row at every step would copy all the others. A ``frozen``
    cache is full from the start and takes no more.

    >>> Cache(torch.zeros(1, 2, 6, 4), torch.zeros(1, 2, 6, 4), length=6, frozen=True)
    Cache(6 of 6 positions, 2 heads of 4)
    """

    def __init__(self, k: Tensor, v: Tensor, *, length: int, frozen: bool = False) -> None:
        self.k = k
        self.v = v
        self.length = length
        self.frozen = frozen

    @classmethod
    def empty(cls, shape: tuple[int, ...], like: Tensor) -> Cache:
        """A cache of ``shape`` with nothing in it yet, of the dtype and on the device of ``like``.

        >>> Cache.empty((1, 2, 6, 4), like=torch.zeros(1))
        Cache(0 of 6 positions, 2 heads of 4)
        """
        check_at_least_one("n_max", shape[-2])
        return cls(like.new_empty(shape), like.new_empty(shape), length=0)  # untouched, it costs nothing yet

    def extend(
        self, k: Float[Tensor, "... n_kv_heads n d_head"], v: Float[Tensor, "... n_kv_heads n d_head"]
    ) -> tuple[Tensor, Tensor]:
        """Store the new keys and values, and return all that are there.

        Raises ``ValueError`` when there is no room left or the batch is another, ``RuntimeError`` when gradients
        are asked for: a step would overwrite what the last one's gradient needs.

        >>> cache = Cache.empty((1, 2, 6, 4), like=torch.zeros(1))
        >>> keys, values = cache.extend(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
        >>> keys.shape
        torch.Size([1, 2, 3, 4])
        """
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise RuntimeError("a cache is for decoding and keeps no gradients: use it under torch.no_grad()")
        n_max, end = self.k.shape[-2], self.length + k.shape[-2]
        if end > n_max:
            raise ValueError(
                f"cache must have room: it holds {self.length} of {n_max} positions; got {k.shape[-2]} more"
            )
        if self.k.shape[:-2] != k.shape[:-2] or self.k.shape[-1] != k.shape[-1]:
            made, came = ((*x.shape[:-2], x.shape[-1]) for x in (self.k, k))
            raise ValueError(f"cache was made for (batch, n_kv_heads, d_head) = {made}; got {came}")
        for mine, new in ((self.k, k), (self.v, v)):
            mine.narrow(-2, self.length, new.shape[-2]).copy_(new)
        self.length = end
        return self.contents()

    def contents(self) -> tuple[Tensor, Tensor]:
        """The keys and values of the positions that are filled, as views.

        >>> Cache.empty((1, 2, 6, 4), like=torch.zeros(1)).contents()[0].shape
        torch.Size([1, 2, 0, 4])
        """
        if self.length == self.k.shape[-2]:
            return self.k, self.v
        return self.k.narrow(-2, 0, self.length), self.v.narrow(-2, 0, self.length)

    def select(self, rows: Int[Tensor, " n_rows"]) -> Cache:
        """A cache of its own for these ``rows`` of the batch, in this order; one may come more than once.

        Raises ``TypeError`` when ``rows`` are no integers: booleans would say something else.

        >>> Cache.empty((2, 2, 6, 4), like=torch.zeros(1)).select(torch.tensor([1, 1, 0])).k.shape
        torch.Size([3, 2, 6, 4])
        """
        check_row_numbers(rows)
        if self.frozen:
            return Cache(self.k[rows], self.v[rows], length=self.length, frozen=True)
        room = self.k.new_empty((2, len(rows), *self.k.shape[1:]))
        for new, old in zip(room, self.contents(), strict=True):
            new.narrow(-2, 0, self.length).copy_(old[rows])
        return Cache(room[0], room[1], length=self.length)

    def __repr__(self) -> str:
        heads, n_max, d_head = self.k.shape[-3:]
        return f"Cache({self.length} of {n_max} positions, {heads} heads of {d_head})"


def check_row_numbers(rows: Int[Tensor, " n_rows"]) -> None:
    """Raise unless ``rows`` are numbers of rows.

    >>> check_row_numbers(torch.tensor([1, 1, 0]))
    """
    if not isinstance(rows, Tensor) or rows.dtype not in (torch.int64, torch.int32) or rows.ndim != 1:
        got = f"{rows.dtype} {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
        raise TypeError(f"rows must be a tensor of row numbers, int64 and with one axis; got {got}")
