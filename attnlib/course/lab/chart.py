"""What each patient has. Do not read this before you have found out."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PATIENTS", "Entry"]


class Entry(NamedTuple):
    """The cause, a key of `attnlib.course.lab.bugs.BUGS`, what is complained of, and dropout in training."""

    cause: str
    complaint: str
    dropout: float = 0.0


PATIENTS: dict[int, Entry] = {
    1: Entry("other maps", "Its map has weight on words that come later. It looks ahead."),
    2: Entry("no shift", "It has the best loss of all, and writes the same word again and again."),
    3: Entry(
        "guessed axis",
        "On the test set nearly everything is right. In the demonstration, four numbers at a time, many are wrong.",
    ),
    4: Entry("restarted positions", "It begins well, and sometimes goes astray."),
    5: Entry(
        "nothing", "It is worse than others that work. Its loss stays higher, and it makes more mistakes.", dropout=0.1
    ),
    6: Entry("padding in the loss", "Cut its test set into other batches, and its loss changes."),
    7: Entry("inverted mask", "Its loss comes down a little, and stays there."),
    8: Entry(
        "endless beams", "With four beams it finds sentences that it calls less likely than those of greedy decoding."
    ),
    9: Entry("wide window", "It has one of the best losses, and stammers."),
    10: Entry("finite fill", "Here it works. On a machine that computes in half precision it says nothing."),
    11: Entry("dropout stays", "On Monday 21 was twenty one. On Tuesday it was seventy one."),
    12: Entry("nothing", "However long it is trained, its loss does not come down to zero."),
    13: Entry("short cache mask", "It says words twice, or nothing."),
    14: Entry("square product", "It works. Its weights, loaded into another library, give nonsense."),
}
