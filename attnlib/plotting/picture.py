"""What a figure of the course is: a Matplotlib figure in the course's look that carries its own alt text."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

# Okabe and Ito's palette, which colour-blind readers can tell apart. Four of its colours have a meaning.
QUERY, KEY, VALUE, OUTPUT = "#0072B2", "#E69F00", "#009E73", "#D55E00"
INK, PALE = "#222222", "#9a9a9a"
# Curves have none of these four: wine, olive, ink, pink, slate, brown, grey, whose lightness differs as well.
CYCLE = ["#882255", "#999933", INK, "#CC79A7", "#5F6B8A", "#7A4E2D", PALE]
DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), "-"]

WEIGHTS = "magma_r"  # perceptually uniform, pale at zero
SIGNED = "PuOr"

# Drawn at 150 dots per inch and shown at 100, so that a projector or a sharp screen has dots to spare.
DPI, SCREEN_DPI = 150, 100

STYLE = {
    "axes.edgecolor": INK,
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.prop_cycle": mpl.cycler(color=CYCLE) + mpl.cycler(linestyle=DASHES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Picture:
    """A figure as a notebook shows it: a PNG, and its alt text for who cannot see it.

    >>> fig, ax = new_figure(3, 2)
    >>> line = ax.plot([0, 1], [0, 1], label="growth")
    >>> Picture(fig, "It grows")
    It grows. One plot. Lines: growth.
    """

    def __init__(self, figure: Figure, title: str, description: str | None = None) -> None:
        self.figure = figure
        width = figure.get_size_inches()[0]
        figure.suptitle(wrapped(title, width), x=0.01, ha="left", weight="bold", size=12)
        self.alt = f"{title}{'' if title.endswith('?') else '.'} {description or describe(figure)}"

    def __repr__(self) -> str:
        return self.alt

    def png(self) -> bytes:
        """The picture as the bytes of a PNG file, the same bytes every time."""
        buffer = io.BytesIO()
        with style():
            self.figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
        return buffer.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the picture to ``path`` as PNG."""
        Path(path).write_bytes(self.png())

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, object], dict[str, object]]:
        width, height = (int(inches * SCREEN_DPI) for inches in self.figure.get_size_inches())
        data = {"image/png": b64encode(self.png()).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}


def style() -> AbstractContextManager[None]:
    """The course's look, as a context that leaves the reader's own Matplotlib settings alone."""
    return mpl.rc_context(STYLE)


def in_style(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """``draw``, drawing in the course's look."""

    @wraps(draw)
    def styled(*args: object, **kwargs: object) -> Picture:
        with style():
            return draw(*args, **kwargs)

    return styled


def new_figure(width: float, height: float, columns: int = 1, rows: int = 1, **options: object) -> tuple[Figure, Axes]:
    """An empty figure in the course's look and its axes (an array of them when there are several).

    It does not go through ``pyplot``, so that nothing is drawn twice and no window is opened.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def wrapped(title: str, width: float) -> str:
    """``title`` in lines that fit a figure ``width`` inches wide.

    >>> len(wrapped("The wider the window, the smoother the curve", 3).splitlines())
    2
    """
    return fill(title, int(width * 10.2))


def readable(colour: str) -> str:
    """Orange letters on white are hard to read; the same hue, darker, is not.

    >>> readable(QUERY) == QUERY, readable(KEY) == KEY
    (True, False)
    """
    return "#9c6a00" if colour == KEY else colour


def label(ax: Axes, labels: tuple[str, str]) -> None:
    """The names of the axes, across and up."""
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])


def frame_cells(ax: Axes, places: Collection[tuple[int, int]], *, inset: float, colour: str, linewidth: float) -> None:
    """Frames around the cells at these places, (row, column), of a picture drawn by ``imshow``."""
    for row, column in places:
        corner, size = (column - 0.5 + inset, row - 0.5 + inset), 1 - 2 * inset
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=colour, linewidth=linewidth))


def cell_names(places: Collection[tuple[int, int]], rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """What alt text calls the cells at these places: the words of row and column, or else their numbers."""
    return [f"{rows[i] if rows else i} {columns[j] if columns else j}" for i, j in places]


def describe(figure: Figure) -> str:
    """The part of the alt text that can be read off a figure: its panels, axes and what is drawn.

    >>> fig, ax = new_figure(3, 2)
    >>> text = ax.set_xlabel("income (francs)")
    >>> describe(fig)
    'One plot. Across: income (francs).'
    """
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    count = "One plot" if len(panels) == 1 else f"{len(panels)} plots"
    said = [f"{count}."]
    for i, ax in enumerate(panels):
        text = _describe_axes(ax)
        if text:
            said.append(f"({i + 1}) {text}" if len(panels) > 1 else text)
    return " ".join(said)


def _describe_axes(ax: Axes) -> str:
    parts = {
        "Title": ax.get_title(loc="left"),
        "Across": ax.get_xlabel(),
        "Up": ax.get_ylabel(),
        "Lines": _listed(filter(None, [*ax.get_legend_handles_labels()[1], *_beside_legend(ax.lines)])),
        "Dots": _dots(ax),
        "Grid of numbers": " and ".join("×".join(map(str, np.shape(im.get_array())[:2])) for im in ax.images),
    }
    return " ".join(f"{name}: {text}." for name, text in parts.items() if text).replace("\n", " ")


def _dots(ax: Axes) -> str:
    """How many dots each cloud has, before its name if all have one."""
    clouds = [artist for artist in ax.collections if type(artist).__name__ == "PathCollection"]
    names, counts = _beside_legend(clouds), [str(len(cloud.get_offsets())) for cloud in clouds]
    if len(names) != len(counts):
        return " and ".join(counts)
    return _listed(f"{count} for {name}" for name, count in zip(names, counts, strict=True))


def _listed(names: Iterable[str]) -> str:
    """Names in a row, apart by more than a comma where one of them has a comma of its own."""
    names = list(names)
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _beside_legend(artists: Iterable[Artist]) -> list[str]:
    """The names ``_name`` of artists that stand in the figure and in no legend; not Matplotlib's own."""
    return [label[1:] for label in map(Artist.get_label, artists) if label[:1] == "_" and label[:6] != "_child"]
