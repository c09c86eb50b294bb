"""The beams of a search, for a whole batch: which are alive, which have ended, and which can still win."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from attnlib._base.checks import check_at_least_one, check_number
from attnlib.decoding.generation import Prompted, SequenceModel, special_tokens
from attnlib.decoding.sampling import check_logits

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["BeamSearchResult", "Beams", "check_beams", "search"]


class BeamSearchResult(NamedTuple):
    """What `attnlib.decoding.beam` returns, the best first: ``tokens`` ``(batch, n_best, n)`` and their worth.

    ``scores`` and ``log_p`` are ``(batch, n_best)``, the latter without the penalty on length.

    >>> BeamSearchResult._fields
    ('tokens', 'scores', 'log_p')
    """

    tokens: Tensor
    scores: Tensor
    log_p: Tensor


class Beams:
    """At most ``width`` beams a sentence, those that have ended included: one that ends gives its place to nobody.

    >>> beams = Beams(1, 2, n_new=3, n_best=1, alpha=0.0, end=0, like=torch.zeros(1, dtype=torch.int64))
    >>> rows, tokens = beams.advance(torch.tensor([[0.2, 0.5, 0.3]]).log())
    >>> rows, tokens  # both beams that live come from the only row there was
    (tensor([0, 0]), tensor([1, 2]))
    """

    def __init__(
        self, batch: int, width: int, *, n_new: int, n_best: int, alpha: float, end: int, pad: int = 0, like: Tensor
    ) -> None:
        self.n_new = n_new
        self.n_best = n_best
        self.alpha = alpha
        self.end = end
        self.length = 0
        self.tokens = like.new_full((batch, width, n_new), pad)
        self.log_p = torch.full((batch, width), -inf, device=like.device)  # minus infinity: nobody lives here
        self.log_p[:, 0] = 0.0
        self.over = {"tokens": self.tokens, "length": like.new_zeros(batch, width)}
        self.over |= {name: torch.full_like(self.log_p, -inf) for name in ("scores", "log_p")}

    def advance(self, log_p: Float[Tensor, "alive vocabulary"]) -> tuple[Int[Tensor, " alive"], Int[Tensor, " alive"]]:
        """One token more. For the beams alive after it: the row that each goes on from, and its new token."""
        alive, (batch, width), size = self.log_p > -inf, self.log_p.shape, log_p.shape[-1]
        total = log_p.new_full((batch, width, size), -inf)
        # (batch, width, vocabulary), of which log_p has the rows alive
        total[alive] = self.log_p.to(log_p)[alive][:, None] + log_p
        total = total.flatten(1)  # of all continuations the likeliest, likeliest first
        # (batch, width)
        best, at = total.max(1, keepdim=True) if width == 1 else total.topk(width)  # one of equals as `greedy` does
        parent, token = at // size, at % size
        places = width - (self.over["scores"] > -inf).sum(1, keepdim=True)
        kept = (torch.arange(width, device=at.device) < places) & (best > -inf)
        self.tokens = _rows(self.tokens, parent)
        self.tokens[..., self.length] = token.to(self.tokens)
        self.length += 1
        over = kept & ((token == self.end) | (self.length == self.n_new))
        self._finish(over, best)
        worth = best / self._penalty(self.n_new) > self.over["scores"][:, self.n_best - 1, None]
        self.log_p = best.where(kept & ~over & worth, -inf)
        row = (alive.flatten().cumsum(0) - 1).view(batch, width).gather(1, parent)
        alive = self.log_p > -inf
        return row[alive], token[alive]

    def _finish(self, over: Tensor, log_p: Tensor) -> None:
        """Put those beams that are ``over`` among those that were, the best first."""
        scores = (log_p / self._penalty(self.length)).where(over, -inf)
        length = torch.full_like(self.over["length"], self.length)
        new = {"tokens": self.tokens, "length": length, "scores": scores, "log_p": log_p}
        both = {name: torch.cat([old, new[name]], dim=1) for name, old in self.over.items()}
        _, order = both["scores"].sort(dim=1, descending=True, stable=True)
        self.over = {name: _rows(x, order[:, : log_p.shape[1]]) for name, x in both.items()}

    def _penalty(self, n: int) -> float:
        return ((5 + n) / 6) ** self.alpha


def search(
    model: SequenceModel, prompted: Prompted, n_max: int, *, width: int, alpha: float, n_best: int
) -> BeamSearchResult:
    """What `attnlib.decoding.beam` says, for a model that has read the source and the prompt."""
    state, logits, prompt = prompted
    if width > logits.shape[-1]:
        raise ValueError(f"width must be at most the {logits.shape[-1]} tokens of the vocabulary; got {width}")
    if (width > 1 or len(prompt) > 1) and not callable(getattr(state, "select", None)):
        raise TypeError(f"model must remember a state with select(rows); got {type(state).__name__}")
    (pad, _, end), n_rows = special_tokens(model), len(prompt)
    options = {"n_new": n_max - prompt.shape[1], "n_best": n_best, "alpha": alpha, "end": end, "pad": pad}
    beams = Beams(n_rows, width, like=prompt, **options)
    while True:
        check_logits(logits)
        log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        rows, tokens = beams.advance(log_p)
        if len(rows) == 0:
            break
        if rows.tolist() != list(range(n_rows)):
            state, n_rows = state.select(rows), len(rows)
        logits = model.step(tokens[:, None].to(prompt), state)[:, -1]
    over = {name: x[:, :n_best] for name, x in beams.over.items()}
    written = over["tokens"][..., : int(over["length"].max())]
    whole = torch.cat([prompt[:, None].expand(-1, n_best, -1), written], dim=-1)  # (batch, n_best, n)
    return BeamSearchResult(whole, over["scores"], over["log_p"])


def check_beams(width: int, length_penalty: float, n_best: int) -> None:
    """Raise unless these make a search.

    >>> check_beams(4, 0.6, 1)
    """
    check_at_least_one("width", width)
    if (
        not 0 <= check_number("length_penalty", length_penalty) <= 10
    ):  # 0.6 is usual; beyond 10, scores run out of digits
        raise ValueError(f"length_penalty must be from 0 to 10; got {length_penalty}")
    if check_at_least_one("n_best", n_best) > width:
        raise ValueError(f"n_best must be at most width = {width}; got {n_best}")


def _rows(x: Tensor, order: Int[Tensor, "batch width"]) -> Tensor:
    """Of each sentence's rows those in ``order``."""
    return x.gather(1, order.view(*order.shape, *(1,) * (x.ndim - 2)).expand(-1, -1, *x.shape[2:]))
