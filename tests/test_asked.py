"""Questions about numbers, asked in words: what they say, and that no number is asked about twice."""

import pytest

from attnlib.data.asked import TASKS, ask, asked
from attnlib.data.numbers import english, german


def test_a_question_says_its_task_and_then_its_numbers():
    example = ask("larger", 30, 21)
    assert example.source == ("larger", ":", *german(30), "oder", *german(21))
    assert example.target == tuple(english(30))
    assert ask("digits", 4_070).target == ("4", "0", "7", "0")
    assert [ask("parity", n).target for n in (0, 17, 4_070)] == [("even",), ("odd",), ("even",)]
    assert dict(ask("english", 9_999).facts) == {"task": "english", "numbers": (9_999,)}
    assert max(len(ask("english", n).source) for n in range(10_000)) == 9


def test_no_number_is_asked_about_twice():
    corpus = asked(400, 50)
    for questions in (corpus.train, corpus.held_out):
        assert {e.facts["task"] for e in questions} == set(TASKS)
    singles = [e.facts["numbers"][0] for e in corpus.train if e.facts["task"] != "larger"]
    pairs = [e.facts["numbers"] for e in corpus.train if e.facts["task"] == "larger"]
    assert len(set(singles)) == 1200
    assert len(set(pairs)) == 400
    apart = {task: [e.facts["numbers"] for e in corpus.held_out if e.facts["task"] == task] for task in TASKS}
    assert apart["english"] == apart["digits"] == apart["parity"]
    assert not {n for (n,) in apart["english"]} & set(singles)
    assert not set(apart["larger"]) & set(pairs)


def test_one_vocabulary_holds_all_tasks_whichever_are_asked():
    corpus = asked(100, 5, tasks=["parity"])
    assert corpus.source is corpus.target
    assert {e.facts["task"] for e in (*corpus.train, *corpus.held_out)} == {"parity"}
    assert len(corpus.source) == len(asked(100, 5).source)
    for n in (0, 7, 12, 99, 100, 1_000, 9_999):
        for task in ("english", "digits", "parity"):
            example = ask(task, n)
            assert all(word in corpus.source for word in (*example.source, *example.target))
    assert "oder" in corpus.source


def test_the_same_seed_draws_the_same_questions():
    assert asked(50, 5, seed=3).train == asked(50, 5, seed=3).train
    assert asked(50, 5, seed=3).train != asked(50, 5, seed=4).train


def test_what_cannot_be_asked_is_named():
    with pytest.raises(ValueError, match="task"):
        ask("smaller", 1, 2)
    with pytest.raises(ValueError, match="one for the others; got 2"):
        ask("parity", 1, 2)
    with pytest.raises(ValueError, match="tasks"):
        asked(10, 5, tasks=["smaller"])
    with pytest.raises(ValueError, match="each number to one task"):
        asked(4_000, 5)
