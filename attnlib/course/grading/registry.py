"""Finds the lessons' exercises, and imports a lesson when one of its exercises is asked for."""

from __future__ import annotations

import importlib
import pkgutil
import re

from attnlib.course import exercises as package
from attnlib.course.exercises.exercise import Exercise

_MODULE = re.compile(r"lesson(\d\d)")


def lessons() -> list[str]:
    """The lessons that have exercises, without importing any: ["01", "02", ...]."""
    names = (_MODULE.fullmatch(module.name) for module in pkgutil.iter_modules(package.__path__))
    return sorted(match[1] for match in names if match)


def load(lesson: str) -> list[Exercise]:
    """The exercises of one lesson, in the order in which its module lists them."""
    return list(importlib.import_module(f"{package.__name__}.lesson{lesson}").EXERCISES)


def find(exercise: str) -> Exercise:
    """The exercise of an id like "01.2".

    Raises `ValueError` where there is none, with the ids that exist.
    """
    found = lessons()
    lesson = exercise[:2] if isinstance(exercise, str) else ""
    if lesson not in found or not exercise.startswith(f"{lesson}."):
        known = f"There are exercises for lessons {', '.join(found)}." if found else "There are none yet."
        raise ValueError(f"exercise: got {exercise!r}, expected an id like '01.2'. {known}")
    ids = {one.id: one for one in load(lesson)}
    if exercise not in ids:
        raise ValueError(f"exercise: got {exercise!r}; lesson {lesson} has {', '.join(ids)}.")
    return ids[exercise]
