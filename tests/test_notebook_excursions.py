"""Excursions: what belongs to one, that the rest cannot need it, how it is shown."""

import nbformat
import pytest

from publish.lessons import build
from publish.lessons.cells import Cell, core, in_excursions
from publish.lessons.lessons import FOLDED, HEADER, read_notebook, read_source, to_cells, unrun_notebook
from publish.lessons.rules import source_problems
from publish.lessons.sides import State, digests, state

LESSON = """\
# 3 · A sum

In 5 minutes.

```{code-cell}
print([1], 0.25)
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
    ("cells", "said"),
    [
        ([code("x"), START, code("y"), prose("## B"), code("x = y")], "cell 5 (`x = y`) stands behind an excursion"),
        ([START, prose("Text"), prose("## B"), code("x"), START], "cell 4 (`x`) stands behind an excursion"),
        ([START, code("y"), prose("## B"), START, code("print(y)"), prose("## C")], ""),
        ([code("x"), prose("## B"), code("y"), START, prose("Text"), prose("# C")], ""),
    ],
)
def test_no_code_outside_stands_behind_an_excursion(cells, said):
    problems = "; ".join(source_problems(cells))
    assert said in problems
    assert bool(said) == bool(problems)


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
