"""Lessons with an excursion before other code, run without their excursions: what is outside must show the same.

A file of its own, so that it runs beside the others.
"""

import pytest

from publish.lessons.build import COURSE
from publish.lessons.lessons import sources
from publish.lessons.running import core_problems, could_need_one

WITH = [lesson for lesson in COURSE.lessons() if lesson.notebook.exists() and could_need_one(sources(lesson))]
NONE = [pytest.param(None, marks=pytest.mark.skip("no lesson has an excursion before other code"), id="none")]


@pytest.mark.parametrize("lesson", WITH or NONE, ids=lambda lesson: lesson.name)
def test_nothing_outside_needs_an_excursion(lesson):
    problems = core_problems(lesson)
    if problems:
        said = "\n  ".join([f"{lesson.name}, run without its excursions:", *problems])
        pytest.fail(f"{said}\nWhat the rest needs belongs outside; random draws need their own seed.", pytrace=False)
