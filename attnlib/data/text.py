"""From tokens to batches: a vocabulary, padding, and batches of sequences that are about equally long.

Numbers 0 to 3 are reserved in every vocabulary of the package: `PAD` fills up, `START` and `END` stand around a
sequence, `UNKNOWN` is for tokens that the vocabulary does not hold. The first token of its own has number `FIRST`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.checks import check_at_least_one, check_integers, check_size
from attnlib._base.seeds import Seed, generator

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["END", "FIRST", "PAD", "RESERVED", "START", "UNKNOWN", "Padded", "Pairs", "Vocabulary", "by_length", "pad"]

PAD, START, END, UNKNOWN = range(4)
RESERVED = ("<pad>", "<s>", "</s>", "<unk>")
FIRST = len(RESERVED)


class Vocabulary:
    """Tokens and their numbers: the reserved four, then the most frequent first, equals in alphabetical order.

    ``texts`` are lists of tokens. A string is not one: for characters, write ``list(text)``.

    Raises ``TypeError`` when a text is no list of strings.

    >>> words = Vocabulary([["one", "and", "twenty"], ["one", "and", "thirty"]])
    >>> words.tokens[4:], len(words), "forty" in words
    (('and', 'one', 'thirty', 'twenty'), 8, False)
    >>> words.encode(["forty", "one"])
    [3, 5]
    >>> words.decode([1, 5, 2, 0, 0])
    ['one']
    """

    def __init__(self, texts: Iterable[Iterable[str]]) -> None:
        counts = Counter(token for i, text in enumerate(texts) for token in _tokens(f"texts[{i}]", text))
        own = (token for token in counts if token not in RESERVED)
        self._hold([*RESERVED, *sorted(own, key=lambda token: (-counts[token], token))])

    def _hold(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(tokens)
        self._numbers = {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} tokens, {len(RESERVED)} of them reserved"

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of ``tokens``, `UNKNOWN` for those that are not held. `START` and `END` are not added.

        Raises ``TypeError`` when ``tokens`` is a string or holds anything else than strings.

        >>> Vocabulary([["a"]]).encode(["a", "b"])
        [4, 3]
        """
        return [self._numbers.get(token, UNKNOWN) for token in _tokens("tokens", tokens)]

    def decode(self, numbers: Sequence[int] | Int[Tensor, " n"], *, reserved: bool = False) -> list[str]:
        """The tokens of ``numbers``: as far as the first `END`, and without `PAD` and `START`.

        ``reserved=True`` gives a token for every number instead.

        Raises ``ValueError`` when a number is not of this vocabulary, ``TypeError`` when it is not an integer.

        >>> Vocabulary([["a"]]).decode([1, 4, 2], reserved=True)
        ['<s>', 'a', '</s>']
        """
        whole = check_integers("numbers", numbers)
        for i, number in enumerate(whole):
            if not 0 <= number < len(self):
                raise ValueError(f"numbers[{i}] must be from 0 to {len(self) - 1}; got {number}")
        if not reserved:
            whole = whole[: whole.index(END)] if END in whole else whole
            whole = [number for number in whole if number not in (PAD, START)]
        return [self.tokens[number] for number in whole]

    def save(self, path: str | Path) -> None:
        """Write the tokens to ``path`` as JSON, a list in the order of their numbers."""
        Path(path).write_text(json.dumps(self.tokens, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """The vocabulary that `save` wrote to ``path``.

        Raises ``ValueError`` when the file is no list of different strings, or does not begin with `RESERVED`.
        """
        try:
            tokens = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:  # not JSON, or not text
            raise ValueError(f"{path} must be a JSON list of tokens; {error}") from None
        strings = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        if not strings or len(set(tokens)) < len(tokens) or tuple(tokens[:FIRST]) != RESERVED:
            raise ValueError(f"{path} must be a JSON list of different tokens that begins with {', '.join(RESERVED)}")
        made = cls([])
        made._hold(tokens)
        return made


class Padded(NamedTuple):
    """A batch of sequences: ``tokens`` ``(batch, n)`` and ``lengths`` ``(batch,)``. What `pad` returns.

    >>> pad([[7], []]).lengths
    tensor([1, 0])
    """

    tokens: Tensor
    lengths: Tensor


class Pairs(NamedTuple):
    """A batch of pairs: ``source`` ``(batch, n_source)``, ``target`` ``(batch, n_target)`` and their lengths.

    >>> by_length([([4, 5], [6])], batch_size=1, seed=0)(0).target
    tensor([[6]])
    """

    source: Tensor
    target: Tensor
    source_lengths: Tensor
    target_lengths: Tensor


def pad(sequences: Sequence[Sequence[int]], *, value: int = PAD) -> Padded:
    """Sequences of different lengths as one tensor, filled up at the end with ``value``.

    Returns ``tokens`` ``(batch, n)`` with the n of the longest, and ``lengths`` ``(batch,)``, both int64.

    Raises ``ValueError`` when there is no sequence, ``TypeError`` when one holds anything but integers.

    >>> pad([[5, 6, 7], [8]])
    Padded(tokens=tensor([[5, 6, 7],
            [8, 0, 0]]), lengths=tensor([3, 1]))
    """
    rows = [check_integers(f"sequences[{i}]", sequence) for i, sequence in enumerate(sequences)]
    if not rows:
        raise ValueError("sequences must hold at least one sequence; got none")
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [value] * (longest - len(row)) for row in rows], dtype=torch.int64)
    return Padded(tokens.reshape(len(rows), longest), torch.tensor([len(row) for row in rows]))


class _ByLength:
    """Called with a step, gives its batch. It remembers the order of one epoch, and nothing that changes a batch."""

    def __init__(self, columns: list[list[list[int]]], batch_size: int, seed: Seed) -> None:
        self._columns, self._size, self._seed = columns, batch_size, seed
        # Examples with one length stay as the shuffle left them: a stable sort by the first sequence, then the second.
        self._lengths = np.array([[len(row) for row in column] for column in reversed(columns)])
        self._epoch, self._order = -1, []

    def __len__(self) -> int:
        return -(-len(self._columns[0]) // self._size)

    def __call__(self, step: int) -> Padded | Pairs:
        epoch, place = divmod(check_size("step", step), len(self))
        padded = [pad([column[i] for i in self._batches(epoch)[place]]) for column in self._columns]
        if len(padded) == 1:
            return padded[0]
        source, target = padded
        return Pairs(source.tokens, target.tokens, source.lengths, target.lengths)

    def _batches(self, epoch: int) -> list[np.ndarray]:
        if epoch != self._epoch:
            seed = self._seed if isinstance(self._seed, Sequence) else (self._seed,)
            rng = generator((*seed, epoch))
            shuffled = rng.permutation(len(self._columns[0]))
            order = shuffled[np.lexsort(self._lengths[:, shuffled])]
            batches = [order[i : i + self._size] for i in range(0, len(order), self._size)]
            self._order = [batches[i] for i in rng.permutation(len(batches))]
            self._epoch = epoch
        return self._order


def by_length(examples: Sequence[Any], batch_size: int, *, seed: Seed) -> _ByLength:
    """Batches of sequences that are about equally long, so that little is padding; for `attnlib.training.fit`.

    ``examples`` are sequences of integers, or pairs ``(source, target)`` of them. The result is a function of the
    step: ``batches(step)`` is a `Padded`, or `Pairs`. ``len(batches)`` steps are an epoch, in which every example
    comes once; then all are shuffled anew. A batch depends on ``seed`` and the step alone, so a run that goes on
    after an interruption sees what it would have seen.

    Raises ``ValueError`` when there is no example or ``batch_size`` is zero, ``TypeError`` when examples are not
    sequences of integers, or some are pairs and some are not.

    >>> batches = by_length([[4], [5, 5], [6], [7, 7]], batch_size=2, seed=0)
    >>> len(batches), batches(0).tokens.shape, batches(1).tokens.shape
    (2, torch.Size([2, 1]), torch.Size([2, 2]))
    """
    examples = list(examples)
    if not examples:
        raise ValueError("examples must hold at least one sequence; got none")
    paired = [_is_pair(example) for example in examples]
    if len(set(paired)) > 1:
        odd = paired.index(not paired[0])
        kinds = ("a sequence", "a pair")
        raise TypeError(
            f"examples must be all sequences or all pairs; examples[0] is {kinds[paired[0]]}, "
            f"examples[{odd}] {kinds[paired[odd]]}"
        )
    columns = list(zip(*examples, strict=True)) if paired[0] else [examples]
    whole = [[check_integers(f"examples[{i}]", row) for i, row in enumerate(column)] for column in columns]
    generator(seed)  # to name a bad seed here
    return _ByLength(whole, check_at_least_one("batch_size", batch_size), seed)


def _is_pair(example: object) -> bool:
    parts = isinstance(example, tuple | list) and len(example) == 2
    return parts and all(
        np.ndim(part) == 1 if hasattr(part, "ndim") else isinstance(part, Sequence) for part in example
    )


def _tokens(name: str, text: Iterable[str]) -> list[str]:
    if isinstance(text, str) or not isinstance(text, Iterable):
        raise TypeError(f"{name} must be a list of tokens; got {text!r}. For characters, write list(text)")
    tokens = list(text)
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"{name} must hold strings; got {type(token).__name__}")
    return tokens
