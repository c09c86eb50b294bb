"""Source code as a reader wants to see it: without docstring and decorators."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.display import Markdown


def source_of(obj: Any) -> str:
    """Dedented source of a function or class, "" where there is none.

    >>> def double(x):
    ...     "Twice x."
    ...     return 2 * x
    >>> source_of(len)
    ''
    """
    obj = obj.func if isinstance(obj, functools.partial) else inspect.unwrap(obj)
    try:
        source = textwrap.dedent(inspect.getsource(obj)).rstrip()
    except (OSError, TypeError):
        return ""
    if getattr(obj, "__name__", "") == "<lambda>":
        return next(iter(lambdas_in(source)), source)
    lines = source.split("\n")
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.body[0].lineno == node.lineno:
        return source
    docstring = node.body[0] if ast.get_docstring(node) is not None and len(node.body) > 1 else None
    if docstring is not None:
        del lines[docstring.lineno - 1 : docstring.end_lineno]
        while not lines[docstring.lineno - 1].strip():
            del lines[docstring.lineno - 1]
    return "\n".join(lines[node.lineno - 1 :])


def lambdas_in(source: str) -> list[str]:
    """The lambdas in some lines, which need not be whole statements, each cut out.

    >>> lambdas_in("1: lambda x: 2 * x, 2: lambda x: x),")
    ['lambda x: 2 * x', 'lambda x: x']
    """
    found = (_lambda(source[found.start() :]) for found in re.finditer(r"\blambda\b", source))
    return [one for one in found if one]


def _lambda(text: str) -> str:
    """The lambda with which a text begins, or "" if it is only the word, in a comment or a string."""
    for end in range(len(text), 0, -1):
        try:
            tree = ast.parse(f"({text[:end]}\n)", mode="eval")  # a comment ends before the bracket
        except SyntaxError:
            continue
        if isinstance(tree.body, ast.Lambda):
            return text[:end].rstrip()
    return ""


def markdown(source: str) -> Markdown:
    """Python source as a notebook colours it."""
    from IPython.display import Markdown

    return Markdown(f"```python\n{source}\n```")


def in_notebook() -> bool:
    """Whether a kernel runs this, so that more than text can be shown."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def show(source: str) -> None:
    """Show Python source: coloured in a notebook, printed elsewhere."""
    if not in_notebook():
        print(source)
        return
    from IPython.display import display

    display(markdown(source))
