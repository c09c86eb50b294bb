"""What lessons 10 and 12 say of many seeds and many draws, held against the pages of `make studies`."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import nbformat
import pytest
from test_claims import printed_by

from attnlib.course import Study
from attnlib.data.numbers import number
from publish.lessons.build import COURSE

PAGES = Path(__file__).parents[1] / "studies"
LESSONS = {lesson.number: lesson.notebook for lesson in COURSE.lessons()}


def printed(lesson: str, words: str) -> str:
    """What the lesson's one cell with these words in its code has printed, tables too."""
    cells = nbformat.read(LESSONS[lesson], as_version=4).cells
    [cell] = [cell for cell in cells if cell.cell_type == "code" and words in cell.source]
    return printed_by(cell)


def numbers(words: str) -> list[float]:
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", words)]


def test_each_of_the_two_translators_is_asked_with_its_own_vocabulary():
    said = printed("12", "compare(987_654)")
    wanted = " ".join(number(987_654).target)
    for name in ("drawn uniformly", "more short ones"):
        assert f"{name}: {wanted}\n" in said, said
    uniform, mixed = numbers(re.search(r"^und .*", said, re.MULTILINE)[0])
    assert uniform != mixed  # or else the wrong one would do as well


def test_queries_are_in_charge_of_what_the_matching_compares_in_lesson_21():
    rows = Study(PAGES / "pictures.md").rows("What the matching compares")
    both, kind, boxes = (
        {"count": c, "off": o, "nothing": n, "kind": k, "place": p}
        for c, o, n, k, p in ((numbers(row[1]), numbers(row[3]), *map(numbers, row[4:])) for row in rows)
    )
    for one, charge, other in ((both, "place", "kind"), (kind, "kind", "place"), (boxes, "place", "kind")):
        assert min(one[charge]) > 60
        assert max(abs(a - b) for a, b in zip(one[other], one["nothing"], strict=True)) <= 2
    assert min(kind["off"]) > 2.5 * max(both["off"])
    assert 25 <= min(100 - share for share in boxes["count"]) <= max(100 - share for share in boxes["count"]) <= 34


def test_smoothing_and_a_short_training_both_shorten_in_lesson_14():
    rows = {(row[0], row[1]): list(map(numbers, row[2:])) for row in Study(PAGES / "decoding.md").rows("Smoothing")}
    assert max(rows["150", "0.1"][1]) <= 3
    assert max(rows["150", "0.0"][1]) == 42
    assert all(g - 12 > w for g, w in zip(*rows["150", "0.0"][:2], strict=True))
    assert all(g - 20 > w for g, w in zip(*rows["200", "0.1"][:2], strict=True))
    assert max(g - w for g, w in zip(*rows["200", "0.0"][:2], strict=True)) == 6
    assert not any(rows["300", "0.1"][2] + rows["300", "0.0"][2])


def test_eight_times_the_steps_draw_level_at_half_the_rate_in_lesson_16():
    page = PAGES / "next_token.md"
    [counted] = numbers(re.search(r"count all of it pay (\d\.\d\d)", page.read_text("utf-8"))[1])
    first, *_, last, half = (
        [round(bits - counted, 2) for bits in numbers(row[2])] for row in Study(page).rows("The same")
    )
    assert min(first) >= 0.39
    assert sorted(last) == [0.0, 0.03, 0.05]
    assert sorted(half) == [-0.01, 0.0, 0.0]


def test_with_both_orders_position_does_not_count_in_lesson_13():
    page = Study(PAGES / "orders.md")
    short = [list(map(numbers, row[1:])) for row in page.rows("After 800 steps")]
    assert [seed for seed in range(5) if max(short[0][seed] + short[1][seed]) < 10] == [0]
    # Each row has animals and places of five seeds.
    apart, nothing, *closed, lie_read, lie_written, lie_other_read, lie_other_written = [
        list(map(numbers, row[1:])) for row in page.rows("After 2,400 steps")
    ]
    read, written, other_read, other_written = closed
    assert [most for [most] in apart] == [0, 4, 0, 0, 5]
    assert not any(map(any, nothing))
    for seed in (0, 3):
        assert lie_read[seed] == [100, 100]
        assert lie_written[seed] == [0, 0]
    assert max(lie_read[4]) < 20
    assert min(lie_written[4]) > 90
    for seed in (1, 2):
        assert lie_read[seed][0] < 10
        assert lie_written[seed][0] == 100
        assert min(lie_read[seed][1], lie_written[seed][1]) > 80
        assert lie_other_read[seed][0] > 80
        assert lie_other_read[seed][1] == 0
        assert other_read[seed][0] > 30
        assert other_read[seed][1] == 0
    assert not any(read[3] + written[3])
    for seed in (0, 1, 2):
        assert read[seed][0] <= 1
        assert read[seed][1] > 30
    for others in (other_read, lie_other_read):
        assert not any(map(any, (others[0], *others[3:])))
    assert not any(map(any, (*other_written, *lie_other_written)))


def test_the_lower_layers_need_the_warm_up_in_lesson_10():
    learned = [numbers(cell)[:2] for _, cell in Study(PAGES / "blocks.md").rows("Which layers")]
    assert learned == [[9, 9], [2, 9], [6, 9], [1, 9]]


def spreads() -> dict[str, list[list[float]]]:
    rows = Study(PAGES / "blocks.md").rows("How different")
    return {name: [numbers(cell) for cell in cells] for name, *cells in rows}


def test_the_residual_keeps_words_apart_and_the_norm_helps_only_before():
    after = {name: cells[-1] for name, cells in spreads().items()}
    for name in ("attention", "attention, network", "network alone", "attention, normalised"):
        assert max(after[name.replace(",", "")]) <= 1e-12
    assert min(after["x + attention of the normalised x"]) > 0.2 > 0.02 > max(after["x + attention"])
    assert "norm(x + attention) has less than x + attention in 12 of 12" in (PAGES / "blocks.md").read_text()


def losses() -> dict[str, list[list[float]]]:
    """For every rate and warm-up: norm(f(x)), x + f(x), post-norm, pre-norm."""
    return {name: [numbers(cell) for cell in cells] for name, *cells in Study(PAGES / "blocks.md").rows("What learns")}


def test_what_learns_in_lesson_10():
    found = losses()
    without_order = 1.82  # the lesson's 1.81, and a little
    assert all(min(one) > without_order for cells in found.values() for one in cells[:2])  # one part alone
    assert all(max(cells[3]) < 0.1 for cells in found.values())  # pre-norm
    assert max(found["0.006 warm-up"][2] + found["0.001 no warm-up 400 steps"][2]) < 0.1
    assert min(found["0.006 no warm-up"][2]) > without_order
    assert sum(loss < 0.1 for loss in found["0.006 no warm-up 540 steps"][2]) == 1


def test_a_residual_alone_is_slow_in_lesson_10_unless_its_parts_begin_small():
    found = {name: cells for name, *cells in Study(PAGES / "blocks.md").rows("Trained to the end")}
    never = found.pop("norm(f(x))")
    before, after, alone, *small = (
        [inf if cell.startswith("never") else int(cell.split()[0]) for cell in cells] for cells in found.values()
    )
    assert max(before) < min(after) < max(after) < 1000
    assert min(alone) > 3 * max(before)
    assert sum(steps < 5000 for steps in alone) == 1
    assert max(map(max, small)) < min(before)
    assert max(map(max, small)) < 1.2 * min(map(min, small))  # all three alike
    assert all(re.fullmatch(r"never \(1\.8[123]\)", loss) for loss in never)  # the symbols without their order: 1.81


def test_the_size_at_the_start_decides_in_lesson_10():
    rows = Study(PAGES / "blocks.md").rows("Smaller at the start")
    half, tenth, *deeper = (list(map(numbers, cells)) for _, *cells in rows)
    for norm, _, post, pre in (half, tenth):
        assert norm[:2] == [0, 9]
        assert norm[2] > 1.82  # the lowest of the nine
        assert post[:2] == pre[:2] == [9, 9]
    assert tenth[1][:2] == [9, 9]
    for added in (half[1], *(row[1] for row in deeper)):
        assert added[:2] == [0, 9]
        assert added[2] > 1.82
    assert [row[3][:2] for row in deeper] == [[9, 9]] * 2


def by_words() -> dict[str, list[list[float]]]:
    """For every kind of number, after 500 and after 1,500 steps."""
    rows = Study(PAGES / "translators.md").rows("By how many English words")
    return {name: [numbers(cell) for cell in cells] for name, _, *cells in rows}


def test_what_uniform_draws_hide_in_lesson_12():
    right = by_words()
    short, long = zip(*right.values(), strict=True)
    assert {len(runs) for runs in short} == {11}
    assert {len(runs) for runs in long} == {4}
    assert max(right["1 to 20"][0]) == max(right["18 trained on"][0]) == 0
    assert sum(share <= 16 for share in right["1 to 999"][0]) == 9
    assert max(right["one word"][1]) < 5
    assert min(right["four words"][1]) >= 99
    assert all(sum(share > 80 for share in right[words][1]) == 3 for words in ("two words", "three words"))


def test_when_told_that_it_is_later_ten_of_eleven_end():
    rows = Study(PAGES / "translators.md").rows("Given later positions")
    after, before = ([numbers(row[column]) for row in rows] for column in (1, 2))
    assert sum(share > 50 for share in after[2]) == 9
    assert sum(share > 0 for share in before[2]) == 1
    assert sum(share > 90 for share in map(max, zip(after[2], after[3], strict=True))) >= 7
    best = [max(run) for run in zip(*after, strict=True)]
    assert sum(share < 100 / 3 for share in best) == 1
    assert sum(max(run[:4]) > 50 for run in zip(*after, strict=True)) == 10
    assert sum(share > 50 for share in before[5]) >= 6
    assert sum(share > 50 for share in before[6]) >= 8


def test_a_decoder_that_is_told_no_place_stops_too_late_just_the_same():
    [_, blind] = Study(PAGES / "translators.md").rows("Told no place")
    held_out, short, more = map(numbers, blind[1:])
    assert len(short) == 11
    assert min(held_out) >= 99
    assert max(short) < 10
    assert min(more) > 90


def test_which_remedy_serves_in_lesson_12():
    rows = {
        name: list(map(numbers, cells)) for name, *cells in Study(PAGES / "translators.md").rows("How many per cent")
    }
    new_short, thousands, drawn_alike = (
        {name: cells[column][:-1] for name, cells in rows.items()} for column in (1, 2, 3)
    )  # the last number is of how many
    assert min(new_short["short"]) >= 95
    worse = sum(a < b for a, b in zip(thousands["short"], thousands["uniform"], strict=True))
    assert 6 <= worse < 11
    assert min(thousands["round"]) >= 96
    assert min(new_short["round"]) == 0
    assert max(new_short["round"]) == 75
    assert min(drawn_alike["mixed"]) >= 97


def test_only_thousand_is_read_elsewhere_in_lesson_12():
    [_, last] = Study(PAGES / "translators.md").rows("Under the largest weight")
    thousand, others = map(numbers, last[1:])
    assert (min(thousand), max(thousand), min(others)) == (4, 100, 96)
    assert len(thousand) == len(others) == 11


def test_more_runs_and_more_numbers_give_the_lowest_parts_of_lesson_24_away():
    rows = Study(PAGES / "parts.md").rows("The lowest, with new seeds")
    behind = {}
    for _, mistake, right, without, said in rows:
        behind[mistake] = sum(one < other for one, other in zip(numbers(right), numbers(without), strict=True))
        assert behind[mistake] == int(said)
    assert behind.pop("causal memory") == 7
    assert set(behind.values()) == {8}


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_table_in_a_lesson_is_still_that_of_its_study(lesson):
    pages = [*PAGES.glob("*.md"), PAGES.parent / "attnlib/models/shipped/technical-english/SCORES.md"]
    known = {line for page in pages for line in page.read_text("utf-8").splitlines()}
    for cell in nbformat.read(LESSONS[lesson], as_version=4).cells:
        for out in cell.get("outputs", ()):
            shown = out.get("data", {}).get("text/markdown", "").splitlines()
            old = [line for line in shown if line.startswith("|") and line not in known]
            assert not old, f"{old[0]} is in no study: say make build NB={lesson}"


def test_the_second_clock_sets_the_limit_of_rotary_in_lesson_08():
    found = {name: [numbers(cell) for cell in cells] for name, *cells in Study(PAGES / "positions.md").rows("Clocks")}
    usual, slow = found["a base of 10000"], found["a base of 1000000"]
    alone, others = found["10000 only the second as with 1000000"], found["1000000 only the second as with 10000"]
    assert max(usual[1]) <= 40 < 70 < min(slow[1])
    assert max(others[1]) <= 40 < 70 < min(alone[1])
    assert max(usual[2] + others[2]) < 20
    assert min(slow[2] + alone[2]) > 80
    assert min(found["a base of 100"][3]) > max(usual[3])  # quick clocks find the last mark, too
    assert max(found["a base of 100000000"][1]) < min(usual[1])  # and much slower ones fail early again
    lengths = {int(n): fails for n, fails in Study(PAGES / "positions.md").rows("Length of training")}
    assert {lengths[n] for n in (12, 16, 24)} == {"32 to 40"}
    assert max(numbers(lengths[8])) < 32 < max(numbers(lengths[32])) <= 40 < min(numbers(lengths[48]))
    assert lengths[64] == "never"


def test_the_usual_slopes_are_too_flat_to_look_back_in_lesson_08():
    rows = Study(PAGES / "positions.md").rows("Slopes")
    found = {(name.split(":")[0], steps): numbers(" ".join(cells)) for name, steps, *cells in rows}  # near, then far
    assert max(found["the usual", "200"]) < 35
    assert min(found["½ in all heads", "200"]) > 55
    assert max(found["2 in all heads", "200"]) < 40
    assert max(found["the usual but the farther preferred", "200"][2:]) < 20
    assert min(found["the usual", "2000"][:2]) > 70
    assert max(found["the usual", "2000"][2:]) < 50
    assert min(found["½ in all heads", "2000"]) >= 80
