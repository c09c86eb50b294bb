"""The course around the library: its lessons and claims, what its cells print, and its exercises.

It may use everything; nothing outside it uses it.
"""

from attnlib.course.lesson_map import course_map
from attnlib.course.lessons import LESSONS, PARTS, Lesson, as_markdown

__all__ = ["LESSONS", "PARTS", "Lesson", "as_markdown", "course_map"]
