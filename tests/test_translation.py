"""Two corpora whose every translation and alignment is known, and the loss that translators are trained with."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import product

import numpy as np
import pytest
import torch
from num2words import num2words

from attnlib import translation
from attnlib.data.french import draw_because, draw_others
from attnlib.data.french_words import ADJECTIVES, ANIMALS, GENDER, PLACES
from attnlib.data.numbers import draw_numbers
from attnlib.data.text import END, FIRST, PAD
from attnlib.training.label_smoothing import smoothed_cross_entropy, smoothing_floor
from attnlib.translation import (
    because,
    bleu,
    exact_match,
    french,
    number,
    numbers,
    other_gender,
    translate,
    translator,
)

SOME = [*range(130), 200, 777, 999, 1000, 1001, 1100, 1121, 9999, 20_021, 101_000, 700_017, 999_999]
GERMAN = """null ein eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend"""
ENGLISH = """zero one one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"""
MEANS = dict(zip(GERMAN.split(), ENGLISH.split(), strict=True))


@pytest.mark.parametrize("n", SOME)
def test_a_number_is_what_num2words_writes(n):
    example = number(n)
    assert "".join(example.source) == num2words(n, lang="de").replace("einstausend", "eintausend")
    said = re.sub(r"[,-]", " ", num2words(n, lang="en")).split()
    assert list(example.target) == [word for word in said if word != "and"]


@pytest.mark.parametrize("n", SOME)
def test_every_english_word_translates_the_morpheme_it_is_aligned_with(n):
    example = number(n)
    assert [MEANS[example.source[i]] for i in example.alignment] == list(example.target)
    assert len(set(example.alignment)) == len(example.target)
    assert all(example.source[i] == "und" for i in set(range(len(example.source))) - set(example.alignment))


@pytest.mark.parametrize("draw", ["mixed", "short", "round", "uniform"])
def test_no_number_is_in_both_parts(draw):
    corpus = numbers(3000, 200, draw=draw, seed=3)
    shown, held = ([e.facts["number"] for e in part] for part in (corpus.train, corpus.held_out))
    assert len(shown) == 3000
    assert len(held) == len(set(held)) == 200
    assert not set(shown) & set(held)
    again, other = (numbers(50, 5, draw=draw, seed=seed).train for seed in (3, 4))
    assert numbers(50, 5, draw=draw, seed=3).train == again != other


def test_short_and_round_numbers_come_often_unless_all_are_equally_likely():
    mixed, uniform = (np.array(draw_numbers(20_000, seed=0, draw=draw)) for draw in ("mixed", "uniform"))
    digits = np.bincount([len(str(n)) for n in mixed.tolist()], minlength=7)[1:] / len(mixed)
    assert np.allclose(digits, np.arange(1, 7) / 21, atol=0.02)
    assert np.isclose(np.mean(mixed[mixed > 9] % 10 == 0), 0.3, atol=0.02)
    assert np.isclose(np.mean(uniform < 100_000), 0.1, atol=0.02)
    assert np.isclose(np.mean(uniform % 10 == 0), 0.1, atol=0.02)
    for numbers_drawn in (mixed, uniform):
        assert numbers_drawn.min() >= 0
        assert numbers_drawn.max() <= 999_999


def test_short_changes_only_the_lengths_and_round_only_the_zeros():
    short, rounded = (np.array(draw_numbers(20_000, seed=0, draw=draw)) for draw in ("short", "round"))
    digits = np.bincount([len(str(n)) for n in short.tolist()], minlength=7)[1:] / len(short)
    assert np.allclose(digits, np.arange(1, 7) / 21, atol=0.02)
    assert np.isclose(np.mean(rounded < 100_000), 0.1, atol=0.02)
    assert np.isclose(np.mean(short[short > 9] % 10 == 0), 0.1, atol=0.02)
    assert np.isclose(np.mean(rounded % 10 == 0), 0.3, atol=0.02)


@pytest.mark.parametrize(("animal", "place"), list(product(ANIMALS[::3], PLACES[::3])))
def test_it_agrees_with_what_the_adjective_is_said_of(animal, place):
    for kind, adjectives in ADJECTIVES.items():
        example = because(animal, place, adjectives[0], colours=("green", "black"))
        referent, other = (animal, place) if kind == "animal" else (place, animal)
        facts = example.facts
        assert example.source[facts["referent"]] == referent
        assert example.source[facts["distractor"]] == other
        assert (facts["gender"], facts["other"]) == (GENDER[referent], GENDER[other])
        assert example.target[facts["pronoun"]] == ("il" if GENDER[referent] == "m" else "elle")
        assert example.source[facts["it"]] == "it"
        assert example.alignment[facts["pronoun"]] == facts["it"]
        wrote = {example.alignment[i] for i in facts["wrote_referent"]}
        assert wrote == {facts["referent"] - 2, facts["referent"] - 1, facts["referent"]}


def test_sentences_are_french():
    written = {" ".join(e.source): " ".join(e.target) for e in draw_others(3000, pairs=[("bee", "lake")], seed=0)}
    assert not any(re.search(r"\bl[ea] [aâeéo]", text) for text in written.values())
    for words in ("l' âne", "l' ours", "la souris blanche", "le chien noir", "ne le quitte pas"):
        assert any(words in text for text in written.values()), words
    english = "the bee crosses the black lake and does not leave it"
    assert written[english] == "l' abeille traverse le lac noir et ne le quitte pas"


def test_pairs_of_nouns_that_are_held_out_are_in_no_sentence_to_train_on():
    corpus = french(2000, 300, seed=1)

    def nouns(example):
        return tuple(sorted(set(example.source) & {*ANIMALS, *PLACES}))

    assert not {nouns(e) for e in corpus.held_out} & {nouns(e) for e in corpus.train}
    assert len({nouns(e) for e in corpus.held_out}) > 60
    assert len({e.source for e in corpus.train}) == 2000


def test_batches_are_the_examples_encoded_and_ended():
    corpus = numbers(40, 4)
    batches = corpus.batches(8, seed=0)
    rows = [row[row != PAD].tolist() for step in range(len(batches)) for row in batches(step).target]
    assert sorted(rows) == sorted([*corpus.target.encode(e.target), END] for e in corpus.train)
    example = corpus.batch(corpus.train[:3])
    assert corpus.source.decode(example.source[1]) == list(corpus.train[1].source)


def test_smoothing_is_a_mixture_and_cannot_fall_below_its_floor():
    logits, target = torch.randn(3, 5, 11, dtype=torch.float64), torch.randint(1, 11, (3, 5))
    target[0, 3:] = PAD
    total, count = smoothed_cross_entropy(logits, target, 0.3)
    log_p, real = logits.log_softmax(-1), target != PAD
    right = log_p.gather(-1, target[..., None])[..., 0]
    want = -(0.7 * right + 0.3 * log_p.mean(-1))[real].sum()
    assert count == 13
    assert torch.isclose(total, want)
    perfect = torch.full((1, 1, 11), 0.3 / 11, dtype=torch.float64)
    perfect[..., 4] += 0.7
    total, count = smoothed_cross_entropy(perfect.log(), torch.tensor([[4]]), 0.3)
    assert (total / count).item() == pytest.approx(smoothing_floor(11, 0.3))


def test_exact_match_counts_whole_sentences():
    corpus = numbers(2000, 6)
    model = translator(corpus)
    right = {tuple(corpus.source.encode(e.source)): e.target for e in corpus.held_out}
    assert exact_match(model, corpus) == 0.0
    written = [right[tuple(corpus.source.encode(e.source))] for e in corpus.held_out]
    texts = [e.source for e in corpus.held_out]

    def fake(model, corpus, sources, n_max=32):
        assert [tuple(s) for s in sources] == texts
        return [list(written[0])[:-1], *map(list, written[1:])]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(import_module("attnlib.translation.quality"), "translate", fake)
        assert exact_match(model, corpus) == 5 / 6


def test_a_translator_is_drawn_from_its_seed_alone():
    corpus = numbers(60, 6)
    before = torch.get_rng_state()
    one, two, other = (translator(corpus, seed=s).out.weight for s in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())
    assert translator(corpus, d_model=32, n_heads=2).config.d_model == 32


def test_bad_arguments_are_named():
    corpus = numbers(60, 6)
    with pytest.raises(ValueError, match="texts must hold tokens that the model was trained on; got 'zwo'"):
        translate(translator(corpus), corpus, [["zwo"]])
    with pytest.raises(ValueError, match="n must be from 0 to 999999; got 1000000"):
        number(1_000_000)
    with pytest.raises(ValueError, match=r"animal must be one of 'animal', 'dog', .*; got 'crocodile'"):
        because("crocodile", "street", "wide")
    with pytest.raises(ValueError, match="colours must be one of"):
        because("dog", "street", "wide", colours=("pink", ""))
    with pytest.raises(ValueError, match=r"held_out must leave 1 of the numbers drawn to train on.*; got 60000"):
        numbers(1, 60_000)
    with pytest.raises(ValueError, match="draw must be one of 'uniform', 'short', 'round', 'mixed'; got 'even'"):
        numbers(10, 1, draw="even")
    with pytest.raises(ValueError, match="count must be at most about"):
        draw_because(5000, pairs=[("dog", "lake")], seed=0)
    with pytest.raises(
        ValueError, match="written must hold a text for each of the examples, at least one; got 1 and 2"
    ):
        bleu([["one"]], [number(1), number(2)])
    with pytest.raises(TypeError, match="written must hold lists of tokens"):
        bleu(["one"], [number(1)])
    with pytest.raises(ValueError, match="examples must hold at least one; got none"):
        exact_match(translator(corpus), corpus, [])
    with pytest.raises(ValueError, match="colours must be two"):
        because("dog", "street", "wide", colours=("red",))
    with pytest.raises(ValueError, match="example must be a sentence that `because` made; got 'ein und zwanzig'"):
        other_gender(number(21), "referent")
    with pytest.raises(ValueError, match="smoothing must be at least 0 and below 1; got 1"):
        smoothing_floor(5, 1)
    with pytest.raises(TypeError, match="smoothing must be a number; got str"):
        translation.loss("a")
    with pytest.raises(ValueError, match="logits must be"):
        smoothed_cross_entropy(torch.zeros(1, 2, 3), torch.zeros(1, 3, dtype=torch.int64))
    assert FIRST == 4


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("du", "you"), ("a",)], r"pairs must hold two strings each; got \('a',\) at place 1"),
        (["ab"], "pairs must hold two strings each; got 'ab' at place 0"),
        ([], "pairs must be more than held_out = 0, no side empty; got 0"),
    ],
)
def test_pairs_that_are_none_are_named(pairs, said):
    with pytest.raises(ValueError, match=said):
        translation.Corpus.of_pairs(pairs)


def test_a_folder_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match="folder must be there; there is no folder nowhere"):
        translation.open_translator("nowhere")
    with pytest.raises(TypeError, match="folder must be a path, as a string is one; got NoneType"):
        translation.open_translator(None)
