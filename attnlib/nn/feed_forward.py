"""The small network in every layer of a Transformer, and the activations that it may have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib._base.checks import check_at_least_one, check_one_of, check_rows, check_share

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ACTIVATIONS", "FeedForward"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "swiglu": F.silu,
    "geglu": partial(F.gelu, approximate="tanh"),
}
GATED = ("swiglu", "geglu")


class FeedForward(nn.Module):
    r"""The same two-layer network at every position; as ``"swiglu"`` or ``"geglu"``, with a gated hidden layer.

    .. math:: f(x) = a(x W_1 + b_1)\, W_2 + b_2, \qquad
              f_\text{SwiGLU}(x) = \big(\text{silu}(x W_1) \odot x W_3\big) W_2

    ``activation`` is one of `ACTIVATIONS`; ``d_ff`` is the size of the hidden layer. ``"gelu_tanh"`` is the
    approximation that GPT-2 and T5 use, by itself and in ``"geglu"``, ``"quick_gelu"`` that of CLIP.

    Raises ``ValueError`` for a size below one, another word, or a dropout outside [0, 1).

    Source: Vaswani et al. (2017), section 3.3; Shazeer (2020) for SwiGLU and GEGLU;
    Hendrycks, Gimpel (2016) for GELU and its approximation.

    >>> import torch
    >>> FeedForward(8, 32)(torch.randn(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        check_at_least_one("d_model", d_model)
        check_at_least_one("d_ff", d_ff)
        check_share("dropout", dropout)
        check_one_of("activation", activation, ACTIVATIONS)
        self.d_model = d_model
        self.activation = ACTIVATIONS[activation]
        self.gated = activation in GATED
        self.linear1 = nn.Linear(d_model, d_ff * (2 if self.gated else 1), bias=bias)
        self.linear2 = nn.Linear(d_ff, d_model, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """The network, position by position."""
        check_rows("x", x, self.d_model)
        hidden = self.linear1(x)
        if self.gated:
            gate, hidden = hidden.chunk(2, dim=-1)
            hidden = self.activation(gate) * hidden
        else:
            hidden = self.activation(hidden)
        return self.linear2(self.drop(hidden) if self.training else hidden)
