"""Running a notebook in the same surroundings everywhere, and keeping what is worth it."""

import os
import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import matplotlib
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from publish.lessons.cells import where
from publish.lessons.lessons import LessonError, to_cell
from publish.lessons.rules import raised_untagged
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
