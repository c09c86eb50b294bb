"""Batches of a long text: windows of one length, and what a model makes of a text it reads through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch
from torch.nn.functional import cross_entropy

from attnlib._base.checks import check_at_least_one
from attnlib._base.seeds import Seed, extended, generator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

    Tokens = Int[np.ndarray, " n"]

__all__ = ["log_probabilities", "next_token_loss", "windows"]


def windows(tokens: Tokens, length: int, batch_size: int, *, seed: Seed) -> Callable[[int], Int[Tensor, "batch n"]]:
    """Batches of ``length + 1`` tokens that follow each other: ``length`` to read, each with the one after it.

    In an epoch every token is read once, but for the last few; where windows begin is drawn anew for each. The result
    is a function of the step, for `attnlib.training.fit`.

    Raises ``ValueError`` for sizes below one, or a text that is too short for a batch.

    >>> batches = windows(np.arange(100), length=4, batch_size=2, seed=0)
    >>> batches(0).shape, bool((batches(7).diff() == 1).all())
    (torch.Size([2, 5]), True)
    """
    length, batch_size = check_at_least_one("length", length), check_at_least_one("batch_size", batch_size)
    per_epoch = (len(tokens) - length) // length // batch_size
    if per_epoch < 1:
        raise ValueError(f"tokens must fill a batch of {batch_size} windows of {length}; got {len(tokens)}")
    known: dict[int, np.ndarray] = {}

    def batch(step: int) -> Tensor:
        epoch, place = divmod(step, per_epoch)
        if epoch not in known:
            rng = generator(extended(seed, epoch))
            known.clear()
            known[epoch] = rng.integers(length) + length * rng.permutation(per_epoch * batch_size)
        starts = known[epoch][place * batch_size : (place + 1) * batch_size]
        return torch.from_numpy(np.stack([tokens[i : i + length + 1] for i in starts]).astype(np.int64))

    return batch


def next_token_loss(model: nn.Module, batch: Int[Tensor, "batch n"]) -> Float[Tensor, ""]:
    """The mean cross-entropy, in nats, of each token of a batch after those before it.

    >>> from attnlib.models import GPT, GPTConfig
    >>> model = GPT(GPTConfig(n_tokens=20, n_max=8, d_model=8, n_heads=2, n_layers=1))
    >>> round(next_token_loss(model, torch.zeros(1, 5, dtype=torch.int64)).item())  # about ln 20
    3
    """
    logits = model(batch[:, :-1]).logits
    return cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


@torch.no_grad()
def log_probabilities(
    model: nn.Module, tokens: Tokens, *, context: int | None = None, stride: int | None = None, batch_size: int = 16
) -> Float[np.ndarray, " n"]:
    """The logarithm of the probability of each token of a text after the first, each after at least half a context.

    ``context`` is how many tokens the model reads at once, its ``n_max`` unless given, and ``stride`` how far it goes
    on then, half of them unless given: of each window but the first, as many tokens are counted. With a stride of 1
    each token is read after exactly ``context`` others, at as many times the cost.

    Raises ``ValueError`` for sizes below one.

    >>> from attnlib.models import GPT, GPTConfig
    >>> model = GPT(GPTConfig(n_tokens=20, n_max=8, d_model=8, n_heads=2, n_layers=1))
    >>> log_probabilities(model, np.arange(20)).shape
    (19,)
    """
    row = torch.as_tensor(np.asarray(tokens, dtype=np.int64))
    length = model.config.n_max if context is None else check_at_least_one("context", context)
    length = min(length, len(row) - 1)
    last = len(row) - 1 - length
    stride = max(length // 2, 1) if stride is None else check_at_least_one("stride", stride)
    starts = [*range(0, last, min(stride, length)), last]
    device, training, found = next(model.parameters()).device, model.training, []
    model.eval()
    try:
        for i in range(0, len(starts), batch_size):
            some = starts[i : i + batch_size]
            batch = torch.stack([row[start : start + length + 1] for start in some]).to(device)
            log_p = model(batch[:, :-1]).logits.float().log_softmax(-1)
            seen = log_p.gather(-1, batch[:, 1:, None])[..., 0].cpu()  # (batch, length)
            for j, line in enumerate(seen, start=i):
                before = 0 if j == 0 else starts[j - 1] + length - starts[j]  # counted by the window before
                found.append(line[before:])
    finally:
        model.train(training)
    return torch.cat(found).numpy().astype(float)
