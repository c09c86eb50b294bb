"""Kneser–Ney against its definition, written out by hand."""

from collections import Counter

import numpy as np
import pytest

from attnlib import attention
from attnlib.ngrams import KneserNey, PageCache, page_matches


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


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_match_on_the_page_is_attention_to_exact_matches(length):
    tokens = np.array([*text(60, 4, seed=2), 0, 2, 3, 2, 3, 2])
    found, start = page_matches(tokens, length), 0
    for t, token in enumerate(tokens):
        page = tokens[start:t]
        n_keys = max(len(page) - length, 0)
        same = np.array([(page[i : i + length] == tokens[t - length : t]).all() for i in range(n_keys)], dtype=bool)
        if same.any():
            value = (page[length:] == token).astype(float)[:, None]
            out = attention(np.zeros((1, 1)), np.zeros((n_keys, 1)), value, mask=same[None]).out
            assert found[t] == pytest.approx(out[0, 0])
        else:
            assert np.isnan(found[t])
        start = t + 1 if token == 0 else start


def test_a_page_cache_finds_the_weights_with_which_pages_were_written():
    rng, pages = np.random.default_rng(0), []
    for _ in range(400):  # half of the time a word of the page is said again, otherwise one of 39 is drawn
        page = [int(rng.integers(1, 40))]
        while len(page) < 30:
            page.append(page[rng.integers(len(page))] if rng.random() < 0.5 else int(rng.integers(1, 40)))
        pages.append([*page, 0])
    tokens = np.concatenate(pages)
    log_p = np.where(tokens > 0, np.log(1 / 39), 0.0)
    [(_, again)] = PageCache(0).fit(log_p, tokens).weights
    assert again == pytest.approx(0.5 * 29 / 30, abs=0.02)  # of thirty, one is the end, which only the model gives


def test_a_page_cache_is_the_mixture_that_is_most_likely_and_a_distribution():
    tokens, size = np.array([*text(200, 5, seed=3), 0] * 2), 6
    log_p = np.full(len(tokens), np.log(1 / size))
    cache = PageCache(1).fit(log_p, tokens)
    assert [len(w) for w in cache.weights] == [2, 3]
    best = cache.log_probabilities(log_p, tokens).sum()
    for m, w in enumerate(cache.weights):
        assert w.sum() == pytest.approx(1)
        other = PageCache(1)
        other.weights = [0.9 * v + 0.1 / len(v) if i == m else v for i, v in enumerate(cache.weights)]
        assert other.log_probabilities(log_p, tokens).sum() < best
    start = [1, 2, 1, 3, 1]
    total = sum(
        np.exp(cache.log_probabilities(np.full(6, np.log(1 / size)), [*start, token])[-1]) for token in range(size)
    )
    assert total == pytest.approx(1)
    np.testing.assert_array_equal(cache.log_probabilities(log_p[:1], tokens[:1]), log_p[:1])  # nothing stands before


def test_a_page_cache_says_what_is_wrong():
    with pytest.raises(ValueError, match="longest must not be negative; got -1"):
        PageCache(-1)
    with pytest.raises(ValueError, match=r"log_p must be one for each token; got \(2,\) for tokens of \(3,\)"):
        PageCache(0).fit(np.zeros(2), [1, 2, 3])
    with pytest.raises(RuntimeError, match="fit the weights first"):
        PageCache(0).log_probabilities(np.zeros(2), [1, 2])
    with pytest.raises(TypeError, match="tokens must be one list of whole numbers"):
        page_matches([0.5], 1)
    cache = PageCache(0).fit(np.array([0.0, -np.inf]), [1, 2])  # neither gives it a chance
    assert np.isfinite(cache.weights[0]).all()
