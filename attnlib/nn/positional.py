"""Positions as modules: learned codes, learned biases, and one module for every kind, chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnlib import positions
from attnlib._base.arrays import tracing
from attnlib._base.checks import check_size
from attnlib.positions import relative_buckets

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["KINDS", "LearnedPositions", "Positional", "RelativeBias"]

KINDS = ("none", "sinusoidal", "learned", "relative", "alibi", "rotary")


class LearnedPositions(nn.Module):
    r"""A vector of parameters for each position, to be added to the inputs; there is none beyond ``n_max``.

    .. math:: \text{PE}_p = W_p, \qquad W \in \mathbb R^{n_\text{max} \times d}

    Called with ``n`` and ``start``, it gives the rows ``start`` to ``start + n - 1``, ``(n, d)``. They start as normal
    numbers with standard deviation 0.02.

    Raises ``ValueError`` when a position beyond ``n_max - 1`` is asked for or a size is negative, ``TypeError`` when
    one is not an integer.

    Source: Gehring et al. (2017), section 3.1; the standard deviation is that of Devlin et al. (2019).

    >>> LearnedPositions(8, 4)(3, start=5).shape
    torch.Size([3, 4])
    """

    def __init__(self, n_max: int, d: int) -> None:
        super().__init__()
        self.n_max = check_size("n_max", n_max)
        self.weight = nn.Parameter(0.02 * torch.randn(self.n_max, check_size("d", d)))

    def forward(self, n: int, start: int = 0) -> Float[Tensor, "n d"]:
        """The vectors of ``n`` positions from ``start`` on."""
        n, start = check_size("n", n), check_size("start", start)
        if start + n > self.n_max:
            raise ValueError(f"start + n must not exceed n_max = {self.n_max}, the positions learned; got {start + n}")
        return self.weight[start : start + n]

    def extra_repr(self) -> str:
        """What `print` says of its sizes."""
        return f"n_max={self.n_max}, d={self.weight.shape[1]}"


class RelativeBias(nn.Module):
    r"""A learned number for each head and each bucket of distances, to be added to the scores.

    .. math:: s_{hij} \mathrel{+}= W_{b(i' - j),\, h}, \qquad i' = i + n_k - n_q

    Called with ``n_q`` and ``n_k`` it gives ``(n_heads, n_q, n_k)``; :math:`b` is `relative_buckets`. The numbers
    start at zero, so that a fresh one changes nothing.

    Raises as `relative_buckets`.

    Source: Raffel et al. (2020), section 2.1.

    >>> bias = RelativeBias(2, n_buckets=4, max_distance=2)
    >>> _ = bias.weight.data.copy_(torch.arange(4.0)[:, None])
    >>> bias(3)[0]
    tensor([[0., 3., 3.],
            [1., 0., 3.],
            [1., 1., 0.]], grad_fn=<SelectBackward0>)
    """

    def __init__(self, n_heads: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> None:
        super().__init__()
        self.options = dict(n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional)
        relative_buckets(1, **self.options)  # which checks them
        self.weight = nn.Parameter(torch.zeros(n_buckets, check_size("n_heads", n_heads)))

    def forward(self, n_q: int, n_k: int | None = None) -> Float[Tensor, "n_heads n_q n_k"]:
        """The bias of every head, query and key."""
        buckets = relative_buckets(n_q, n_k, **self.options, like=self.weight)
        return self.weight[buckets].permute(2, 0, 1)  # (n_q, n_k, n_heads) -> (n_heads, n_q, n_k)

    def extra_repr(self) -> str:
        """What `print` says of its sizes."""
        return ", ".join(f"{k}={v}" for k, v in {"n_heads": self.weight.shape[1], **self.options}.items())


class Positional(nn.Module):
    """Positions of one ``kind``: what is added to the inputs, and the options of every layer's attention.

    >>> positional = Positional("alibi", d_model=8, n_heads=2, n_max=16, bidirectional=True)
    >>> positional.attention_options(3, 3, like=torch.zeros(1))["bias"].shape
    torch.Size([2, 3, 3])
    """

    def __init__(
        self,
        kind: str,
        *,
        d_model: int,
        n_heads: int,
        n_max: int,
        bidirectional: bool,
        n_buckets: int = 32,
        max_distance: int = 128,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.d_model = d_model
        self.n_heads = n_heads
        self.table: Tensor | None = None  # no part of the model's state
        if kind == "learned":
            self.learned = LearnedPositions(n_max, d_model)
        if kind == "relative":
            self.relative = RelativeBias(n_heads, n_buckets, max_distance, bidirectional)

    def add_to(self, x: Tensor, start: int = 0, skipped: Int[Tensor, "batch 1"] | None = None) -> Tensor:
        """``x`` ``(..., n, d_model)`` with the codes of positions from ``start`` on.

        Of sequence b the first ``skipped[b]`` places are padding, and the position after them is its first.
        """
        if self.kind not in ("sinusoidal", "learned"):
            return x
        stop, learned = start + x.shape[-2], self.kind == "learned"
        if skipped is None:
            return x + (self.learned(stop - start, start) if learned else self._codes(start, stop, like=x))
        table = self.learned(stop) if learned else self._codes(0, stop, like=x)
        places = torch.arange(start, stop, device=x.device) - skipped  # (batch, n)
        return x + table[places.clamp(min=0)]

    def check(self, n_max: int) -> None:
        """Raise unless there are ``n_max`` positions."""
        if self.kind == "learned" and n_max > self.learned.n_max:
            raise ValueError(
                f"n_max must not exceed the {self.learned.n_max} positions that were learned; got {n_max}"
            )

    def _codes(self, start: int, stop: int, like: Tensor) -> Tensor:
        """The sinusoidal codes of these positions, from a table that is computed once, with some to spare."""
        if tracing():  # a graph keeps nothing
            return positions.sinusoidal(stop - start, self.d_model, start=start, like=like)
        table = self.table
        if table is None or len(table) < stop or (table.dtype, table.device) != (like.dtype, like.device):
            with torch.inference_mode(False):  # a table made in that mode could not be trained with
                table = positions.sinusoidal(1 << (stop - 1).bit_length(), self.d_model, like=like)
            self.table = table
        return table[start:stop]

    def attention_options(self, n_q: int, n_k: int, like: Tensor) -> dict[str, Any]:
        """The options for `attnlib.nn.MultiHeadAttention`: a bias, a rotation, or nothing."""
        if self.kind == "relative":
            return {"bias": self.relative(n_q, n_k)}
        if self.kind == "alibi":
            return {"bias": positions.alibi(self.n_heads, n_q, n_k, like=like)}
        rotate: Callable[..., Tensor] = partial(positions.rotary, layout="halves")
        return {"rotate": rotate} if self.kind == "rotary" else {}
