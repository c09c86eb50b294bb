"""Ways to teach the course in one lecture, six, or a semester: which lessons, what to skip, what to vote on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlib.course.claims import CLAIMS
from attnlib.course.lessons import LESSONS

__all__ = ["PLANS", "Lecture", "Plan", "as_markdown"]


@dataclass(frozen=True)
class Lecture:
    """One meeting: its lessons, the claim to vote on at its start, what to do or skip; perhaps a deck of its own."""

    lessons: tuple[str, ...]
    vote: int
    advice: str
    deck: str = ""

    @property
    def minutes(self) -> int:
        """What a reader takes for the lessons, without their excursions."""
        return sum(lesson.minutes for lesson in LESSONS if lesson.number in self.lessons)


@dataclass(frozen=True)
class Plan:
    """A series of meetings."""

    name: str
    about: str
    lectures: tuple[Lecture, ...]


PLANS = (
    Plan(
        "One lecture",
        "Forty-five minutes for people who have trained a network, with [a deck of its own](../slides/lecture.md).",
        (
            Lecture(
                ("01", "02", "06", "13"),
                22,
                "Nothing has to be skipped. The vote comes first and is settled last.",
                "lecture",
            ),
        ),
    ),
    Plan(
        "Six lectures",
        "Ninety minutes each, half of them in the notebooks. Reading the rest of the lesson is the homework.",
        (
            Lecture(
                ("01", "02"), 3, "Skip leave-one-out, the edge and who pays. Exercises 01.1 and 02.1 in the room."
            ),
            Lecture(("03", "06"), 6, "In 03 skip the five scores. Let people guess before the figure on saturation."),
            Lecture(("07", "08"), 14, "In 07 skip the library's layer. In 08 four of the five ways are enough."),
            Lecture(
                ("09", "10"), 17, "Start with the dice that can be predicted. In 10 skip the axes of normalisation."
            ),
            Lecture(
                ("11", "12"), 19, "Train before the lecture: 12 takes a minute. Look at the sentences, not the score."
            ),
            Lecture(("13", "14"), 23, "13 in full. Of 14: greedy, beam and the width that makes it worse."),
        ),
    ),
    Plan(
        "A semester",
        "Fifteen meetings of ninety minutes, and an afternoon for lesson 15: each time a deck, then the "
        "notebook; students report on what is left out.",
        (
            Lecture(("00", "01"), 2, "Set-up is homework before this: make lab."),
            Lecture(("02",), 4, "The primer of torch is an excursion there, for those who need it."),
            Lecture(("03", "04"), 8, "Exercises in pairs. Report: words in sentences in a document."),
            Lecture(("05",), 26, "Train before the lecture. Report: letters that come twice, and which state asks."),
            Lecture(("06", "07"), 35, "Of 07 the proof and the construction; the rest is reading."),
            Lecture(
                ("08", "09"), 38, "Which code generalises depends on the task: let two groups argue for one each."
            ),
            Lecture(("10", "11"), 41, "Assemble the decoder layer, exercise 11.4, together."),
            Lecture(
                ("12",),
                19,
                "The claim is last week's lesson. Design the missing test set before showing what the score hid.",
            ),
            Lecture(("13",), 39, "Place the cuts at the board before they are run."),
            Lecture(("14",), 25, "Report: what the empty sentence has to do with beams."),
            Lecture(
                ("15",),
                52,
                "Three hours. Patient 2 together, then pairs with three patients each, by lot; last the figure of all "
                "experiments, which is the answer key. The excursion *The other eleven* says how long each part "
                "takes, and what a pair hands in.",
            ),
            Lecture(("16",), 43, "The shipped model against counting; report: real GPT-2 weights, with a network."),
            Lecture(("17", "18"), 49, "The head that knows chemistry; what 2,743 pairs give, and what they do not."),
            Lecture(("19", "20"), 50, "In 20, draw the paths at the board. Which fact will arrive?"),
            Lecture(("21", "22"), 47, "In 22 let the room rank what decides before it is run."),
            Lecture(
                ("23", "24"),
                51,
                "Four students are the processes, and pass cards in a ring. Lesson 24 takes what each has solved: "
                "say so in the first week. Close with the ledger: which verdict would you have guessed then?",
            ),
        ),
    ),
)


def as_markdown(decks: Mapping[str, tuple[int, int]] | None = None) -> str:
    """The plans as a page, with links for the folder of the notebooks; ``decks``: name to slides and minutes.

    >>> as_markdown().splitlines()[0]
    '# Teaching with it'
    """
    return "\n\n".join([_HEAD, *(_plan(plan, decks or {}) for plan in PLANS), _TAIL]) + "\n"


def _plan(plan: Plan, decks: Mapping[str, tuple[int, int]]) -> str:
    head = [
        "| | lessons | reader's minutes | slides, their minutes | vote at the start | advice |",
        "| ---: | --- | ---: | ---: | --- | --- |",
    ]
    rows = [_row(number, lecture, decks) for number, lecture in enumerate(plan.lectures, 1)]
    return "\n".join([f"## {plan.name}\n\n{plan.about}\n", *head, *rows])


def _row(number: int, lecture: Lecture, decks: Mapping[str, tuple[int, int]]) -> str:
    files = {lesson.number: lesson.file for lesson in LESSONS}
    links = ", ".join(f"[{lesson}]({files[lesson]}.ipynb)" for lesson in lecture.lessons)
    [claim] = [claim for claim in CLAIMS if claim.number == lecture.vote]
    shown = [decks[name] for name in ([lecture.deck] if lecture.deck else lecture.lessons) if name in decks]
    slides, minutes = sum(slides for slides, _ in shown), sum(minutes for _, minutes in shown)
    vote = f"“{claim.sentence}” (claim {claim.number})"
    return f"| {number} | {links} | {lecture.minutes} | {slides}, {minutes} | {vote} | {lecture.advice} |"


_HEAD = """\
# Teaching with it

A reader's minutes are for reading, running the cells and a first try at each exercise. Working out all exercises of a
lesson takes a quarter to half an hour more, as readers estimated. Slides are counted for whole decks, often more than
a meeting has room for: choose from them. Before each meeting the room votes on a sentence of the [ledger](CLAIMS.md):
true, false, or it depends. The lesson settles it."""

_TAIL = """\
## In the room

- **Decks**: `make slides` makes one for each lesson, with notes and minutes for the speaker. They are Markdown files
  in [slides](../slides/README.md): change what you like.
- **Answers**: `make answers` writes every exercise with its hints, its solution and the wrong answers that the check
  recognises into `answers/`, which git does not track. Students see hints and solutions with `hint` and `solution`.
- **Progress**: students send what `progress(export="ada.json")` writes.
  `make progress FROM=folder` prints a table of who has solved what, as CSV. The file is theirs and can be edited:
  it shows where a class is stuck, and is no basis for marks.
- **A server**: the `Dockerfile` starts JupyterLab for one person; `repo2docker` builds from `.binder/`."""
