"""The links of the lessons: to the lessons beside them, and to what they quote."""

import re
from dataclasses import replace

import pytest

from attnlib.course.lessons import LESSONS
from attnlib.course.references import address, addresses
from publish.lessons.build import COURSE
from publish.lessons.cells import Cell
from publish.lessons.lessons import sources
from publish.lessons.links import REFERENCES, WORK, is_navigation, with_links

READY = [lesson for lesson in LESSONS if lesson.ready]
LASTING = re.compile(
    r"https://(arxiv\.org/abs/\d{4}\.\d{4,5}|doi\.org/10\.\d{4,}/\S+|[\w.-]+/\S+)", re.ASCII
)  # an arXiv number, a DOI, or a page
LINK = re.compile(r"\]\(([^)\s]+)\)")


def quoted(lesson):
    """The works in the list at the end of a lesson."""
    sections = [cell.source for cell in sources(lesson) if cell.source.startswith(REFERENCES)]
    return {found["title"] for section in sections for found in WORK.finditer(section)}


def test_every_quoted_work_has_its_address_or_is_known_to_have_none():
    works = set().union(*map(quoted, COURSE.lessons()))
    assert works - set(addresses()) == set(), "add these to attnlib/course/references.csv"
    assert set(addresses()) - works == set(), "no lesson quotes these any more"


def test_an_address_is_an_arxiv_number_a_doi_or_a_page():
    for title, where in addresses().items():
        assert where == "" or LASTING.fullmatch(where), title
    assert list(addresses()) == sorted(addresses(), key=lambda title: title.strip('"').lower())


def test_an_unknown_work_has_no_address():
    with pytest.raises(KeyError):
        address("A Paper That Nobody Wrote")


@pytest.mark.parametrize("lesson", COURSE.lessons(), ids=lambda lesson: lesson.number)
def test_a_lesson_leads_to_its_neighbours_and_nowhere_that_is_not(lesson):
    cells = sources(lesson)
    at = [one.file for one in READY].index(lesson.name)
    beside = {READY[place].file + ".ipynb" for place in (at - 1, at + 1) if 0 <= place < len(READY)}
    assert is_navigation(cells[-1])
    assert beside <= set(LINK.findall(cells[-1].source))
    local = {target for cell in cells if cell.kind == "markdown" for target in LINK.findall(cell.source)}
    for target in local:
        if not target.startswith(("http", "#")):
            assert (COURSE.notebooks / target).exists(), f"{lesson.name} leads to {target}"


def test_links_are_made_once_and_follow_the_tables():
    last = READY[-1]
    cells = [
        Cell("markdown", "# T\n\n45 minutes. Needs: lessons 01 and 98. Needed for: 02."),
        Cell("markdown", f"{REFERENCES}\n\n- A. Author, *Attention Is All You Need*, 2017; *Nobody Knows*, 1900."),
    ]
    made = with_links(cells, last.file)
    assert "lessons [01](01_nadaraya_watson.ipynb) and 98. Needed for: [02](02_" in made[0].source
    assert "[*Attention Is All You Need*](https://arxiv.org/abs/1706.03762), 2017; *Nobody Knows*" in made[1].source
    assert is_navigation(made[2])
    assert "→" not in made[2].source
    assert with_links(made, last.file) == made
    moved = [replace(made[0], source=made[0].source.replace("01_nadaraya", "01_old")), *made[1:]]
    assert with_links(moved, last.file) == made
    assert not any(map(is_navigation, with_links(cells, "99_a_lesson_of_somebody_else")))
