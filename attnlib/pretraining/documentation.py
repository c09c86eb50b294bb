"""Technical English that every installation of the course contains: docstrings and comments of pinned packages."""

from __future__ import annotations

import ast
import gc
import inspect
import re
from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

__all__ = ["HELD_OUT", "PACKAGES", "documents", "package_documents"]

# What is read, and under which licence. All of it is pinned in constraints.txt and installed by `make lab`.
PACKAGES = {
    "numpy": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "pandas": "BSD-3-Clause",
    "sklearn": "BSD-3-Clause",
    "statsmodels": "BSD-3-Clause",
    "sympy": "BSD-3-Clause",
    "mpmath": "BSD-3-Clause",
    "matplotlib": "PSF-based",
    "torch": "BSD-3-Clause",
    "joblib": "BSD-3-Clause",
    "patsy": "BSD-2-Clause",
    "fontTools": "MIT",
    "narwhals": "MIT",
    "IPython": "BSD-3-Clause",
    "ipykernel": "BSD-3-Clause",
    "jupyter_client": "BSD-3-Clause",
    "jupyter_server": "BSD-3-Clause",
    "traitlets": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "jedi": "MIT",
    "pygments": "BSD-2-Clause",
    "bs4": "MIT",
    "babel": "BSD-3-Clause",
    "zmq": "BSD-3-Clause",
}
# Never trained on: another subject by other people. It is read to see what a model has learned.
HELD_OUT = {"networkx": "BSD-3-Clause"}

SKIPPED = {"tests", "test", "testing", "externals", "_vendor", "vendored"}  # other people's code, or hardly English
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # what holds statements, in the order of `ast`
STRING_OR_COMMENT = re.compile(  # from left to right; in a string a # is none, in a comment a quote is none
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>\#[^\n]*)""",
    re.DOTALL,
)
SHORTEST = 40  # characters of a paragraph: less is mostly a heading or a name


def documents(packages: Iterable[str] = PACKAGES, *, seen: set[bytes] | None = None) -> list[str]:
    """All docstrings and comments of these packages, without a paragraph that stood in one before.

    ``seen`` are marks of such paragraphs, which grow: give one set for what is trained on and what is held out.

    Raises ``ModuleNotFoundError`` for a package that is not installed.

    >>> len(documents(["patsy"])) > 100
    True
    """
    seen = set() if seen is None else seen
    return [text for package in packages for text in _without_copies(package_documents(package), seen)]


def package_documents(package: str) -> Iterator[str]:
    """Docstrings and blocks of comments, file by file, in the order in which they stand.

    >>> "formula" in " ".join(package_documents("patsy"))
    True
    """
    root = folder_of(package)
    for path in sorted(root.rglob("*.py")):
        if not SKIPPED & set(path.relative_to(root).parts):
            try:
                source = path.read_text(encoding="utf-8")
                yield from _docstrings(source)
                yield from _comments(source)
            except (SyntaxError, UnicodeDecodeError):
                continue  # a template, or a file for another version of Python


def folder_of(package: str) -> Path:
    """Where its files are; raises ``ModuleNotFoundError`` when it is not installed.

    >>> folder_of("patsy").name
    'patsy'
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"packages must be installed, as `make lab` does; there is no {package}")
    return Path(next(iter(spec.submodule_search_locations)))


def _docstrings(source: str) -> Iterator[str]:
    """Docstrings, outermost first, as `ast.walk` finds them: of statements alone, since no expression has one."""
    todo = deque([_tree(source)])
    while todo:
        node = todo.popleft()
        todo.extend(child for field in BLOCKS for child in getattr(node, field, ()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield inspect.cleandoc(text)


def _tree(source: str) -> ast.Module:
    """The tree of a file, in two thirds of the time: nothing in it goes in a circle, yet the collector would look."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()


def _comments(source: str) -> Iterator[str]:
    """Comments on lines that follow each other, joined."""
    block: list[str] = []
    last = line = begin = 0
    for match in STRING_OR_COMMENT.finditer(source):
        line, begin = line + source.count("\n", begin, match.start()), match.start()
        before = source[source.rfind("\n", 0, begin) + 1 : begin]
        if not match["comment"] or before.strip():
            continue
        if line != last + 1 and block:
            yield "\n".join(block)
            block = []
        block.append(match["comment"].lstrip("#!: ").rstrip())
        last = line
    if block:
        yield "\n".join(block)


def _without_copies(texts: Iterable[str], seen: set[bytes]) -> Iterator[str]:
    """The texts without the paragraphs in ``seen``, which grows: letters alone are compared."""
    for text in texts:
        kept = []
        for paragraph in re.split(r"\n\s*\n", text):
            letters = re.sub(r"[^a-z]+", " ", paragraph.lower()).strip()
            mark = blake2b(letters.encode(), digest_size=12).digest()
            if len(letters) >= SHORTEST and ">>>" not in paragraph and mark not in seen:
                seen.add(mark)
                kept.append(re.sub(r"[ \t]+(?=\n|$)", "", paragraph))
        if kept:
            yield "\n\n".join(kept)
