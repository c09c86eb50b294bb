"""What an edit touches: from the definitions that changed to the tests and the lessons that name them.

Every definition at the top of a file is a point; an arrow leads from it to each definition that names it, in a
file that imports its file. Who stands one arrow from the edit is told of it first; beyond two, nobody.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("attnlib", "tests", "notebooks", "benchmarks", "studies", "publish", "tools")
FARTHEST = 2
FILE = re.compile(r"[\w./-]+")


@dataclass(frozen=True)
class Code:
    """What stands at the top of a file: each definition with the names in it, and what the file imports."""

    definitions: dict[str, set[str]]
    imports: set[str]


class Tree:
    """The Python files and the lessons of a checkout, as they are on disk."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @cached_property
    def files(self) -> dict[str, Code]:
        """Every file that holds code, by its path from the root."""
        paths = [path for folder in FOLDERS for path in sorted((self.root / folder).rglob("*.py"))]
        paths += sorted((self.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
        return {path.relative_to(self.root).as_posix(): read(text_of(path)) for path in paths}

    def changed(self) -> list[str]:
        """The files that differ from the last commit, new ones and lost ones too."""
        said = self._git("status", "--porcelain", "--no-renames", "--untracked-files=all", "-z")
        return [entry[3:] for entry in said.split("\0") if entry]

    def edits(self, path: str) -> set[str]:
        """The definitions of a file that are not as in the last commit; of a file without code, its name."""
        if not path.endswith(".py"):
            return {Path(path).name, Path(path).stem}
        here = self.root / path
        old = outline(self._git("show", f"HEAD:{path}"))
        new = outline(here.read_text("utf-8") if here.exists() else "")
        return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}

    def reached(self, edits: dict[str, set[str]]) -> dict[str, dict[str, int]]:
        """How many arrows from an edit definitions stand: file, definition, number."""
        far: dict[str, dict[str, int]] = defaultdict(dict)
        edge = {(path, name) for path, names in edits.items() for name in names}
        for distance in range(FARTHEST + 1):
            for path, name in edge:
                far[path].setdefault(name, distance)
            edge = {who for path, name in edge for who in self._naming(path, name)}
        return far

    def _naming(self, path: str, name: str) -> Iterator[tuple[str, str]]:
        for other, definition in self._mentions[name]:
            if other == path or path in self._imported(other) or not path.endswith(".py"):
                yield other, definition

    @cached_property
    def _mentions(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for path, code in self.files.items():
            for definition, names in code.definitions.items():
                for name in names:
                    found[name].append((path, definition))
        return found

    @cache  # noqa: B019 (a tree lives as long as the command)
    def _imported(self, path: str) -> set[str]:
        """The files that a file imports; a folder's front door stands for all that lies in it."""
        wanted = self.files[path].imports
        return {other for other in self.files if any(module in wanted for module in doors(other))}

    def _git(self, *command: str) -> str:
        return subprocess.run(["git", *command], cwd=self.root, capture_output=True, text=True).stdout


def doors(path: str) -> Iterator[str]:
    """The names under which a file may be imported: its own, and those of the folders around it."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    if parts[0] not in ("attnlib", "publish"):  # scripts are imported from their folder
        parts = parts[1:]
    while parts:
        yield ".".join(parts)
        parts = parts[:-1]


def text_of(path: Path) -> str:
    """The Python in a file or in a lesson's cells."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return text
    sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join(source for source in sources if parsed(source))


def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text; of one that is not Python, none."""
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def read(text: str) -> Code:
    """What stands at the top of a file."""
    code = Code(defaultdict(set), set())
    for statement in parsed(text):
        names = set(names_in(statement, code.imports))
        for name in defined(statement):
            code.definitions[name] |= names
    return code


def defined(statement: ast.stmt) -> list[str]:
    """What a statement defines; of one that defines nothing, a name that nothing else has."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return []
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [statement.name]
    parts = ast.walk(statement)
    return [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)] or ["<else>"]


def names_in(statement: ast.stmt, imports: set[str]) -> Iterator[str]:
    """Every name in a statement, of files too; what it imports is put aside."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.arg):
            yield part.arg  # so does a test ask for a fixture
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and FILE.fullmatch(part.value):
            yield part.value.rpartition("/")[2]
        elif isinstance(part, ast.Import):
            imports |= {alias.name for alias in part.names}
        elif isinstance(part, ast.ImportFrom) and part.module:
            imports |= {part.module} | {f"{part.module}.{alias.name}" for alias in part.names}


def outline(text: str) -> dict[str, str]:
    """Each definition of a file as the compiler sees it, which is blind to docstrings and comments."""
    found: dict[str, str] = defaultdict(str)
    for statement in parsed(text):
        for part in ast.walk(statement):
            if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and ast.get_docstring(part):
                part.body = part.body[1:]
        for name in defined(statement):
            found[name] += ast.dump(statement)
    return found
