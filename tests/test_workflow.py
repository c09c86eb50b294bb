"""What runs on every push runs: its steps make what the Makefile can make, and none may hang for long."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from publish.printing import BROWSERS

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
LONGEST = 90  # minutes


def jobs(path):
    """The jobs of a workflow, by their names."""
    return yaml.safe_load(path.read_text("utf-8"))["jobs"]


def made(path):
    """The targets that a workflow makes."""
    steps = [step.get("run", "") for job in jobs(path).values() for step in job["steps"]]
    return [target for step in steps for target in re.findall(r"^make ([a-z]+)", step, re.MULTILINE)]


def test_the_course_is_tested_and_the_book_made():
    assert {"test", "book"} <= {target for path in WORKFLOWS for target in made(path)}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_makes_what_there_is_and_ends(path):
    assert [target for target in made(path) if target not in TARGETS] == []
    assert all(0 < job.get("timeout-minutes", 0) <= LONGEST for job in jobs(path).values())
    for job in jobs(path).values():
        assert set([needs] if isinstance(needs := job.get("needs", []), str) else needs) <= jobs(path).keys()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_is_published_is_what_make_book_writes(path):
    text = path.read_text("utf-8")
    assert "path: book/_build/html" in text
    assert "book/_build/html" in (ROOT / "Makefile").read_text("utf-8")


def test_the_browser_that_is_installed_is_found():
    assert any(f" {name} " in path.read_text("utf-8") for path in WORKFLOWS for name in BROWSERS)
