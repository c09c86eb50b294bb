"""Recurrent encoder and decoder: the equations by hand, padding, decoding, gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlib import probes, recurrent
from attnlib.data.tasks import reversal
from attnlib.data.text import END, PAD, START
from attnlib.decoding import greedy
from attnlib.masks import padding
from attnlib.nn import Seq2Seq, shift_right

KINDS = [
    {"attend": None},
    {"attend": "bahdanau"},
    {"attend": "bahdanau", "score": "general"},
    {"attend": "luong", "score": "additive"},
    {"attend": "luong", "score": "dot"},
    {"attend": "luong", "score": "general"},
]
LENGTHS = [5, 2, 4, 1]


def each_model(test):
    for name, values in (("kind", KINDS), ("cell", ["gru", "lstm", "rnn"]), ("bidirectional", [False, True])):
        test = pytest.mark.parametrize(name, values, ids=str)(test)
    return test


def made(kind, cell="gru", bidirectional=False, d_model=8):
    torch.manual_seed(0)
    return Seq2Seq(11, 9, d_model=d_model, cell=cell, bidirectional=bidirectional, **kind).double()


def some(batch=4, n=5, high=11, seed=1):
    return torch.randint(3, high, (batch, n), generator=torch.Generator().manual_seed(seed))


@each_model
def test_a_padded_batch_equals_its_sources_one_by_one(kind, cell, bidirectional):
    model, source, target = made(kind, cell, bidirectional), some(), some(n=6, high=9)
    logits, weights = model(source, LENGTHS, target)
    other = torch.where(padding(LENGTHS, 5, like=source)[:, 0], source, 10)
    assert torch.equal(model(other, torch.tensor(LENGTHS), target).logits, logits)
    for b, n in enumerate(LENGTHS):
        alone = model(source[b : b + 1, :n], None, target[b : b + 1])
        torch.testing.assert_close(alone.logits[0], logits[b], atol=1e-12, rtol=0)
        if weights is not None:
            torch.testing.assert_close(alone.weights[0], weights[b, :, :n], atol=1e-12, rtol=0)
            assert weights[b, :, n:].eq(0).all()


@each_model
def test_the_probes_find_no_fault(kind, cell, bidirectional):
    model, source, target = made(kind, cell, bidirectional), some(), some(n=6, high=9)

    def written(x, real):
        return model(x, real.sum(1), target[:1].expand(len(x), -1))

    report = probes.padding(written, source, LENGTHS, n_tokens=11, pooled=True)
    assert report, report
    assert "Padding is ignored" in str(report)
    report = probes.causality(lambda y: model(source[:1].expand(len(y), -1), None, y), target, n_tokens=9)
    assert report, report
    report = probes.gradients(lambda x: model(x, LENGTHS, target), source)
    assert report, report
    assert "A gradient reaches every parameter" in str(report)


@each_model
def test_weights_sum_to_one_and_are_asked_for(kind, cell, bidirectional):
    _, weights = made(kind, cell, bidirectional)(some(), LENGTHS, some(n=6, high=9))
    if kind["attend"] is None:
        assert weights is None
    else:
        assert weights.shape == (4, 6, 5)
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 6, dtype=torch.float64))


@each_model
def test_decoding_is_teacher_forcing_on_what_was_written(kind, cell, bidirectional):
    model, source = made(kind, cell, bidirectional), some()
    nn.init.normal_(model.out.bias)
    model.out.bias.data[END] = -100.0  # nobody ends
    for row, length in zip(source, LENGTHS, strict=True):
        row[length:] = PAD
    tokens = greedy(model, source, 7)
    assert tokens.shape == (4, 7)
    assert torch.equal(model(source, LENGTHS, shift_right(tokens)).logits.argmax(-1), tokens)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_end_is_followed_by_padding_and_ends_the_work(kind):
    model, source, never = made(kind), some(batch=9), -1000.0
    model.out.bias.data[END] = 1000.0
    assert greedy(model, source, 7).tolist() == [[END]] * 9
    model.out.bias.data[END] = never
    free = greedy(model, source, 8)
    logits = model(source, None, shift_right(free)).logits
    gap = (logits.amax(-1) - (logits[..., END] - never)).detach()  # what END lacks to be the largest
    enough = float(gap.amin(1).median()) + 1e-9
    model.out.bias.data[END] = enough
    tokens = greedy(model, source, 8)
    first = [next((t for t, g in enumerate(row) if g < enough), 8) for row in gap.tolist()]
    assert sum(t < 8 for t in first) == 5
    assert tokens.tolist() == [(row[:t] + [END] + [PAD] * 8)[:8] for row, t in zip(free.tolist(), first, strict=True)]


def scores_by_hand(model, s, h):
    if model.score == "additive":
        return torch.stack([torch.tanh(s @ model.w_q + row @ model.w_k) @ model.w for row in h], 1)
    return s @ model.w @ h.T if model.score == "general" else s @ h.T


def by_hand(model, source, target_in):
    """Equations of the papers, one sequence, one step at a time, in the row convention."""
    states, last, _ = model.encode(source)
    s, h = torch.tanh(last[0] @ model.start.weight.T + model.start.bias), states[0]
    cell = nn.GRUCell(model.decoder.input_size, model.d_model, dtype=torch.float64)
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in model.decoder.state_dict().items()})
    logits, weights = [], []
    for token in target_in[0]:
        y = model.embed_target.weight[token][None]
        if model.attend == "luong":
            s = cell(y, s)
            alpha = torch.softmax(scores_by_hand(model, s, h), -1)
            context = alpha @ h
        else:
            alpha = torch.tensor([[0.0] * (len(h) - 1) + [1.0]], dtype=torch.float64)
            if model.attend == "bahdanau":
                alpha = torch.softmax(scores_by_hand(model, s, h), -1)
            context = alpha @ h
            s = cell(torch.cat([y, context], -1), s)
        joint = torch.tanh(torch.cat([s, context], -1) @ model.join.weight.T + model.join.bias)
        logits.append(joint @ model.out.weight.T + model.out.bias)
        weights.append(alpha)
    return torch.cat(logits)[None], torch.cat(weights)[None]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_equations_written_out(kind):
    model, source, target = made(kind), some(1), some(1, 6, 9)
    logits, weights = model(source, None, target)
    want, alpha = by_hand(model, source, target)
    torch.testing.assert_close(logits, want, atol=1e-12, rtol=0)
    if weights is not None:
        torch.testing.assert_close(weights, alpha, atol=1e-12, rtol=0)


def test_the_last_state_is_where_each_direction_ends():
    model, source = made({}, bidirectional=True), some()
    states, last, _ = model.encode(source, LENGTHS)
    for b, n in enumerate(LENGTHS):
        assert torch.equal(last[b, 0], torch.cat([states[b, n - 1, :4], states[b, 0, 4:]]))
        assert states[b, n:].eq(0).all()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_it_learns_a_batch_by_heart(kind):
    torch.manual_seed(0)
    data = reversal(8, (2, 5), n_symbols=5, seed=0)
    model = Seq2Seq(9, 9, d_model=32, **kind)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, source):
            return self.model(source, data.lengths, shift_right(data.target))

    def loss(logits, target):
        return nn.functional.cross_entropy(logits.mT, target, ignore_index=PAD)

    report = probes.overfits(Whole(), data.source, data.target, loss, steps=150)
    assert report, report


def test_sizes_are_those_of_the_equations():
    def count(**options):
        return sum(p.numel() for p in Seq2Seq(11, 9, d_model=8, **options).parameters())

    assert count(attend="bahdanau") == count() + 2 * 8 * 8 + 8
    assert count(attend="luong", score="general") == count(attend="luong", score="dot") + 8 * 8
    assert count(attend="luong", score="dot") == count() - 3 * 8 * 8  # the context is no input


def test_shift_right():
    assert shift_right(torch.tensor([[7, 8, 9], [4, 5, 0]])).tolist() == [[START, 7, 8], [START, 4, 5]]
    assert shift_right(torch.tensor([[7]])).tolist() == [[START]]


GOOD = some()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Seq2Seq(0, 9), ValueError, "n_source must be at least 1; got 0"),
        (lambda: Seq2Seq(9, 9, d_model=2.0), TypeError, "d_model must be an integer; got float"),
        (lambda: Seq2Seq(9, 9, cell="GRU"), ValueError, "cell must be one of 'gru', 'lstm', 'rnn'; got 'GRU'"),
        (lambda: Seq2Seq(9, 9, attend=True), ValueError, "attend must be one of None, 'bahdanau', 'luong'; got True"),
        (lambda: Seq2Seq(9, 9, score="concat"), ValueError, "score must be one of None, 'additive',.*got 'concat'"),
        (lambda: Seq2Seq(9, 9, d_model=7, bidirectional=True), ValueError, "d_model must be even.*got 7"),
        (lambda: made({})(GOOD, [5, 2], GOOD), ValueError, r"target_in must hold tokens from 0 to 8; got (9|10)"),
        (lambda: made({}).encode(GOOD, [5, 2]), ValueError, r"lengths must be 4 numbers from 1 to 5.*\[5, 2\]"),
        (lambda: made({}).encode(GOOD, [5, 2, 0, 1]), ValueError, "from 1 to 5"),
        (lambda: made({}).encode(GOOD, [5, 2, 6, 1]), ValueError, "from 1 to 5"),
        (lambda: made({}).encode(GOOD, [5, 2, 1.5, 1]), TypeError, "lengths must hold integers; got float"),
        (lambda: made({}).encode(GOOD.float()), TypeError, "source must hold integers.*float32"),
        (lambda: made({}).encode(GOOD[0]), ValueError, r"source must have shape \(batch, n\).*\(5,\)"),
        (lambda: made({}).encode([[4]]), TypeError, "source must be a torch tensor of tokens; got list"),
        (lambda: made({}).encode(GOOD[:, :0]), ValueError, r"neither of them 0; got \(4, 0\)"),
        (lambda: made({})(GOOD, None, GOOD[:2] % 9), ValueError, "target_in must have the batch of source, 4; got 2"),
        (lambda: shift_right(torch.zeros(2, 3)), TypeError, "target must hold integers"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_nothing_here_has_a_softmax_of_its_own():
    with open(recurrent.__file__, encoding="utf-8") as file:
        assert "softmax" not in file.read()
