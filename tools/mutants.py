"""Change every solution a little, in every place, and see whether `check` notices: ``make mutants``.

A change is an operator, a comparison, a number, an axis, a keyword left out or two arguments exchanged. What `check`
calls right is tried on other inputs: where it agrees with the solution on all of those as well it is no mistake.
What is left is a wrong answer that `check` takes for a right one.
"""

from __future__ import annotations

import ast
import copy
import inspect
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import compare, registry
from attnlib.course.grading.grade import grade
from attnlib.course.grading.trial import outcomes
from attnlib.course.source import lambdas_in

OTHER_SEEDS = range(100, 108)  # solutions draw with small ones
SLOW = 1.0  # seconds for one answer, above which an exercise is left out
LONG = 60.0  # seconds for one exercise, after which what is left of its changes is not tried
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def changes(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every tree with one change, and what was changed."""
    for i, node in enumerate(ast.walk(tree)):
        for how in _ways(node):
            other = copy.deepcopy(tree)
            target = next(one for j, one in enumerate(ast.walk(other)) if j == i)
            before = ast.unparse(target)
            how(target)
            yield f"{before}  →  {ast.unparse(target)}", ast.fix_missing_locations(other)


def _ways(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    """What can be done to a node."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        yield lambda n: setattr(n, "op", SWAPS[type(n.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda n: n.ops.__setitem__(0, SWAPS[type(n.ops[0])]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.Not):
        yield _bare
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.Call):
        if len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            yield lambda n: n.args.__setitem__(slice(0, 2), n.args[1::-1])
        for k in range(len(node.keywords)):
            yield lambda n, k=k: n.keywords.pop(k)
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield _untransposed


def _bare(node: ast.UnaryOp) -> None:
    node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
    if not isinstance(node.op, ast.UAdd):
        node.operand = ast.UnaryOp(op=type(node.op)(), operand=node.operand)


def _untransposed(node: ast.Attribute) -> None:
    node.attr = "real"  # the same numbers


def mutants(exercise: Exercise) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The solution of an exercise, and the functions of its lesson that it names, each changed in one place."""
    shown = exercise.solution or exercise.reference
    lesson = sys.modules[f"{registry.package.__name__}.lesson{exercise.lesson}"]
    home = vars(sys.modules[shown.__module__]) if hasattr(shown, "__module__") else {}
    functions = _reached(shown, lesson.__name__)
    trees = {name: _tree(function) for name, function in functions.items()}
    trees = {name: tree for name, tree in trees.items() if tree is not None}
    first = next(iter(functions), None)
    for name, tree in trees.items():
        for what, changed in changes(tree):
            namespace = {**home, **vars(lesson)} if name != first else dict(home)
            try:
                for one, other in {**trees, name: changed}.items():
                    exec(compile(ast.Module([_named(other, one)], []), f"<{exercise.id}>", "exec"), namespace)
            except Exception:  # it cannot even be defined
                continue
            yield what, namespace[first]


def _reached(function: Any, lesson: str) -> dict[str, Any]:
    """The function, and those of the lesson's file that it names, however far."""
    found: dict[str, Any] = {}
    todo = [(getattr(function, "__name__", "answer").replace("<lambda>", "answer"), function)]
    while todo:
        name, one = todo.pop()
        if name in found or not inspect.isfunction(one):
            continue
        found[name] = one
        names = set(one.__code__.co_names) | {
            n for c in one.__code__.co_consts if inspect.iscode(c) for n in c.co_names
        }
        known = ((n, one.__globals__.get(n)) for n in sorted(names))
        todo += [(n, f) for n, f in known if inspect.isfunction(f) and f.__module__ == lesson]
    return found


def _tree(function: Any) -> ast.AST | None:
    """A function's definition; None where its source is not there or a lambda's cannot be told from another's."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None
    if function.__name__ == "<lambda>":
        found = lambdas_in(text)
        return ast.parse(found[0], mode="eval").body if len(found) == 1 else None
    node = ast.parse(text).body[0]
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.returns = None
        if ast.get_docstring(node):
            node.body = node.body[1:] or node.body
        for argument in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
            argument.annotation = None
    return node


def _named(tree: Any, name: str) -> ast.stmt:
    if isinstance(tree, ast.Lambda):
        return ast.fix_missing_locations(ast.Assign([ast.Name(name, ast.Store())], tree, lineno=1))
    return tree


def accepted(exercise: Exercise, answer: Callable[..., Any]) -> bool:
    """Does `check` call it right?"""
    try:
        return grade(exercise, answer).kind == "right"
    except Exception:
        return False


def really_right(exercise: Exercise, answer: Callable[..., Any]) -> bool:
    """Does it agree on other inputs too?"""
    for seed in OTHER_SEEDS:
        cases = list(exercise.cases(np.random.default_rng(seed)))
        wanted = compare.expected(exercise, cases)
        came = list(outcomes(answer, cases, exercise.adapt))
        if not all(compare.is_right(exercise, w, c) for w, c in zip(wanted, came, strict=False)):
            return False
    return True


def examined(exercise: Exercise) -> tuple[int, int, list[str]] | str:
    """How many changes there were, how many of them were no mistake, and those that were taken for right."""
    if exercise.asks_for_value:
        return "it asks for a value"
    started = time.perf_counter()
    if not accepted(exercise, exercise.reference):
        return "its reference is not accepted"
    if time.perf_counter() - started > SLOW:
        return "one answer takes seconds"
    exercise = replace(exercise, misconceptions=[])
    total, same, survivors = 0, 0, []
    for what, answer in mutants(exercise):
        if time.perf_counter() - started > LONG:
            survivors.append("what comes after the first minute was not tried")
            break
        total += 1
        if accepted(exercise, answer):
            if really_right(exercise, answer):
                same += 1
            else:
                survivors.append(what)
    return (total, same, survivors) if total else "its solution cannot be changed"


def main(*wanted: str) -> int:
    """Print a line for each exercise and each survivor; the status is 1 where more than one in a hundred survives."""
    warnings.simplefilter("ignore")
    os.environ |= {"ATTNLIB_CHECK_SECONDS": str(2 * SLOW), "TQDM_DISABLE": "1"}
    all_changed, all_left = 0, 0
    for lesson in registry.lessons():
        for exercise in registry.load(lesson):
            if wanted and exercise.id not in wanted and lesson not in wanted:
                continue
            found = examined(exercise)
            if isinstance(found, str):
                print(f"{exercise.id}  left out: {found}", flush=True)
                continue
            total, same, survivors = found
            all_changed += total - same
            all_left += len(survivors)
            print(f"{exercise.id}  {total - same - len(survivors)} of {total - same} rejected", flush=True)
            for what in survivors:
                print(f"       taken for right: {what}", flush=True)
    share = 1 - all_left / max(all_changed, 1)
    print(f"{all_changed - all_left} of {all_changed} changes that matter are rejected, {100 * share:.1f} %")
    return int(share < 0.99)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
