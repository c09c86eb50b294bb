# What this folder offers, and loads when it is first used, for whatever reads types.

from attnlib.course import drawings as drawings
from attnlib.course.display import check_close as check_close
from attnlib.course.display import show as show
from attnlib.course.display import show_source as show_source
from attnlib.course.environment import check_environment as check_environment
from attnlib.course.grading import check as check
from attnlib.course.grading import hint as hint
from attnlib.course.grading import progress as progress
from attnlib.course.grading import solution as solution
from attnlib.course.lesson_map import course_map as course_map
from attnlib.course.lessons import LESSONS as LESSONS
from attnlib.course.lessons import PARTS as PARTS
from attnlib.course.lessons import Lesson as Lesson
from attnlib.course.lessons import as_markdown as as_markdown
from attnlib.course.study import Study as Study

__all__: list[str]
