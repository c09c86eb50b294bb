"""Span corruption: what is taken out comes back, whatever the spans."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.pretraining import corrupt_spans, draw_spans, restore_spans, sentinel

TEXT = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week"]


def test_the_example_of_the_paper():
    source, target = corrupt_spans(TEXT, [(2, 4), (8, 9)])
    assert " ".join(source) == "Thank you <0> me to your party <1> week"
    assert " ".join(target) == "<0> for inviting <1> last <2>"
    assert corrupt_spans(TEXT, []) == (tuple(TEXT), ("<0>",))


@given(
    st.integers(0, 60),
    st.integers(0, 99),
    st.floats(0, 0.99),
    st.floats(1, 5),
    st.lists(st.sampled_from("ab"), min_size=60),
)
def test_the_way_back(n, seed, share, mean_length, letters):
    text = tuple(letters[:n])
    spans = draw_spans(n, seed=seed, share=share, mean_length=mean_length)
    source, target = corrupt_spans(text, spans)
    assert restore_spans(source, target) == text
    assert [token for token in source if token in target] == [
        token for token in source if token.startswith("<") or token in target
    ]
    assert len(source) + len(target) == n + 2 * len(spans) + 1


@given(st.integers(2, 80), st.integers(0, 99), st.floats(0, 0.99), st.floats(1, 5))
def test_as_many_tokens_and_spans_as_were_asked_for(n, seed, share, mean_length):
    spans = draw_spans(n, seed=seed, share=share, mean_length=mean_length)
    taken = sum(stop - start for start, stop in spans)
    assert taken == min(max(round(n * share), 1), n - 1)
    assert len(spans) == min(max(round(taken / mean_length), 1), n - taken + 1)
    assert all(a[1] < b[0] for a, b in pairwise(spans))
    assert spans[0][0] >= 0
    assert spans[-1][1] <= n


def test_all_places_are_taken_about_as_often():
    n, draws = 12, 3000
    often = [0] * n
    for seed in range(draws):
        for start, stop in draw_spans(n, seed=seed, share=0.25, mean_length=1):
            for i in range(start, stop):
                often[i] += 1
    assert min(often) > draws * 0.2
    assert max(often) < draws * 0.35


def test_what_a_model_wrote_badly_is_read_as_far_as_it_goes():
    source = ["a", "<0>", "b", "<1>"]
    assert restore_spans(source, []) == ("a", "b")
    assert restore_spans(source, ["x", "<1>", "c", "<1>", "d", "<7>", "e"]) == ("a", "b", "c")


def test_what_cannot_be_taken_out_is_named():
    for spans in ([(2, 2)], [(3, 2)], [(0, 2), (2, 3)], [(4, 5), (1, 2)], [(9, 11)], [(-1, 2)]):
        with pytest.raises(ValueError, match="spans must be"):
            corrupt_spans(TEXT, spans)
    with pytest.raises(ValueError, match="no sentinel; got <0>"):
        corrupt_spans(["a", "<0>"], [(0, 1)])
    with pytest.raises(TypeError, match=r"text.split\(\)"):
        corrupt_spans("a b", [(0, 1)])
    with pytest.raises(ValueError, match="mean_length"):
        draw_spans(9, seed=0, mean_length=0.5)
    assert draw_spans(1, seed=0) == draw_spans(0, seed=0) == []
    assert sentinel(12) == "<12>"
