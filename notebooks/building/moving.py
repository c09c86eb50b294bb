"""Moving figures without a server: a slider's pictures, drawn ahead, in one page that a book or a deck shows.

A live cell with ``moving: {name: bandwidth, h: 41}`` becomes ``figures/moving/01_bandwidth.html``. For each of
its controls the option says in how many positions the page has it, or in which; one that it does not name keeps
all of its own. With ``film: true`` the same pictures are a film as well, beside the page.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from attnlib.plotting.picture import SCREEN_DPI

from .cells import Cell
from .lessons import Course, LessonError, LessonFiles
from .live import needed, slider, start
from .sides import sources

PAGE = Path(__file__).with_name("moving.html")
SCALE, QUALITY = 0.9, 35  # of the dots of a figure; of WebP, at which letters still have clean edges
MOST = 150  # pictures in a page


def moving_cells(lesson: LessonFiles) -> list[int]:
    """The places of a lesson's cells that become moving figures."""
    return [place for place, cell in enumerate(sources(lesson)) if cell.moving]


def path(lesson: LessonFiles, cell: Cell) -> Path:
    """Where a moving figure is written."""
    return lesson.course.figures / "moving" / f"{lesson.number}_{cell.moving['name']}.html"


def fingerprint(cells: Sequence[Cell], place: int) -> str:
    """What a page was made from: the slider, and the code of the lesson that it needs."""
    cell = cells[place]
    kept = json.dumps([*needed(cells, place), cell.source, cell.moving, PAGE.read_text("utf-8"), SCALE, QUALITY])
    return hashlib.sha256(kept.encode()).hexdigest()[:16]


def is_current(lesson: LessonFiles, place: int) -> bool:
    """Was the page made from the lesson as it is?"""
    cells = sources(lesson)
    page = path(lesson, cells[place])
    if cells[place].moving.get("film") and not page.with_suffix(".webp").exists():
        return False
    return page.exists() and f'content="{fingerprint(cells, place)}"' in page.read_text("utf-8")[:2000]


def stale(course: Course) -> list[tuple[LessonFiles, int]]:
    """The moving figures to be made again."""
    return [
        (lesson, place)
        for lesson in course.lessons()
        for place in moving_cells(lesson)
        if not is_current(lesson, place)
    ]


def orphans(course: Course) -> list[Path]:
    """Pages that no cell accounts for."""
    known = {path(lesson, sources(lesson)[place]) for lesson in course.lessons() for place in moving_cells(lesson)}
    return sorted(file for file in (course.figures / "moving").glob("*") if file.with_suffix(".html") not in known)


def page(lesson: LessonFiles, place: int) -> str:
    """The page of a moving figure, all its pictures inside."""
    cells, dtype, threads = sources(lesson), torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)  # as lessons are built: two are slower than one where something else runs
    try:
        function, controls = slider(cells, place)
        axes = steps(cells[place], controls, start(function, controls))
        drawn = [function(**values) for values in combinations(axes)]
    finally:
        torch.set_default_dtype(dtype)  # lessons that train in double precision set another
        torch.set_num_threads(threads)
    title = drawn[0].alt.split(". ")[0]
    data = {
        "controls": [{key: axis[key] for key in ("label", "shown", "at", "choice")} for axis in axes],
        "width": round(drawn[0].figure.get_size_inches()[0] * SCREEN_DPI),
        "pictures": [_small(picture.png()) for picture in drawn],
        "alts": [picture.alt for picture in drawn],
    }
    made_from = fingerprint(cells, place)
    filled = {"title": title, "made_from": made_from, "data": json.dumps(data, ensure_ascii=False)}
    text = PAGE.read_text("utf-8")
    for word, value in filled.items():
        text = text.replace(f"%{word}%", value)
    return text


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
    shown = [next(key for key, one in named.items() if one is value) if named else _written(value) for value in values]
    return {
        "name": name,
        "label": getattr(control, "description", "") or name.replace("_", " "),
        "values": values,
        "shown": shown,
        "at": _nearest(values, at),
        "choice": not isinstance(values[0], int | float) or isinstance(values[0], bool),
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


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else str(round(value))


def _nearest(values: list[Any], at: Any) -> int:
    if isinstance(at, int | float) and not isinstance(at, bool):
        return int(np.argmin([abs(value - at) for value in values]))
    return next((i for i, value in enumerate(values) if value is at or np.array_equal(value, at)), 0)


def _small(png: bytes) -> str:
    """A picture as a page holds it, a twentieth of the bytes."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture = picture.resize((round(picture.width * SCALE), round(picture.height * SCALE)), Image.Resampling.LANCZOS)
    small = io.BytesIO()
    picture.save(small, "WEBP", quality=QUALITY, method=6)
    return b64encode(small.getvalue()).decode()
