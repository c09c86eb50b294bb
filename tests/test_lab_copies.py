"""Working copies: what a reader changed is never lost, and what nobody changed follows the course."""

import json
import os
import runpy
import subprocess
import sys
from unittest.mock import MagicMock

import pytest

from publish.lessons.build import COURSE

sys.path.insert(0, str(COURSE.notebooks / "lab"))
import copies

STORED = [{"name": "stdout", "output_type": "stream", "text": "5"}]


def outputs_of(path):
    return [(cell["outputs"], cell.get("execution_count")) for cell in json.loads(path.read_text())["cells"]]


def sources_of(path):
    return [cell["source"] for cell in json.loads(path.read_text())["cells"]]


def write(path, *sources, outputs=(), more=None):
    """A notebook of code cells."""
    cells = [{"cell_type": "code", "source": [s], "outputs": list(outputs), "metadata": {}} for s in sources]
    path.write_text(json.dumps({"cells": cells, "metadata": more or {}, "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture
def folders(tmp_path):
    course, mine = tmp_path / "notebooks", tmp_path / "my_lessons"
    course.mkdir()
    for number in ("00", "01"):
        write(course / f"{number}_lesson.ipynb", f"lesson({number})", outputs=STORED)
    (course / "CLAIMS.md").write_text("claims")
    assert copies.refresh(course, mine) == []
    return course, mine


def test_lessons_and_the_pages_they_lead_to_are_copied(folders):
    course, mine = folders
    seen = {path.name for path in mine.iterdir() if not path.name.startswith(".")}
    assert seen == {"00_lesson.ipynb", "01_lesson.ipynb", "CLAIMS.md"}
    assert sources_of(mine / "00_lesson.ipynb") == sources_of(course / "00_lesson.ipynb")
    assert outputs_of(mine / "00_lesson.ipynb") == [([], None)]


def test_copies_come_with_outputs_where_they_are_asked_for(folders):
    course, mine = folders
    write(mine / "01_lesson.ipynb", "lesson(01)", outputs=[{"name": "stdout", "text": "of the reader's run"}])
    assert copies.refresh(course, mine, outputs=True) == []
    assert (mine / "00_lesson.ipynb").read_bytes() == (course / "00_lesson.ipynb").read_bytes()
    assert "of the reader's run" in (mine / "01_lesson.ipynb").read_text()


def test_a_lesson_that_was_only_run_follows_the_course(folders):
    course, mine = folders
    write(mine / "00_lesson.ipynb", "lesson(00)", "", outputs=[{"name": "stdout"}], more={"kernelspec": {}})
    write(course / "00_lesson.ipynb", "lesson(00, edition=2)")
    assert copies.refresh(course, mine) == []
    assert "edition=2" in (mine / "00_lesson.ipynb").read_text()


def test_an_edited_lesson_stays_and_its_reader_is_told_of_a_new_edition(folders):
    course, mine = folders
    write(mine / "00_lesson.ipynb", "my answer")
    assert copies.refresh(course, mine) == []
    write(course / "00_lesson.ipynb", "lesson(00, edition=2)")
    for _ in range(2):  # said until something is done
        said = "\n".join(copies.refresh(course, mine))
        assert "Lesson 00 has a new edition" in said
        assert "make reset NB=00" in said
        assert "my answer" in (mine / "00_lesson.ipynb").read_text()


@pytest.mark.parametrize("record", ["", "[]", None])
def test_a_lost_record_loses_no_answer(folders, record):
    course, mine = folders
    write(mine / "00_lesson.ipynb", "my answer")
    if record is None:
        (mine / ".copied.json").unlink()
    else:
        (mine / ".copied.json").write_text(record)
    copies.refresh(course, mine)
    assert "my answer" in (mine / "00_lesson.ipynb").read_text()
    write(course / "01_lesson.ipynb", "lesson(01, edition=2)")
    copies.refresh(course, mine)
    assert "edition=2" in (mine / "01_lesson.ipynb").read_text()  # untouched, so it follows


def test_a_broken_copy_is_kept(folders):
    course, mine = folders
    (mine / "00_lesson.ipynb").write_text('{"cells": [')
    write(course / "00_lesson.ipynb", "lesson(00, edition=2)")
    assert any("Lesson 00" in line for line in copies.refresh(course, mine))
    assert (mine / "00_lesson.ipynb").read_text() == '{"cells": ['


def test_a_reset_gives_the_lesson_and_keeps_every_old_one(folders):
    course, mine = folders
    for answer in ("first", "second"):
        write(mine / "00_lesson.ipynb", answer)
        assert "my_lessons/earlier/00_lesson." in copies.reset("0", course, mine)
        assert sources_of(mine / "00_lesson.ipynb") == sources_of(course / "00_lesson.ipynb")
    kept = sorted((mine / "earlier").iterdir())
    assert [json.loads(path.read_text())["cells"][0]["source"] for path in kept] == [["first"], ["second"]]


@pytest.mark.parametrize("number", ["", "77", "x"])
def test_an_unknown_lesson_is_not_reset(folders, number):
    course, mine = folders
    with pytest.raises(ValueError, match="make reset NB=06, with one of 00 01"):
        copies.reset(number, course, mine)
    assert not (mine / "earlier").exists()


def test_make_reset_says_what_to_write():
    done = subprocess.run(
        ["make", "-s", "reset", f"PYTHON={sys.executable}"],
        cwd=COURSE.root,
        env=os.environ | {"NB": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "There is no lesson named. Write: make reset NB=06" in done.stderr


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("2", "2")])
def test_kernels_have_one_thread_unless_a_reader_says_otherwise(monkeypatch, given, seen):
    monkeypatch.setenv("ATTNLIB_EDIT", "1")  # no copies are made
    monkeypatch.setenv("OMP_NUM_THREADS", given or "")
    if given is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    settings = MagicMock()
    runpy.run_path(str(COURSE.notebooks / "lab" / "config.py"), {"get_config": lambda: settings})
    assert os.environ["OMP_NUM_THREADS"] == seen
    assert settings.ServerApp.ip == "127.0.0.1"
