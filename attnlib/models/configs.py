"""The choices that make each model, checked."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib._checks import check_at_least_one, check_one_of, check_share
from attnlib.nn.layers import ACTIVATIONS
from attnlib.nn.positional import KINDS

__all__ = ["GPTConfig"]


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Every choice that makes a `GPT`; unless given, those of GPT-2's smallest.

    ``n_tokens`` is the size of the vocabulary, ``n_max`` the longest text, ``end`` the token that ends one and
    ``pad`` the one that fills up, if there is one. ``position`` is one of those of `attnlib.nn.Positional`.

    Raises ``ValueError`` for a size below one, heads that do not divide ``d_model``, an unknown word, or a token
    outside the vocabulary.

    >>> GPTConfig(n_tokens=50257).d_ff
    3072
    """

    n_tokens: int
    n_max: int = 1024
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 0
    dropout: float = 0.0
    activation: str = "gelu_tanh"
    position: str = "learned"
    eps: float = 1e-5
    end: int = 0
    pad: int | None = None

    def __post_init__(self) -> None:
        if self.d_ff == 0:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        for name in ("n_tokens", "n_max", "d_model", "n_heads", "n_layers", "d_ff"):
            check_at_least_one(name, getattr(self, name))
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads must divide d_model = {self.d_model}; got {self.n_heads}")
        check_share("dropout", self.dropout)
        check_one_of("activation", self.activation, ACTIVATIONS)
        check_one_of("position", self.position, KINDS)
        for name in ("end", "pad"):
            token = getattr(self, name)
            if token is not None and not 0 <= token < self.n_tokens:
                raise ValueError(f"{name} must be a token below n_tokens = {self.n_tokens}; got {token}")

    @property
    def start(self) -> None:
        """No token: a text goes on after its last one."""
