"""Symbols and terms of the course: what each is called in formulas, in code, in English and in Chinese, and where.

One row a term, in the order of the lessons. A term belongs to the first lesson that says what it means.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from attnlib.course._tables import rows_of
from attnlib.course.lessons import LESSONS, PARTS

__all__ = ["SYMBOLS", "Symbol", "as_markdown", "in_code", "owner"]


@dataclass(frozen=True)
class Symbol:
    """A term, and the symbol, shape and name in code that go with it, if there are.

    ``words`` is how the lesson has the term, where that differs from ``english``. ``code`` is a dotted name that can
    be imported, and in brackets an argument of it: ``attnlib.attention(q)``.
    """

    lesson: str
    english: str
    chinese: str
    symbol: str = ""
    shape: str = ""
    code: str = ""
    words: str = ""

    @property
    def term(self) -> str:
        """What to look for in the lesson."""
        return self.words or self.english

    @property
    def name(self) -> str:
        """The dotted name."""
        return self.code.partition("(")[0]

    @property
    def argument(self) -> str:
        """The argument of it that is meant, or nothing."""
        return self.code.partition("(")[2].removesuffix(")")


def read() -> tuple[Symbol, ...]:
    """The table as it stands in ``symbols.csv``."""
    return tuple(Symbol(**row) for row in rows_of("symbols"))


SYMBOLS = read()


def as_markdown() -> str:
    """The table as a page, a part of the course at a time, with links from ``notebooks/``.

    >>> as_markdown().splitlines()[0]
    '# Symbols and terms'
    """
    text = [HEAD, _twice()]
    for part, title in PARTS.items():
        members = {lesson.number: lesson.file for lesson in LESSONS if lesson.part == part}
        rows = [_row(symbol, members[symbol.lesson]) for symbol in SYMBOLS if symbol.lesson in members]
        text.append("\n".join([f"## Part {part}. {title}", "", *COLUMNS, *rows, ""]))
    return "\n".join([*text, FOOT])


HEAD = """\
# Symbols and terms

What a thing is called in formulas, in code, in English and in Chinese, and the lesson that first says what it is. \
A token is a row: shapes are those of one sentence or, where they begin with `batch`, of several. Any axes may stand \
before them in `attnlib.attention`. In code a name in brackets is an argument. Chinese is here \
because many learned about attention in that language, where one term has several translations.
"""
COLUMNS = ("| symbol | English | 中文 | shape | in code | lesson |", "| --- | --- | --- | --- | --- | --- |")
FOOT = """\
*Perplexity* (困惑度), which many texts print where this course prints bits, is 2 to the power of the bits per token.
"""


def _twice() -> str:
    """Which letters stand for more than one thing."""
    found: dict[str, list[Symbol]] = {}
    for symbol in SYMBOLS:
        for letter in filter(None, symbol.symbol.split(", ")):
            found.setdefault(letter, []).append(symbol)
    said = [f"{letter} is {_either(members)}" for letter, members in found.items() if len(members) > 1]
    return f"Some letters mean two things, as in the papers: {'; '.join(said)}.\n"


def _either(members: list[Symbol]) -> str:
    return " and ".join(f"the {symbol.english} (from {symbol.lesson} on)" for symbol in members)


def _row(symbol: Symbol, lesson: str | None) -> str:
    shape = f"`{symbol.shape}`" if symbol.shape else ""
    where = f"[{symbol.lesson}]({lesson}.ipynb)"
    return f"| {symbol.symbol} | {symbol.english} | {symbol.chinese} | {shape} | {_code(symbol)} | {where} |"


def _code(symbol: Symbol) -> str:
    return in_code(symbol.name) + (f" (`{symbol.argument}`)" if symbol.argument else "") if symbol.code else ""


def in_code(name: str) -> str:
    """A dotted name with a link, from ``notebooks/``, to the file that defines it.

    >>> in_code("attnlib.attention")
    '[`attnlib.attention`](../attnlib/core/attention.py)'
    """
    file = inspect.getsourcefile(inspect.unwrap(owner(name)))
    return f"[`{name}`](../{Path(file).relative_to(Path(__file__).parents[2]).as_posix()})"


def owner(name: str) -> object:
    """What a dotted name stands for, or the class that has it, where it stands for no function or class.

    >>> owner("attnlib.core.Attended.weights").__name__
    'Attended'
    """
    module, _, rest = name.rpartition(".")
    try:
        home = import_module(module)
    except ModuleNotFoundError:  # a name of a class
        return owner(module)
    return getattr(home, rest)
