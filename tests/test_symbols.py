"""The table of symbols and terms keeps its word: what it names exists, and stands in the lesson that it names."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from attnlib.course.lessons import LESSONS
from attnlib.course.symbols import SYMBOLS

ROOT = Path(__file__).parents[1]
TEXTS = {
    lesson.number: (ROOT / "notebooks" / "source" / f"{lesson.file}.md").read_text("utf-8")
    for lesson in LESSONS
    if lesson.ready
}
MATH = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)

each_symbol = pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.english)


def named(name):
    """What a dotted name stands for."""
    above, _, last = name.rpartition(".")
    try:
        return getattr(import_module(above), last)
    except ModuleNotFoundError:
        return getattr(named(above), last)


def defines(text, term):
    """Whether a lesson has a term in bold, as it does where it says what the term means."""
    return bool(re.search(rf"\*\*{re.escape(term)}s?\*\*", text, re.IGNORECASE))


@each_symbol
def test_a_term_stands_in_its_lesson_and_is_defined_in_none_before(symbol):
    assert symbol.term.lower() in TEXTS[symbol.lesson].lower()
    assert [number for number in TEXTS if number < symbol.lesson and defines(TEXTS[number], symbol.term)] == []


@each_symbol
def test_a_symbol_stands_in_a_formula_of_its_lesson(symbol):
    formulas = "\n".join(MATH.findall(TEXTS[symbol.lesson]))
    for sign in re.findall(r"\$(.*?)\$", symbol.symbol):
        assert sign in formulas


@each_symbol
def test_the_code_exists_and_takes_the_argument(symbol):
    if symbol.code:
        thing = named(symbol.name)
        assert thing is not None
        if symbol.argument:
            assert symbol.argument in inspect.signature(thing).parameters


@each_symbol
def test_a_term_has_a_chinese_name(symbol):
    known_by_its_english_name = {"Transformer"}
    assert re.search(r"[\u4e00-\u9fff]", symbol.chinese) or symbol.chinese in known_by_its_english_name


def test_every_lesson_has_its_terms_and_no_term_comes_twice():
    assert {symbol.lesson for symbol in SYMBOLS} == set(TEXTS)
    terms = [symbol.english for symbol in SYMBOLS]
    assert len(terms) == len(set(terms))
