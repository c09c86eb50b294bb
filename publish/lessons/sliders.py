"""The sliders of a lesson outside of JupyterLab: what one needs, and its pictures, drawn ahead, in one page.

A live cell with ``moving: {name: bandwidth, h: 41}`` becomes ``figures/moving/01_bandwidth.html``, which book and
decks show without a server. For each of its controls the option says in how many positions the page has it, or in
which; one that it does not name keeps all of its own. With ``film: true`` the same pictures are a film as well.
"""

import ast
import contextlib
import dis
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
from types import CodeType
from typing import Any
from unittest import mock

import numpy as np
import torch
from ipywidgets import Checkbox, FloatLogSlider, Text, Widget, interactive
from PIL import Image

from attnlib.plotting.picture import SCREEN_DPI
from publish.lessons.cells import Cell
from publish.lessons.lessons import Course, LessonError, LessonFiles, sources

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


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell reads from cells before it, and those that it binds, as the compiler sees them."""
    try:
        return _names(compile(source, "cell", "exec", dont_inherit=True))
    except SyntaxError:  # a line for IPython only, or an error that the lesson shows
        return set(), set()


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    reads, binds, inner = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            binds.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "DELETE_NAME") and step.argval not in binds:
            reads.add(step.argval)
        elif isinstance(step.argval, CodeType):
            inner |= _names(step.argval)[0]
    # A function runs later: what the cell binds anywhere is there by then.
    return reads | (inner - binds), binds


def slider(cells: Sequence[Cell], place: int) -> interactive:
    """Run what the slider at ``place`` needs; its function and its controls, as JupyterLab would show them."""
    caught: list[interactive] = []

    def interact(**controls: Any) -> Callable[..., Any]:
        return lambda function: caught.append(interactive(function, **controls)) or function

    space: dict[str, Any] = {"__name__": "slider"}
    quiet = mock.patch.dict("os.environ", TQDM_DISABLE="1")
    with quiet, mock.patch("ipywidgets.interact", interact), contextlib.redirect_stdout(io.StringIO()):
        for source in [*needed(cells, place), cells[place].source]:
            exec(compile(source, cells[place].first_line, "exec"), space)
    [found] = caught
    return found


def controls_of(found: interactive) -> dict[str, Widget]:
    """The control of each of its function's arguments."""
    return dict(zip(inspect.signature(found.f).parameters, found.kwargs_widgets, strict=True))


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
            found = slider(cells, self.place)
            axes = steps(self.cell, found)
            drawn = [found.f(**values) for values in combinations(axes)]
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


def steps(cell: Cell, found: interactive) -> list[dict[str, Any]]:
    """The controls as the page has them: their values, how these are written, and where each stands at first."""
    axes = [_axis(name, control, cell.moving.get(name)) for name, control in controls_of(found).items()]
    count = int(np.prod([len(axis["values"]) for axis in axes]))
    if count > MOST:
        raise LessonError(f"moving: {cell.moving['name']} makes {count} pictures; at most {MOST}.")
    return axes


def _axis(name: str, control: Widget, wanted: int | list | None) -> dict[str, Any]:
    named = _positions(control)
    if isinstance(wanted, list):
        named = {_written(one): named.get(_written(one), one) for one in wanted}
    elif wanted is not None and wanted < len(named):
        rows = list(named.items())
        named = dict(rows[round(i)] for i in np.linspace(0, len(rows) - 1, wanted))
    values, choice = list(named.values()), not all(map(_is_number, named.values()))
    if choice:
        at = values.index(control.value) if control.value in values else 0
    else:
        at = int(np.argmin([abs(value - control.value) for value in values]))
    return {
        "name": name,
        "label": control.description.replace("_", " "),
        "values": values,
        "shown": list(named),
        "at": at,
        "choice": choice,
    }


def _positions(control: Widget) -> dict[str, Any]:
    """What a control can be set to, by how it is written; of a text box, what it holds."""
    if isinstance(control, Text):
        return {control.value: control.value}
    if isinstance(control, Checkbox):
        return {"False": False, "True": True}
    if hasattr(control, "options"):
        options = control.options
        return options if isinstance(options, dict) else {_written(one): one for one in options}
    values = np.arange(control.min, control.max + control.step / 2, control.step)
    values = control.base**values if isinstance(control, FloatLogSlider) else values
    return {_written(one): type(control.value)(one) for one in values.round(6)}


def _written(value: Any) -> str:
    if not _is_number(value):
        return str(value)
    return f"{value:.3g}" if abs(value) < 100 else str(round(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
