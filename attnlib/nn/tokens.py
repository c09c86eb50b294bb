"""Tokens and lengths, checked; and what a decoder reads while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from attnlib._base.arrays import is_torch, readable
from attnlib._base.checks import check_integers, check_one_block
from attnlib.data.text import START

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["check_beside", "check_tokens", "lengths_of", "shift_right"]


def check_tokens(name: str, tokens: Int[Tensor, "batch n"], size: int | None = None) -> None:
    """Raise unless ``tokens`` are ``(batch, n)`` integers, none empty, of a vocabulary of ``size``.

    >>> import torch
    >>> check_tokens("source", torch.tensor([[4, 5]]), 6)
    """
    if not is_torch(tokens):
        raise TypeError(f"{name} must be a torch tensor of tokens; got {type(tokens).__name__}")
    check_one_block(name, tokens)
    if tokens.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must hold integers, int64 or int32; got dtype {tokens.dtype}")
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ValueError(f"{name} must have shape (batch, n), neither of them 0; got {tuple(tokens.shape)}")
    if size is not None and readable(tokens):
        low, high = tokens.aminmax()
        if low < 0 or high >= size:
            got = int(low if low < 0 else high)
            raise ValueError(f"{name} must hold tokens from 0 to {size - 1}; got {got}")


def check_beside(tokens: Int[Tensor, "batch n"], **beside: Tensor | None) -> None:
    """Raise unless each of what stands ``beside`` the tokens, as a mask does, has one entry for each, or is None.

    >>> import torch
    >>> check_beside(torch.tensor([[4, 5]]), mask=torch.tensor([[True, False]]), segments=None)
    """
    for name, x in beside.items():
        if x is not None and not is_torch(x):
            raise TypeError(f"{name} must be a torch tensor in the shape of tokens; got {type(x).__name__}")
        if x is not None and x.shape != tokens.shape:
            raise ValueError(f"{name} must have the shape of tokens, {tuple(tokens.shape)}; got {tuple(x.shape)}")


def lengths_of(lengths: Sequence[int] | Int[Tensor, " batch"] | None, batch: int, n: int) -> list[int]:
    """The lengths of ``batch`` sequences, padded to ``n``, as Python integers; all of them ``n`` for None.

    Raises ``TypeError`` when one is not an integer, ``ValueError`` unless they are ``batch`` numbers from 1 to ``n``.

    >>> lengths_of(None, 2, 5)
    [5, 5]
    """
    whole = [n] * batch if lengths is None else check_integers("lengths", lengths)
    if len(whole) != batch or not all(1 <= length <= n for length in whole):
        raise ValueError(f"lengths must be {batch} numbers from 1 to {n}, one for each source; got {whole}")
    return whole


def shift_right(target: Int[Tensor, "batch n"], start: int = START) -> Int[Tensor, "batch n"]:
    r"""What a decoder reads while it learns to write ``target``: ``start``, then all of it but the last token.

    .. math:: \text{shifted}_0 = \text{start}, \qquad \text{shifted}_t = \text{target}_{t-1}

    The pairs of `attnlib.data` begin with `attnlib.data.text.START`; a `Transformer` says what its own begin with,
    ``model.config.start``.

    Raises ``TypeError`` when ``target`` is no tensor of integers, ``ValueError`` when it is not ``(batch, n)``.

    Source: Williams, Zipser (1989), section 3, *teacher forcing*.

    >>> import torch
    >>> shift_right(torch.tensor([[7, 8, 9]]))
    tensor([[1, 7, 8]])
    """
    check_tokens("target", target)
    return torch.cat([torch.full_like(target[:, :1], start), target[:, :-1]], dim=1)
