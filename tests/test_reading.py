"""The pages of formulas and of what to read next name what there is, once, with where to find it."""

from __future__ import annotations

import re
from pathlib import Path

from attnlib.course.formulas import formula
from attnlib.course.lessons import LESSONS
from attnlib.course.reading import FURTHER, as_markdown
from attnlib.course.references import addresses
from attnlib.course.symbols import SYMBOLS

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def test_what_comes_after_the_course_is_quoted_by_no_lesson_and_stands_once():
    titles = [work.title for work in FURTHER]
    assert len(titles) == len(set(titles))
    assert set(titles) & set(addresses()) == set()
    for work in FURTHER:
        assert re.match(r"https://(arxiv\.org/abs/\d{4}\.\d{4,5}|doi\.org/10\.)", work.address)
        assert work.about


def test_works_stand_after_lessons_that_there_are():
    numbers = {lesson.number for lesson in LESSONS}
    for work in FURTHER:
        assert set(work.lessons) <= numbers
        assert list(work.lessons) == sorted(work.lessons)
    page = (NOTEBOOKS / "READING.md").read_text("utf-8")
    assert all(f"[*{work.title}*]({work.address})" in page for work in FURTHER)
    assert all(page.count(f"*{title}*") == 1 for title in addresses())
    with_year = [line for line in page.splitlines() if re.match(r"- [^\[*]+, \[?\*.+, (1[89]|20)\d\d", line)]
    assert len(with_year) > 0.95 * len(addresses())
    assert not re.findall(r"^- \[?\*(?!after it)", page, re.MULTILINE), "a work without its authors"


def test_a_work_stands_after_the_last_lesson_that_prepares_it():
    page = as_markdown({number: {} for number in ("10", "23")})
    after_10, _, after_23 = page.partition("## [23")
    assert "(with lesson 10)" in after_23
    assert "Switch Transformers" not in after_10


def test_every_formula_of_a_symbol_is_on_the_page_once():
    page = (NOTEBOOKS / "FORMULAS.md").read_text("utf-8")
    names = {symbol.name for symbol in SYMBOLS if symbol.name and formula(symbol.name)}
    assert len(names) > 60
    for name in names:
        assert page.count(f"[`{name}`]") == 1, name
    for symbol in SYMBOLS:
        if symbol.name in names:
            assert symbol.chinese in page


def test_a_formula_is_taken_whole_and_only_from_what_has_it():
    ring = formula("attnlib.parallel.ring_attention")
    assert ring.startswith(r"\text{out}_i = \frac{\sum_p")
    assert "In step s" not in ring
    assert formula("attnlib.NadarayaWatson.loo_residuals") == ""
    assert formula("attnlib.data.text.Vocabulary") == ""
