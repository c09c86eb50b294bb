"""Exercises: `check` an answer, ask for a `hint`, read the `solution`, see your `progress`.

`grade` judges without printing or keeping anything. It imports a lesson's exercises when one of them is asked for.
"""

from attnlib.course.exercises.exercise import Exercise, Misconception
from attnlib.course.grading.commands import check, hint, progress, solution
from attnlib.course.grading.grade import Verdict, grade

__all__ = ["Exercise", "Misconception", "Verdict", "check", "grade", "hint", "progress", "solution"]
