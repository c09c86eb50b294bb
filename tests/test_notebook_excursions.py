"""Excursions: what belongs to one, what it may not do, how it is shown, and that the rest runs without it."""

import nbformat
import pytest

from publish.lessons import build
from publish.lessons.cells import Cell, core, in_excursions
from publish.lessons.lessons import FOLDED, HEADER, read_notebook, read_source, to_cells, unrun_notebook
from publish.lessons.rules import names, source_problems
from publish.lessons.running import core_problems, could_need_one
from publish.lessons.sides import State, digests, state

LESSON = """\
# 3 · A sum

In 5 minutes.

```{code-cell}
x = [1]
```

## Excursion: A product

+++

### Inside

```{code-cell}
y = 2
```

```{code-cell}
:figure: aside

from standin import Picture
Picture([3, 1], "A line that falls to 1")
```

## The rest

```{code-cell}
print(x, 0.25)
```
"""


def code(text):
    return Cell("code", text)


def prose(text):
    return Cell("markdown", text)


START = prose("## Excursion: A product")


@pytest.fixture
def lesson(course):
    """The third lesson, with an excursion, built."""
    found = course.lessons()[2]
    found.source.write_text(HEADER + LESSON)
    assert build.main([], course) == 0
    return found


# What belongs to one


def test_an_excursion_ends_at_the_next_heading_of_its_level_or_above():
    after = [
        prose("### Inside"),
        code("## no heading"),
        prose("text"),
        prose("## B"),
        prose("text"),
        START,
        prose("# C"),
    ]
    cells = [prose("# A"), START, *after]
    assert in_excursions(cells) == [False, True, True, True, True, False, False, True, False]
    assert core(cells) == [cells[0], cells[5], cells[6], cells[8]]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([prose("## Excursion: A\n\nText")], "cell 1 (`## Excursion: A`) holds more than the excursion's heading"),
        ([prose("Text\n\n## Excursion: A")], "has an excursion's heading inside"),
        ([START, prose("Text\n\n## B")], "cell 2 (`Text`) has a heading inside"),
        ([prose("### Excursion: A")], "nearly an excursion's"),
        ([prose("## excursion: A")], "nearly an excursion's"),
        ([prose("## Excursion A")], "nearly an excursion's"),
        ([prose("## Excursion:")], "nearly an excursion's"),
    ],
)
def test_the_form_of_an_excursion(cells, said):
    assert said in "; ".join(source_problems(cells))


@pytest.mark.parametrize(
    "cells",
    [
        [START, prose("Text"), prose("### Inside"), prose("## B\n\nText\n\n### More")],
        [prose("```\n## Excursion: in a code block\n```"), START, prose("```\n# a comment\n```")],
        [prose("# A\n\nThis excursion: short.\n\n## B")],
        [START, Cell("code", "x = 1")],
    ],
)
def test_what_is_well_formed(cells):
    assert source_problems(cells) == []


# Nothing outside needs it


@pytest.mark.parametrize(
    ("source", "reads", "binds"),
    [
        ("y = x", {"x"}, {"y"}),
        ("x = 1\ny = x", set(), {"x", "y"}),
        ("x += 1", {"x"}, {"x"}),
        ("import a.b as c, d", set(), {"c", "d"}),
        ("def f(z):\n    return x + z", {"x"}, {"f"}),
        ("def f():\n    return x\nx = 1", set(), {"f", "x"}),
        ("class A:\n    z = x\n    w = z", {"x"}, {"A"}),
        ("[i for i in x]", {"x"}, set()),
        ("for i in x:\n    pass", {"x"}, {"i"}),
        ("(lambda z: z + x)(1)", {"x"}, set()),
        ("with x as y: pass", {"x"}, {"y"}),
        ("del x", {"x"}, set()),
        ("this is no Python", set(), set()),
    ],
)
def test_what_a_cell_reads_and_binds(source, reads, binds):
    internal = {"__name__"}  # a class asks for its module's
    assert (names(source)[0] - internal, names(source)[1]) == (reads, binds)


@pytest.mark.parametrize(
    ("aside", "rest", "needed"),
    [
        ("y = 2", "print(y)", "y"),
        ("x = 2", "print(x)", "x"),
        ("x += 1", "def f():\n    return x", "x"),
        ("def f(): pass\nimport numpy as np", "f(np)", "f, np"),
        ("y = 2", "y = 3\nprint(y)", ""),
        ("y = x", "print(x)", ""),
        ("y = 2", "x = 'y'", ""),
        ("x.append(2)", "print(x)", ""),  # only a run tells
    ],
)
def test_the_rest_reads_no_name_that_an_excursion_bound(aside, rest, needed):
    cells = [code("x = [1]"), START, code(aside), prose("## B"), code(rest), code("x = y = f = np = 1"), code(rest)]
    said = [problem for problem in source_problems(cells) if " from an excursion" in problem]
    assert len(said) == bool(needed)
    assert all(f"cell 5 (`{rest.splitlines()[0]}`) needs {needed} from" in problem for problem in said)


def test_a_later_excursion_may_need_an_earlier_one():
    assert source_problems([START, code("y = 2"), prose("## B"), START, code("print(y)")]) == []


def test_the_rest_is_run_without_it(lesson):
    assert core_problems(lesson) == []


def test_only_code_behind_an_excursion_could_need_it():
    before, aside, behind = (
        Cell("code", "x = 1"),
        Cell("markdown", "## Excursion: A product"),
        Cell("markdown", "## End"),
    )
    inside, after = Cell("code", "y = 2"), Cell("code", "x + 1")
    assert not could_need_one([before])
    assert not could_need_one([before, aside, inside, behind])
    assert could_need_one([before, aside, inside, behind, after])


@pytest.mark.parametrize(
    ("secret", "rest", "said"),
    [
        ("x.append(2)", "print(x, 0.25)", "cell 4 (`print(x, 0.25)`) then shows something else: 3 numbers are stored"),
        (
            "__builtins__.late = 2",
            "print(late)",
            "cell 4 (`print(late)`) raised NameError: name 'late'",
        ),
        ("__builtins__.print = lambda *args: None", "print(x, 0.25)", "[] are stored, a run gives ['stdout']"),
    ],
)
def test_what_the_rest_needs_in_secret_is_found_by_the_run(lesson, secret, rest, said):
    text = lesson.source.read_text().replace("y = 2", secret).replace("print(x, 0.25)", rest)
    lesson.source.write_text(text)
    assert build.main([], lesson.course) == 0
    assert said in "; ".join(core_problems(lesson))


# How it is shown


def test_jupyterlab_folds_it():
    notebook = unrun_notebook([prose("# A"), START, prose("### In"), prose("## B")], "01")
    assert [cell.metadata.get(FOLDED) for cell in notebook.cells] == [None, True, None, None]


def test_unfolding_it_is_no_edit(lesson):
    before = lesson.notebook.read_bytes()
    notebook = read_notebook(lesson.notebook)
    del notebook.cells[2].metadata[FOLDED]
    nbformat.write(notebook, lesson.notebook)
    assert lesson.notebook.read_bytes() != before
    assert state(lesson) is State.CURRENT
    assert digests(to_cells(notebook)) == digests(read_source(lesson.source.read_text()))
    assert build.main([], lesson.course) == 0
    assert lesson.notebook.read_bytes() == before


def test_a_pull_brings_no_trace_of_it_to_the_source(lesson):
    notebook = read_notebook(lesson.notebook)
    notebook.cells[3].source += "\n\nMore."
    notebook.cells.insert(4, nbformat.v4.new_markdown_cell("New."))
    nbformat.write(notebook, lesson.notebook)
    wanted = lesson.source.read_text().replace("### Inside", "### Inside\n\nMore.\n\n+++\n\nNew.")
    assert build.main(["--pull", "03"], lesson.course) == 0
    assert lesson.source.read_text() == wanted


def test_it_is_counted_apart(lesson):
    assert "In 5 + 5 minutes." in lesson.source.read_text()
    assert '"03": [5, 5]' in lesson.course.minutes.read_text()
