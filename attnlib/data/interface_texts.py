r"""Texts of a program's interface in English and Chinese, as its translators wrote them: JupyterLab's.

.. math:: \text{overlap}(a, b) = \frac{2\,|A \cap B|}{|A| + |B|}, \qquad
          A, B \text{ the pieces of four letters of } a, b
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from csv import DictReader
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from attnlib._base.checks import check_positive

__all__ = ["NEAR", "InterfaceTexts", "interface_texts", "near", "near_pairs", "normalised", "overlap"]

NEAR, LENGTH = 0.6, 4  # texts that share so much are near, measured in pieces of so many letters
_PLACEHOLDER = re.compile(r"%\d+|%[sd]|\{\{?\s*\w*\s*\}?\}|</?\w+[^>]*>")
_NO_LETTERS = re.compile(r"[\W_]+")


class InterfaceTexts(NamedTuple):
    """Pairs of an English text and its Chinese: those to ``train`` on, and those ``held_out``.

    >>> InterfaceTexts._fields
    ('train', 'held_out')
    """

    train: tuple[tuple[str, str], ...]
    held_out: tuple[tuple[str, str], ...]


@cache
def interface_texts() -> InterfaceTexts:
    """About 3,000 texts of JupyterLab and its extensions, in English and Chinese; a tenth is held out.

    No held-out text is `near` one to train on, in English or, where the Chinese has eight characters or more, in
    Chinese. It may stand whole inside a longer one: *Current Branch* in *Reset Current Branch to Remote State*.

    Source: the package jupyterlab-language-pack-zh-CN 4.5.post3, BSD 3-Clause, copyright Project Jupyter Contributors.
    See interface_texts.md beside this file.

    >>> texts = interface_texts()
    >>> len(texts.train), len(texts.held_out), texts.held_out[3][0]
    (2743, 300, '%1 in cell %2 at line %3')
    """
    lines = files("attnlib.data").joinpath("interface_texts.csv").read_text(encoding="utf-8").splitlines()
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "held out": []}
    for row in DictReader(lines):
        parts[row["part"]].append((row["english"], row["chinese"]))
    return InterfaceTexts(*(tuple(part) for part in parts.values()))


def normalised(text: str) -> str:
    """What is left of a text without placeholders, tags, punctuation and capitals.

    >>> normalised('Delete "%1"? <b>Now!</b>')
    'delete now'
    """
    return _NO_LETTERS.sub(" ", _PLACEHOLDER.sub(" ", text)).strip().casefold()


def overlap(a: str, b: str) -> float:
    """Twice the pieces of four letters that both texts have, divided by those of the one and those of the other.

    >>> overlap("Close all tabs", "Close all %1 tabs…"), round(overlap("Close all tabs", "Close the tab"), 2)
    (1.0, 0.4)
    """
    first, second = (_pieces(normalised(text)) for text in (a, b))
    return 2 * len(first & second) / (len(first) + len(second))


def near(a: str, b: str, *, limit: float = NEAR) -> bool:
    """Whether two texts overlap by at least ``limit``.

    Raises ``ValueError`` unless ``limit`` is positive.

    >>> near("Run all cells", "Run all cells above"), near("Run all cells", "Restart the kernel")
    (True, False)
    """
    check_positive("limit", limit)
    return overlap(a, b) >= limit


def near_pairs(texts: Sequence[str], limit: float = NEAR) -> list[tuple[int, int]]:
    """The places of each two of ``texts`` that are near, the smaller first.

    >>> near_pairs(["Run all cells", "Restart", "Run all cells above"])
    [(0, 2)]
    """
    pieces = [_pieces(normalised(text)) for text in texts]
    stands: dict[str, list[int]] = {}
    found = []
    for i, own in enumerate(pieces):
        shared: dict[int, int] = {}
        for piece in own:
            for j in stands.setdefault(piece, []):
                shared[j] = shared.get(j, 0) + 1
            stands[piece].append(i)
        found += [(j, i) for j, n in sorted(shared.items()) if 2 * n >= limit * (len(own) + len(pieces[j]))]
    return found


def _pieces(text: str) -> frozenset[str]:
    whole = f" {text} "
    return frozenset(whole[i : i + LENGTH] for i in range(max(1, len(whole) - LENGTH + 1)))
