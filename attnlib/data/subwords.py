"""Pieces of words: a vocabulary for whole strings, in which no text has anything unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib._base.checks import check_integers, check_size
from attnlib._base.needs import needs
from attnlib.data.text import END, FIRST, RESERVED

if TYPE_CHECKING:
    from jaxtyping import Int
    from tokenizers import Tokenizer
    from torch import Tensor

__all__ = ["BytePairs"]

N_BYTES = 256


class BytePairs:
    """The 256 bytes and the pairs of pieces that are most frequent in ``texts``, at most ``n_tokens`` with `RESERVED`.

    Every text can be encoded, and comes back as it was. A piece of a word's beginning holds the space before it, also
    at the beginning of a text.

    Raises ``TypeError`` when a text is no string, ``ValueError`` when there is none, or no room for the bytes.

    Source: Sennrich, Haddow, Birch (2016); bytes as in Radford et al. (2019). The work is that of `tokenizers`.

    >>> pieces = BytePairs(["open the file", "close the file", "the files"], n_tokens=270)
    >>> pieces.split("the profile"), len(pieces)
    (['Ġthe', 'Ġ', 'p', 'r', 'o', 'fi', 'le'], 267)
    >>> pieces.decode(pieces.encode("Größe: 5 µm"))
    'Größe: 5 µm'
    """

    def __init__(self, texts: Iterable[str], n_tokens: int = 2000) -> None:
        needs("tokenizers", extra="torch")
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # which takes its time

        texts = list(texts)
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts must hold strings; got {type(text).__name__} at place {i}")
        if not any(texts):
            raise ValueError(f"texts must hold at least one character to learn from; got {len(texts)} texts")
        least = N_BYTES + FIRST
        if check_size("n_tokens", n_tokens) < least:
            raise ValueError(f"n_tokens must be at least {least}, the bytes and the reserved tokens; got {n_tokens}")
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=min(n_tokens - FIRST, N_BYTES + 4 * sum(map(len, texts))),  # more pieces there cannot be
            min_frequency=2,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator((f" {text}" for text in texts), trainer)
        self._hold(tokenizer)

    def _hold(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        own = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        self.tokens = (*RESERVED, *(piece for piece, _ in own))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str)  # whatever it is, there are bytes for it

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BytePairs) and self.tokenizer.to_str() == other.tokenizer.to_str()

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"BytePairs of {len(self)} tokens, {len(RESERVED)} of them reserved"

    def encode(self, text: str) -> list[int]:
        """The numbers of the pieces of ``text``. `attnlib.data.text.START` and ``END`` are not added.

        Raises ``TypeError`` when ``text`` is no string.

        >>> BytePairs(["aaa"], n_tokens=260).encode("a!")
        [224, 68, 4]
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string; got {type(text).__name__}")
        return [FIRST + number for number in self.tokenizer.encode(f" {text}").ids]

    def split(self, text: str) -> list[str]:
        """The pieces of ``text``, a space written as Ġ and other bytes that are no letters by other signs.

        >>> BytePairs(["aaa"], n_tokens=260).split("a b")
        ['Ġ', 'a', 'Ġ', 'b']
        """
        return [self.tokens[number] for number in self.encode(text)]

    def decode(self, numbers: Sequence[int] | Int[Tensor, " n"]) -> str:
        """The text of ``numbers``, as far as the first `attnlib.data.text.END`.

        Raises ``ValueError`` when a number is not of this vocabulary, ``TypeError`` when it is not an integer.

        >>> BytePairs(["aaa"], n_tokens=260).decode([1, 224, 68, 2, 0])
        'a'
        """
        whole = check_integers("numbers", numbers)
        for i, number in enumerate(whole):
            if not 0 <= number < len(self):
                raise ValueError(f"numbers[{i}] must be from 0 to {len(self) - 1}; got {number}")
        whole = whole[: whole.index(END)] if END in whole else whole
        return self.tokenizer.decode([n - FIRST for n in whole if n >= FIRST]).removeprefix(" ")

    def save(self, path: str | Path) -> None:
        """Write the pieces to ``path``, as `tokenizers` reads them, where numbers are smaller by those reserved."""
        self.tokenizer.save(str(path))

    @classmethod
    def load(cls, path: str | Path) -> BytePairs:
        """What `save` wrote to ``path``. Raises ``ValueError`` when the file is something else."""
        needs("tokenizers", extra="torch")
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{path} must be byte pairs, as the tokenizers library writes them; {error}") from None
        if tokenizer.get_vocab_size() < N_BYTES:
            raise ValueError(f"{path} must have a piece for each of {N_BYTES} bytes; got {tokenizer.get_vocab_size()}")
        made = cls.__new__(cls)
        made._hold(tokenizer)
        return made
