"""Texts with gaps: what is chosen, what is shown, and the loss."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from attnlib.models import BERT, BERTConfig
from attnlib.pretraining import gapped_batches, mask_tokens, masked_token_loss

TOKENS = torch.randint(3, 30, (400, 50), generator=torch.Generator().manual_seed(0))
TOKENS[:, 0], TOKENS[::2, 40:] = 1, 0


def test_eight_of_ten_chosen_are_masked_one_is_another_and_one_is_kept():
    shown, tokens, chosen, real = mask_tokens(TOKENS, 30, mask=2, seed=0, share=0.3, special=(1,))
    can = (TOKENS > 2).sum().item()
    assert abs(chosen.sum().item() / can - 0.3) < 0.01
    masked, kept = (shown == 2)[chosen].float().mean(), (shown == tokens)[chosen].float().mean()
    assert abs(masked - 0.8) < 0.02
    assert abs(kept - 0.1 - 0.1 / 27) < 0.02  # another token may be the same
    assert torch.equal(shown[~chosen], tokens[~chosen])
    assert torch.equal(real, TOKENS != 0)
    assert not chosen[:, 0].any()
    assert not chosen[~real].any()
    assert shown[chosen].min() == 2


def test_gaps_come_from_the_seed_and_the_step_alone():
    batches = gapped_batches(TOKENS, 8, 30, seed=4, mask=2)
    assert all(torch.equal(a, b) for a, b in zip(batches(3), batches(3), strict=True))
    assert not torch.equal(batches(3).chosen, batches(4).chosen)


def test_the_loss_counts_the_chosen_and_no_others():
    torch.manual_seed(0)
    model = BERT(BERTConfig(n_tokens=30, n_max=50, d_model=16, n_heads=2, n_layers=1)).eval()
    batch = mask_tokens(TOKENS[:4], 30, mask=2, seed=1)
    loss, n = masked_token_loss(model, batch)
    logits = model(batch.shown, mask=batch.real)
    wanted = torch.where(batch.chosen, batch.tokens, -100)
    torch.testing.assert_close(loss, cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="sum"))
    assert n == batch.chosen.sum()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 1.5}, "share"),
        ({"mask": -1}, "mask"),
        ({"special": tuple(range(30))}, "n_tokens must leave tokens"),
    ],
)
def test_what_cannot_be_is_named(options, said):
    with pytest.raises(ValueError, match=said):
        mask_tokens(TOKENS, 30, **{"mask": 2, "seed": 0} | options)
    with pytest.raises(ValueError, match=r"tokens must be \(batch, n\)"):
        mask_tokens(TOKENS[0], 30, mask=2, seed=0)


def test_weights_begin_as_large_as_std_says():
    for std in (0.02, 0.1):
        model = BERT(BERTConfig(n_tokens=100, n_max=50, d_model=64, n_heads=2, n_layers=1, std=std))
        assert abs(model.token_embedding.weight.std().item() / std - 1) < 0.05
    with pytest.raises(ValueError, match="std"):
        BERTConfig(n_tokens=9, std=0)
