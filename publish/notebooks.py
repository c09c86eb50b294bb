"""What every part of this folder asks of a notebook: its cells, what they show, its figures."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]


def code_of(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells of a notebook."""
    return [node for node in notebook.cells if node.cell_type == "code"]


def tags_of(node: NotebookNode) -> Sequence[str]:
    """The tags of a notebook's cell."""
    return node.metadata.get("tags", ())


def shown(outputs: Iterable[NotebookNode], kind: str) -> list[NotebookNode]:
    """Those of a cell's outputs that show something of a kind, such as ``image/png``."""
    return [out for out in outputs if kind in out.get("data", {})]


def pngs(outputs: Iterable[NotebookNode]) -> list[bytes]:
    """The PNG pictures among a cell's outputs."""
    return [base64.b64decode(out.data["image/png"]) for out in shown(outputs, "image/png")]


def alt_of(output: NotebookNode) -> str:
    """What a picture shows, in words."""
    return output.metadata.get("image/png", {}).get("alt", "")


def figures(notebook: NotebookNode) -> Iterator[tuple[str, bytes, str]]:
    """Each picture of a notebook: its name, its PNG, its alt text."""
    for cell in code_of(notebook):
        for output in shown(cell.outputs, "image/png") if "figure" in cell.metadata else ():
            yield cell.metadata["figure"], *pngs([output]), alt_of(output)


def lesson_notebook(name: str) -> NotebookNode:
    """A lesson as it was run, by its name or the number in front of it."""
    [path] = (ROOT / "notebooks").glob(f"{name}*.ipynb")
    return nbformat.read(path, as_version=4)
