"""The lessons of the course: what each is called, needs and teaches, written down once, here; how long it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LESSONS", "PARTS", "Lesson", "as_markdown"]


# Lesson -> minutes without and for its excursions. `make build` computes them from the lessons and writes the file.
MINUTES = json.loads(Path(__file__).with_name("minutes.json").read_text("utf-8"))
# Lesson -> seconds that Run All took where `make times` was last run.
SECONDS = json.loads(Path(__file__).with_name("seconds.json").read_text("utf-8"))


@dataclass(frozen=True)
class Lesson:
    """One lesson; ``needs`` are lesson numbers.

    ``file`` is the notebook's name without its ending, or None while the lesson is being written.

    >>> LESSONS[1].heading
    '01 · What will the next household spend on food?'
    """

    number: str
    title: str
    part: int
    needs: tuple[str, ...]
    teaches: str
    file: str | None = None

    @property
    def heading(self) -> str:
        """Number and title."""
        return f"{self.number} · {self.title}"

    def link(self, folder: str = "") -> str:
        """The heading as a link to the notebook in ``folder``; without a link while there is none.

        >>> LESSONS[0].link("notebooks/")
        '[00 · Start here](notebooks/00_start_here.ipynb)'
        """
        return f"[{self.heading}]({folder}{self.file}.ipynb)" if self.ready else self.heading

    @property
    def ready(self) -> bool:
        """Can it be opened?"""
        return self.file is not None

    @property
    def minutes(self) -> int:
        """Reading, running and exercises, without the excursions."""
        return MINUTES.get(self.number, (0, 0))[0]

    @property
    def excursion_minutes(self) -> int:
        """The same for the excursions, which no lesson needs."""
        return MINUTES.get(self.number, (0, 0))[1]

    @property
    def run(self) -> str:
        """How long Run All takes, to a few seconds: ``40 s``; nothing where it was not measured."""
        seconds = SECONDS.get(self.number)
        return f"{max(5, 5 * round(seconds / 5))} s" if seconds else ""

    @property
    def length(self) -> str:
        """Both in one, as a lesson states them: ``45``, or ``45 + 20``."""
        return f"{self.minutes} + {self.excursion_minutes}" if self.excursion_minutes else str(self.minutes)


PARTS = {1: "From averages to attention", 2: "Self-attention", 3: "The Transformer", 4: "Descendants, and your own"}

LESSONS = (
    Lesson("00", "Start here", 1, (), "the map, the notation, a first attention map", "00_start_here"),
    Lesson(
        "01",
        "What will the next household spend on food?",
        1,
        ("00",),
        "Nadaraya–Watson regression, kernels, bandwidth",
        "01_nadaraya_watson",
    ),
    Lesson(
        "02",
        "Who decides what near means?",
        1,
        ("01",),
        "query, key, value; from distance to dot product; a learned metric",
        "02_from_kernels_to_attention",
    ),
    Lesson(
        "03",
        "Why divide by the square root of d?",
        1,
        ("02",),
        "scores, the matrix form, variance, saturation, entropy",
        "03_scoring_functions",
    ),
    Lesson(
        "04",
        "Must attention be soft?",
        1,
        ("03",),
        "soft, hard, structured, pointer attention",
        "04_kinds_of_attention",
    ),
    Lesson(
        "05",
        "Why not one vector?",
        2,
        ("03",),
        "attention against recurrent networks, by length",
        "05_why_attention",
    ),
    Lesson(
        "06",
        "How can a sentence ask itself?",
        2,
        ("03",),
        "self-attention, what its three matrices learn",
        "06_self_attention",
    ),
    Lesson(
        "07",
        "What can two heads do that one cannot?",
        2,
        ("06",),
        "multi-head attention, proved, built and taken apart",
        "07_multi_head_attention",
    ),
    Lesson("08", "How does it know the order?", 2, ("07",), "position, five ways", "08_position"),
    Lesson(
        "09",
        "How do you hide the future?",
        2,
        ("07", "08"),
        "masks for padding and the future, and leaks",
        "09_masking",
    ),
    Lesson(
        "10",
        "What survives a stack of layers?",
        3,
        ("08", "09"),
        "residuals, normalisation, feed-forward: the encoder layer",
        "10_blocks",
    ),
    Lesson(
        "11",
        "How do two stacks talk?",
        3,
        ("08", "09", "10"),
        "cross-attention, shift, teacher forcing: the whole Transformer",
        "11_encoder_and_decoder",
    ),
    Lesson(
        "12",
        "Training a translator",
        3,
        ("11",),
        "German numbers to English: training, and what a score hides",
        "12_training_a_translator",
    ),
    Lesson("13", "What does it look at?", 3, ("12",), "attention maps and interventions", "13_what_does_it_look_at"),
    Lesson("14", "Decoding", 3, ("12",), "greedy, beam, sampling, cache", "14_decoding"),
    Lesson(
        "15",
        "What is wrong with it?",
        3,
        ("13", "14"),
        "fourteen translators, twelve with a mistake: experiments that find it",
        "15_debugging_lab",
    ),
    Lesson(
        "16",
        "What comes next?",
        4,
        ("14",),
        "GPT: language models in bits per character, against counting",
        "16_gpt",
    ),
    Lesson(
        "17",
        "What goes in the gap?",
        4,
        ("16",),
        "BERT: gaps, a known floor, few labels, and a head that knows chemistry",
        "17_bert",
    ),
    Lesson(
        "18",
        "Can you ask it in words?",
        4,
        ("17",),
        "T5: tasks as text, spans, and a translator against a memory of real texts",
        "18_t5",
    ),
    Lesson(
        "19",
        "How can it learn from what it reads?",
        4,
        ("16",),
        "in-context learning: a head that becomes kernel regression, or gradient descent",
        "19_in_context",
    ),
    Lesson(
        "20",
        "What can a model leave unread?",
        4,
        ("14",),
        "long sequences: patterns, paths and what travels along them, linear attention",
        "20_long_sequences",
    ),
    Lesson(
        "21",
        "Can it read pictures?",
        4,
        ("17",),
        "ViT and DETR: patches as rows, queries for objects, a matching; a map of attention against a cut",
        "21_pictures",
    ),
    Lesson(
        "22",
        "Can it name what it has never seen?",
        4,
        ("16", "21"),
        "CLIP, Flamingo, DALL·E; the contrastive loss; what decides whether a new combination is named",
        "22_pictures_and_words",
    ),
    Lesson(
        "23",
        "What does it cost to grow?",
        4,
        ("16", "20"),
        "FLOPs and bytes; texts, weights, heads or positions over processes; power laws; what to read next",
        "23_scaling_out",
    ),
    Lesson(
        "24",
        "Is it yours?",
        4,
        ("12", "14"),
        "a translator of your own answers, checked against the library, in a file of your own",
        "24_your_own",
    ),
)


def as_markdown(abilities: Mapping[str, str]) -> str:
    """The syllabus as a Markdown table, with links from the top of the repository.

    ``abilities`` says for the number of a lesson what one can do after it.

    >>> as_markdown({}).splitlines()[0]
    '| lesson | after it you can | minutes | Run All |'
    """
    rows = ["| lesson | after it you can | minutes | Run All |", "| --- | --- | ---: | ---: |"]
    for part, name in PARTS.items():
        rows.append(f"| **Part {part}. {name}** | | | |")
        rows += [
            _row(lesson, abilities.get(lesson.number, lesson.teaches)) for lesson in LESSONS if lesson.part == part
        ]
    core, aside = (sum(kind) / 60 for kind in zip(*MINUTES.values(), strict=True))
    rows.append(f"| | **all of it** | {core:.0f} h + {aside:.0f} h | {sum(SECONDS.values()) / 60:.0f} min |")
    return "\n".join(rows)


def _row(lesson: Lesson, able: str) -> str:
    return f"| {lesson.link('notebooks/')} | {able} | {lesson.length} | {lesson.run} |"
