# What this folder offers, and loads when it is first used, for whatever reads types.

from attnlib.course.lesson_map import course_map as course_map
from attnlib.course.lessons import LESSONS as LESSONS
from attnlib.course.lessons import PARTS as PARTS
from attnlib.course.lessons import Lesson as Lesson
from attnlib.course.lessons import as_markdown as as_markdown
from attnlib.course.study import Study as Study

__all__: list[str]
