"""Running a notebook in the same surroundings everywhere, keeping what is worth it, and telling two runs apart."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import matplotlib
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from publish.lessons.cells import Cell, in_excursions, where
from publish.lessons.lessons import LessonError, LessonFiles, read_notebook, to_cell
from publish.lessons.numbers import settle, texts
from publish.lessons.pictures import differences
from publish.lessons.rules import UNCHECKED, raised_untagged
from publish.notebooks import code_of, tags_of

SECONDS_A_CELL = 400
T = TypeVar("T")


def environment(scratch: Path) -> dict[str, str]:
    """The variables under which lessons run: nothing of the reader's own settings, no progress bars.

    ``scratch`` is an empty folder for what a run leaves behind.
    """
    return {
        "ATTNLIB_PROGRESS": str(scratch / "progress.json"),
        "IPYTHONDIR": str(scratch / "ipython"),
        "MATPLOTLIBRC": str(Path(matplotlib.get_data_path()) / "matplotlibrc"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONSTARTUP": "",
        "PYTHONWARNINGS": "",
        "SOURCE_DATE_EPOCH": "0",
        "TQDM_DISABLE": "1",
    }


class Client(NotebookClient):
    """A client that does not play the browser's part for widgets.

    What a widget shows is not stored. And an answer to one, sent while the cell's own reply is awaited, makes
    pyzmq now and then overlook that reply until the cell's time is up.
    """

    def handle_comm_msg(self, outs: list[NotebookNode], msg: dict[str, object], cell_index: int) -> None:
        """Do nothing."""


def patient(start: Callable[..., T]) -> Callable[..., T]:
    """Let a kernel start again that did not: another program took one of its ports, or kept it from answering."""

    @wraps(start)
    def starting(*args: object, **kwargs: object) -> T:
        for _ in range(2):
            try:
                return start(*args, **kwargs)
            except RuntimeError as error:
                if not re.search("died before replying|didn't respond", str(error)):
                    raise
        return start(*args, **kwargs)

    return starting


def run(notebook: NotebookNode, folder: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run every cell of ``notebook`` in a fresh kernel and store the outputs in it.

    ``variables`` are for the kernel alone and win over those of `environment`.
    """
    try:
        _execute(notebook, folder, variables or {})
    except CellTimeoutError as error:
        raise LessonError(f"a cell ran for more than {SECONDS_A_CELL} seconds") from error
    except DeadKernelError as error:
        raise LessonError("the kernel died") from error
    except CellExecutionError as error:
        failed = next(i for i, cell in enumerate(notebook.cells) if raised_untagged(cell))
        name = where(failed + 1, to_cell(notebook.cells[failed]))
        raise LessonError(f"{name} raised {error.ename}: {error.evalue}") from error


@patient
def _execute(notebook: NotebookNode, folder: Path, variables: Mapping[str, str]) -> None:
    client = Client(
        notebook,
        timeout=SECONDS_A_CELL,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        shutdown_kernel="immediate",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    with TemporaryDirectory() as scratch:
        client.execute(env={**os.environ, **environment(Path(scratch)), **variables})


def tidy(notebook: NotebookNode) -> None:
    """Keep of a run what a reader needs, in the one form that a second run gives too."""
    notebook.metadata = NotebookNode({key: notebook.metadata[key] for key in ("kernelspec", "attnlib")})
    notebook.metadata["language_info"] = NotebookNode(name="python")
    for node in code_of(notebook):
        node.outputs = [] if "live" in tags_of(node) else [_tidy_output(out) for out in node.outputs]


def _tidy_output(output: NotebookNode) -> NotebookNode:
    if output.output_type == "error":
        # The frames above the message name files on this machine; the message is what the lesson shows.
        output.traceback = [f"{output.ename}: {output.evalue}"]
    elif "data" in output:
        found = dict(output.metadata.get("image/png", {}))
        output.metadata = NotebookNode()
        if "image/png" in output.data:
            found["alt"] = " ".join(output.data.get("text/plain", "").split())
            kept = {key: found[key] for key in ("alt", "height", "width") if found.get(key)}
            output.metadata["image/png"] = NotebookNode(kept)
    return output


def could_need_one(cells: Sequence[Cell]) -> bool:
    """Does any code outside stand behind an excursion? What stands before all of them cannot need one."""
    aside = in_excursions(cells)
    return any(cell.kind == "code" and not aside[i] and any(aside[:i]) for i, cell in enumerate(cells))


def core_problems(lesson: LessonFiles) -> list[str]:
    """What goes wrong, or is shown differently, when a lesson is run without its excursions."""
    stored = read_notebook(lesson.notebook)
    aside = in_excursions([to_cell(node) for node in stored.cells])
    stored.cells = [node for node, out in zip(stored.cells, aside, strict=True) if not out]
    fresh = deepcopy(stored)
    try:
        run(fresh, lesson.notebook.parent)
    except LessonError as error:
        return [str(error)]
    tidy(fresh)
    return [f"{place} then shows something else: {problem}" for place, problem in shown_otherwise(stored, fresh)]


def shown_otherwise(stored: NotebookNode, fresh: NotebookNode) -> Iterator[tuple[str, str]]:
    """Which cells show, run again, what they do not store, beyond what may move; and what that is."""
    for number, (old, new) in enumerate(zip(stored.cells, fresh.cells, strict=True), 1):
        if old.cell_type == "code" and UNCHECKED not in tags_of(old):
            yield from ((where(number, to_cell(old)), problem) for problem in _otherwise(old, new))


def _otherwise(stored: NotebookNode, fresh: NotebookNode) -> Iterator[str]:
    kinds = [[kind for kind, _, _ in texts(node.outputs)] for node in (stored, fresh)]
    if kinds[0] != kinds[1]:
        yield f"{kinds[0]} are stored, a run gives {kinds[1]}"
    if wrong := settle(stored.outputs, fresh.outputs, stored.metadata.get("within"))[1]:
        yield wrong
    if wrong := differences(stored.outputs, fresh.outputs, tags_of(stored)):
        yield wrong
