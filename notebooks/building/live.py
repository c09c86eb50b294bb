"""The sliders of a lesson, outside of JupyterLab: the code that one needs, its function and its controls."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import symtable
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

from .cells import Cell


def has_slider(cell: Cell) -> bool:
    """Is this a cell with `@interact`?"""
    return cell.kind == "code" and cell.live and "@interact" in cell.source


def needed(cells: Sequence[Cell], place: int) -> list[str]:
    """The code before the cell at ``place`` that binds a name which it needs, and the code that this needs."""
    wanted, chosen = _loads(cells[place].source), []
    for cell in reversed(cells[:place]):
        if cell.kind == "code" and not cell.live and _binds(cell.source) & wanted:
            wanted |= _loads(cell.source)
            chosen.append(cell.source)
    return chosen[::-1]


def slider(cells: Sequence[Cell], place: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Run what the slider at ``place`` needs; its function, and its controls as `interact` was given them."""
    caught: list[tuple[Callable[..., Any], dict[str, Any]]] = []

    def interact(**controls: Any) -> Callable[..., Any]:
        return lambda function: caught.append((function, controls)) or function

    names: dict[str, Any] = {"__name__": "slider"}
    quiet = mock.patch.dict("os.environ", TQDM_DISABLE="1")
    with quiet, mock.patch("ipywidgets.interact", interact), contextlib.redirect_stdout(io.StringIO()):
        for source in [*needed(cells, place), cells[place].source]:
            exec(compile(source, cells[place].first_line, "exec"), names)
    [found] = caught
    return found


def start(function: Callable[..., Any], controls: dict[str, Any]) -> dict[str, Any]:
    """Where the controls stand at first."""
    defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    return {
        name: defaults[name] if defaults[name] is not inspect.Parameter.empty else getattr(control, "value", control)
        for name, control in controls.items()
    }


def _loads(source: str) -> set[str]:
    """The names that code looks for outside of its functions."""
    return set(_looked_up(symtable.symtable(source, "cell", "exec")))


def _looked_up(scope: symtable.SymbolTable) -> Iterator[str]:
    outermost = scope.get_type() == "module"
    yield from (s.get_name() for s in scope.get_symbols() if s.is_referenced() and (outermost or s.is_global()))
    for inner in scope.get_children():
        yield from _looked_up(inner)


def _binds(source: str) -> set[str]:
    """The names that code gives something to, outside of its functions: also by x[i] = ..."""
    stored = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Subscript))
    items = {n.value.id for n in stored if isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)}
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return items | {s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()}
