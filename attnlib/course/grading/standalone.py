"""A function as source that stands alone: with the imports, constants and functions that it names."""

from __future__ import annotations

import ast
import dis
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from attnlib.course.source import lambdas_in

__all__ = ["standalone"]

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


def standalone(function: Any) -> str:
    """A Python file in which ``answer`` is this function.

    Raises ``ValueError`` where its source cannot be seen, or it names something that cannot be written down: an
    array, say, or an object.

    >>> from attnlib.course.grading.registry import find
    >>> standalone(find("00.1").reference).splitlines()[-1]
    'answer = _weighted_mean'
    """
    if not isinstance(function, FunctionType):
        raise ValueError(f"{getattr(function, '__name__', function)!r} is no function that was written here")
    if hasattr(function, "__wrapped__"):
        raise ValueError(f"{function.__name__} has a decorator that puts another function in its place")
    parts: dict[str, str] = {}
    name = _write(function, parts)
    imports = [text for text in parts.values() if text.startswith(("import ", "from "))]
    rest = [text for text in parts.values() if text not in imports]
    imports.sort(key=lambda text: not text.startswith("from __future__"))
    return "\n".join(dict.fromkeys(imports)) + "\n\n\n" + "\n\n\n".join([*rest, f"answer = {name}"]) + "\n"


def _write(function: FunctionType, parts: dict[str, str]) -> str:
    """Put a function and what it names into ``parts``, by name, what is named first; return its name."""
    name = function.__name__ if function.__name__ != "<lambda>" else "my_answer"
    parts[name] = ""  # it may name itself
    for used, value in _names(function):
        if used not in parts:
            _write_value(used, value, function, parts)
    parts[name] = parts.pop(name) or _source(function, name)
    if function.__code__.co_flags & annotations.compiler_flag:
        parts.setdefault("annotations", "from __future__ import annotations")
    return name


def _write_value(name: str, value: Any, function: FunctionType, parts: dict[str, str]) -> None:
    module = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
    if isinstance(value, ModuleType):
        own = value.__name__
        parts[name] = f"import {own}" if own == name else f"import {own} as {name}"
    elif isinstance(value, FunctionType | type) and module == function.__module__:
        if isinstance(value, type):
            _write_class(name, value, parts)
        elif (written := _write(value, parts)) != name:
            parts[name] = f"{name} = {written}"
    elif isinstance(value, _CONSTANTS) or (isinstance(value, tuple) and all(isinstance(x, _CONSTANTS) for x in value)):
        value = value.item() if hasattr(value, "item") else value  # a number of NumPy's
        parts[name] = f"{name} = {value!r}"
    elif callable(value) and (own := getattr(value, "__name__", "")) and _is_of(value, module, own):
        module = "numpy" if type(value).__name__ == "ufunc" else module
        parts[name] = f"from {module} import {own}" + (f" as {name}" if own != name else "")
    else:
        raise ValueError(
            f"it uses {name}, {type(value).__name__}, which cannot be written down: make it in the function"
        )


def _is_of(value: Any, module: str, name: str) -> bool:
    """Can it be imported?"""
    module = "numpy" if type(value).__name__ == "ufunc" else module
    return getattr(sys.modules.get(module), name, None) is value


def _write_class(name: str, value: type, parts: dict[str, str]) -> None:
    """Put a class and what its methods name into ``parts``."""
    parts[name] = ""
    for base in value.__bases__:
        if base.__module__ == value.__module__ and base.__name__ not in parts:
            _write_class(base.__name__, base, parts)
    for method in vars(value).values():
        if isinstance(method := getattr(method, "__func__", method), FunctionType) and method.__code__.co_names:
            for used, one in _names(method):
                if used not in parts:
                    _write_value(used, one, method, parts)
    try:
        parts[name] = parts.pop(name) or textwrap.dedent(inspect.getsource(value)).rstrip()
    except (OSError, TypeError) as error:
        raise ValueError(f"the source of {name} cannot be seen") from error


def _names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that a function takes from outside, with their values."""
    inside = inspect.getclosurevars(function).nonlocals
    known = function.__globals__
    for name in dict.fromkeys((*_used(function.__code__), *_in_the_head(function))):
        if name in inside:
            yield name, inside[name]
        elif name in known:
            yield name, known[name]


def _used(code: CodeType) -> Iterator[str]:
    yield from code.co_freevars
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _used(constant)


def _in_the_head(function: FunctionType) -> Iterator[str]:
    """The names in the decorators, defaults and annotations of a function."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):  # a lambda may stand in half a statement, and has no annotations
        return
    if isinstance(node, ast.FunctionDef):
        parts = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
        yield from (one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name))


def _source(function: FunctionType, name: str) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError) as error:
        raise ValueError(f"the source of {name} cannot be seen") from error
    if function.__name__ != "<lambda>":
        return text
    found = set(lambdas_in(text))
    if len(found) > 1:
        wanted = _shape(function.__code__)
        found = {one for one in found if _shape(eval(one).__code__) == wanted}
    if len(found) != 1:
        raise ValueError("the source of the lambda cannot be told from another one's in its line")
    return f"{name} = {found.pop()}"


def _shape(code: CodeType) -> tuple[Any, ...]:
    """What a piece of code does and names, however the compiler came by a name."""
    consts = tuple(_shape(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    steps = [
        (re.sub("GLOBAL|DEREF|METHOD|ATTR", "NAME", step.opname), step.argrepr.replace("NULL + ", ""))
        for step in dis.get_instructions(code)
        if step.opname not in ("PUSH_NULL", "PRECALL", "COPY_FREE_VARS", "RESUME") and "CONST" not in step.opname
    ]
    return code.co_varnames, consts, steps
