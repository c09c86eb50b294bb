"""Gather what the book is made of, in the folder that Sphinx reads.

Notebooks and pages lie there as in the repository, so that the links between them hold in both. Beside them lie the
pages that only the book has: the first, the figures, the reference, the tests that the ledger of claims names. Files
that are current are left alone, so that a second build is quick; what belongs to no page goes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from attnlib.course.claims import CLAIMS
from attnlib.course.lessons import LESSONS, PARTS
from publish.book import reference
from publish.notebooks import ROOT, figures, lesson_notebook

#: What is taken from the repository as it stands, in the order in which readers may want it.
TAKEN = (
    "notebooks/[0-9][0-9]_*.ipynb",
    "notebooks/*.md",
    "book/cut_a_head.md",
    "benchmarks/*.md",
    "studies/*.md",
    "attnlib/data/*.md",
    "attnlib/models/shipped/*/*.md",
)


def files() -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of everything that the book is made of."""
    for pattern in TAKEN:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    gallery = ["# Figures\n\nEvery picture of the course, with the lesson that draws it.\n"]
    for lesson in filter(lambda one: one.ready, LESSONS):
        gallery.append(f"## [{lesson.heading}](../notebooks/{lesson.file}.ipynb)\n")
        for figure, png, alt in figures(lesson_notebook(lesson.file)):
            name, words = f"{lesson.number}_{figure}.png", alt.replace("[", r"\[").replace("]", r"\]")
            gallery.append(f"![{words}]({name})\n\n`{name}`\n")
            yield f"figures/{name}", png
    made = {
        "figures/README.md": "\n".join(gallery),
        "index.md": index(),
        "tests/test_claims.md": claim_tests(),
    }
    for path, text in [*made.items(), *reference.pages()]:
        yield path, text.encode()


def index() -> str:
    """The first page: its words from index.md, its lists from the course."""
    text = (ROOT / "book" / "index.md").read_text("utf-8")
    return text.replace("<!-- syllabus -->", "\n\n".join(map(_part, PARTS)))


def _part(part: int) -> str:
    title = f"Part {part}. {PARTS[part]}"
    members = [lesson for lesson in LESSONS if lesson.part == part and lesson.ready]
    rows = [f"| {lesson.link('notebooks/')} | {lesson.teaches} | {lesson.length} |" for lesson in members]
    tree = [f"notebooks/{lesson.file}" for lesson in members]
    table = [f"### {title}", "", "| lesson | what it teaches | minutes |", "| --- | --- | ---: |", *rows, ""]
    return "\n".join([*table, "```{toctree}", ":hidden:", f":caption: {title}", "", *tree, "```"])


def claim_tests() -> str:
    """The code of each test that the ledger of claims names."""
    text = ["# Tests of the claims\n\n`make test` runs them; the [ledger](../notebooks/CLAIMS.md) links here.\n"]
    for claim in CLAIMS:
        path, test = claim.test.split("::")
        text.append(f"({claim.shows})=\n## {claim.number} · {claim.sentence}\n\n{claim.verdict}\n")
        text.append(f"```python\n{_function(path, test)}\n```\n")
    return "\n".join(text)


def _function(path: str, name: str) -> str:
    """The code of a function in a file, with what decorates it."""
    code = (ROOT / path).read_text("utf-8")
    found = next(node for node in ast.parse(code).body if getattr(node, "name", None) == name)
    first = min(node.lineno for node in [found, *found.decorator_list])
    return "\n".join(code.splitlines()[first - 1 : found.end_lineno])


def gather(folder: Path) -> None:
    """Write the files that are not there as they should be, delete those that should not be there."""
    wanted = {folder / path: content for path, content in files()}
    for path in folder.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, content in wanted.items():
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
