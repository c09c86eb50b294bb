"""A hidden Markov model against every text it can write, counted one by one; and the sentences that one writes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from attnlib.data.agreement import CLS, KINDS, MASK, PAD, judged, language, other_number, sentences
from attnlib.data.hidden_markov import HiddenMarkov


@pytest.fixture
def chain():
    rng = np.random.default_rng(0)
    start, moves, writes = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3)
    return HiddenMarkov(start, moves, writes, list("abcd"))


def _by_counting(chain, length):
    """The probability of every text: a table with an axis for each word."""
    table = np.zeros((len(chain.words),) * length)
    for states in product(range(len(chain.start)), repeat=length):
        p = chain.start[states[0]] * np.prod([chain.moves[a, b] for a, b in pairwise(states)])
        rows = chain.writes[list(states)]
        table += p * np.einsum(rows[0], [0], rows[1], [1], rows[2], [2], rows[3], [3])
    return table


def test_what_is_missing_is_what_counting_all_texts_gives(chain):
    table, text = _by_counting(chain, 4), np.array([[2, 0, 3, 1]])
    np.testing.assert_allclose(np.exp(chain.log_probability(text)), table[2, 0, 3, 1])
    np.testing.assert_allclose(chain.following(text)[0, 1], table[2].sum(axis=(1, 2)) / table[2].sum())
    seen = chain.missing(text, text < 0)
    np.testing.assert_allclose(seen[0, 1], table[2, :, 3, 1] / table[2, :, 3, 1].sum())
    gaps = np.array([[False, True, True, False]])
    two = table[2, :, :, 1].sum(axis=1)  # the word beside it is not known either
    np.testing.assert_allclose(chain.missing(text, gaps)[0, 1], two / two.sum())


def test_what_stands_in_a_gap_has_no_effect(chain):
    gaps = np.array([[False, True, False]])
    one, other = (chain.missing(np.array([[0, word, 2]]), gaps) for word in (1, 3))
    np.testing.assert_array_equal(one, other)


def test_texts_are_drawn_as_often_as_they_are_probable(chain):
    words, states = chain.draw(40_000, 4, seed=0)
    table = _by_counting(chain, 4)
    drawn = np.zeros_like(table)
    np.add.at(drawn, tuple(words.T), 1 / len(words))
    assert np.abs(drawn - table).sum() < 0.1
    assert states.shape == words.shape
    assert states.max() < 3


@pytest.mark.parametrize(
    ("start", "moves", "writes", "said"),
    [
        ([1, 1], np.eye(2), np.eye(2), "start must hold distributions"),
        ([1, 0], np.eye(3), np.eye(2), r"moves must be \(2, 2\)"),
        ([1, 0], np.eye(2), [[2, -1], [0, 1]], "writes must hold distributions"),
    ],
)
def test_tables_that_are_no_distributions_are_named(start, moves, writes, said):
    with pytest.raises(ValueError, match=said):
        HiddenMarkov(start, moves, writes, ["a", "b"])


def test_words_that_are_none_are_named(chain):
    with pytest.raises(ValueError, match="words must be from 0 to 3; got 0 to 4"):
        chain.following(np.array([[0, 4]]))
    with pytest.raises(ValueError, match=r"words must be \(n, length\) integers"):
        chain.following(np.array([0, 1]))
    with pytest.raises(ValueError, match="gaps must have the shape of words"):
        chain.missing(np.array([[0, 1]]), np.array([True]))


def test_verbs_go_by_the_first_noun_and_these_by_the_next():
    words, batch = np.array(language().words), sentences(400, seed=0)
    for row, kinds, plural, verb, nearest in zip(
        batch.tokens, batch.kinds, batch.plural, batch.verb, batch.nearest, strict=True
    ):
        nouns = np.flatnonzero(kinds == KINDS.index("noun"))
        assert words[row[nouns[0]]].endswith("s") == plural == (not words[row[verb]].endswith("s"))
        assert words[row[nouns[-1]]].endswith("s") == nearest
        for at in np.flatnonzero(kinds == KINDS.index("determiner")):
            noun = nouns[nouns > at][0]
            if words[row[at]] in ("these", "many", "this", "every"):
                assert (words[row[at]] in ("these", "many")) == words[row[noun]].endswith("s")
        assert row[0] == CLS
        assert MASK not in row
        assert words[row[kinds >= 0][-1]] == "."
    assert (batch.tokens[:, -1] == PAD).any()
    assert ((batch.nearest != batch.plural).mean() > 0.2) & (batch.tokens.max() < len(words))


def test_sentences_of_one_theme_are_likelier_under_its_chain():
    batch = sentences(200, seed=1)
    by_theme = np.stack([language(theme).log_probability(batch.tokens) for theme in range(2)])
    assert (by_theme.argmax(axis=0) == batch.theme).mean() > 0.85


def test_judged_sentences_have_one_wrong_verb_in_half_of_them():
    tokens, wrong, right = judged(101, seed=(3, 0))
    changed = tokens != right.tokens
    assert wrong.sum() == 50
    np.testing.assert_array_equal(changed.sum(axis=1), wrong)
    assert all(at == right.verb[i] for i, at in zip(*np.nonzero(changed), strict=True))


def test_other_words_than_nouns_and_verbs_have_no_other_number():
    with pytest.raises(ValueError, match="token must be that of a noun or a verb; got 1"):
        other_number(CLS)
    with pytest.raises(ValueError, match="theme"):
        language(2)
