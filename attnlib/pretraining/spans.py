r"""Texts with spans taken out, as T5 is pretrained on them: what is shown, what is to be written, and the way back.

.. math:: \text{a b c d e f} \;\to\; \text{a}\, \langle 0\rangle\, \text{d}\, \langle 1\rangle\, \text{f}
          \;\to\; \langle 0\rangle\, \text{b c}\, \langle 1\rangle\, \text{e}\, \langle 2\rangle
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from attnlib._base.checks import check_share, check_size
from attnlib._base.seeds import Seed, generator

__all__ = ["Corrupted", "corrupt_spans", "draw_spans", "restore_spans", "sentinel"]

_SENTINEL = re.compile(r"<(\d+)>")


class Corrupted(NamedTuple):
    """A text with spans taken out: the ``source`` that is shown, and the ``target`` that is to be written.

    >>> Corrupted._fields
    ('source', 'target')
    """

    source: tuple[str, ...]
    target: tuple[str, ...]


def sentinel(i: int) -> str:
    """The token that stands for span ``i``.

    >>> sentinel(0)
    '<0>'
    """
    return f"<{check_size('i', i)}>"


def corrupt_spans(tokens: Sequence[str], spans: Sequence[tuple[int, int]]) -> Corrupted:
    """Take ``spans`` out of a text. Each is ``(start, stop)``, in order, with a token between two of them.

    In the source a sentinel stands for each span; in the target each sentinel is followed by what it stands for, and
    one sentinel more says that nothing follows.

    Raises ``TypeError`` when ``tokens`` is a string, ``ValueError`` when a span is empty, outside or touches another,
    or a token is a sentinel.

    Source: Raffel et al. (2020), section 3.1.4 and figure 2.

    >>> text = "Thank you for inviting me to your party last week".split()
    >>> source, target = corrupt_spans(text, [(2, 4), (8, 9)])
    >>> print(*source), print(*target)
    Thank you <0> me to your party <1> week
    <0> for inviting <1> last <2>
    (None, None)
    """
    tokens = _words("tokens", tokens)
    if marks := [token for token in tokens if _SENTINEL.fullmatch(token)]:
        raise ValueError(f"tokens must hold no sentinel; got {marks[0]}")
    source: list[str] = []
    target: list[str] = []
    end = -1
    for i, (start, stop) in enumerate(spans):
        if not (end < start < stop <= len(tokens)):
            raise ValueError(
                f"spans must be (start, stop) in 0 to {len(tokens)}, in order, with a token between two; got {spans}"
            )
        source += [*tokens[max(end, 0) : start], sentinel(i)]
        target += [sentinel(i), *tokens[start:stop]]
        end = stop
    return Corrupted((*source, *tokens[max(end, 0) :]), (*target, sentinel(len(spans))))


def restore_spans(source: Sequence[str], target: Sequence[str]) -> tuple[str, ...]:
    """The text that was corrupted: every sentinel of ``source`` replaced by what follows it in ``target``.

    What a model writes may be used as the target: a sentinel that it left out stands for nothing, the first of two
    equal ones counts, and what stands before the first sentinel or after one that ``source`` has not is left out.

    Raises ``TypeError`` for a string.

    >>> restore_spans(["a", "<0>", "d"], ["<0>", "b", "c", "<1>"])
    ('a', 'b', 'c', 'd')
    """
    source, target = _words("source", source), _words("target", target)
    spans: dict[str, list[str]] = {}
    current: list[str] = []
    for token in target:
        if _SENTINEL.fullmatch(token):
            current = []
            spans.setdefault(token, current)
        else:
            current.append(token)
    return tuple(
        word for token in source for word in (spans.get(token, ()) if _SENTINEL.fullmatch(token) else (token,))
    )


def draw_spans(n: int, *, seed: Seed, share: float = 0.15, mean_length: float = 3.0) -> list[tuple[int, int]]:
    """Spans to take out of ``n`` tokens: a ``share`` of them, in spans of ``mean_length`` on average.

    How many tokens and how many spans is fixed, at least one of each; where they stand and how long each is, is drawn,
    all ways equally likely. From fewer than two tokens nothing is taken.

    Raises ``ValueError`` when the share is not in [0, 1) or a span is to be shorter than one token.

    Source: Raffel et al. (2020), sections 3.3.3 and 3.3.4. Their code always ends with a span, which matters to short
    texts only: here it may stand anywhere.

    >>> draw_spans(20, seed=0), draw_spans(20, seed=1)
    ([(10, 13)], [(17, 20)])
    """
    check_share("share", share)
    if mean_length < 1:
        raise ValueError(f"mean_length must be at least 1; got {mean_length}")
    if check_size("n", n) < 2:
        return []
    taken = min(max(round(n * share), 1), n - 1)
    count = min(max(round(taken / mean_length), 1), n - taken + 1)
    rng = generator(seed)

    def cut(total: int, parts: int) -> list[int]:
        """``parts`` lengths of at least one that sum to ``total``."""
        cuts = sorted((1 + rng.permutation(total - 1)[: parts - 1]).tolist())
        return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]

    spans, place = [], -1  # what stays before the first span and after the last may be nothing
    for stays, goes in zip(cut(n - taken + 2, count + 1), cut(taken, count), strict=False):
        spans.append((place + stays, place + stays + goes))
        place += stays + goes
    return spans


def _words(name: str, tokens: Sequence[str]) -> list[str]:
    if isinstance(tokens, str):
        raise TypeError(f"{name} must be a list of tokens; got {tokens!r}. For words, write text.split()")
    return list(tokens)
