"""Is everything there that the course needs? Asked by lesson 00, answered in words."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["check_environment"]

# What a lesson imports, and what it is called when it is installed.
PACKAGES = (
    "numpy",
    "torch",
    "matplotlib",
    "scikit-learn",
    "statsmodels",
    "array-api-compat",
    "jupyterlab",
    "ipywidgets",
)


def check_environment() -> None:
    """Print what is missing or of another version than the course was tested with, and what to do.

    Looks up versions without importing anything. Never raises.
    """
    tested = _tested()
    notes = [note for name in PACKAGES for note in _package(name, tested)]
    print("\n".join(notes) if notes else "Everything is there, in the versions that the course was tested with.")


def _package(name: str, tested: dict[str, str]) -> list[str]:
    try:
        found = version(name).split("+")[0]
    except PackageNotFoundError:
        return [f"{name} is missing. In the folder of the course: pip install -r requirements.txt"]
    if found == tested.get(name, found):
        return []
    return [f"{name} is {found}; the course was tested with {tested[name]}. Most of it will work; numbers may differ."]


def _tested() -> dict[str, str]:
    pins = Path(__file__).parents[2] / "requirements.txt"
    text = pins.read_text(encoding="utf-8") if pins.exists() else ""
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", text, flags=re.MULTILINE))
