"""The sliders of a lesson outside of JupyterLab: what one needs, and its pictures, drawn ahead, in one page.

A live cell with ``moving: {name: bandwidth, h: 41}`` becomes ``figures/moving/01_bandwidth.html``, which book and
decks show without a server. For each of its controls the option says in how many positions the page has it, or in
which; one that it does not name keeps all of its own. With ``film: true`` the same pictures are a film as well.
"""

import ast
import contextlib
import hashlib
import inspect
import io
import itertools
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image

from attnlib.plotting.picture import SCREEN_DPI
from publish.lessons.cells import Cell
from publish.lessons.lessons import Course, LessonError, LessonFiles, sources
from publish.lessons.rules import names

PAGE = Path(__file__).with_name("moving.html")
SCALE, QUALITY = 0.9, 35  # of the dots of a figure; of WebP, at which letters still have clean edges
MOST = 150  # pictures in a page


def needed(cells: Sequence[Cell], place: int) -> list[str]:
    """The code before the cell at ``place`` that binds a name which it needs, and the code that this needs."""
    wanted, chosen = names(cells[place].source)[0], []
    for cell in reversed([cell for cell in cells[:place] if cell.kind == "code" and not cell.live]):
        reads, binds = names(cell.source)
        stored = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Subscript)]
        items = {ast.unparse(node.value) for node in stored if isinstance(node.ctx, ast.Store)}  # x[i] = ...
        if (binds | items) & wanted:
            wanted |= reads
            chosen.append(cell.source)
    return chosen[::-1]


def slider(cells: Sequence[Cell], place: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Run what the slider at ``place`` needs; its function, and its controls as `interact` was given them."""
    caught: list[tuple[Callable[..., Any], dict[str, Any]]] = []

    def interact(**controls: Any) -> Callable[..., Any]:
        return lambda function: caught.append((function, controls)) or function

    space: dict[str, Any] = {"__name__": "slider"}
    quiet = mock.patch.dict("os.environ", TQDM_DISABLE="1")
    with quiet, mock.patch("ipywidgets.interact", interact), contextlib.redirect_stdout(io.StringIO()):
        for source in [*needed(cells, place), cells[place].source]:
            exec(compile(source, cells[place].first_line, "exec"), space)
    [found] = caught
    return found


def start(function: Callable[..., Any], controls: dict[str, Any]) -> dict[str, Any]:
    """Where the controls stand at first."""
    defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    return {
        name: defaults[name] if defaults[name] is not inspect.Parameter.empty else getattr(control, "value", control)
        for name, control in controls.items()
    }


@dataclass(frozen=True)
class Moving:
    """A figure that moves: the lesson, and the place of its live cell."""

    lesson: LessonFiles
    place: int

    @property
    def cell(self) -> Cell:
        """The slider that it is made from."""
        return sources(self.lesson)[self.place]

    @property
    def path(self) -> Path:
        """Where its page is written."""
        return self.lesson.course.figures / "moving" / f"{self.lesson.number}_{self.cell.moving['name']}.html"

    @property
    def film(self) -> Path | None:
        """Where its film is written, if it is one too."""
        return self.path.with_suffix(".webp") if self.cell.moving.get("film") else None

    def is_current(self) -> bool:
        """Was the page made from the lesson as it is?"""
        if not self.path.exists() or (self.film and not self.film.exists()):
            return False
        made_from = fingerprint(sources(self.lesson), self.place)
        return f'content="{made_from}"' in self.path.read_text("utf-8")[:2000]

    def page(self) -> str:
        """Its page, all pictures inside."""
        cells, dtype, threads = sources(self.lesson), torch.get_default_dtype(), torch.get_num_threads()
        torch.set_num_threads(1)  # as lessons are built: two are slower than one where something else runs
        try:
            function, controls = slider(cells, self.place)
            axes = steps(self.cell, controls, start(function, controls))
            drawn = [function(**values) for values in combinations(axes)]
        finally:
            torch.set_default_dtype(dtype)  # lessons that train in double precision set another
            torch.set_num_threads(threads)
        data = {
            "controls": [{key: axis[key] for key in ("label", "shown", "at", "choice")} for axis in axes],
            "width": round(drawn[0].figure.get_size_inches()[0] * SCREEN_DPI),
            "pictures": [_small(picture.png()) for picture in drawn],
            "alts": [picture.alt for picture in drawn],
        }
        text = PAGE.read_text("utf-8").replace("%title%", drawn[0].alt.split(". ")[0])
        text = text.replace("%made_from%", fingerprint(cells, self.place))
        return text.replace("%data%", json.dumps(data, ensure_ascii=False))


def moving_figures(course: Course) -> list[Moving]:
    """The figures of a course that move."""
    return [
        Moving(lesson, place)
        for lesson in course.lessons()
        for place, cell in enumerate(sources(lesson))
        if cell.moving
    ]


def orphans(course: Course) -> list[Path]:
    """Pages that no cell accounts for."""
    known = {moving.path for moving in moving_figures(course)}
    return sorted(file for file in (course.figures / "moving").glob("*") if file.with_suffix(".html") not in known)


def fingerprint(cells: Sequence[Cell], place: int) -> str:
    """What a page was made from: the slider, and the code of the lesson that it needs."""
    cell = cells[place]
    made_from = [*needed(cells, place), cell.source, cell.moving, PAGE.read_text("utf-8"), SCALE, QUALITY]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def film(page: str) -> bytes:
    """The pictures of a page with one control, there and back, for a place that can show pictures only."""
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    pictures = [Image.open(io.BytesIO(b64decode(picture))) for picture in json.loads(found[1])["pictures"]]
    pictures += pictures[-2:0:-1]
    file = io.BytesIO()
    pictures[0].save(
        file, "WEBP", save_all=True, append_images=pictures[1:], duration=120, loop=0, quality=QUALITY, method=4
    )
    return file.getvalue()


def _small(png: bytes) -> str:
    """A picture as a page holds it, a twentieth of the bytes."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture = picture.resize((round(picture.width * SCALE), round(picture.height * SCALE)), Image.Resampling.LANCZOS)
    small = io.BytesIO()
    picture.save(small, "WEBP", quality=QUALITY, method=6)
    return b64encode(small.getvalue()).decode()


def combinations(axes: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All positions of all controls, the last moving fastest."""
    names = [axis["name"] for axis in axes]
    return (dict(zip(names, values, strict=True)) for values in itertools.product(*(a["values"] for a in axes)))


def steps(cell: Cell, controls: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    """The controls as the page has them: their values, how these are written, and where each stands at first."""
    axes = [_axis(name, control, cell.moving.get(name), at[name]) for name, control in controls.items()]
    count = int(np.prod([len(axis["values"]) for axis in axes]))
    if count > MOST:
        raise LessonError(f"moving: {cell.moving['name']} makes {count} pictures; at most {MOST}.")
    return axes


def _axis(name: str, control: Any, wanted: int | list | None, at: Any) -> dict[str, Any]:
    named = control if isinstance(control, dict) else None
    values = list(named.values()) if named else _values(control)
    if isinstance(wanted, list):
        values = [named[one] for one in wanted] if named else wanted
    elif isinstance(wanted, int) and wanted < len(values):
        values = [values[round(i)] for i in np.linspace(0, len(values) - 1, wanted)]
    return {
        "name": name,
        "label": getattr(control, "description", "") or name.replace("_", " "),
        "values": values,
        "shown": [_written(value, named) for value in values],
        "at": _nearest(values, at),
        "choice": not _is_number(values[0]),
    }


def _values(control: Any) -> list[Any]:
    """What a control of `interact` can be set to; of a text box, what it holds."""
    if isinstance(control, bool):
        return [False, True]
    if isinstance(control, tuple) and isinstance(control[0], int | float):
        low, high, step = (*control, 1 if all(isinstance(end, int) for end in control) else 0.1)[:3]
        values = low + step * np.arange(round((high - low) / step) + 1)
        return [value.item() if isinstance(step, int) else round(value.item(), 6) for value in values]
    if hasattr(control, "options"):
        return list(control.options)
    if hasattr(control, "base"):
        powers = np.arange(control.min, control.max + control.step / 2, control.step)
        return [round(control.base**power, 6) for power in powers.tolist()]
    return [control] if isinstance(control, str) else list(control)


def _written(value: Any, named: dict[str, Any] | None) -> str:
    if named:
        return next(key for key, one in named.items() if one is value)
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else str(round(value))


def _nearest(values: list[Any], at: Any) -> int:
    if _is_number(at):
        return int(np.argmin([abs(value - at) for value in values]))
    return next((i for i, value in enumerate(values) if value is at or np.array_equal(value, at)), 0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
