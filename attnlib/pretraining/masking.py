"""Texts with gaps, as BERT is trained on them: which tokens are chosen, what is shown there, and the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch
from torch.nn.functional import cross_entropy

from attnlib._base.checks import check_at_least_one, check_integers, check_share, check_size
from attnlib._base.seeds import Seed, generator

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor, nn

__all__ = ["Gapped", "gapped_batches", "mask_tokens", "masked_token_loss"]

SHOWN_AS_MASK, SHOWN_AS_ANOTHER = 0.8, 0.1  # of the chosen; the rest is shown as it is


class Gapped(NamedTuple):
    """A batch with gaps: what is shown, what stood there, which positions were chosen, and which are real.

    >>> Gapped._fields
    ('shown', 'tokens', 'chosen', 'real')
    """

    shown: Int[Tensor, "batch n"]
    tokens: Int[Tensor, "batch n"]
    chosen: Bool[Tensor, "batch n"]
    real: Bool[Tensor, "batch n"]


def mask_tokens(
    tokens: Int[Tensor, "batch n"],
    n_tokens: int,
    *,
    mask: int,
    seed: Seed,
    share: float = 0.15,
    special: tuple[int, ...] = (),
    pad: int = 0,
) -> Gapped:
    """Choose a ``share`` of the tokens, each by itself; of ten chosen, eight are shown as ``mask``.

    One is shown as any token, and the tenth as it is. Padding, ``mask`` and the ``special`` tokens are never chosen,
    nor shown for another.

    Source: Devlin et al. (2019), *BERT*, section 3.1 and appendix A.1.

    Raises ``ValueError`` for tokens that are not ``(batch, n)``, a share that is not in [0, 1], or a vocabulary that
    has no other tokens.

    >>> shown, tokens, chosen, real = mask_tokens(torch.arange(3, 13)[None], 20, mask=2, seed=1, share=0.5)
    >>> shown[0].tolist()
    [2, 4, 5, 2, 7, 2, 2, 4, 11, 12]
    >>> bool((shown == tokens)[~chosen].all())
    True
    """
    check_share("share", share)
    if tokens.ndim != 2:
        raise ValueError(f"tokens must be (batch, n); got {tuple(tokens.shape)}")
    apart = {pad, check_size("mask", mask), *check_integers("special", special)}
    every = torch.arange(check_at_least_one("n_tokens", n_tokens))
    others = every[~torch.isin(every, torch.tensor(sorted(apart)))]
    if not len(others):
        raise ValueError(
            f"n_tokens must leave tokens beside mask, pad and special; got {n_tokens} for {sorted(apart)}"
        )
    rng, shape = generator(seed), tuple(tokens.shape)
    real = tokens != pad
    chosen = torch.from_numpy(rng.random(shape) < share) & torch.isin(tokens, others)
    lot = torch.from_numpy(rng.random(shape))
    another = others[torch.from_numpy(rng.integers(len(others), size=shape))]
    shown = torch.where(chosen & (lot < SHOWN_AS_MASK), mask, tokens)
    is_another = chosen & (lot >= SHOWN_AS_MASK) & (lot < SHOWN_AS_MASK + SHOWN_AS_ANOTHER)
    return Gapped(torch.where(is_another, another, shown), tokens, chosen, real)


def gapped_batches(
    tokens: Int[Tensor, "n_texts n"], batch_size: int, n_tokens: int, *, seed: int, **options: object
) -> Callable[[int], Gapped]:
    """Batches of texts drawn anew, with gaps drawn anew, for `attnlib.training.fit`. Options: `mask_tokens`.

    >>> batches = gapped_batches(torch.arange(3, 13)[None], 4, 20, seed=0, mask=2)
    >>> batches(7).shown.shape
    torch.Size([4, 10])
    """
    check_at_least_one("batch_size", batch_size)
    check_size("seed", seed)

    def batch(step: int) -> Gapped:
        rows = generator((seed, step)).integers(len(tokens), size=batch_size)
        return mask_tokens(tokens[torch.from_numpy(rows)], n_tokens, seed=(seed, step, 1), **options)

    return batch


def masked_token_loss(model: nn.Module, batch: Gapped) -> tuple[Float[Tensor, ""], int]:
    """The cross-entropy at the chosen positions, in nats: the sum, and how many there are, for `attnlib.training.fit`.

    >>> from attnlib.models import BERT, BERTConfig
    >>> model = BERT(BERTConfig(n_tokens=20, n_max=10, d_model=8, n_heads=2, n_layers=1))
    >>> loss, n = masked_token_loss(model, mask_tokens(torch.arange(3, 13)[None], 20, mask=2, seed=1, share=0.5))
    >>> round(loss.item() / n)  # about ln 20
    3
    """
    rows = model.encode(batch.shown, mask=batch.real).out[batch.chosen]
    loss = cross_entropy(model.mlm_logits(rows), batch.tokens[batch.chosen], reduction="sum")
    return loss, len(rows)
