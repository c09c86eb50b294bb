"""A deck as it is written, a Markdown file: its slides, and what the lecturer says to each."""

import re

SLIDE = re.compile(r"^(?=#{1,3} )", re.MULTILINE)
NOTES = re.compile(r"^:::\{notes\} (?P<minutes>\d+) min\n(?P<said>.+?)\n:::$", re.MULTILINE | re.DOTALL)


def slides_of(text: str) -> list[str]:
    """The slides of a deck."""
    return [part for part in SLIDE.split(text) if part.strip()]


def length(text: str) -> tuple[int, int]:
    """How many slides a deck has, and how many minutes its notes say."""
    return len(slides_of(text)), sum(int(notes["minutes"]) for notes in NOTES.finditer(text))
