"""The distribution that a token is drawn from, and the drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib._base.checks import check_at_least_one, check_floats, check_number, check_positive
from attnlib._base.seeds import Seed, generator
from attnlib.core.softmax import masked_softmax

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["check_logits", "draw", "likeliest", "probabilities"]


def probabilities(
    logits: Float[Tensor, "... vocabulary"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "... vocabulary"]:
    r"""The distribution that `sample` draws from.

    .. math:: p_i \propto m_i \exp(\text{logit}_i / \text{temperature})

    Only the ``top_k`` likeliest tokens stay (:math:`m_i = 1`), and of these the likeliest ones that together have at
    least the probability ``top_p``: never none.

    It is computed in float64, and returned in float32 or the dtype of ``logits``, if that is wider.

    Raises ``ValueError`` when ``logits`` have no finite maximum, ``temperature`` is not positive, ``top_k`` below one
    or ``top_p`` outside (0, 1], ``TypeError`` when one is no number.

    Source: Fan, Lewis, Dauphin (2018), section 5.1, for top k; Holtzman et al. (2020), sections 3.1 to 3.3, for the
    rest.

    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log()
    >>> probabilities(logits, top_p=0.7)
    tensor([0.6250, 0.3750, 0.0000])
    """
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits must be a torch tensor; got {type(logits).__name__}")
    check_floats(logits=logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must have shape (..., vocabulary), which is not empty; got {tuple(logits.shape)}")
    top = check_logits(logits)
    _check(temperature, top_k, top_p)
    scaled = (logits - top[..., None]).double() / float(temperature)  # many small numbers are added up
    mask, n = None, logits.shape[-1]
    if top_k is not None or top_p is not None:
        ranked, order = scaled.sort(dim=-1, descending=True, stable=True)
        kept = torch.arange(n, device=logits.device) < min(top_k or n, n)
        if top_p is not None and top_p < 1:
            p = masked_softmax(ranked, kept)
            kept = kept & (p.cumsum(-1) - p < float(top_p))
        mask = torch.zeros_like(scaled, dtype=torch.bool).scatter(-1, order, kept.expand_as(order))
    return masked_softmax(scaled, mask).to(torch.promote_types(logits.dtype, torch.float32))


def likeliest(logits: Float[Tensor, "batch vocabulary"]) -> Int[Tensor, " batch"]:
    """The token with the highest logit.

    Raises as `check_logits`.

    >>> likeliest(torch.tensor([[0.0, 2.0, 1.0]]))
    tensor([1])
    """
    check_logits(logits)
    return logits.argmax(-1)


def check_logits(logits: Float[Tensor, "... vocabulary"]) -> Float[Tensor, ...]:
    """The largest of each row; raise unless that is finite: then there is a distribution.

    >>> check_logits(torch.tensor([[0.0, -torch.inf]]))
    tensor([0.])
    """
    if logits.shape[-1] == 0:
        raise ValueError(f"logits must be for at least one token; got shape {tuple(logits.shape)}")
    top = logits.amax(-1)
    if not top.isfinite().all():
        raise ValueError(f"logits must have a finite maximum in each row; got {top[~top.isfinite()][0]:g}")
    return top


def draw(seed: Seed, temperature: float, top_k: int | None, top_p: float | None) -> Callable[[Tensor], Tensor]:
    """A function that draws a token for each row of logits, from random numbers of its own.

    A number is drawn for each row, and the token is the one in whose stretch of the cumulated probabilities it falls.

    >>> draw(seed=0, temperature=1.0, top_k=1, top_p=None)(torch.tensor([[0.0, 2.0, 1.0]]))
    tensor([1])
    """
    _check(temperature, top_k, top_p)
    numbers = generator(seed)

    def drawn(logits: Tensor) -> Tensor:
        p = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
        upto = p.double().cumsum(-1)
        at = torch.from_numpy(numbers.random(len(p))).to(upto)[:, None] * upto[:, -1:]
        return (upto <= at).sum(-1)

    return drawn


def _check(temperature: float, top_k: int | None, top_p: float | None) -> None:
    check_positive("temperature", temperature)
    if top_k is not None:
        check_at_least_one("top_k", top_k)
    if top_p is not None and not 0 < check_number("top_p", top_p) <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1; got {top_p}")
