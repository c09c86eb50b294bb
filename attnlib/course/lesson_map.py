"""The map of the course: its lessons as boxes that lead to them, and which needs which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlib.course.lessons import Lesson

ROW = "display: flex; flex-wrap: wrap; gap: 8px; margin: 4px 0 14px"
BOX = (
    "display: block; box-sizing: border-box; width: 12em; padding: 6px 10px; border: 1.5px {line} #0072b2; "
    "border-radius: 6px; color: inherit; text-decoration: none; line-height: 1.3"
)


@dataclass(frozen=True)
class CourseMap:
    """Boxes with links, for a notebook; in words where there is no HTML."""

    html: str
    words: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.words


def course_map(lessons: Sequence[Lesson], parts: Mapping[int, str]) -> CourseMap:
    """The lessons as boxes, part by part, each with its minutes and what it needs; dashed ones are still to come.

    >>> from attnlib.course.lessons import LESSONS, PARTS
    >>> course_map(LESSONS[:2], PARTS)
    Lessons, and what they need: 00 nothing; 01 00.
    """
    rows = []
    for part, title in parts.items():
        boxes = "\n".join(_box(lesson) for lesson in lessons if lesson.part == part)
        rows.append(f'<div><strong>Part {part}. {escape(title)}</strong></div>\n<div style="{ROW}">\n{boxes}\n</div>')
    needs = "; ".join(f"{lesson.number} {' and '.join(lesson.needs) or 'nothing'}" for lesson in lessons)
    return CourseMap("\n".join(rows), f"Lessons, and what they need: {needs}.")


def _box(lesson: Lesson) -> str:
    style = BOX.format(line="solid" if lesson.ready else "dashed")
    link = f' href="{lesson.file}.ipynb"' if lesson.ready else ""
    needs = f" · needs {', '.join(lesson.needs)}" if lesson.needs else ""
    words = f"<strong>{lesson.number}</strong> {escape(lesson.title)}<br><small>{lesson.length} min{needs}</small>"
    return f'<a style="{style}"{link}>{words}</a>'
