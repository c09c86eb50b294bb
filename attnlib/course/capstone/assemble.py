"""Puts answers in the places of the parts of `transformer`, as source."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

__all__ = ["PARTS", "TEMPLATE", "assemble", "opened"]

TEMPLATE = Path(__file__).with_name("transformer.py").read_text("utf-8")

# Which answer can stand in which part's place.
PARTS = {
    "03.1": "scores",
    "07.1": "split_heads",
    "07.2": "join_heads",
    "08.1": "position_codes",
    "09.1": "causal",
    "09.2": "masked_softmax",
    "10.3": "encoder_layer",
    "11.3": "mean_loss",
    "11.4": "decoder_layer",
    "14.1": "beam_step",
}


def assemble(answers: Mapping[str, str]) -> str:
    """The file with these answers in the places of its parts: by exercise, what `standalone` made of them.

    Raises ``ValueError`` for an exercise whose answer is no part, and for an answer that needs more than NumPy, torch
    and what comes with Python.

    >>> "def from_03_1" in assemble({"03.1": "answer = lambda Q, K: Q @ K.T"})
    True
    """
    nodes = {node.name: node for node in ast.parse(TEMPLATE).body if isinstance(node, ast.FunctionDef)}
    lines: list[str] = TEMPLATE.split("\n")
    for exercise in sorted(answers, key=lambda one: -nodes[part_of(one)].lineno):  # from below: lines stay in place
        node = nodes[part_of(exercise)]
        lines[node.lineno - 1 : node.end_lineno] = _in_place(exercise, answers[exercise], node).split("\n")
    return "\n".join(lines)


def part_of(exercise: str) -> str:
    """The part that the answer to an exercise can be.

    Raises ``ValueError`` where it is none.
    """
    if exercise not in PARTS:
        raise ValueError(f"exercise must be one whose answer is a part: {', '.join(PARTS)}; got {exercise!r}")
    return PARTS[exercise]


def _in_place(exercise: str, source: str, node: ast.FunctionDef) -> str:
    """An answer in a function of its own, so that what two of them name does not meet."""
    outer = f"from_{exercise.replace('.', '_')}"
    body, for_tensors = _for_torch(exercise, source)
    before, _, last = f"\n{body.strip()}".rpartition("\nanswer = ")
    words = ast.get_docstring(node)
    made = f"{outer}()" if for_tensors else f"on_tensors({outer}())"
    inner = textwrap.indent(f"{before.strip()}\n\nreturn {last}".strip(), "    ")
    return f'def {outer}():\n    """{words}"""\n{inner}\n\n\n{node.name} = {made}'


def _for_torch(exercise: str, source: str) -> tuple[str, bool]:
    """The source with torch's NumPy in the place of NumPy, and whether it was written for tensors."""
    lines = source.split("\n")
    for_tensors = False
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        roots = {module.split(".")[0] for module in modules}
        if other := sorted(roots & {"attnlib"} or roots & {"scipy", "einops", "sklearn"}):
            named = ", ".join(alias.name for alias in node.names)
            raise ValueError(
                f"{exercise} uses {named} of {other[0]}, which a file of your own would have to bring along: write "
                "it with NumPy or torch alone, check it again, and use it then"
            )
        for_tensors |= "torch" in roots
        if roots <= {"numpy", "__future__"}:
            indent = " " * node.col_offset
            lines[node.lineno - 1 : node.end_lineno] = [indent + text for text in _numpy(node)] + [""] * (
                node.end_lineno - node.lineno
            )
    return "\n".join(lines), for_tensors


def _numpy(node: ast.Import | ast.ImportFrom) -> list[str]:
    """What stands in place of an import of NumPy, on one line."""
    if isinstance(node, ast.Import):
        named = [f"{alias.asname} = {alias.name}" for alias in node.names if alias.asname]
    else:
        named = [
            f"{alias.asname or alias.name} = {node.module}.{alias.name}"
            for alias in node.names
            if node.module != "__future__"
        ]
    return ["; ".join(named) or ("pass" if node.col_offset else "")]


def opened(source: str, name: str = "my_transformer") -> ModuleType:
    """The file as a module, without a file; tracebacks show its lines.

    >>> opened(TEMPLATE).scores.__name__
    'scores'
    """
    module = ModuleType(name)
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), module.__dict__)
    return module
