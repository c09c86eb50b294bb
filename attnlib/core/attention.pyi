# The types of `attention.py` for whoever calls it: tensors in, tensors out, and weights unless none were asked for.
# They stand here so that a reader of the function meets nothing but the function.
from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, Never, Protocol, overload

from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import TypeVar

from attnlib._base.arrays import Array
from attnlib.patterns import Pattern

__all__ = ["Attended", "attention"]

class _Standard(Protocol):
    def __array_namespace__(self, *, api_version: Any = ...) -> Any: ...

A = TypeVar("A", bound=Tensor | _Standard, default=Array)
W = TypeVar("W", default=Array | None)

class Attended(NamedTuple, Generic[A, W]):
    out: A
    weights: W

@overload
def attention(
    q: Float[A, "... n_q d"],
    k: Float[A, "... n_k d"],
    v: Float[A, "... n_k d_v"],
    *,
    score: Callable[..., Any] = ...,
    mask: Bool[Tensor | _Standard, "... n_q n_k"] | Pattern | None = ...,
    causal: bool = ...,
    bias: Float[A, "... n_q n_k"] | None = ...,
    dropout: float = ...,
    weights: Literal[True] = ...,
    block: None = ...,
    **_others: Never,
) -> Attended[Float[A, "... n_q d_v"], Float[A, "... n_q n_k"]]: ...
@overload
def attention(
    q: Float[A, "... n_q d"],
    k: Float[A, "... n_k d"],
    v: Float[A, "... n_k d_v"],
    *,
    score: Callable[..., Any] = ...,
    mask: Bool[Tensor | _Standard, "... n_q n_k"] | Pattern | None = ...,
    causal: bool = ...,
    bias: Float[A, "... n_q n_k"] | None = ...,
    dropout: float = ...,
    weights: bool = ...,
    block: int | None = ...,
    **_others: Never,
) -> Attended[Float[A, "... n_q d_v"], Float[A, "... n_q n_k"] | None]: ...
