"""Generated data: the answer is the one that the docstring promises, found here by looping."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import tasks
from attnlib.data.tasks import FIRST, IGNORE, NOWHERE, PAD

MAKERS = {
    "reversal": lambda seed: tasks.reversal(3, (2, 6), seed=seed),
    "distinct": lambda seed: tasks.reversal(3, (2, 6), distinct=True, seed=seed),
    "copying": lambda seed: tasks.copying(3, (2, 6), seed=seed),
    "sorting": lambda seed: tasks.sorting(3, 6, seed=seed),
    "documents": lambda seed: tasks.documents(3, 3, 5, seed=seed),
    "neighbours": lambda seed: tasks.neighbours(3, 5, 2, seed=seed),
    "lookback": lambda seed: tasks.lookback(3, 6, seed=seed),
    "latest": lambda seed: tasks.latest(3, 6, seed=seed),
}
seeds = st.tuples(st.integers(0, 50), st.integers(0, 50))


def bytes_of(data):
    return [(part.dtype, part.shape, part.numpy().tobytes()) for part in data]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_seed_decides_and_nothing_else(make):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 the point is that the global stream is not used
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    data = make(7)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    torch.manual_seed(2)
    assert bytes_of(make(7)) == bytes_of(data)
    others = [make(seed) for seed in (8, (7,), (7, 0), (7, 0, 0), (0, 7))]
    assert bytes_of(others[1]) == bytes_of(data)  # a tuple of one is that one
    assert len({str(bytes_of(x)) for x in [data, *others]}) == 5


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.integers(0, 4), st.integers(1, 4))
def test_reversal(seed, batch, low, extra, n_symbols):
    data = tasks.reversal(batch, (low, low + extra), n_symbols=n_symbols, seed=seed)
    assert data.source.shape == data.target.shape == data.alignment.shape == (batch, low + extra)
    for source, target, alignment, n in zip(*data, strict=True):
        assert low <= n <= low + extra
        assert target[:n].tolist() == source[:n].tolist()[::-1]
        assert torch.equal(source[alignment[:n]], target[:n])
        assert source[:n].min() >= FIRST
        assert source[:n].max() < FIRST + n_symbols
        assert (source[n:] == PAD).all()
        assert (target[n:] == PAD).all()
        assert (alignment[n:] == NOWHERE).all()


def test_reversal_has_every_length_and_every_symbol():
    data = tasks.reversal(400, (2, 5), n_symbols=3, seed=0)
    assert set(data.lengths.tolist()) == {2, 3, 4, 5}
    assert set(data.source.unique().tolist()) == {PAD, FIRST, FIRST + 1, FIRST + 2}
    assert tasks.reversal(4, 5, seed=0).lengths.tolist() == [5] * 4


@given(seeds, st.integers(1, 5), st.integers(0, 4), st.booleans())
def test_copying_is_reversal_with_another_target(seed, low, extra, distinct):
    data, other = (
        make(3, (low, low + extra), distinct=distinct, seed=seed) for make in (tasks.copying, tasks.reversal)
    )
    assert torch.equal(data.source, other.source)
    assert torch.equal(data.target, data.source)
    assert torch.equal(data.lengths, other.lengths)
    for alignment, n in zip(data.alignment.tolist(), data.lengths.tolist(), strict=True):
        assert alignment == [*range(n)] + [NOWHERE] * (low + extra - n)


def test_distinct_symbols_stand_once_and_are_any_of_them():
    data = tasks.reversal(300, (1, 5), n_symbols=6, distinct=True, seed=0)
    for source, n in zip(data.source.tolist(), data.lengths.tolist(), strict=True):
        assert len({*source[:n]}) == n
        assert source[n:] == [PAD] * (5 - n)
    assert set(data.source.unique().tolist()) == {PAD, *range(FIRST, FIRST + 6)}
    assert len({tuple(row[:3]) for row in data.source.tolist()}) > 100  # orders differ from row to row


@given(seeds, st.integers(1, 4), st.integers(1, 9))
def test_sorting(seed, batch, length):
    data = tasks.sorting(batch, length, seed=seed)
    assert data.numbers.shape == (batch, length, 1)
    assert data.numbers.dtype == torch.float32
    assert ((data.numbers >= 0) & (data.numbers < 1)).all()
    ordered = data.numbers[..., 0].gather(1, data.order)
    assert (ordered.diff(dim=1) >= 0).all()
    assert torch.equal(data.order.sort(dim=1).values, torch.arange(length).expand(batch, -1))


@given(seeds, st.integers(1, 4), st.integers(2, 5), st.integers(1, 5), st.integers(1, 3))
def test_documents(seed, n_sentences, n_words, n_answers, n_fillers):
    data = tasks.documents(3, n_sentences, n_words, n_topics=4, n_answers=n_answers, n_fillers=n_fillers, seed=seed)
    names = tasks.document_vocabulary(4, n_answers, n_fillers)
    assert data.words.shape == (3, n_sentences, n_words)
    for words, question, answer, sentence, word in zip(*data, strict=True):
        said = [[names[number] for number in row] for row in words]
        assert len({row[0] for row in said}) == n_sentences
        for row in said:
            kinds = [name.split()[0] for name in row]
            assert kinds[0] == "topic"
            assert sorted(kinds[1:]) == ["answer"] + ["filler"] * (n_words - 2)
        assert said[sentence][0] == f"topic {question}"
        assert said[sentence][word] == f"answer {answer}"


def test_the_relevant_word_stands_everywhere_in_a_document():
    data = tasks.documents(300, 3, 4, seed=0)
    places = set(zip(data.sentence.tolist(), data.word.tolist(), strict=True))
    assert places == {(s, w) for s in range(3) for w in (1, 2, 3)}
    assert set(data.answer.tolist()) == set(range(6))
    assert set(data.question.tolist()) == set(range(4))


@given(seeds, st.integers(3, 7), st.integers(1, 3))
def test_neighbours(seed, n, d):
    data = tasks.neighbours(2, n, d, seed=seed)
    for i in range(n):
        want = data.content[:, (i - 1) % n] - data.content[:, (i + 1) % n]
        assert torch.equal(data.target[:, i], want)


@given(seeds, st.integers(1, 8), st.data())
def test_lookback(seed, length, draw):
    offset = draw.draw(st.integers(0, length - 1))
    data = tasks.lookback(2, length, offset=offset, n_symbols=3, seed=seed)
    for tokens, target in zip(*data, strict=True):
        assert target.tolist() == [IGNORE] * offset + tokens.tolist()[: length - offset]
        assert 0 <= tokens.min() <= tokens.max() < 3


@given(seeds, st.integers(1, 12), st.sampled_from([0.0, 0.3, 1.0]))
def test_latest(seed, length, chance):
    data = tasks.latest(2, length, n_symbols=3, chance=chance, seed=seed)
    for tokens, target, position in zip(*data, strict=True):
        known = (IGNORE, NOWHERE)
        for t, token in enumerate(tokens.tolist()):
            known = (token - 3, t) if token >= 3 else known
            assert (target[t], position[t]) == known
    if chance in (0.0, 1.0):
        assert ((data.tokens >= 3) == bool(chance)).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tasks.reversal(0, 3, seed=0), ValueError, "batch must be at least 1; got 0"),
        (lambda: tasks.reversal(1, (4, 2), seed=0), ValueError, r"length must be \(low, high\).*\(4, 2\)"),
        (lambda: tasks.reversal(1, (1, 2, 3), seed=0), ValueError, "length must be an integer or a pair.*3 numbers"),
        (lambda: tasks.reversal(1, 2.5, seed=0), TypeError, "length must be an integer; got float"),
        (lambda: tasks.copying(1, 3, n_symbols=2, distinct=True, seed=0), ValueError, "at least 3, the length.*got 2"),
        (lambda: tasks.documents(1, 5, 4, seed=0), ValueError, "n_sentences must not exceed n_topics = 4.*got 5"),
        (lambda: tasks.documents(1, 2, 1, seed=0), ValueError, "n_words must be at least 2.*got 1"),
        (lambda: tasks.documents(1, 2, 3, n_fillers=0, seed=0), ValueError, "n_fillers must be at least 1"),
        (lambda: tasks.neighbours(1, 2, 1, seed=0), ValueError, "n must be at least 3.*got 2"),
        (lambda: tasks.lookback(1, 3, seed=0), ValueError, "offset must be below length = 3.*got 3"),
        (lambda: tasks.latest(1, 3, chance=1.5, seed=0), ValueError, "chance must be between 0 and 1; got 1.5"),
        (lambda: tasks.sorting(1, 3, seed=None), TypeError, "seed must be an integer; got NoneType"),
        (lambda: tasks.sorting(1, 3, seed=True), TypeError, "seed must be an integer or a tuple.*got bool"),
        (lambda: tasks.sorting(1, 3, seed=(0, -1)), ValueError, r"seed\[1\] must not be negative; got -1"),
        (lambda: tasks.sorting(1, 3, seed=()), ValueError, "seed must hold at least one integer"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
