"""What a lecturer needs: plans that hold, answers to every exercise, a class in one table, a server elsewhere."""

import csv
import importlib.util
import io
import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest

from attnlib.course.claims import CLAIMS
from attnlib.course.grading import registry
from attnlib.course.lab.chart import PATIENTS
from attnlib.course.lessons import LESSONS
from attnlib.course.plans import PLANS
from publish.lessons.build import COURSE


def tool(name):
    spec = importlib.util.spec_from_file_location(name, COURSE.root / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_plans_are_of_the_lengths_they_say_and_name_what_there_is():
    assert [len(plan.lectures) for plan in PLANS] == [1, 6, 16]
    claims = {claim.number: claim for claim in CLAIMS}
    for plan in PLANS:
        for lecture in plan.lectures:
            assert lecture.minutes > 0
            shown = claims[lecture.vote].lessons
            assert min(shown) <= max(lecture.lessons), "voted on before it is taught, or to see what stayed"
            for exercise in re.findall(r"\d\d\.\d", lecture.advice):
                assert registry.find(exercise).lesson in lecture.lessons


def test_a_semester_leaves_no_lesson_out():
    [semester] = [plan for plan in PLANS if plan.name == "A semester"]
    taught = [number for lecture in semester.lectures for number in lecture.lessons]
    assert taught == [lesson.number for lesson in LESSONS if lesson.ready]


def test_every_exercise_has_its_page_of_answers(tmp_path):
    tool("answers").main(str(tmp_path))
    text = "\n".join(path.read_text("utf-8") for path in tmp_path.glob("*.md"))
    for lesson in registry.lessons():
        for one in registry.load(lesson):
            _, _, part = text.partition(f"\n## {one.id} {one.title}\n")
            part = part.partition("\n## ")[0]
            assert f"**{one.id}**" in part or lesson == "00", "the question"
            assert one.hints[2] in part
            assert all(m.words in part for m in one.misconceptions)
    sheet = text.partition("\n## The patients\n")[2]
    assert all(f"| {n} | {entry.complaint} | *{entry.cause}*: " in sheet for n, entry in PATIENTS.items())


def test_lessons_with_solutions_have_no_stub_left():
    answers = tool("answers")
    for lesson in LESSONS:
        if lesson.number in registry.lessons():
            sources = [cell.source for cell in answers.filled(lesson).cells if cell.cell_type == "code"]
            asked = [source for source in sources if answers.CHECK.search(source)]
            assert not [source for source in asked if re.search(r"(^|= )\s*\.\.\.$", source, re.MULTILINE)]


@pytest.mark.parametrize("number", ["03"])
def test_a_lesson_with_its_solutions_passes_its_checks(number):
    answers = tool("answers")
    assert answers.wrong_checks(answers.filled(LESSONS[int(number)])) == []


def test_a_class_in_one_table(tmp_path, capsys):
    (tmp_path / "ada.json").write_text(json.dumps({"version": 1, "solved": ["01.1", "15.04"]}))
    (tmp_path / "grace.json").write_text(json.dumps({"version": 1, "solved": []}))
    collect = tool("collect_progress").main
    assert collect(str(tmp_path)) == 0
    ada, grace = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (ada["student"], ada["solved"], ada["01.1"], ada["01.2"]) == ("ada", "2", "1", "0")
    assert (ada["15.04"], ada["15.05"], grace["15.04"]) == ("1", "0", "0"), "patients of lesson 15, too"
    assert grace["solved"] == "0"
    (tmp_path / "eve.json").write_text("{")
    assert collect(str(tmp_path)) == 1
    said = capsys.readouterr()
    assert "eve.json is not a progress file" in said.err
    assert said.out.count("\n") == 3
    assert collect("") == 1


def test_the_container_serves_and_its_health_is_seen(tmp_path):
    """The steps of the Dockerfile that follow set-up, which `make test` itself has gone through."""
    text = (COURSE.root / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
    [given] = re.findall(r'^CMD \["make", "lab", "LAB_ARGS=(.*)"\]$', text, re.MULTILINE)
    [health] = re.findall(r"^HEALTHCHECK .*CMD \S+ (.*)$", text, re.MULTILINE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    assert "8888" in given
    assert "8888" in health
    ask = [sys.executable, *health.replace("8888", port).split()]
    assert subprocess.run(ask, cwd=COURSE.root).returncode == 1
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    lab = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--config=notebooks/lab/config.py",
        *given.replace("8888", port).split(),
    ]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(lab, cwd=COURSE.root, env=os.environ | own | {"ATTNLIB_EDIT": "1"}, stderr=log)
    try:
        end = time.monotonic() + 120
        while subprocess.run(ask, cwd=COURSE.root).returncode:
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(60)


def test_what_starts_it_elsewhere_uses_files_that_are_there():
    binder = (COURSE.root / ".binder" / "postBuild").read_text("utf-8")
    assert subprocess.run(["bash", "-n", ".binder/postBuild"], cwd=COURSE.root).returncode == 0
    assert os.access(COURSE.root / ".binder" / "postBuild", os.X_OK)
    threads = ["sh", "-c", "echo $OMP_NUM_THREADS"]
    without = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    for given, seen in ({}, "1\n"), ({"OMP_NUM_THREADS": "2"}, "2\n"):
        command = [COURSE.root / ".binder" / "start", *threads]
        assert subprocess.run(command, env=without | given, capture_output=True, text=True).stdout == seen
    codespace = json.loads((COURSE.root / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    steps = [binder, codespace["onCreateCommand"], codespace["postAttachCommand"]]
    for file in re.findall(r"[\w./-]+\.(?:py|txt)\b", " ".join(steps)):
        assert (COURSE.root / file).exists(), file
    pin = re.search(r"^torch==\S+", (COURSE.root / "requirements.txt").read_text("utf-8"), re.MULTILINE)[0]
    for text in (binder, (COURSE.root / "Dockerfile").read_text("utf-8")):
        assert pin in text


@pytest.mark.parametrize("number", ["01", "09"])
def test_the_syllabus_says_what_one_can_do(number):
    readme = (COURSE.root / "README.md").read_text("utf-8")
    [row] = [line for line in readme.splitlines() if line.startswith(f"| [{number} ·")]
    assert len(row.split("|")[2].split()) > 5
