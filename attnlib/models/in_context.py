r"""A small causal Transformer that reads examples of a function and answers the next question.

.. math:: \hat y_i = g(x_1, y_1, \ldots, x_{i-1}, y_{i-1};\; x_i)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnlib._base.checks import check_at_least_one, check_floats
from attnlib.nn.layers import EncoderLayer

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["InContext"]


class InContext(nn.Module):
    r"""The layers of a GPT over numbers instead of tokens; row i holds one example and the next question.

    .. math:: r_i = [x_{i-1}, y_{i-1}, 1, x_i], \qquad
              \hat y = \text{norm}\big(\text{EncoderLayer}^L_\text{causal}(r W_\text{in})\big) W_\text{out}

    The first row has no example before it: zeros in its place, and 0 where the others have a 1. There are no
    positions, since the order of examples says nothing. ``d_x`` and ``d_y`` are the sizes of a question and an
    answer; ``d_y`` numbers come out, or the logits of as many classes.

    Raises ``ValueError`` for a size below one, or heads that do not divide ``d_model``.

    Source: after Garg et al. (2022), section 3, whose GPT reads :math:`x_1, y_1, x_2, \ldots` one to a row.

    >>> model = InContext(d_x=2, d_y=1)
    >>> model(torch.randn(4, 7, 2), torch.randn(4, 7, 1)).shape
    torch.Size([4, 7, 1])
    """

    def __init__(
        self, d_x: int, d_y: int, *, d_model: int = 24, n_heads: int = 2, n_layers: int = 3, d_ff: int = 48
    ) -> None:
        super().__init__()
        self.d_x = check_at_least_one("d_x", d_x)
        self.d_y = check_at_least_one("d_y", d_y)
        layers = (EncoderLayer(d_model, n_heads, d_ff) for _ in range(check_at_least_one("n_layers", n_layers)))
        self.embedding = nn.Linear(2 * d_x + d_y + 1, d_model)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, d_y)

    def forward(
        self, x: Float[Tensor, "batch n d_x"], y: Float[Tensor, "batch n d_y"]
    ) -> Float[Tensor, "batch n d_y"]:
        """A prediction of every ``y``, each from its own ``x`` and the examples before it.

        Raises ``TypeError`` for anything but floats, ``ValueError`` when ``x`` and ``y`` are not of one batch and
        length, with ``d_x`` and ``d_y`` numbers in a row.
        """
        check_floats(x=x, y=y)
        for name, rows, size in (("x", x, self.d_x), ("y", y, self.d_y)):
            if rows.ndim != 3 or rows.shape[-1] != size:
                raise ValueError(f"{name} must have shape (batch, n, {size}); got {tuple(rows.shape)}")
        if x.shape[:2] != y.shape[:2]:
            raise ValueError(f"x and y must be of one batch and length; got {tuple(x.shape)} and {tuple(y.shape)}")
        before = torch.cat([x, y, torch.ones_like(y[..., :1])], dim=-1)  # examples, and that there is one
        before = torch.cat([torch.zeros_like(before[:, :1]), before[:, :-1]], dim=1)
        rows = self.embedding(torch.cat([before, x], dim=-1))  # (batch, n, d_model)
        for layer in self.layers:
            rows = layer(rows, causal=True).out
        return self.out(self.norm(rows))
