"""What a target imports comes with the environment that it sets up: read from the code. `make targets` tries all."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from setup_environment import STAGES
from solve_constraints import pins
from targets import ASKED
from touched import text_of

ROOT = Path(__file__).parents[1]
FOLDERS = [ROOT, *(ROOT / name for name in ("notebooks/lab", "tools"))]
RULES = re.findall(r"^([a-z]+):(.*) ## .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
STAGE = {target: stage[0] for target, needs, _ in RULES if (stage := re.findall(r"\.venv/(\w+)", needs))}
STAGE["test"] = STAGE["lint"]
RECIPES = {target: recipe for target, _, recipe in RULES if target in STAGE}
FOREIGN = ROOT / "attnlib" / "nn" / "foreign.py"  # imports transformers for a model of it, where somebody has made one
# What a target reads besides the files that its recipe names.
ALSO = {"lab": ["notebooks/*.ipynb"], "test": ["conftest.py", "tests/*.py"]}


@cache
def closure(stage):
    """The distributions that a stage installs, with all that they require."""
    before, wanted, _ = STAGES[stage]
    asked = [wanted[-1].replace(".", "attnlib", 1)]
    if not before:
        asked += pins((ROOT / "requirements.txt").read_text("utf-8"))
    todo, found, names = [Requirement(line) for line in asked], set(), set()
    while todo:
        one = todo.pop()
        names.add(canonicalize_name(one.name))
        for extra in {"", *one.extras} - {extra for name, extra in found if name == one.name}:
            found.add((one.name, extra))
            try:
                lines = [Requirement(line) for line in requires(one.name) or ()]
            except PackageNotFoundError:  # of another stage than the one that tests
                continue
            todo += [line for line in lines if not line.marker or line.marker.evaluate({"extra": extra})]
    return frozenset(names) | (closure(before) if before else set())


@cache
def imports(file):
    """The modules that a file imports, at its top or later, unless it goes on without them; not by a dot."""
    text = text_of(file)
    nodes = set(ast.walk(ast.parse(text)))
    tries = [node for node in nodes if isinstance(node, ast.Try)]
    nodes -= {n for t in tries for n in t.body if "ImportError" in [getattr(h.type, "id", "") for h in t.handlers]}
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    if file.name == "conf.py":
        named |= set(re.findall(r'^(?: +|html_theme = )"([\w.-]+)",?$', text, re.MULTILINE))  # Sphinx imports these
    named = {name if name.startswith("publish.") else name.partition(".")[0] for name in named}
    return named - ({"transformers"} if file == FOREIGN else set())


@cache
def found(name, beside):
    """The files of this repository that a module is: all of a package, for its names may be loaded late."""
    for folder in [*([] if (beside / "__init__.py").exists() else [beside]), *FOLDERS]:
        place = folder.joinpath(*name.split("."))
        if place.with_suffix(".py").exists():
            return {place.with_suffix(".py")}
        if (place / "__init__.py").exists():
            return set(place.rglob("*.py"))
    return set()


def reached(target):
    """The modules of others that a target imports, through all files of this repository between."""
    recipe = RECIPES[target].replace("-m publish ", "-m publish.")  # whose door opens one part of it
    scripts = [one for name in re.findall(r"\.venv/bin/(\S+)", recipe) for one in entry_points(name=name)]
    others = {one.module.partition(".")[0] for one in scripts}
    todo = {ROOT / name for name in re.findall(r"[\w/]+\.py\b", recipe)}
    todo |= {file for files in ALSO.get(target, []) for file in ROOT.glob(files)}
    for name in re.findall(r"-m ([\w.]+)", recipe):
        todo |= found(name, ROOT)
        others |= set() if found(name, ROOT) else {name}
    seen = set()
    while todo:
        file = todo.pop()
        seen.add(file)
        for name in imports(file):
            todo |= found(name, file.parent) - seen
            others |= set() if found(name, file.parent) else {name}
    return {name.partition(".")[0] for name in others} - sys.stdlib_module_names


@pytest.fixture(scope="module")
def brings():
    """What there is to import in every distribution that is installed."""
    return {module: set(map(canonicalize_name, names)) for module, names in packages_distributions().items()}


@pytest.mark.parametrize("target", RECIPES)
def test_what_a_target_imports_comes_with_its_own_environment(target, brings):
    installed = closure(STAGE[target])
    assert [
        name for name in sorted(reached(target)) if not brings.get(name, {name.replace("_", "-")}) & installed
    ] == []


def test_every_target_is_tried_for_real():
    assert set(ASKED) == {target for target, _, _ in RULES}
