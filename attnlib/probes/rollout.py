"""Attention rollout: one map for a whole stack of layers, made by multiplying theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from attnlib._base.checks import check_floats

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

__all__ = ["rollout"]


def rollout(weights: Sequence[Float[Tensor, "... n_heads n n"]]) -> Float[Tensor, "... n n"]:
    r"""How much of each row at the bottom is in each row on top, if layers were nothing but their weights.

    .. math:: R = \tilde A_L \cdots \tilde A_2 \tilde A_1, \qquad
              \tilde A_l = \tfrac12 \Big(\frac1H \sum_h A_l^{(h)}\Big) + \tfrac12 I

    Heads count equally, and the half with :math:`I` stands for the residual connection. Values, norms and networks
    have no part in it: what the map says must be tested by an intervention. ``weights`` are those of each layer, the
    lowest first; every row of the map sums to one.

    Raises ``ValueError`` when there is no layer, or the weights are not square and of one shape.

    Source: Abnar, Zuidema (2020), *Quantifying Attention Flow in Transformers*, section 3.

    >>> rollout([torch.full((1, 2, 2), 0.5)] * 2)
    tensor([[0.6250, 0.3750],
            [0.3750, 0.6250]])
    """
    if not weights:
        raise ValueError("weights must hold those of at least one layer; got none")
    check_floats(**{f"weights[{i}]": alpha for i, alpha in enumerate(weights)})
    shape = weights[0].shape
    if len(shape) < 3 or shape[-1] != shape[-2] or any(alpha.shape != shape for alpha in weights):
        got = ", ".join(str(tuple(alpha.shape)) for alpha in weights)
        raise ValueError(f"weights must all have one shape, (..., n_heads, n, n); got {got}")
    rolled = torch.eye(shape[-1]).to(weights[0])
    for alpha in weights:
        rolled = (alpha.mean(dim=-3) + torch.eye(shape[-1]).to(alpha)) / 2 @ rolled
    return rolled
