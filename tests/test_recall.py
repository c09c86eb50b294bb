"""Texts of facts and questions: each question has its fact, and names where it stood."""

import numpy as np
import pytest
import torch

from attnlib.data.recall import common_facts, recall


@pytest.mark.parametrize("seed", [0, 1, (3, 4)])
@pytest.mark.parametrize(
    "made", [lambda seed: recall(7, 33, seed=seed), lambda seed: common_facts(7, 33, 5, seed=seed)]
)
def test_a_question_has_the_name_of_its_fact_and_no_value(made, seed):
    rows, values, asks, source, mentioned = made(seed)
    names, said = rows[..., :16], rows[..., 16:]
    torch.testing.assert_close(names, torch.gather(names, 1, source[..., None].expand_as(names)), rtol=0, atol=0)
    assert (torch.gather(values, 1, source) == values).all()
    assert (asks == (source != torch.arange(33))).all()
    assert (said[asks] == 0).all()
    assert (said[~asks].argmax(-1) == values[~asks]).all()
    assert torch.allclose(names.norm(dim=-1), torch.tensor(4.0))
    for text in range(7):
        for i in range(33):
            before = [j for j in range(i) if source[text, j] == source[text, i]]
            assert mentioned[text, i] == (before[-1] if before else i)


def test_facts_come_first_and_near_ones_are_asked_for_as_often_as_far_ones():
    text = recall(400, 256, seed=0)
    back = (torch.arange(256) - text.source)[text.asks]
    assert (back > 0).all()
    assert text.asks.double().mean().item() == pytest.approx(0.5, abs=0.02)
    shares = np.array([((back >= low) & (back < 2 * low)).double().mean().item() for low in (2, 4, 8, 16, 32)])
    assert shares == pytest.approx(np.full(5, shares.mean()), abs=0.04)


@pytest.mark.parametrize("facts", [1, 4, 12])
def test_as_many_facts_as_are_wanted_stand_anywhere(facts):
    text = common_facts(300, 12, facts, seed=0)
    assert ((~text.asks).sum(1) == facts).all()
    counts = (~text.asks).sum(0)
    assert counts.min() > 0.6 * counts.double().mean()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: recall(0, 3, seed=0), ValueError, "batch must be at least 1"),
        (lambda: recall(1, 2.5, seed=0), TypeError, "n must be an integer; got float"),
        (lambda: recall(1, 3, n_values=0, seed=0), ValueError, "n_values must be at least 1"),
        (lambda: recall(1, 3, seed="a"), TypeError, "seed must be an integer or a tuple"),
        (lambda: common_facts(1, 3, 4, seed=0), ValueError, "facts must be at most n = 3, a place for each; got 4"),
        (lambda: common_facts(1, 3, d_name=0, seed=0), ValueError, "d_name must be at least 1"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
