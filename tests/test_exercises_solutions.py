"""Every solution, pasted into its lesson: it runs with what the lesson has imported and defined, and it is right."""

import ast
from contextlib import suppress

import jupytext
import pytest
import torch

from attnlib.course.exercises import lesson11
from attnlib.course.exercises.exercise import Exercise
from attnlib.course.grading import grade, registry
from attnlib.course.source import source_of
from publish.lessons.build import COURSE

LESSONS = {lesson.number: lesson for lesson in COURSE.lessons()}
EXERCISES = [exercise for lesson in registry.lessons() for exercise in registry.load(lesson)]
SESSIONS: dict[str, dict[str, object]] = {}
DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def definitions(text: str) -> list[ast.stmt]:
    """The imports, functions and classes of a lesson's core, and nothing that it computes."""
    cells = [cell for cell in jupytext.reads(text, fmt="md:myst").cells if cell.cell_type == "code"]
    cells = [cell for cell in cells if not {"live", "raises-exception"} & set(cell.metadata.get("tags", ()))]
    return [node for cell in cells for node in ast.parse(cell.source).body if isinstance(node, DEFINITIONS)]


def session(number: str) -> dict[str, object]:
    """The names of a reader who has run these, in a dictionary of its own."""
    if number not in SESSIONS:
        names: dict[str, object] = {"__name__": f"lesson{number}"}
        for node in definitions(LESSONS[number].source.read_text("utf-8")):
            with suppress(NameError):  # a default or a decorator that is computed in the lesson: nobody pastes that
                exec(compile(ast.Module([node], []), f"lesson {number}", "exec"), names)
        SESSIONS[number] = names
    return dict(SESSIONS[number])


def pasted(exercise: Exercise, names: dict[str, object]) -> object:
    """What the reader hands to `check` after pasting the solution as it is printed."""
    source = source_of(exercise.solution or exercise.reference)
    if source.startswith("lambda"):
        return eval(source, names)
    exec(source, names)
    return names[ast.parse(source).body[0].name]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_solution_runs_in_its_lesson_as_it_is_printed(exercise):
    answer = pasted(exercise, session(exercise.lesson))
    verdict = grade(exercise, answer() if exercise.asks_for_value else answer)
    assert verdict.kind == "right", f"{exercise.id}: {verdict}"


def test_the_assembled_decoder_layer_is_torchs():
    layer, y, memory = lesson11._layer_of_torch(4, 6, 0)
    theirs = layer(y, memory, tgt_mask=~torch.ones(4, 4).tril().bool()).detach()
    ours = lesson11._decoder_layer(*lesson11._parts(4, 6, 0))
    assert abs(ours - theirs.numpy()).max() < 1e-12


def test_a_name_that_the_lesson_lacks_is_noticed():
    lacking = Exercise(
        id="01.1",
        title="A private helper",
        reference=lambda x: _helper(x),  # noqa: F821
        cases=lambda rng: [(1.0,)],
        hints=("one", "two", "three"),
        misconceptions=[],
    )
    with pytest.raises(NameError, match="_helper"):
        pasted(lacking, session("01"))(1.0)
