"""The texts of JupyterLab's interface: what is held out, what is near, and the translation memory over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import corpus_bleu, corpus_chrf

from attnlib.data.interface_texts import interface_texts, near, near_pairs, normalised, overlap
from attnlib.translation import TranslationMemory, letter_pieces, text_scores

texts = st.text(alphabet="abc e%1.", max_size=12)


def test_there_are_3043_pairs_each_english_text_once():
    train, held_out = interface_texts()
    assert (len(train), len(held_out)) == (2743, 300)
    english = [text for text, _ in (*train, *held_out)]
    assert len(set(english)) == len(english)
    assert all(text and " ".join(text.split()) == text for text in english)
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in chinese) for _, chinese in (*train, *held_out))


def test_no_held_out_text_is_near_one_to_train_on():
    train, held_out = interface_texts()
    n = len(train)
    for side in range(2):
        found = [i for i, pair in enumerate((*train, *held_out)) if side == 0 or len(pair[1]) >= 8]
        both = [(*train, *held_out)[i][side] for i in found]
        crossing = [(both[i], both[j]) for i, j in near_pairs(both) if (found[i] < n) != (found[j] < n)]
        assert not crossing


def test_nearness_sees_through_placeholders_punctuation_and_case():
    assert normalised("<b>Delete</b> “%1”, {{name}}?") == "delete"
    assert overlap("Save %1 As…", "save as") == 1
    assert near("Are you sure you want to delete %1?", "Are you sure you want to delete the file?")
    assert not near("Cut", "Copy")
    assert near("%1", "…")  # nothing is left of either
    with pytest.raises(ValueError, match="limit must be"):
        near("a", "b", limit=0)


@given(texts, texts)
def test_overlap_is_symmetric_and_one_for_what_is_normalised_alike(a, b):
    assert overlap(a, b) == overlap(b, a)
    assert 0 <= overlap(a, b) <= 1
    assert overlap(a, a.upper() + "!") == 1


@given(st.lists(texts, max_size=6))
def test_all_near_pairs_are_found(some):
    expected = [(i, j) for j in range(len(some)) for i in range(j) if near(some[i], some[j])]
    assert sorted(near_pairs(some)) == sorted(expected)


PAIRS = [("Open the file", "打开文件"), ("Close the file", "关闭文件"), ("Open a file", "打开文件"), ("Cut", "剪切")]


def test_a_stored_text_comes_back():
    train = interface_texts().train[::9]
    memory = TranslationMemory(train, bandwidth=1e-3)
    alike = {" ".join(sorted(letter_pieces(english))): chinese for english, chinese in train}
    asked = [(english, alike[" ".join(sorted(letter_pieces(english)))]) for english, _ in train]
    written = memory.translate([english for english, _ in asked])
    assert np.mean([w == chinese for w, (_, chinese) in zip(written, asked, strict=True)]) > 0.98
    assert np.allclose(memory.similarity([train[0][0]]), 1)


def test_weights_are_a_softmax_over_cosines():
    memory = TranslationMemory(PAIRS, bandwidth=0.3)
    f, keys = memory.features(["open file"]), memory.features([english for english, _ in PAIRS])
    scores = np.exp(f @ keys.T / 0.3)
    assert np.allclose(memory.attend(["open file"]), scores / scores.sum(), atol=1e-6)
    assert np.allclose(memory.features(["zzz"]), 0)
    assert np.allclose(memory.attend(["zzz"]), 1 / len(PAIRS))


def test_equal_translations_add_their_weights():
    assert TranslationMemory(PAIRS, bandwidth=100).translate(["Close the file"]) == ["打开文件"]
    assert TranslationMemory(PAIRS, bandwidth=1e-3).translate(["Close the file"]) == ["关闭文件"]


def test_a_memory_without_pairs_or_bandwidth_is_refused():
    with pytest.raises(ValueError, match="pairs must hold"):
        TranslationMemory([])
    with pytest.raises(ValueError, match="bandwidth must be"):
        TranslationMemory(PAIRS, bandwidth=0)


def test_text_scores_are_those_of_sacrebleu():
    written, right = ["打开一个文件", "关闭 tab"], ["打开文件", "关闭选项卡"]
    found = text_scores(written, right)
    assert found["BLEU"] == pytest.approx(corpus_bleu(written, [right], tokenize="zh").score)
    assert found["chrF"] == pytest.approx(corpus_chrf(written, [right]).score)
    with pytest.raises(TypeError, match="lists of texts"):
        text_scores("打开", ["打开"])
    with pytest.raises(ValueError, match="got 0 and 0"):
        text_scores([], [])
