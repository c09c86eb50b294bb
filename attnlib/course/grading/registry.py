"""Finds the lessons' exercises, and imports a lesson when one of its exercises is asked for."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

from attnlib.course import exercises as package
from attnlib.course.exercises.exercise import Exercise

_ENTRY = re.compile(r'\bid="(\d\d\.\d+)",\s+title="(.*?)"')
_MODULE = re.compile(r"lesson(\d\d)")


def lessons() -> list[str]:
    """The lessons that have exercises, without importing any: ["01", "02", ...]."""
    names = (_MODULE.fullmatch(module.name) for module in pkgutil.iter_modules(package.__path__))
    return sorted(match[1] for match in names if match)


def titles(lesson: str) -> dict[str, str]:
    """The ids and titles of a lesson's exercises, read from its file: importing all lessons would take seconds.

    >>> titles("00")
    {'00.1': 'A weighted mean'}
    """
    files = (Path(folder) / f"lesson{lesson}.py" for folder in package.__path__)
    text = next(file.read_text("utf-8") for file in files if file.is_file())
    return dict(_ENTRY.findall(text))


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
        near = str(exercise).strip().zfill(4)  # 0.1 or "0.1", for "00.1"
        known = f"There are exercises for lessons {found[0]} to {found[-1]}." if found else "There are none yet."
        if near[:2] in found and near in titles(near[:2]):
            known = f"Did you mean '{near}', in quotes?"
        raise ValueError(f"exercise: got {exercise!r}, expected an id like '01.2'. {known}")
    ids = {one.id: one for one in load(lesson)}
    if exercise not in ids:
        raise ValueError(f"exercise: got {exercise!r}; lesson {lesson} has {', '.join(ids)}.")
    return ids[exercise]
