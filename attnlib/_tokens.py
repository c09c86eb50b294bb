"""What a model of sequences is given, checked, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from attnlib._backend import is_torch
from attnlib._cache import check_rows
from attnlib._random import integers

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

__all__ = ["Decoded", "Memory", "Predicted", "Reading", "check_choice", "check_tokens", "lengths_of"]


class Memory(NamedTuple):
    """What an encoder made of a source: ``states``, zero at padding, the ``last`` one, ``mask``, True at tokens.

    The mask is None where there is no padding.

    >>> Memory._fields
    ('states', 'last', 'mask')
    """

    states: Float[Tensor, "batch n_source d_model"]
    last: Float[Tensor, "batch 1 d_model"]
    mask: Bool[Tensor, "batch 1 n_source"] | None


@dataclass
class Reading:
    """Where a recurrent decoder stands: the ``memory`` it writes from and its ``hidden`` state, a pair for an LSTM."""

    memory: Memory
    hidden: Tensor | tuple[Tensor, Tensor]

    def select(self, rows: Int[Tensor, " n_rows"]) -> Reading:
        """These ``rows`` of the batch, in this order; one may come more than once."""
        check_rows(rows)
        memory = Memory(*(x if x is None else x[rows] for x in self.memory))
        pair = isinstance(self.hidden, tuple)
        return Reading(memory, tuple(x[:, rows] for x in self.hidden) if pair else self.hidden[:, rows])


class Predicted(NamedTuple):
    """``logits`` ``(batch, n_target, vocabulary)``; ``weights`` ``(batch, n_target, n_source)``, or None.

    >>> Predicted._fields
    ('logits', 'weights')
    """

    logits: Float[Tensor, "batch n_target vocabulary"]
    weights: Float[Tensor, "batch n_target n_source"] | None


class Decoded(NamedTuple):
    """``tokens`` ``(batch, n_target)``, `PAD` after an `END`; ``weights`` as in `Predicted`.

    >>> Decoded._fields
    ('tokens', 'weights')
    """

    tokens: Int[Tensor, "batch n_target"]
    weights: Float[Tensor, "batch n_target n_source"] | None


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise unless ``value`` is one of ``choices``.

    >>> check_choice("cell", "gru", ("gru", "lstm"))
    """
    choices = list(choices)
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_tokens(name: str, tokens: Int[Tensor, "batch n"], size: int | None = None) -> None:
    """Raise unless ``tokens`` are ``(batch, n)`` integers, none empty, of a vocabulary of ``size``.

    >>> import torch
    >>> check_tokens("source", torch.tensor([[4, 5]]), 6)
    """
    if not is_torch(tokens):
        raise TypeError(f"{name} must be a torch tensor of tokens; got {type(tokens).__name__}")
    if tokens.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must hold integers, int64 or int32; got dtype {tokens.dtype}")
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ValueError(f"{name} must have shape (batch, n), neither of them 0; got {tuple(tokens.shape)}")
    if size is not None:
        low, high = tokens.aminmax()
        if low < 0 or high >= size:
            got = int(low if low < 0 else high)
            raise ValueError(f"{name} must hold tokens from 0 to {size - 1}; got {got}")


def lengths_of(lengths: Sequence[int] | Int[Tensor, " batch"] | None, batch: int, n: int) -> list[int]:
    """The lengths of ``batch`` sequences, padded to ``n``, as Python integers; all of them ``n`` for None.

    Raises ``TypeError`` when one is not an integer, ``ValueError`` unless they are ``batch`` numbers from 1 to ``n``.

    >>> lengths_of(None, 2, 5)
    [5, 5]
    """
    whole = [n] * batch if lengths is None else integers("lengths", lengths)
    if len(whole) != batch or not all(1 <= length <= n for length in whole):
        raise ValueError(f"lengths must be {batch} numbers from 1 to {n}, one for each source; got {whole}")
    return whole
