"""From tokens to batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.data.text import END, FIRST, PAD, RESERVED, START, UNKNOWN, Vocabulary, by_length, pad

texts = st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=6)
sequences = st.lists(st.lists(st.integers(4, 9), max_size=7), min_size=1, max_size=23)


@given(texts)
def test_what_is_encoded_is_decoded(given_texts):
    vocabulary = Vocabulary(given_texts)
    assert vocabulary.tokens[:FIRST] == RESERVED
    for text in given_texts:
        assert vocabulary.decode(vocabulary.encode(text), reserved=True) == text
        assert all(token in vocabulary for token in text)


def test_frequent_tokens_come_first_and_equals_in_alphabetical_order():
    vocabulary = Vocabulary([["b", "a", "c"], ["c", "é", "<s>"]])
    assert vocabulary.tokens == (*RESERVED, "c", "a", "b", "é")
    assert vocabulary == Vocabulary([["é", "c", "a"], ["b", "c"]])
    assert len(vocabulary) == 8
    assert repr(vocabulary) == "Vocabulary of 8 tokens, 4 of them reserved"


def test_decoding_ends_at_the_end_and_keeps_the_unknown():
    vocabulary = Vocabulary([["a", "b"]])
    a, b = vocabulary.encode(["a", "b"])
    numbers = torch.tensor([START, b, UNKNOWN, a, END, a, PAD])
    assert vocabulary.decode(numbers) == ["b", "<unk>", "a"]
    assert vocabulary.decode(numbers, reserved=True) == ["<s>", "b", "<unk>", "a", "</s>", "a", "<pad>"]
    assert "z" not in vocabulary
    assert vocabulary.encode(["z"]) == [UNKNOWN]


def test_a_vocabulary_is_saved_and_loaded(tmp_path):
    vocabulary = Vocabulary([["zwölf", "\n", "zwölf", "<pad>"], ['"']])
    vocabulary.save(tmp_path / "words.json")
    assert Vocabulary.load(tmp_path / "words.json") == vocabulary
    assert Vocabulary.load(tmp_path / "words.json").encode(['"']) == vocabulary.encode(['"'])
    assert hash(vocabulary) == hash(Vocabulary.load(tmp_path / "words.json"))


@pytest.mark.parametrize("content", ["{", '{"a": 1}', '["a", "b"]', json.dumps([*RESERVED, "a", "a"]), "[1, 2, 3, 4]"])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "words.json").write_text(content)
    with pytest.raises(ValueError, match=r"words.json must be a JSON list of"):
        Vocabulary.load(tmp_path / "words.json")


@given(sequences, st.integers(-1, 3))
def test_padding_keeps_the_sequences(rows, value):
    tokens, lengths = pad(rows, value=value)
    assert tokens.shape == (len(rows), max(map(len, rows)))
    assert tokens.dtype == lengths.dtype == torch.int64
    for row, padded, length in zip(rows, tokens.tolist(), lengths.tolist(), strict=True):
        assert padded[:length] == row
        assert set(padded[length:]) <= {value}
    assert torch.equal(pad([torch.tensor(row, dtype=torch.int64) for row in rows], value=value).tokens, tokens)


@given(sequences, st.integers(1, 6), st.integers(0, 3))
def test_an_epoch_holds_every_example_once(rows, batch_size, seed):
    marked = [[*row, 100 + i] for i, row in enumerate(rows)]  # the last token says which one it is
    batches = by_length(marked, batch_size, seed=seed)
    n = len(batches)
    assert n == -(-len(rows) // batch_size)
    for epoch in (0, 1):
        seen = []
        for step in range(epoch * n, epoch * n + n):
            tokens, lengths = batches(step)
            assert len(tokens) <= batch_size
            seen += [row[:length] for row, length in zip(tokens.tolist(), lengths, strict=True)]
        assert sorted(seen, key=lambda row: row[-1]) == marked


def test_like_lengths_come_together_in_a_shuffled_order():
    rng = np.random.default_rng(0)
    rows = [[i] * n for i, n in enumerate(rng.integers(1, 30, size=200))]
    batches = by_length(rows, 10, seed=0)
    lengths = [batches(step).lengths for step in range(20)]
    assert sum(int(n.max() - n.min()) for n in lengths) <= 30
    firsts = [int(n.min()) for n in lengths]
    assert firsts != sorted(firsts)


def test_a_batch_depends_on_seed_and_step_alone():
    rows = [[i] for i in range(40)]
    forward, backward = by_length(rows, 4, seed=3), by_length(rows, 4, seed=3)
    want = [forward(step).tokens for step in range(30)]
    for step in reversed(range(30)):
        assert torch.equal(backward(step).tokens, want[step])
    assert not torch.equal(torch.cat(want[:10]), torch.cat(want[10:20]))  # another epoch, another order
    assert not torch.equal(by_length(rows, 4, seed=4)(0).tokens, want[0])
    assert not torch.equal(by_length(rows, 4, seed=(3, 0))(0).tokens, want[0])


@pytest.mark.parametrize("kind", [list, torch.tensor, np.array])
def test_pairs_stay_together(kind):
    pairs = [(kind([i] * (1 + i % 5)), kind([i, i])) for i in range(17)]
    batches = by_length(pairs, 4, seed=0)
    seen = []
    for step in range(len(batches)):
        batch = batches(step)
        assert torch.equal(batch.source[:, 0], batch.target[:, 0])
        assert torch.equal(batch.source_lengths, 1 + batch.source[:, 0] % 5)
        assert batch.target_lengths.tolist() == [2] * len(batch.target)
        assert batch.source_lengths.max() - batch.source_lengths.min() <= 2
        seen += batch.source[:, 0].tolist()
    assert sorted(seen) == list(range(17))


def test_two_tokens_are_no_pair():
    assert by_length([(4, 5), torch.tensor([6, 7])], 2, seed=0)(0).lengths.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Vocabulary(["a few words"]), TypeError, r"texts\[0\] must be a list of tokens; got 'a few words'"),
        (lambda: Vocabulary([["a", 1]]), TypeError, r"texts\[0\] must hold strings; got int"),
        (lambda: Vocabulary([]).encode("ab"), TypeError, "tokens must be a list of tokens; got 'ab'"),
        (lambda: Vocabulary([]).decode([4]), ValueError, r"numbers\[0\] must be from 0 to 3; got 4"),
        (lambda: Vocabulary([]).decode([0, -1]), ValueError, r"numbers\[1\] must be from 0 to 3; got -1"),
        (lambda: Vocabulary([]).decode(torch.tensor([0.5])), TypeError, "numbers must hold integers; got float"),
        (lambda: pad([]), ValueError, "sequences must hold at least one"),
        (lambda: pad([[1], ["a"]]), TypeError, r"sequences\[1\] must hold integers; got str"),
        (lambda: pad([3]), TypeError, r"sequences\[0\] must be a sequence of integers; got int"),
        (lambda: by_length([], 2, seed=0), ValueError, "examples must hold at least one"),
        (lambda: by_length([[1]], 0, seed=0), ValueError, "batch_size must be at least 1; got 0"),
        (lambda: by_length([[1]], 2, seed=0.5), TypeError, "seed must be an integer; got float"),
        (
            lambda: by_length([[1], ([1], [2])], 2, seed=0),
            TypeError,
            r"examples\[0\] is a sequence, examples\[1\] a pair",
        ),
        (lambda: by_length([["a"]], 2, seed=0), TypeError, r"examples\[0\] must hold integers; got str"),
        (lambda: by_length([[1]], 2, seed=0)(-1), ValueError, "step must not be negative; got -1"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
