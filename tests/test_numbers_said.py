"""A number that is said was computed: in a lesson's prose, and in a deck's own words."""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from attnlib.course.lessons import LESSONS
from publish.decks import slides_of
from publish.lessons.minutes import FORMULA
from publish.slides import named

ROOT = Path(__file__).parents[1]
EACH = pytest.mark.parametrize("lesson", [one for one in LESSONS if one.ready], ids=lambda lesson: lesson.number)
ONE = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)"
NUMBER = re.compile(
    rf"(?<![\w.,{{^_]){ONE}(?![\w}}])(?P<share>(?=(?:(?:, and |, | and | or | to ){ONE})*\s?(?:%|per\s?cent)))?"
)
COUNTED = 12  # no larger whole numbers are words: five short lines, lesson 02
TAKEN = re.compile(r"^```\{lesson-.*?^```$", re.MULTILINE | re.DOTALL)
# No results: formulas, code, addresses; numbers of exercises, sections and papers.
NO_RESULT = re.compile(
    rf"{FORMULA.pattern}|`[^`]*`|\]\([^)]*\)|\*\*\d\d\.\d\*\*|\(\d+\.\d\)|arXiv [\d.]+"
    r"|(?:exercises?|sections?) \d+\.\d(?: (?:to|and) \d+\.\d)?",
    re.DOTALL,
)
SENTENCE = re.compile(r"(?<=[.:?!)])\s+(?=[A-Z*(])|\n")
ELSEWHERE = re.compile("not shown|lesson")  # the sentence says that no cell here prints it
LOOK_BACK = ("## What you know", "## Exercises", "*A place to pause.*")  # at all of the lesson
CITE = ("## Sources", "## Where this")
# What no cell prints: sums done in words, what an exercise asks for, what others measured.
IN_WORDS = {
    "01": "1.15 96.0 95",
    "02": "90 0.1 0.7",
    "03": "0.01",
    "07": "0.97",
    "08": "12.5 80 1.6",
    "14": "100 0.016 1.7",
    "17": "1.5 46",
    "19": "0.027",
    "20": "97",
    "21": "34",
    "23": "8.3 77 23",
    "24": "86",
}


class Known(NamedTuple):
    """Numbers that were computed; those of them that are in per cent."""

    all: frozenset[float] = frozenset()
    shares: frozenset[float] = frozenset()

    def has(self, said, share):
        """Whether a number is one of them, perhaps with fewer digits: 0.73 may be said as 73 %, and 73 % as 0.73."""
        number, near = value(said), 0.5000001 * 10 ** -len(said.partition(".")[2])
        other = (100 * one for one in self.all if one < 1) if share else (one / 100 for one in self.shares)
        fits = itertools.chain(self.shares if share else self.all, other)
        return any(abs(number - one) <= near for one in fits)


def united(*known):
    return Known(*map(frozenset().union, *known)) if known else Known()


def value(text):
    return float(text.replace(",", ""))


def numbers(text, every_share=False):
    """The numbers of a text."""
    found = [(value(one[0]), every_share or one["share"] is not None) for one in NUMBER.finditer(text)]
    return Known(frozenset(one for one, _ in found), frozenset(one for one, share in found if share))


def computed(cell):
    """What a cell holds and prints, or what the formulas of a text hold."""
    if cell.cell_type == "markdown":
        return numbers(" ".join(re.sub(r"[\\{}_^$]", " ", one) for one in FORMULA.findall(cell.source)))
    known = [numbers(re.sub(r"(?<=\d)_(?=\d)", "", cell.source))]
    for out in cell.outputs:
        data = out.get("data", {})
        printed = [out.get("text", ""), data.get("text/html", ""), data.get("text/plain", "")]
        known += [numbers(line, "%" in line) for line in "\n".join(printed).splitlines()]
        known.append(numbers(data.get("text/markdown", ""), every_share=True))  # its heading may stand in the prose
    return united(*known)


def quoted(cells):
    """What the studies hold that a lesson quotes."""
    paths = set(re.findall(r"studies/\w+\.md", "".join(cell.source for cell in cells)))
    return united(*(numbers((ROOT / path).read_text("utf-8")) for path in paths))


# A lesson's prose.


def results(cell):
    """The shares and decimals that a text says: the number, whether it is a share, the words around it."""
    for sentence in SENTENCE.split(NO_RESULT.sub("…", cell.source)) if cell.cell_type == "markdown" else ():
        for one in NUMBER.finditer("" if ELSEWHERE.search(sentence) else sentence):
            if (share := one["share"] is not None) or "." in one[0]:
                yield one[0], share, sentence[max(0, one.start() - 40) : one.end() + 20]


def unfounded(cells):
    """The results that no cell near them prints: the number, the words around it."""
    starts = [i for i, cell in enumerate(cells) if cell.cell_type == "markdown" and re.match("##? ", cell.source)]
    each, said = {id(cell): computed(cell) for cell in cells}, quoted(cells)
    whole = united(*each.values())
    for section in (cells[a:b] for a, b in itertools.pairwise([*starts, len(cells)])):
        near = united(*(each[id(cell)] for cell in section))
        for cell in () if section[0].source.startswith(CITE) else section:
            looks_back = section[0].source.startswith(LOOK_BACK) or cell.source.startswith(LOOK_BACK)
            for number, share, words in results(cell):
                if united(whole if looks_back else near, said).has(number, share):
                    said = united(said, numbers(f"{number} %" if share else number))
                else:
                    yield number, words


@EACH
def test_a_number_in_the_prose_is_printed_near_it(lesson):
    """In its section, or it was said before, or a study has it."""
    found, known = list(unfounded(named.cells(lesson.number))), IN_WORDS.get(lesson.number, "").split()
    wrong = "; ".join(f"{number} in “…{words}…”" for number, words in found if number not in known)
    if wrong:
        pytest.fail(f"{lesson.file}: no cell of the section and no study of the lesson has {wrong}", pytrace=False)
    assert set(known) <= {number for number, _ in found}, "IN_WORDS has a number that is printed now"


@pytest.mark.parametrize(("number", "right", "wrong"), [("06", "0.73", "0.37"), ("18", "51.8", "58.1")])
def test_a_slip_in_the_prose_is_found(number, right, wrong):
    cells = [one.copy() for one in named.cells(number)]
    for cell in cells:
        if cell.cell_type == "markdown":
            cell["source"] = cell.source.replace(right, wrong)
    assert wrong in {said for said, _ in unfounded(cells)}


# A deck's own words.


def deck(lesson):
    return (ROOT / "slides" / f"{lesson.file}.md").read_text("utf-8")


@EACH
def test_the_numbers_of_a_deck_are_those_of_its_lesson(lesson):
    """A number in a deck's own words stands in a lesson that it takes from, printed or said."""
    text = deck(lesson)
    lessons = sorted({lesson.number, *re.findall(r"^```\{lesson-\w+\} (\d\d):", text, re.MULTILINE)})
    cells = [cell for number in lessons for cell in named.cells(number)]
    known = united(*map(computed, cells), *(numbers(cell.source) for cell in cells))
    for slide in slides_of(text):
        words = TAKEN.sub("", re.sub(r"^:::\{notes\}.*$", "", slide, flags=re.MULTILINE)).partition("\n")[2]
        for one in NUMBER.finditer(words):
            counted = one[0].isdigit() and value(one[0]) <= COUNTED
            title = slide.partition("\n")[0].lstrip("# ")
            assert counted or known.has(one[0], one["share"] is not None), (
                f"{title}: {one[0]} is not in lesson {' or '.join(lessons)}"
            )


@pytest.mark.parametrize("said", ["40,321", "0.83", "60,417", "1.27"])
def test_a_number_of_a_deck_that_is_in_no_lesson_is_found(said, monkeypatch):
    lesson = next(one for one in LESSONS if one.number == "12")
    monkeypatch.setitem(globals(), "deck", lambda _: f"# 12\n\n## More\n\nIt gives {said} to *river*.\n")
    with pytest.raises(AssertionError, match="More: "):
        test_the_numbers_of_a_deck_are_those_of_its_lesson(lesson)
