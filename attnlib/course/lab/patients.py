"""A patient: a small translator of number words with all that stands around it, and perhaps one mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.seeds import generator
from attnlib.data.corpus import Corpus
from attnlib.data.numbers import number
from attnlib.data.text import Pairs
from attnlib.decoding.beam_search import BeamSearchResult
from attnlib.decoding.strategies import beam, greedy
from attnlib.nn.tokens import shift_right
from attnlib.nn.transformer import Transformer
from attnlib.training.fit import fit
from attnlib.training.history import History
from attnlib.training.label_smoothing import smoothed_cross_entropy
from attnlib.translation.model import recipe, translator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = ["STEPS", "Patient", "born", "numbers_below_1000"]

STEPS = 150
SIZES = {"d_model": 32, "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}


@dataclass
class Patient:
    """A translator, and what stands around it: every part can be looked at, tried, and replaced.

    ``read`` turns the target into what the decoder reads while it learns, ``loss`` takes logits and target and gives a
    sum and a count, ``maps`` gives the weights of the decoder's self-attention for a batch, ``search`` writes with
    several beams. ``complaint`` says what is wrong with it, ``history`` how its training went.

    >>> from attnlib.course.lab import patient
    >>> one = patient(3, steps=0)
    >>> one
    Patient 3
    >>> one.logits(one.batch(7, 21)).shape
    torch.Size([2, 3, 33])
    """

    number: int
    model: Transformer
    corpus: Corpus
    complaint: str = ""
    read: Callable[[Tensor], Tensor] = shift_right
    loss: Callable[[Tensor, Tensor], tuple[Tensor, int]] = smoothed_cross_entropy
    search: Callable[..., BeamSearchResult] = beam
    maps: Callable[[Pairs], Tensor] = field(init=False)
    history: History = field(init=False)
    mends: list[Callable[[Patient], None]] = field(default_factory=list)
    _bug: Callable[[Patient], None] = field(kw_only=True)

    def __post_init__(self) -> None:
        self.maps = self._maps

    def __repr__(self) -> str:
        return f"Patient {self.number}"

    def batch(self, *numbers: int) -> Pairs:
        """These numbers as one batch, padded to the longest."""
        return self.corpus.batch([number(n) for n in numbers])

    def logits(self, batch: Pairs) -> Float[Tensor, "batch n n_target"]:
        """What the loss is computed from: row t is to predict word t of the target."""
        return self.model(batch.source, self.read(batch.target)).logits

    def mean_loss(self, batch: Pairs) -> Float[Tensor, ""]:
        """The loss of one batch, its sum over its count."""
        total, count = self.loss(self.logits(batch), batch.target)
        return total / count

    @torch.no_grad()
    def write(self, *numbers: int, width: int = 1, n_max: int = 8) -> list[str]:
        """The translations of ``numbers``, all in one batch: greedy, or with ``width`` beams."""
        source = self.batch(*numbers).source
        rows = greedy(self.model, source, n_max) if width == 1 else self._searched(source, n_max, width)
        return [" ".join(self.corpus.target.decode(row)) for row in rows]

    def right(self, numbers: Sequence[int], width: int = 1, together: int = 50) -> float:
        """The share of ``numbers`` that are translated without a mistake, ``together`` in a batch."""
        groups = [numbers[i : i + together] for i in range(0, len(numbers), together)]
        written = [text for group in groups for text in self.write(*group, width=width)]
        return sum(text == " ".join(number(n).target) for text, n in zip(written, numbers, strict=True)) / len(numbers)

    def train(self, *, seed: int = 0, steps: int = STEPS) -> History:
        """Train the model as it stands, with `read` and `loss` as they are now, on batches of 32 for this patient."""
        draw = generator((seed, self.number))
        rows = [draw.integers(len(self.corpus.train), size=32) for _ in range(steps)]
        self.history = fit(
            self.model,
            lambda step: self.corpus.batch([self.corpus.train[i] for i in rows[step]]),
            lambda model, batch: self.loss(self.logits(batch), batch.target),
            seed=seed,
            **(recipe(steps, lr=1e-2) if steps else {"steps": 0}),
        )
        return self.history

    def mend(self, change: Callable[[Patient], None]) -> None:
        """Let ``change`` exchange a part of this patient, and of every patient that `untrained` makes of it.

        >>> from attnlib.course.lab import patient
        >>> def shifted(one):
        ...     one.read = shift_right
        >>> one = patient(3, steps=0)
        >>> one.mend(shifted)
        """
        change(self)
        self.model.double()  # as all patients are, so that a new part in float32 fits
        self.mends.append(change)

    def untrained(self, **options: Any) -> Patient:
        """The same patient with fresh weights; ``options`` are other settings of `attnlib.nn.TransformerConfig`."""
        made = born(
            self.number, self._bug, complaint=self.complaint, **{"dropout": self.model.config.dropout} | options
        )
        for change in self.mends:
            made.mend(change)
        return made

    def _searched(self, source: Tensor, n_max: int, width: int) -> Int[Tensor, "batch n"]:
        return self.search(self.model, source, n_max, width=width).tokens[:, 0]

    @torch.no_grad()
    def _maps(self, batch: Pairs) -> Float[Tensor, "batch n_heads n n"]:
        return self.model(batch.source, self.read(batch.target), weights=True).decoder[0]


@cache
def numbers_below_1000() -> Corpus:
    """The numbers from 0 to 999 in German and English, 800 to train on and 200 held out.

    >>> numbers_below_1000()
    Corpus of 800 examples and 200 held out; 35 source and 33 target tokens
    """
    examples = [number(int(n)) for n in generator(0).permutation(1000)]
    return Corpus.of(examples[:800], examples[800:])


def born(n: int, bug: Callable[[Patient], None], *, seed: int = 0, complaint: str = "", **options: Any) -> Patient:
    """Patient ``n``, untrained, with its mistake; ``options`` are settings of `attnlib.nn.TransformerConfig`."""
    corpus = numbers_below_1000()
    model = translator(corpus, seed=seed, **SIZES | options).double().eval()
    made = Patient(n, model, corpus, complaint, _bug=bug)
    bug(made)
    attentions = [module.attend for module in model.modules() if "attend" in vars(module)]
    for part in (made.read, made.loss, made.search, made.maps, *attentions):
        if "<locals>" in getattr(part, "__qualname__", ""):
            part.__qualname__ = part.__name__  # printed, it names no bug
    return made
