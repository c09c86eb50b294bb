"""Time and memory by length: a band, BigBird's blocks and linear attention, beside the dense and the fused form."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from measure import Row, Run, compare, peak_of_torch
from peers import plain_attention
from torch import Tensor

from attnlib import attention, causal, masks
from attnlib.variants import linear_attention

HEADS, D, WINDOW = 4, 16, 256
LENGTHS, WITH_GRADIENTS = (256, 512, 1024, 2048, 4096, 16_384), (1024, 4096)
BAND, BIRD, LINEAR = f"a window of {WINDOW}", "BigBird's blocks of 64", "linear attention, causal"
DENSE, FUSED, MASKED = "plain attention, causal", "the fused kernel, causal", "the fused kernel, the window as a mask"
LONGEST_DENSE = 4096  # beyond it, the scores are gibibytes

Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def band(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each position sees 256 before it."""
    return attention(q, k, v, mask=masks.Band(back=WINDOW), weights=False).out


def bird(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Three neighbouring blocks, three random ones and two that all see; in both directions."""
    return attention(q, k, v, mask=masks.BigBird(64), weights=False).out


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As a recurrence, block by block."""
    return linear_attention(q, k, v, causal=True).out


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Torch's kernel."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def others(n: int, gradients: bool) -> dict[str, Form]:
    """The forms that look at every pair of ``n`` positions."""
    if n > LONGEST_DENSE or (n == LONGEST_DENSE and gradients):
        return {FUSED: fused}
    future, window = ~causal(n, like=torch.ones(1)), masks.window(n, back=WINDOW, like=torch.ones(1))
    masked = {MASKED: lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=window)}
    return {FUSED: fused, DENSE: lambda q, k, v: plain_attention(q, k, v, future), **({} if gradients else masked)}


def by_length(n: int, gradients: bool) -> list[Row]:
    """Our three forms against the others, all in the same turns."""
    inputs = torch.randn(3, 1, HEADS, n, D, generator=torch.Generator().manual_seed(0)).requires_grad_(gradients)
    ours, theirs = {BAND: band, BIRD: bird, LINEAR: linear}, others(n, gradients)
    if MASKED in theirs:
        torch.testing.assert_close(band(*inputs), theirs[MASKED](*inputs), atol=1e-5, rtol=0)

    def run(form: Form) -> Run:
        def call() -> None:
            with torch.set_grad_enabled(gradients):
                out = form(*inputs.unbind())
                if gradients:
                    torch.autograd.grad(out.sum(), inputs)

        return call

    runs = {name: run(form) for name, form in {**ours, **theirs}.items()}
    rows = compare("", runs.pop(BAND), runs, turns=5 if n >= LONGEST_DENSE else 7)
    taken = {BAND: np.ones(len(rows[0].ratios)), **{row.peer: np.array(row.ratios) for row in rows}}
    what, target = "forward and backward" if gradients else "forward", 1.0 if n >= LONGEST_DENSE else None
    return [
        Row(f"{mine}, {HEADS} × {n:,} × {D}, {what}", peer, tuple(taken[peer] / taken[mine]), aim)
        for mine in ours
        for peer, aim in {FUSED: target if mine == BAND else None, DENSE: None, MASKED: None}.items()
        if peer in theirs and not (peer == MASKED and mine != BAND)
    ]


def memory() -> Iterator[list[Row]]:
    """The most that is held at 16,384 positions, beside dense attention and four times what 4,096 take."""
    large, small = (torch.randn(3, 1, 1, n, D) for n in (16_384, 4096))
    with torch.no_grad():
        dense = peak_of_torch(lambda: plain_attention(*large))
        for name, form in {BAND: band, BIRD: bird, LINEAR: linear}.items():
            mine, less = (peak_of_torch(lambda form=form, x=x: form(*x)) for x in (large, small))
            case = f"{name}, 1 × 16,384 × {D}, forward, **memory**"
            yield [
                Row(case, "plain attention", (dense / mine,), 200.0),
                Row(case, "the same at 4,096, four times", (4 * less / mine,), 0.9),
            ]


def rows() -> Iterator[list[Row]]:
    """The rows of the table."""
    for n in LENGTHS:
        yield by_length(n, gradients=False)
    for n in WITH_GRADIENTS:
        yield by_length(n, gradients=True)
    yield from memory()
