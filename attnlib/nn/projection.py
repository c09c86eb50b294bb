"""From rows to heads and back: one projection for queries, keys and values, cut into heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn.functional import linear

from attnlib._arrays import Array
from attnlib._checks import check_at_least_one

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped

__all__ = ["merge_heads", "project_heads", "split_heads"]


def split_heads(x: Shaped[Array, "... n d"], n_heads: int) -> Shaped[Array, "... n_heads n d_head"]:
    r"""Cut every row into ``n_heads`` pieces, and put the heads before the positions.

    .. math:: x_{h, i, c} = x_{i,\, h \cdot d_{\text{head}} + c}

    A reshape gives ``(..., n, n_heads, d_head)``, in which a head is a piece of a row; only then do the axes
    change places. Reshaping to ``(..., n_heads, n, d_head)`` at once would mix the positions.

    Raises ``ValueError`` when ``x`` has no two axes or ``n_heads`` does not divide its last.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> import numpy as np
    >>> split_heads(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), n_heads=2)
    array([[[1, 2],
            [5, 6]],
    <BLANKLINE>
           [[3, 4],
            [7, 8]]])
    """
    check_at_least_one("n_heads", n_heads)
    if x.ndim < 2 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x must have shape (..., n, d) with d a multiple of n_heads = {n_heads}; got {tuple(x.shape)}"
        )
    # (..., n, d) -> (..., n, n_heads, d_head) -> (..., n_heads, n, d_head)
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-3, -2)


def merge_heads(x: Shaped[Array, "... n_heads n d_head"]) -> Shaped[Array, "... n d"]:
    r"""The heads' rows end to end: `split_heads` undone.

    .. math:: x_i = [x_{1,i}, \ldots, x_{H,i}]

    Raises ``ValueError`` when ``x`` has fewer than three axes.

    Source: Vaswani et al. (2017), section 3.2.2, *Concat*.

    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(1, 6)
    >>> bool((merge_heads(split_heads(x, 3)) == x).all())
    True
    """
    if x.ndim < 3:
        raise ValueError(f"x must have shape (..., n_heads, n, d_head); got {tuple(x.shape)}")
    x = x.swapaxes(-3, -2)  # (..., n_heads, n, d_head) -> (..., n, n_heads, d_head)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def project_heads(
    in_proj: nn.Linear, sizes: Sequence[int], d_head: int, *inputs: tuple[Tensor | None, int]
) -> list[Float[Tensor, "... heads n d_head"]]:
    """Queries, keys and values of all heads, in this order: so many from each of ``inputs``, and none from None.

    ``sizes`` are the widths of the three in ``in_proj``. One input for all three is one matrix product.

    >>> import torch
    >>> q, k, v = project_heads(nn.Linear(8, 12), [8, 2, 2], 2, (torch.randn(3, 5, 8), 3))
    >>> q.shape, k.shape
    (torch.Size([3, 4, 5, 2]), torch.Size([3, 1, 5, 2]))
    """
    ends = accumulate(count for _, count in inputs)
    parts = [slice(end - count, end) for end, (_, count) in zip(ends, inputs, strict=True)]  # of (q, k, v)
    if len(inputs) == 1 or type(in_proj) is not nn.Linear or in_proj._forward_hooks or in_proj._forward_pre_hooks:
        # All three, since a hook, or a module in its place, may do more than its weights say.
        made = [y for (x, _), part in zip(inputs, parts, strict=True) if x is not None
                for y in in_proj(x).split_with_sizes(sizes, dim=-1)[part]]  # fmt: skip
    else:
        made = _products(in_proj, sizes, [x for x, _ in inputs], parts)
    return [split_heads(y, y.shape[-1] // d_head) for y in made]  # (..., n, heads * d_head) -> (..., heads, n, d_head)


def _products(
    in_proj: nn.Linear, sizes: Sequence[int], inputs: list[Tensor | None], parts: list[slice]
) -> list[Tensor]:
    """A product of each input with its own rows of the weight, cut at once, so that one copy joins the gradients."""
    cuts = [sum(sizes[part]) for part in parts]
    weights = in_proj.weight.split_with_sizes(cuts)
    biases = [None] * len(cuts) if in_proj.bias is None else in_proj.bias.split_with_sizes(cuts)
    made = []
    for x, part, weight, bias in zip(inputs, parts, weights, biases, strict=True):
        if x is not None:
            made += linear(x, weight, bias).split_with_sizes(sizes[part], dim=-1)
    return made
