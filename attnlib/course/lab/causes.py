"""The causes that a patient may have: what each is called, in which words, and which experiments find it."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["CAUSES", "Cause", "as_name", "named"]


class Cause(NamedTuple):
    """What it is in a sentence, a pattern of the words that people have for it, and the experiments that find it."""

    sentence: str
    words: str
    found_by: frozenset[str]


def _cause(sentence: str, words: str, found_by: str) -> Cause:
    return Cause(sentence, words, frozenset(found_by.split()))


CAUSES: dict[str, Cause] = {
    "nothing": _cause(
        "there is no mistake",
        r"nothing|no (bug|mistake|error|fault)|bug.free|healthy|correct|sound|in order|"
        r"(fine|okay|ok)\b|all right|works",
        "",
    ),
    "inverted mask": _cause(
        "the padding mask is the wrong way round",
        r"mask|invert|negat|swap|wrong way|flipped|opposite|upside|~|true (is|means|at)|"
        r"attends? (only )?to (the )?padding",
        "padding batch",
    ),
    "guessed axis": _cause(
        "the padding mask is read as one mask for each head, when a batch has as many rows as there are heads",
        r"mask|axis|axes|broadcast|(a|each|every|per|over|by|across)( the)? heads?\b|as many|"
        r"batch ?(size)? ?(=|==|is|equals) ?(n_)?heads",
        "batch",
    ),
    "short cache mask": _cause(
        "with a cache, the mask of a step is one short and hides the newest key",
        r"mask|cache|short|newest|just added|last key|hid(e|es|den|ing)\b|"
        r"(hid|miss)\w* (the )?(newest|own|last|itself)|itself",
        "steps first",
    ),
    "wide window": _cause(
        "the causal mask lets one later word through",
        r"mask|window|diagonal|triangle|tri[lu]|one (word |token |position )?(too far|ahead|later)|later word|"
        r"causal|future|(look|peek)\w* (ahead|at)|leaks? ahead",
        "answer batch steps first reference",
    ),
    "finite fill": _cause(
        "hidden scores are filled with a number that half precision does not have",
        r"fill|million|1e-?\+?6|1e6|\binf(inity)?\b|overflow|half|fp16|float16|precision|nan\b",
        "half",
    ),
    "square product": _cause(
        "a matrix is used transposed, which runs only because it is square",
        r"transpos|square(?! root)|einsum|w\.?t\b|d_in|d_out|other way round.*matri|matri.*(other|wrong) way|"
        r"projection|sizes?",
        "sizes reference",
    ),
    "other maps": _cause(
        "its maps come from a second pass, without the mask",
        r"maps?\b|second pass|another pass|pictures?|other pass",
        "maps",
    ),
    "dropout stays": _cause(
        "dropout stays on in evaluation",
        r"drop|eval|random|stochastic|training ?mode|training ?=|self\.training|noise",
        "twice answer padding batch steps first reference",
    ),
    "restarted positions": _cause(
        "with a cache, positions start again at 0",
        r"cache|position|offset|start ?= ?0|restart|start again",
        "steps",
    ),
    "padding in the loss": _cause(
        "the loss counts padding",
        r"loss|ignore_index|cross.?entropy|mean over|counts? padding",
        "loss",
    ),
    "no shift": _cause(
        "the target is not shifted, so that the decoder reads what it is to predict",
        r"shift|teacher|forc|reads? (the|its) (own )?(answer|target|word)|copies",
        "answer",
    ),
    "endless beams": _cause(
        "a beam that has ended is continued",
        r"beam|search|finish|\bend(s|ed|ing)?\b|stop|eos",
        "beams",
    ),
}


def as_name(words: str) -> str:
    """What names of causes are compared with.

    >>> as_name("No_shift.")
    'no shift'
    """
    return " ".join(words.lower().replace("_", " ").split()).strip(" .")


def named(words: str) -> list[str]:
    """The causes that ``words`` may mean: those whose words occur most.

    >>> named("The target is not shifted right"), named("the mask of a head"), named("tired")
    (['no shift'], ['guessed axis'], [])
    """
    hits = {name: len(re.findall(cause.words, words.lower())) for name, cause in CAUSES.items()}
    most = max(hits.values())
    return [name for name, count in hits.items() if count == most > 0]
