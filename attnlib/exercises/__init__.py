"""Exercises: `check` an answer, ask for a `hint`, read the `solution`, see your `progress`.

Each lesson has a module `lessonNN` with a list `EXERCISES`; it is imported when one of its exercises is
asked for. `grade` judges without printing or keeping anything.
"""

from attnlib.exercises._commands import check, hint, progress, solution
from attnlib.exercises._engine import Verdict, grade
from attnlib.exercises._exercise import Exercise, Misconception

__all__ = ["Exercise", "Misconception", "Verdict", "check", "grade", "hint", "progress", "solution"]
