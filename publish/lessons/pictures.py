"""The pictures of a lesson: written to ``figures/``, compared."""

import io
from collections.abc import Iterable
from math import inf

import numpy as np
from matplotlib.image import imread
from nbformat import NotebookNode

from publish.lessons.lessons import LessonFiles
from publish.notebooks import figures, pngs

TOLERANCE = 2.0  # root mean square over pixels, of 255: a font's hinting stays below, a moved line does not
TRAINED = 15.0  # for a cell tagged `trained`: networks that were trained on another CPU end a little elsewhere


def tolerated(tags: Iterable[str]) -> float:
    """How far the pictures of a cell with these tags may differ."""
    return TRAINED if "trained" in tags else TOLERANCE


def apart(stored: bytes, fresh: bytes) -> float:
    """How far two PNG pictures differ, as the root mean square over pixels; infinitely if they are of two sizes."""
    a, b = map(_pixels, (stored, fresh))
    return float(np.sqrt(((a - b) ** 2).mean())) if a.shape == b.shape else inf


def _pixels(png: bytes) -> np.ndarray:
    return imread(io.BytesIO(png), "png")[..., :3] * 255


def difference(stored: bytes, fresh: bytes, tolerance: float = TOLERANCE) -> str:
    """Say how two PNG pictures differ beyond the tolerance; empty if they do not."""
    if stored == fresh or (rms := apart(stored, fresh)) <= tolerance:
        return ""
    if rms == inf:
        sizes = [f"{width} x {height}" for height, width, _ in (_pixels(png).shape for png in (stored, fresh))]
        return f"the stored picture is {sizes[0]} pixels, a fresh one {sizes[1]}"
    return f"the stored picture differs from a fresh one by {rms:.1f} of 255 (root mean square over pixels)"


def differences(stored: Iterable[NotebookNode], fresh: Iterable[NotebookNode], tags: Iterable[str] = ()) -> str:
    """Say how the pictures among stored outputs differ from those among fresh ones; empty if they do not."""
    old, new = pngs(stored), pngs(fresh)
    if len(old) != len(new):
        return f"{len(old)} pictures are stored, a fresh run draws {len(new)}"
    return next(filter(None, (difference(a, b, tolerated(tags)) for a, b in zip(old, new, strict=True))), "")


def write_figures(lesson: LessonFiles, notebook: NotebookNode) -> int:
    """Write a lesson's pictures to ``figures/``, take away those it no longer has; return how many it has."""
    lesson.course.figures.mkdir(exist_ok=True)
    wanted = {lesson.figure(name): png for name, png, _ in figures(notebook)}
    for path in set(lesson.course.figures.glob(f"{lesson.number}_*.png")) - wanted.keys():
        path.unlink()
    for path, png in wanted.items():
        path.write_bytes(png)
    return len(wanted)
