"""A cut must close what it names and nothing else; a patch must put in what it names and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlib import MultiHeadAttention, causal
from attnlib.interventions import cut, patch
from attnlib.nn import EncoderLayer, Transformer, TransformerConfig


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return MultiHeadAttention(16, 4).double()


@pytest.fixture
def x():
    return torch.randn(3, 6, 16, dtype=torch.float64)


def test_it_equals_a_mask_given_by_hand(layer, x):
    mask = causal(6, like=x).expand(3, 1, 6, 6).repeat(1, 4, 1, 1)
    for b, (q, k) in enumerate([(4, 1), (5, 5), (3, 0)]):
        mask[b, :, q, k] = False
    with cut(layer, [4, 5, 3], torch.tensor([1, 5, 0])):
        got = layer(x, mask=causal(6, like=x), weights=True)
    want = layer(x, mask=mask, weights=True)
    assert torch.equal(got.weights, want.weights)
    assert torch.equal(got.out, want.out)
    assert not torch.equal(layer(x, mask=causal(6, like=x)).out, want.out)  # the hook is gone


def test_heads_and_lists_and_all(layer, x):
    with cut(layer, None, [[0, 2], [], [5]], heads=[1, 3]):
        weights = layer(x, weights=True).weights
    shut = weights == 0
    assert shut[0, [1, 3]][:, :, [0, 2]].all()
    assert shut[2, [1, 3]][:, :, 5].all()
    assert shut.sum() == 2 * 6 * 2 + 2 * 6
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 6, dtype=torch.float64))


def test_cross_attention_and_masks_of_three_axes(layer, x):
    memory, mask = torch.randn(3, 9, 16, dtype=torch.float64), torch.ones(3, 1, 9, dtype=torch.bool)
    mask[0, :, 7:] = False
    with cut(layer, [0, 1, 2], [6, 8, 0]):
        weights = layer(x, memory, mask=mask, weights=True).weights
    assert (weights == 0).sum() == 4 * (6 * 2 + 3)
    assert (weights[0, :, 0, 6] == 0).all()
    assert (weights[2, :, 2, 0] == 0).all()


def test_several_cuts_add_up_and_leave_with_their_with(layer, x):
    before = layer(x).out
    with cut(layer, [0] * 3, [1] * 3), cut(layer, [0] * 3, [2] * 3):
        weights = layer(x, weights=True).weights
        assert (weights[:, :, 0, 1:3] == 0).all()
        assert (weights == 0).sum() == 3 * 4 * 2
    with pytest.raises(RuntimeError, match="stop"), cut(layer, [0] * 3, [1] * 3):
        raise RuntimeError("stop")
    assert torch.equal(layer(x).out, before)


def test_in_a_whole_model_only_what_comes_after_changes():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_source=12, n_target=12, d_model=16)).eval()
    source, target = torch.randint(4, 12, (2, 5)), torch.randint(4, 12, (2, 6))
    with torch.no_grad():
        before = model(source, target).logits
        with cut([layer.cross_attention for layer in model.decoder.layers], [3, 4], [0, 2]):
            change = (model(source, target).logits - before).abs().amax(-1) > 1e-6
    assert change[0].tolist() == [False] * 3 + [True] * 3
    assert change[1].tolist() == [False] * 4 + [True] * 2


def test_a_patch_moves_rows_and_keeps_the_kind_of_output(x):
    layer = EncoderLayer(16, 2, 32).double()
    other, own = layer(torch.randn_like(x)).out, layer(x)
    with patch(layer, [[0, 1], [], [5]], other):
        got = layer(x)
    assert type(got) is type(own)
    same_as_other = (got.out == other).all(-1)
    assert same_as_other.nonzero().tolist() == [[0, 0], [0, 1], [2, 5]]
    assert torch.equal(got.out[~same_as_other], own.out[~same_as_other])


def test_bad_arguments_are_named(layer, x):
    with (
        pytest.raises(TypeError, match="attentions must be MultiHeadAttention; got Linear"),
        cut(nn.Linear(2, 2), [0], [0]),
    ):
        pass
    with pytest.raises(ValueError, match="heads must lie between 0 and 3; got 4"), cut(layer, [0], [0], heads=[4]):
        pass
    with cut(layer, [0, 0], [0, 0]), pytest.raises(ValueError, match="query must hold an entry for each of the 3"):
        layer(x)
    with (
        cut(layer, [0, 0, 6], [0, 0, 0]),
        pytest.raises(ValueError, match="query must hold positions from 0 to 5; got 6"),
    ):
        layer(x)
    with (
        cut(layer, None, [0, 0, 0]),
        pytest.raises(ValueError, match="run the model without a cache"),
        torch.no_grad(),
    ):
        layer(x, cache=layer.new_cache(3, 8))
    plain = nn.Identity()
    with patch(plain, [0, 0, 0], x[:, :2]), pytest.raises(ValueError, match="rows and the output must have one shape"):
        plain(x)


@pytest.mark.parametrize("key", [torch.tensor([[False, True]] * 3), [True] * 3, [[0.5]] * 3])
def test_positions_are_integers(layer, x, key):
    with cut(layer, None, key), pytest.raises(TypeError, match="key must hold integers"):
        layer(x)


def test_inputs_have_one_batch_axis_and_heads_may_come_once(layer, x):
    with cut(layer, None, [0, 0, 0], heads=iter([2])):
        assert (layer(x, weights=True).weights[:, 2, :, 0] == 0).all()
    with cut(layer, None, [0]), pytest.raises(ValueError, match=r"cut needs inputs of shape \(batch, n, d_model\)"):
        layer(x[None])
    plain = nn.Identity()
    with patch(plain, [0] * 6, x[0]), pytest.raises(ValueError, match="rows and the output must have one shape"):
        plain(x[0])
