"""Kneser–Ney against its definition, written out by hand."""

from collections import Counter

import numpy as np
import pytest

from attnlib.ngrams import KneserNey


def text(n=300, size=5, seed=0):
    rng = np.random.default_rng(seed)
    row = [0]
    for noise in rng.random(n):
        row.append((2 * row[-1] + 1) % size if noise < 0.7 else int(rng.integers(size)))
    return row


def by_hand(tokens, order, context, word, size):
    """p(word | context), from dictionaries; counts of all but the longest are of different words before."""
    if order == 0:
        return 1 / size
    grams = [tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)]
    if order < by_hand.longest:
        longer = {tuple(tokens[i : i + order + 1]) for i in range(len(tokens) - order)}
        counts = Counter(gram[1:] for gram in longer)
        counts = {gram: max(counts[gram], 1) for gram in set(grams)}
    else:
        counts = Counter(grams)
    n = Counter(counts.values())
    y = n[1] / (n[1] + 2 * n[2]) if n[1] else 0.5
    discounts = [i - (i + 1) * y * n[i + 1] / n[i] if n[i] else i * (1 - y) for i in (1, 2, 3)]
    discounts = np.clip(discounts, 0.1, (1, 2, 3))
    history = tuple(context[len(context) - order + 1 :]) if order > 1 else ()
    follow = {gram[-1]: c for gram, c in counts.items() if gram[:-1] == history}
    shorter = by_hand(tokens, order - 1, context, word, size)
    if len(history) < order - 1 or not follow:
        return shorter
    total, spare = sum(follow.values()), sum(discounts[min(c, 3) - 1] for c in follow.values())
    left = follow[word] - discounts[min(follow[word], 3) - 1] if word in follow else 0
    return (left + spare * shorter) / total


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_it_is_the_definition(order):
    tokens = text()
    model, by_hand.longest = KneserNey(order, 6).fit(tokens), order
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 3, 5, 5, 5, 5):
        context = rng.integers(0, 6, n).tolist()
        p = model.probabilities(context)
        assert p.sum() == pytest.approx(1)
        for word in range(6):
            assert p[word] == pytest.approx(by_hand(tokens, order, context, word, 6))
            assert np.exp(model.log_probabilities([*context, word])[-1]) == pytest.approx(p[word])


def test_a_longer_memory_helps_where_there_is_something_to_remember():
    def bits(order):
        return -KneserNey(order, 5).fit(text(20_000)).log_probabilities(text(2_000, seed=1)).mean() / np.log(2)

    chance = 0.7 + 0.3 / 5
    floor = -(chance * np.log2(chance) + 4 * 0.06 * np.log2(0.06))  # the rule is right with this chance
    assert bits(1) > 2.2
    assert bits(2) == pytest.approx(floor, abs=0.05)
    assert bits(4) == pytest.approx(floor, abs=0.1)


def test_bad_tokens_are_named():
    model = KneserNey(2, 5)
    with pytest.raises(ValueError, match="tokens must be from 0 to 4; got 5"):
        model.fit([1, 5])
    with pytest.raises(TypeError, match="tokens must be one list of whole numbers; got float64"):
        model.fit([0.5])
    with pytest.raises(ValueError, match="tokens must be at least order = 2 of them; got 1"):
        model.fit([1])
    with pytest.raises(ValueError, match="order must be at least 1"):
        KneserNey(0, 5)
