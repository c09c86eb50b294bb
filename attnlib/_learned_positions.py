"""The two ways in `attnlib.positions` that have parameters. They stand apart, so that the others need no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from attnlib._checks import check_size
from attnlib.positions import relative_buckets

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

__all__ = ["Learned", "RelativeBias"]


class Learned(nn.Module):
    r"""A vector of parameters for each position, to be added to the inputs; there is none beyond ``n_max``.

    .. math:: \text{PE}_p = W_p, \qquad W \in \mathbb R^{n_\text{max} \times d}

    Called with ``n`` and ``start``, it gives the rows ``start`` to ``start + n - 1``, ``(n, d)``. They start as normal
    numbers with standard deviation 0.02.

    Raises ``ValueError`` when a position beyond ``n_max - 1`` is asked for or a size is negative, ``TypeError`` when
    one is not an integer.

    Source: Gehring et al. (2017), section 3.1; the standard deviation is that of Devlin et al. (2019).

    >>> Learned(8, 4)(3, start=5).shape
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
        buckets = torch.from_numpy(relative_buckets(n_q, n_k, **self.options)).to(self.weight.device)
        return self.weight[buckets].permute(2, 0, 1)

    def extra_repr(self) -> str:
        """What `print` says of its sizes."""
        return ", ".join(f"{k}={v}" for k, v in {"n_heads": self.weight.shape[1], **self.options}.items())
