"""Probes of an attention alone, of losses and of decoding: each finds what is broken in its way, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from attnlib import MultiHeadAttention, attention, causal, gaussian
from attnlib.models import GPT, GPTConfig
from attnlib.probes import causality, padded_loss, padding, scaling, step_by_step, weighted_mean

BATCH, HEADS, N_Q, N_K, D = 2, 2, 5, 7, 8


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def three(dtype=torch.float64):
    return [torch.randn(BATCH, n, D, dtype=dtype) for n in (N_Q, N_K, N_K)]


class Attention(nn.Module):
    """Attention with heads, in plain torch, and every way to get its weights wrong."""

    def __init__(self, bug="", dtype=torch.float64):
        super().__init__()
        self.bug = bug
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, dtype=dtype) for _ in range(4))
        self.dropout = nn.Dropout(0.3)

    def split(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def project(self, q, k):
        return self.split(self.q(q)), self.split(self.k(k))

    def weigh(self, q, k):
        q, k = self.project(q, k)
        scale = {"no scale": 1.0, "by d": 1 / q.shape[-1], "by d_model": D**-0.5}.get(self.bug, q.shape[-1] ** -0.5)
        axis = {"softmax over queries": -2, "softmax over heads": 1, "softmax over the batch": 0}.get(self.bug, -1)
        scores = q @ k.mT * scale
        scores = scores + torch.arange(k.shape[-2]) * 0.3 if self.bug == "bias" else scores
        weights = scores.sigmoid() if self.bug == "no softmax" else scores.softmax(axis)
        return self.dropout(weights)

    def forward(self, q, k, v):
        weights = self.weigh(q + v.mean(1, True) if self.bug == "weights read values" else q, k)
        y = self.o((weights @ self.split(self.v(v))).transpose(1, 2).flatten(2))
        if self.bug == "second pass":
            weights = self.weigh(q, k)  # the same numbers, but for another dropout
        if self.bug == "second pass without scale":
            weights = self.weigh(1.2 * q, k)
        if self.bug == "mean over heads":
            weights = weights.mean(1)
        if self.bug == "before dropout":
            training, self.training = self.training, False
            self.dropout.training = False
            weights = self.weigh(q, k)
            self.training = self.dropout.training = training
        if self.bug == "mixed":
            y = y + y.mean(1, True)
        if self.bug == "negative":
            weights = weights - weights.mean()
        return y if self.bug == "kept" else (y, weights)


FINDINGS = {
    "softmax over queries": "a softmax runs over the queries",
    "softmax over heads": "Weights sum to one over the heads",
    "softmax over the batch": "Equal values give unequal outputs",
    "no softmax": "Equal values give unequal outputs",
    "mixed": "Output 0 reads query 1",
    "weights read values": "the weights read the values",
    "second pass without scale": "not those that made the output",
    "mean over heads": "not those that made the output",
    "negative": "A weight is negative",
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("bug", FINDINGS)
def test_a_mean_that_is_none_is_found(bug, dtype):
    report = weighted_mean(Attention(bug, dtype), *three(dtype))
    assert not report
    assert FINDINGS[bug] in str(report)


@pytest.mark.parametrize("bug", ["second pass", "before dropout"])
def test_a_second_pass_shows_in_training(bug):
    assert weighted_mean(Attention(bug), *three())
    report = weighted_mean(Attention(bug), *three(), training=True)
    assert "not those that made the output" in str(report)
    assert weighted_mean(Attention(), *three(), training=True)
    ours = MultiHeadAttention(D, HEADS, dropout=0.3).double()  # whose weights are those before dropout, as it says
    assert not weighted_mean(lambda q, k, v: ours(q, k, v, weights=True), *three(), training=True)


def good():
    ours, theirs = MultiHeadAttention(D, HEADS).double(), nn.MultiheadAttention(D, HEADS, batch_first=True).double()
    hidden = torch.zeros(N_Q, N_K, dtype=torch.bool)
    hidden[1], hidden[:, 2] = True, True  # query 1 reads nothing, and nobody reads key 2
    return {
        "plain": Attention(),
        "without weights": Attention("kept"),
        "ours": lambda q, k, v: ours(q, k, v, weights=True),
        "ours, fused": lambda q, k, v: ours(q, k, v),
        "torch's": lambda q, k, v: theirs(q, k, v, average_attn_weights=False),
        "torch's without weights": lambda q, k, v: theirs(q, k, v, need_weights=False),
        "the function": attention,
        "an empty row": lambda q, k, v: attention(q, k, v, mask=~hidden),
        "another score": lambda q, k, v: attention(q, k, v, score=gaussian),
        "causal": lambda q, k, v: attention(q, k, v, causal=True),
        "kernel": F.scaled_dot_product_attention,
    }


@pytest.mark.parametrize("name", good())
def test_silent_on_means_that_are_some(name):
    report = weighted_mean(good()[name], *three())
    assert report, report
    told = (
        "not returned" if name in ("without weights", "torch's without weights", "kernel", "ours, fused") else "made"
    )
    assert told in str(report)


def test_numpy_and_half_precision():
    q, k, v = (x.numpy() for x in three())
    assert weighted_mean(attention, q, k, v)
    assert not weighted_mean(lambda q, k, v: (v[:, :5], attention(q, k, v).weights), q, k, v)
    assert weighted_mean(lambda q, k, v: attention(q, k, v), *three(torch.bfloat16))


SCALES = {
    "": "Scores are dot products times 0.5 = 1/√4.",
    "no scale": "Scores are dot products times 1: they are not scaled. 1/√4 would be 0.5.",
    "by d": "Scores are dot products times 0.25: they are divided by d, not by √d. 1/√4 would be 0.5.",
    "by d_model": "Scores are dot products times 0.35: they are divided by √d_model, not by √d_head. "
    "1/√4 would be 0.5.",
    "bias": "Scores are no dot products times one number: a bias, or another score.",
}


@pytest.mark.parametrize("bug", SCALES)
def test_scales(bug):
    layer = Attention(bug).eval()
    report = scaling(layer, *three(), project=layer.project)
    assert str(report) == SCALES[bug]
    assert report.ok == (not bug)


def test_the_scales_of_others():
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True).double()
    w_q, w_k, _ = theirs.in_proj_weight.chunk(3)

    def project(q, k):
        return tuple((x @ w.T).unflatten(-1, (HEADS, -1)).transpose(1, 2) for x, w in ((q, w_q), (k, w_k)))

    assert scaling(lambda q, k, v: theirs(q, k, v, average_attn_weights=False), *three(), project=project)
    assert scaling(attention, *three())
    assert scaling(lambda q, k, v: attention(q, k, v, causal=True), *three())
    assert scaling(attention, *three(), scale=8**-0.5)
    assert not scaling(attention, *three(), scale=0.5)
    assert "another score" in str(scaling(lambda q, k, v: attention(q, k, v, score=gaussian), *three()))
    q, k, v = three()
    assert "No query reads two keys" in str(scaling(attention, q, k[:, :1], v[:, :1]))
    with pytest.raises(ValueError, match="model must return its weights too"):
        scaling(F.scaled_dot_product_attention, q, k, v)


def test_bad_arguments_of_an_attention_are_named():
    q, k, v = three()
    with pytest.raises(ValueError, match=r"v must be \(batch, n_k, d\) of the library and batch of q; got \(7, 8\)"):
        weighted_mean(attention, q, k, v[0])
    with pytest.raises(ValueError, match="k and v must have one length; got 6 and 7"):
        weighted_mean(lambda q, k, v: q, q, k[:, :6], v)
    with pytest.raises(ValueError, match=r"weights must be .*; got \(2, 7, 5\)"):
        weighted_mean(lambda q, k, v: (q, (q @ k.mT).mT), q, k, v)


class Masked(nn.Module):
    """Self-attention whose padding mask goes wrong: under the heads' axis, or the wrong way round."""

    def __init__(self, bug=""):
        super().__init__()
        self.bug = bug
        self.attention = nn.MultiheadAttention(D, HEADS, batch_first=True)

    def forward(self, x, real):
        if self.bug == "inverted":
            return self.attention(x, x, x, key_padding_mask=real)[0]
        q = k = v = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # (batch, heads, n, d_head)
        mask = real[:, None] if self.bug == "heads" else real[:, None, None]
        mask = real[:, None, :, None] if self.bug == "rows" else mask
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


def test_padding_that_broadcasts_over_heads_is_found_with_as_many_sequences():
    x, lengths = torch.randn(3, 5, D), [5, 3, 2]
    with pytest.raises(RuntimeError, match="must match the size"):  # three sequences, two heads
        padding(Masked("heads"), x, lengths)
    report = padding(Masked("heads"), x, lengths, n_heads=HEADS)
    assert not report
    assert "reads padding position" in str(report)
    assert "One sequence more breaks the model: the axis of the sequences stands under that of the heads" in str(
        report
    )
    assert padding(Masked(), x, lengths, n_heads=HEADS)
    assert padding(Masked(), x[:1], [3], n_heads=4)
    assert "under that of the heads" not in str(padding(Masked("rows"), x, lengths, n_heads=HEADS))


def test_masks_that_are_inverted_are_named_where_they_give_nan():
    x = torch.randn(2, 5, D)
    layer = nn.MultiheadAttention(D, HEADS, batch_first=True)
    report = causality(lambda x: layer(x, x, x, attn_mask=causal(5, like=x))[0], x)
    assert str(report) == (
        "The output holds NaN, first at [0, 4, 0]: the mask is the wrong way round, for outputs that are numbers read "
        "later inputs and no earlier ones."
    )
    report = padding(Masked("inverted"), x, [5, 3])
    assert "the mask is the wrong way round, for under the opposite one there is none" in str(report)
    assert str(causality(lambda x: x * torch.nan, x)).endswith("so that nothing can be told.")
    assert str(padding(lambda x, real: x * torch.nan, x, [5, 3])).endswith("so that nothing can be told.")


def entropy(bug, output, target):
    each = F.cross_entropy(output.mT, target, reduction="none")
    real = target != 0
    return {
        "": lambda: F.cross_entropy(output.mT, target, ignore_index=0),
        "sum": lambda: each[real].sum(),
        "all": lambda: each.mean(),
        "divided by all": lambda: (each * real).mean(),
        "summed over all": lambda: each.sum() / real.sum(),
    }[bug]()


@pytest.mark.parametrize(
    ("bug", "words"),
    [("all", "reads outputs"), ("divided by all", "divided by the padding too"), ("summed over all", "reads outputs")],
)
def test_a_loss_over_padding_is_found(bug, words):
    output, target = torch.randn(3, 4, 6), torch.tensor([[1, 2, 3, 4], [5, 1, 0, 0], [2, 0, 0, 0]])
    assert words in str(padded_loss(lambda y, z: entropy(bug, y, z), output, target, [4, 2, 1]))
    for fine in ("", "sum"):
        assert padded_loss(lambda y, z, fine=fine: entropy(fine, y, z), output, target, [4, 2, 1])
    assert "Nothing to see" in str(padded_loss(lambda y, z: y.sum(), output, target, [4, 4, 4]))
    with pytest.raises(ValueError, match=r"lengths hold a number up to n for each sequence; got .* and \[4, 2\]"):
        padded_loss(lambda y, z: y.sum(), output, target, [4, 2])
    with pytest.raises(ValueError, match="loss must return one number"):
        padded_loss(lambda y, z: y, output, target, [4, 2, 1])


def test_decoding_is_that_of_the_whole_and_one_position_off_is_found():
    sizes = dict(vocab_size=20, n_positions=16, n_embd=8, n_head=2, n_layer=2, bos_token_id=None, eos_token_id=None)
    theirs, tokens = GPT2LMHeadModel(GPT2Config(**sizes)), torch.randint(20, (2, 6))

    def step(token, cache, late=0):
        past = 0 if cache is None else cache.get_seq_length()
        positions = torch.full_like(token, past + late * (past > 0))
        found = theirs(token, past_key_values=cache, position_ids=positions, use_cache=True)
        return found.logits, found.past_key_values

    assert step_by_step(theirs, step, tokens), "transformers"
    report = step_by_step(theirs, lambda token, cache: step(token, cache, late=1), tokens)
    assert str(report) == "Step by step differs from all at once, first at position 1 (5 of 6 positions)."
    ours = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=8, n_heads=2, n_layers=2))

    def write(token, state):
        state = ours.prefill(token, 6) if state is None else state
        return ours.step(token, state), state

    assert step_by_step(ours, write, tokens)
    layer = MultiHeadAttention(D, HEADS)

    def cached(x, cache):
        cache = layer.new_cache(len(x), 6) if cache is None else cache
        return layer(x, cache=cache).out, cache

    assert step_by_step(lambda x: layer(x, causal=True), cached, torch.randn(2, 6, D))
    assert not step_by_step(layer, cached, torch.randn(2, 6, D))
    assert step_by_step(lambda x: np.cumsum(x, 1), lambda x, s: [x if s is None else x + s] * 2, np.ones((1, 3, 2)))
