"""Whole models: a training step, and writing a sequence token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from measure import Row, Run, compare
from peers import TorchTransformer, bart
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlib.decoding import greedy
from attnlib.nn import Transformer, TransformerConfig

SIZES = {"d_model": 128, "n_heads": 4, "d_ff": 512}
N_TOKENS, WRITTEN = 100, 240


def ours(**options: object) -> Transformer:
    """The course's model, of two and two layers."""
    return Transformer(TransformerConfig(n_source=N_TOKENS, n_target=N_TOKENS, **SIZES, **options))


def step(model: nn.Module, logits: Callable[[Tensor, Tensor], Tensor]) -> Run:
    """One step of training on a batch of 64 pairs of 16 tokens: forward, loss, backward, AdamW."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    source, target = torch.randint(4, N_TOKENS, (2, 64, 17)).unbind()
    source = source[:, :16]

    def run() -> None:
        optimiser.zero_grad()
        predicted = logits(source, target[:, :-1])
        cross_entropy(predicted.flatten(0, 1), target[:, 1:].flatten()).backward()
        optimiser.step()

    return run


def training() -> list[Row]:
    """A step of ours against torch's and Hugging Face's."""
    mine, theirs = ours(), TorchTransformer(N_TOKENS, **SIZES)
    other = bart(N_TOKENS, **SIZES).train()
    peers = {
        "`nn.Transformer`": step(theirs, theirs),
        "Hugging Face Bart": step(
            other, lambda x, y: other(x, attention_mask=(x != 0).long(), decoder_input_ids=y).logits
        ),
    }
    run = step(mine, lambda x, y: mine(x, y).logits)
    name = "training step, 2 + 2 layers, d 128, 64 × 16 tokens"
    why = "two thirds of our step are matrix products; written flat, without modules and checks, it gains 2 to 5 %"
    return compare(name, run, peers, dict.fromkeys(peers, 1.15), turns=15, bounds=dict.fromkeys(peers, why))


@torch.no_grad()
def without_cache(model: Transformer, source: Tensor) -> Tensor:
    """The likeliest tokens, everything being computed anew for each."""
    tokens = torch.full((len(source), 1), model.config.start)
    for _ in range(WRITTEN):
        tokens = torch.cat([tokens, model(source, tokens).logits[:, -1:].argmax(-1)], dim=1)
    return tokens[:, 1:]


def generation() -> list[Row]:
    """Writing 240 tokens with the cache, against doing without, and against `generate`."""
    torch.manual_seed(0)
    mine, other, source = ours().eval(), bart(N_TOKENS, **SIZES).eval(), torch.randint(4, N_TOKENS, (1, 16))
    with torch.no_grad():
        mine.out.weight[mine.config.end] *= 0  # so that nothing ends early
        other.model.shared.weight[2] *= 0
    if not torch.equal(greedy(mine, source, WRITTEN), without_cache(mine, source)):
        raise AssertionError("the cache changes what is written")
    options = {"min_new_tokens": WRITTEN, "max_new_tokens": WRITTEN, "num_beams": 1, "do_sample": False}

    def generate(cache: bool) -> Run:
        return lambda: other.generate(source, use_cache=cache, attention_mask=torch.ones_like(source), **options)

    peers = {
        "ours without the cache": lambda: without_cache(mine, source),
        "Hugging Face Bart, `generate`": generate(True),
    }
    targets = dict(zip(peers, (5.0, 2.3), strict=True))
    name = f"writing {WRITTEN} tokens, 2 + 2 layers, d 128, cached"
    return compare(name, lambda: greedy(mine, source, WRITTEN), peers, targets, turns=7)


def rows() -> Iterator[list[Row]]:
    """The rows of the table."""
    yield training()
    yield generation()
