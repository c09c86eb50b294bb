"""One page of formulas for the whole course, taken from the docstrings of what computes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from textwrap import dedent

from attnlib.course.lessons import LESSONS, PARTS
from attnlib.course.symbols import SYMBOLS, Symbol, in_code, owner

__all__ = ["as_markdown", "formula"]

# A directive of reStructuredText: what follows on its line, or stands indented below it.
MATH = re.compile(r"^ *\.\. math::(?P<formula>.*(?:\n(?: .*)?)*?)(?=\n\S|\n *\n *\S|\Z)", re.MULTILINE)


def formula(name: str) -> str:
    r"""The first formula in the docstring of what a dotted name stands for, in TeX; nothing if it has none.

    >>> formula("attnlib.core.softmax.masked_softmax").startswith(r"\alpha_{ij} =")
    True
    """
    thing = owner(name)
    if getattr(thing, "__name__", "") != name.rpartition(".")[2]:  # the formula of a class is none of its attributes
        return ""
    found = MATH.search(inspect.getdoc(thing) or "")
    return " ".join(dedent(found["formula"]).split()) if found else ""


def as_markdown() -> str:
    """All formulas, a part of the course at a time, with links from ``notebooks/``.

    >>> as_markdown().splitlines()[0]
    '# Formulas and shapes'
    """
    text, seen = [HEAD], set()
    for part, title in PARTS.items():
        text.append(f"## Part {part}. {title}\n")
        for lesson in (lesson for lesson in LESSONS if lesson.part == part):
            names = dict.fromkeys(symbol.name for symbol in SYMBOLS if symbol.lesson == lesson.number)
            for name in names:
                if name and name not in seen and formula(name):
                    seen.add(name)
                    text += _entry(name, f"[{lesson.number}]({lesson.file}.ipynb)")
    return "\n".join(text)


HEAD = """\
# Formulas and shapes

Every formula of the course, as the code that computes it has it in its docstring: the terms in English and Chinese, \
their symbols and shapes, the code, the lesson. A vector is a row; $m_{ij}$ is 1 where query $i$ may attend to key \
$j$, and $B$ is a bias. Terms without a formula are among [symbols and terms](SYMBOLS.md).
"""


def _entry(name: str, lesson: str) -> Iterator[str]:
    members = [symbol for symbol in SYMBOLS if symbol.name == name]
    yield f"{', '.join(map(_term, members))} · {in_code(name)} · {lesson}\n"
    yield f"$$\n{formula(name)}\n$$\n"


def _term(symbol: Symbol) -> str:
    details = [symbol.chinese, symbol.symbol, f"`{symbol.shape}`" if symbol.shape else ""]
    return f"**{symbol.english}** ({', '.join(filter(None, details))})"
