"""The map of the course: its lessons, and which needs which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from attnlib.plotting.picture import INK, PALE, QUERY, Picture, in_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from attnlib.course.lessons import Lesson


@in_style
def course_map(lessons: Sequence[Lesson], parts: Mapping[int, str], *, title: str) -> Picture:
    """The lessons as boxes, an arrow from each to those that need it; pale ones are still to come.

    >>> from attnlib.course.lessons import LESSONS, PARTS
    >>> course_map(LESSONS[:2], PARTS, title="Two lessons")
    Two lessons. Boxes, and arrows from what they need: 00 from nothing; 01 from 00.
    """
    fig, ax = new_figure(10, 0.2 + 1.8 * len(parts))
    boxes = {}
    for row, part in enumerate(parts):
        ax.text(-0.45, -row + 0.42, f"Part {part}. {parts[part]}", weight="bold")
        members = [lesson for lesson in lessons if lesson.part == part]
        boxes |= {lesson.number: _draw_lesson(ax, lesson, (i, -row)) for i, lesson in enumerate(members)}
    for lesson in lessons:
        for need in lesson.needs:
            if need in boxes:
                _draw_need(ax, boxes[need], boxes[lesson.number])
    ax.set(xlim=(-0.5, max(box.get_position()[0] for box in boxes.values()) + 0.5))
    ax.set(ylim=(-len(parts) + 0.55, 0.55))
    ax.axis("off")
    needs = "; ".join(f"{lesson.number} from {' and '.join(lesson.needs) or 'nothing'}" for lesson in lessons)
    return Picture(fig, title, f"Boxes, and arrows from what they need: {needs}.")


def _draw_lesson(ax: Axes, lesson: Lesson, at: tuple[float, float]) -> Text:
    words = f"{lesson.number}\n{fill(lesson.title, 13)}\n{lesson.length} min"
    edge, ink = (QUERY, INK) if lesson.ready else (PALE, "#666666")
    box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": edge, "linewidth": 1.5}
    return ax.text(*at, words, ha="center", va="center", fontsize=8.5, color=ink, bbox=box, zorder=3)


def _draw_need(ax: Axes, needed: Text, by: Text) -> None:
    start, end = needed.get_position(), by.get_position()
    steps = end[0] - start[0]
    bend = 0.35 * (2 / steps) ** 0.3 if start[1] == end[1] and steps > 1 else 0  # over the boxes between, no higher
    arrow = {
        "arrowstyle": "-|>",
        "color": PALE,
        "patchA": needed.get_bbox_patch(),
        "patchB": by.get_bbox_patch(),
        "shrinkA": 0,
        "shrinkB": 2,
        "connectionstyle": f"arc3,rad={-bend}",
    }
    ax.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=1)
