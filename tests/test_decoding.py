"""Greedy decoding, with the cache and, as an oracle, without one."""

from __future__ import annotations

import pytest
import torch

from attnlib.decoding import greedy
from attnlib.transformer import Transformer, TransformerConfig


def _model(**options):
    torch.manual_seed(0)
    return Transformer(TransformerConfig(n_source=12, n_target=9, d_model=16, **options)).double()


def _without_cache(model, source, n_max):
    model.eval()
    written = torch.full((len(source), 1), model.config.start)
    for _ in range(n_max):
        token = model(source, written).logits[:, -1:].argmax(-1)
        done = (written[:, 1:] == model.config.end).any(1, keepdim=True)
        written = torch.cat([written, token.where(~done, model.config.pad)], dim=1)
    return written[:, 1:]


@pytest.mark.parametrize("position", ["none", "sinusoidal", "learned", "relative", "alibi", "rotary"])
@pytest.mark.parametrize("end", [2, 5, 7])
def test_it_is_the_likeliest_token_again_and_again(position, end):
    model = _model(position=position, end=end, tie="none")
    with torch.no_grad():
        model.out.weight.mul_(5)
    source = torch.randint(4, 12, (6, 5))
    source[0, 3:] = 0
    got, want = greedy(model, source, 7), _without_cache(model, source, 7)
    assert torch.equal(got, want[:, : got.shape[1]])
    assert (want[:, got.shape[1] :] == model.config.pad).all()


def test_it_leaves_the_model_in_its_mode():
    model = _model(dropout=0.5)
    source = torch.randint(4, 12, (2, 5))
    assert torch.equal(greedy(model, source, 4), greedy(model, source, 4))
    assert model.training


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="n_max must be at least 1; got 0"):
        greedy(_model(), torch.randint(4, 12, (2, 5)), 0)
    with pytest.raises(ValueError, match="source must hold tokens from 0 to 11; got 12"):
        greedy(_model(), torch.tensor([[12]]), 3)
