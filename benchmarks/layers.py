"""One attention layer, forward and backward, against five others and against its own matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from measure import Row, Run, compare, forward_and_backward
from peers import gpt2_attention, hand_written_like, plain_attention, x_attention
from torch import Tensor, nn

from attnlib import MultiHeadAttention, attention, causal
from attnlib.masks import padding, to_torch

D_MODEL, N_HEADS = 256, 8
PLAIN, TORCH, GPT2, X = (
    "plain attention, hand-written layer",
    "`nn.MultiheadAttention`",
    "Hugging Face GPT-2",
    "x-transformers",
)
PRODUCTS = "the matrix products alone"


@dataclass(frozen=True)
class Case:
    """A batch, and what is hidden in it."""

    batch: int
    n: int
    kind: str  # "all", "causal" or "padded"

    def name(self, what: str) -> str:
        """As the table calls it."""
        shown = {"all": "", "causal": ", causal", "padded": ", padded"}[self.kind]
        return f"attention layer, {self.batch} × {self.n:,}{shown}, {what}"

    @property
    def bounds(self) -> dict[str, str]:
        """Why a target may be missed."""
        same = "it calls the same kernel"
        gpt2 = f"{same}, on weights stored the other way round, whose products differ by some per cent"
        return {TORCH: "most of our time is matrix products: see their row", GPT2: gpt2, X: same}

    def targets(self, backward: bool) -> dict[str, float]:
        """What we want of it."""
        plain = {128: (1.15, 1.0), 1024: (5.0, 3.5) if self.kind == "causal" else (3.5, 2.5)}[self.n][backward]
        evaluation = self.kind == "all" and not backward
        return {PLAIN: plain, TORCH: 1.8 if evaluation else 1.0, GPT2: 1.0, X: 1.0}


CASES = [
    Case(8, 128, "all"),
    Case(8, 128, "causal"),
    Case(8, 128, "padded"),
    Case(2, 1024, "all"),
    Case(2, 1024, "causal"),
]


def everyone(case: Case, x: Tensor) -> dict[str, tuple[nn.Module, Callable[[], Tensor]]]:
    """Each layer and its call; all but the last two with the same weights, which is checked."""
    theirs = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)
    ours, plain = MultiHeadAttention.from_torch(theirs), hand_written_like(theirs)
    future = to_torch(causal(case.n, like=x))
    real = padding([case.n - 9 * i for i in range(case.batch)], case.n, like=x)
    ends = to_torch(real)
    kinds = {
        "all": ({}, None, {}),
        "causal": ({"causal": True}, future, {"attn_mask": future, "is_causal": True}),
        "padded": ({"mask": real}, ends[:, None], {"key_padding_mask": ends[:, 0]}),
    }
    mine, hidden, options = kinds[case.kind]
    calls = {
        "ours": (ours, lambda: ours(x, **mine).out),
        PLAIN: (plain, lambda: plain(x, hidden)),
        TORCH: (theirs, lambda: theirs(x, x, x, need_weights=False, **options)[0]),
    }
    want = calls["ours"][1]()
    for name, (_, call) in calls.items():
        torch.testing.assert_close(call(), want, atol=1e-5, rtol=0, msg=f"{name} computes something else")
    gpt2, other = (make(D_MODEL, N_HEADS, causal=case.kind == "causal") for make in (gpt2_attention, x_attention))
    keys = real[:, 0] if case.kind == "padded" else None
    calls[GPT2] = gpt2, lambda: gpt2(x, attention_mask=real[:, None] if case.kind == "padded" else None)[0]
    calls[X] = other, lambda: other(x, mask=keys)
    return calls


def without_gradients(call: Callable[[], Tensor]) -> Run:
    """The call as evaluation makes it."""
    return torch.no_grad()(call)


def products(batch: int, n: int) -> Run:
    """The four matrix products of a layer, into memory that is there already."""
    heads, d = batch * N_HEADS, D_MODEL // N_HEADS
    x, w, w_o = torch.randn(batch * n, D_MODEL), torch.randn(D_MODEL, 3 * D_MODEL), torch.randn(D_MODEL, D_MODEL)
    q, k, v = torch.randn(3, heads, n, d)
    joint, scores, out, y = (
        torch.empty(*s) for s in [(batch * n, 3 * D_MODEL), (heads, n, n), (heads, n, d), x.shape]
    )

    def run() -> None:
        torch.mm(x, w, out=joint)
        torch.bmm(q, k.mT, out=scores)
        torch.bmm(scores, v, out=out)
        torch.mm(x, w_o, out=y)

    return run


def rows() -> Iterator[list[Row]]:
    """The rows of the table, one case after another."""
    for case in CASES:
        torch.manual_seed(0)
        x = torch.randn(case.batch, case.n, D_MODEL, requires_grad=True)
        calls = everyone(case, x)
        for layer, _ in calls.values():
            layer.eval()
        runs = {name: without_gradients(call) for name, (_, call) in calls.items()}
        targets = case.targets(backward=False)
        if case.kind == "all":
            runs[PRODUCTS], targets[PRODUCTS] = products(case.batch, case.n), 0.75
        yield compare(case.name("forward"), runs.pop("ours"), runs, targets, bounds=case.bounds)
        runs = {name: forward_and_backward(layer.train(), call, x) for name, (layer, call) in calls.items()}
        yield compare(
            case.name("forward and backward"), runs.pop("ours"), runs, case.targets(backward=True), bounds=case.bounds
        )
    q, k, v = torch.randn(3, 2, N_HEADS, 1024, D_MODEL // N_HEADS)
    run = partial(attention, q, k, v, weights=False)
    yield compare(
        "`attention`, 2 × 8 heads × 1,024, forward",
        run,
        {"plain attention, three lines": lambda: plain_attention(q, k, v)},
    )
