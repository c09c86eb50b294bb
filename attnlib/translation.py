r"""Translators: two languages generated side by side, the model that learns to translate, and how it is judged.

`numbers` writes numbers in German and in English, `french` sentences of a small grammar in English and in French. Both
give a `Corpus`; `translator` makes a model for it, `loss` what it is trained with, `translate` and `exact_match` say
what it has learned. ``python -m attnlib.train numbers`` does it all from the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from attnlib._checks import check_at_least_one, check_size
from attnlib._examples import Example
from attnlib._french import because, draw_because, draw_others, other_gender
from attnlib._french_words import ANIMALS, PLACES
from attnlib._numbers import draw_numbers, english, german, number
from attnlib._random import Seed, generator
from attnlib._schedules import warmup_cosine
from attnlib._smoothing import check_smoothing, smoothed_cross_entropy, smoothing_floor
from attnlib.decoding import greedy
from attnlib.recurrent import shift_right
from attnlib.text import END, Pairs, Vocabulary, by_length, pad
from attnlib.transformer import Transformer, TransformerConfig

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CORPORA",
    "Corpus",
    "Example",
    "because",
    "bleu",
    "english",
    "exact_match",
    "french",
    "german",
    "loss",
    "number",
    "numbers",
    "other_gender",
    "recipe",
    "smoothed_cross_entropy",
    "smoothing_floor",
    "translate",
    "translator",
]


@dataclass(frozen=True)
class Corpus:
    """Examples to train on and others that were ``held_out``, with the vocabularies of what is trained on.

    >>> corpus = numbers(30, 5)
    >>> corpus
    Corpus of 30 examples and 5 held out; 30 source and 29 target tokens
    """

    train: Sequence[Example]
    held_out: Sequence[Example]
    source: Vocabulary
    target: Vocabulary

    @classmethod
    def of(cls, train: Iterable[Example], held_out: Iterable[Example]) -> Corpus:
        """A corpus with the vocabularies of ``train``."""
        train = list(train)
        texts = ([getattr(example, side) for example in train] for side in ("source", "target"))
        return cls(train, list(held_out), *map(Vocabulary, texts))

    def batches(self, batch_size: int = 64, *, seed: Seed) -> Callable[[int], Pairs]:
        """The examples to train on, of like length together, as a function of the step: see `attnlib.text.by_length`.

        Targets end with `attnlib.text.END`.
        """
        return by_length(self._pairs, batch_size, seed=seed)

    def batch(self, examples: Sequence[Example]) -> Pairs:
        """These examples as one batch, in their order."""
        source, target = (pad(list(side)) for side in zip(*map(self._encoded, examples), strict=True))
        return Pairs(source.tokens, target.tokens, source.lengths, target.lengths)

    @cached_property
    def _pairs(self) -> list[tuple[list[int], list[int]]]:
        return [self._encoded(example) for example in self.train]

    def _encoded(self, example: Example) -> tuple[list[int], list[int]]:
        return self.source.encode(example.source), [*self.target.encode(example.target), END]

    def __repr__(self) -> str:
        sizes = f"{len(self.source)} source and {len(self.target)} target tokens"
        return f"Corpus of {len(self.train)} examples and {len(self.held_out)} held out; {sizes}"


def numbers(train: int = 20_000, held_out: int = 1_000, *, draw: str = "mixed", seed: Seed = 0) -> Corpus:
    """Numbers below a million, from German morphemes to English words, no number both to train on and held out.

    ``draw`` is "mixed", in which short and round numbers come often, and again and again; or "uniform". Held out are
    ``held_out`` of the different numbers that were drawn.

    Raises ``ValueError`` when ``draw`` is another word, or too few different numbers were drawn to hold out so many.

    >>> example = numbers(30, 5).train[0]
    >>> " ".join(example.source), " ".join(example.target)
    ('fünf hundert neun tausend sechs hundert dreißig', 'five hundred nine thousand six hundred thirty')
    """
    train, held_out = check_at_least_one("train", train), check_size("held_out", held_out)
    drawn = draw_numbers(train + 2 * held_out, draw=draw, seed=seed)
    different = list(dict.fromkeys(drawn))
    apart = generator(seed).permutation(different)[:held_out].tolist()
    hidden = set(apart)
    shown = [n for n in drawn if n not in hidden][:train]
    if len(shown) < train or len(apart) < held_out:
        raise ValueError(
            f"held_out must leave {train} of the numbers drawn to train on, of which {len(different)} are different; "
            f"got {held_out}"
        )
    examples = {n: number(n) for n in {*shown, *apart}}
    return Corpus.of([examples[n] for n in shown], [examples[n] for n in apart])


def french(train: int = 20_000, held_out: int = 1_000, *, seed: Seed = 0) -> Corpus:
    """Sentences from English to French, half of them `because`. A fifth of the pairs of animal and place is held out.

    ``train`` has no sentence with such a pair; ``held_out`` has nothing else, and all of it is `because`.

    >>> print(" ".join(french(20, 2).held_out[0].source))
    the grey fox did not cross the grey field because it was too sick
    """
    train, held_out = check_at_least_one("train", train), check_at_least_one("held_out", held_out)
    pairs = list(product(ANIMALS, PLACES))
    order = generator(seed).permutation(len(pairs))
    apart, known = ([pairs[i] for i in part] for part in (order[: len(pairs) // 5], order[len(pairs) // 5 :]))
    seeds = [(*(seed if isinstance(seed, Sequence) else (seed,)), part) for part in range(3)]
    others = draw_others(train // 2, pairs=known, seed=seeds[1]) if train > 1 else []
    shown = draw_because(train - len(others), pairs=known, seed=seeds[0]) + others
    return Corpus.of(shown, draw_because(held_out, pairs=apart, seed=seeds[2]))


CORPORA: dict[str, Callable[..., Corpus]] = {"numbers": numbers, "french": french}


def translator(corpus: Corpus, *, seed: int = 0, **options: Any) -> Transformer:
    """An untrained model for ``corpus``: two layers a side, four heads, 64 numbers a row, unless ``options`` say else.

    ``options`` are those of `attnlib.transformer.TransformerConfig`. The caller's random numbers go on as if none had
    been drawn.

    >>> translator(numbers(30, 5)).out.weight.shape
    torch.Size([29, 64])
    """
    sizes = {"n_source": len(corpus.source), "n_target": len(corpus.target)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(check_size("seed", seed))
        return Transformer(TransformerConfig(**(sizes | options)))


def recipe(steps: int = 700, lr: float = 3e-3) -> dict[str, Any]:
    """The options of `attnlib.training.fit` that train the translators of the course.

    The step grows for the first 200 steps, or the first half, then falls along a cosine.

    >>> sorted(recipe())
    ['lr', 'schedule', 'steps']
    """
    return {"steps": steps, "lr": lr, "schedule": warmup_cosine(min(200, steps // 2), steps)}


def loss(smoothing: float = 0.1) -> Callable[[Transformer, Pairs], tuple[Tensor, int]]:
    r"""The loss of a translator, for `attnlib.training.fit`: its sum over a batch's tokens, and how many they are.

    .. math:: -\sum_t \sum_y \Big((1 - \varepsilon)\,[y = y_t] + \frac{\varepsilon}{n}\Big) \log p(y \mid y_{<t}, x)

    Raises as `attnlib.training.smoothed_cross_entropy`.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4.

    >>> corpus = numbers(30, 5)
    >>> total, count = loss()(translator(corpus), corpus.batches(4, seed=0)(0))
    """
    check_smoothing(smoothing)

    def of(model: Transformer, batch: Pairs) -> tuple[Tensor, int]:
        logits = model(batch.source, shift_right(batch.target)).logits
        return smoothed_cross_entropy(logits, batch.target, smoothing)

    return of


@torch.no_grad()
def translate(model: Transformer, corpus: Corpus, texts: Iterable[Sequence[str]], n_max: int = 32) -> list[list[str]]:
    """What ``model`` writes, token by token the likeliest, for source texts given as lists of tokens.

    Raises ``ValueError`` when a token is not of the source's vocabulary, or there is no text.

    >>> corpus = numbers(30, 5)
    >>> translation = translate(translator(corpus), corpus, [["ein", "und", "zwanzig"]])
    """
    texts = [list(text) for text in texts]
    for text in texts:
        if unknown := [token for token in text if token not in corpus.source]:
            raise ValueError(f"texts must hold tokens that the model was trained on; got {unknown[0]!r}")
    source = pad([corpus.source.encode(text) for text in texts]).tokens.to(model.out.weight.device)
    return [corpus.target.decode(row) for row in greedy(model, source, n_max).cpu()]


def exact_match(model: Transformer, corpus: Corpus, examples: Sequence[Example] | None = None) -> float:
    """The share of ``examples`` (those held out, unless given) that are translated without a mistake.

    >>> corpus = numbers(500, 5)
    >>> exact_match(translator(corpus), corpus)
    0.0
    """
    examples = corpus.held_out if examples is None else list(examples)
    if not examples:
        raise ValueError("examples must hold at least one; got none")
    written = translate(model, corpus, [example.source for example in examples])
    return sum(tuple(w) == tuple(e.target) for w, e in zip(written, examples, strict=True)) / len(examples)


def bleu(written: Iterable[Sequence[str]], examples: Iterable[Example]) -> float:
    r"""The BLEU score of translations, 0 to 100: how many of their n-grams, n to 4, stand in the right ones.

    .. math:: 100 \cdot \min(1, e^{1 - r / c}) \prod_{n=1}^4 p_n^{1/4}

    with r the length of all the right texts and c that of all that was written. Computed by `sacrebleu`, on the
    corpus's own tokens.

    Raises ``ValueError`` when there are not as many texts as examples, ``TypeError`` when a text is a string.

    Source: Papineni et al. (2002), section 2.3; Post (2018).

    >>> bleu([["one", "hundred", "twenty", "one"]], [number(121)])
    100.0
    """
    from sacrebleu import corpus_bleu

    written, examples = list(written), list(examples)
    if not examples or len(written) != len(examples):
        raise ValueError(
            f"written must hold a text for each of the examples, at least one; got {len(written)} and {len(examples)}"
        )
    if any(isinstance(text, str) for text in written):
        raise TypeError("written must hold lists of tokens; got a string. For words, write text.split()")
    texts, right = [" ".join(text) for text in written], [" ".join(example.target) for example in examples]
    return round(corpus_bleu(texts, [right], tokenize="none", force=True).score, 6)
