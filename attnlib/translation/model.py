"""A model for a corpus, what it is trained with, and what it writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.checks import check_at_least_one, check_share, check_size
from attnlib.data.corpus import Corpus
from attnlib.data.subwords import BytePairs
from attnlib.data.text import END, Pairs, pad
from attnlib.decoding.strategies import beam, greedy
from attnlib.nn.config import TransformerConfig
from attnlib.nn.tokens import shift_right
from attnlib.nn.transformer import Transformer
from attnlib.training.label_smoothing import smoothed_cross_entropy
from attnlib.training.schedules import warmup_cosine
from attnlib.translation.reading import read_text

if TYPE_CHECKING:
    from torch import Tensor

    from attnlib.translation.saved import Vocabularies

__all__ = ["loss", "recipe", "translate", "translator"]

N_MAX, TOGETHER = 32, 64  # tokens that are written for lists of words; strings that are translated in one batch
BEAMS, PENALTY = 4, 1.5  # where pieces of words are written; with 1 the texts of small models end too early
OF_PIECES = {"tie": "all", "d_model": 128, "n_encoder_layers": 3, "n_decoder_layers": 3}
OF_PIECES |= {"dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0}


def translator(corpus: Corpus, *, seed: int = 0, **options: Any) -> Transformer:
    """An untrained model for ``corpus``: two layers a side, four heads, 64 numbers a row, unless ``options`` say else.

    For pieces of words, one table for both languages and the output, three layers, 128 numbers and a dropout of 0.1,
    of rows and not of weights, as in Vaswani et al. (2017), section 5.4.
    ``options`` are those of `attnlib.nn.TransformerConfig`. The caller's random numbers go on as if none had
    been drawn.

    >>> from attnlib.data.corpus import numbers
    >>> translator(numbers(30, 5)).lm_head.weight.shape
    torch.Size([29, 64])
    """
    sizes = {"n_source": len(corpus.source), "n_target": len(corpus.target)}
    if isinstance(corpus.source, BytePairs):
        sizes |= OF_PIECES
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(check_size("seed", seed))
        return Transformer(TransformerConfig(**(sizes | options)))


def recipe(steps: int = 700, lr: float = 3e-3) -> dict[str, Any]:
    """The options of `attnlib.training.fit` that train the translators of the course.

    The step grows for the first 200 steps, or the first half, then falls along a cosine.

    >>> sorted(recipe())
    ['lr', 'schedule', 'steps']
    """
    steps = check_at_least_one("steps", steps)
    return {"steps": steps, "lr": lr, "schedule": warmup_cosine(min(200, steps // 2), steps)}


def loss(smoothing: float = 0.1) -> Callable[[Transformer, Pairs], tuple[Tensor, int]]:
    r"""The loss of a translator, for `attnlib.training.fit`: its sum over a batch's tokens, and how many they are.

    .. math:: -\sum_t \sum_y \Big((1 - \varepsilon)\,[y = y_t] + \frac{\varepsilon}{n}\Big) \log p(y \mid y_{<t}, x)

    Raises as `attnlib.training.smoothed_cross_entropy`.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4.

    >>> from attnlib.data.corpus import numbers
    >>> corpus = numbers(30, 5)
    >>> total, count = loss()(translator(corpus), corpus.batches(4, seed=0)(0))
    """
    check_share("smoothing", smoothing)

    def of(model: Transformer, batch: Pairs) -> tuple[Tensor, int]:
        logits = model(batch.source, shift_right(batch.target)).logits
        return smoothed_cross_entropy(logits, batch.target, smoothing)

    return of


@overload
def translate(
    model: Transformer,
    corpus: Corpus | Vocabularies,
    texts: Iterable[str],
    n_max: int | None = None,
    *,
    width: int | None = None,
) -> list[str]: ...
@overload
def translate(
    model: Transformer,
    corpus: Corpus | Vocabularies,
    texts: Iterable[list[str] | tuple[str, ...]],
    n_max: int | None = None,
    *,
    width: int | None = None,
) -> list[list[str]]: ...
def translate(
    model: Transformer,
    corpus: Corpus | Vocabularies,
    texts: Iterable[str] | Iterable[list[str] | tuple[str, ...]],
    n_max: int | None = None,
    *,
    width: int | None = None,
) -> list[str] | list[list[str]]:
    """What ``model`` writes: strings for strings, lists of words for lists of words.

    It is searched for with ``width`` beams (see `attnlib.decoding.beam`, with a length penalty of 1.5); with one, each
    token is the likeliest. Unless given, words are written with one beam and pieces of words with four.

    ``corpus`` is what it was trained on, or the vocabularies that `open_translator` returns. After ``n_max`` tokens a
    translation ends, finished or not: 32 unless given, and for strings, of which a warning names those that were cut,
    32 more than twice the longest of 64 that are translated together.

    Pieces of words know every text. Words do not, and there is one rule: a text with a word that is not known is
    refused, and both are named. In a string, a word is known too in small letters, or where known words of three
    letters and more are written together: *einundzwanzig* is *ein und zwanzig*.

    Raises ``ValueError`` for an unknown word, without a text or with a width below one; ``TypeError`` when ``texts``
    is a string or mixes strings and lists.

    >>> from attnlib.data.corpus import numbers
    >>> corpus = numbers(30, 5)
    >>> translation = translate(translator(corpus), corpus, [["ein", "und", "zwanzig"]])
    """
    if width is not None:
        width = check_at_least_one("width", width)
    texts = _checked(texts)
    strings, pieces = isinstance(texts[0], str), isinstance(corpus.source, BytePairs)
    if strings or pieces:
        written, cut = translate_strings(
            model, corpus, texts if strings else [" ".join(text) for text in texts], n_max, width
        )
        if cut:
            named = ", ".join(f"texts[{i}]" for i in cut[:4]) + f" and {len(cut) - 4} more" * (len(cut) > 4)
            warnings.warn(f"the translation of {named} was cut: it had no end after n_max tokens", stacklevel=2)
        return written if strings else [text.split() for text in written]
    for i, text in enumerate(texts):
        if unknown := [token for token in text if token not in corpus.source]:
            raise ValueError(f"texts must hold tokens that the model was trained on; got {unknown[0]!r} in texts[{i}]")
    sources = [corpus.source.encode(text) for text in texts]
    rows = _written(model, corpus, sources, N_MAX if n_max is None else n_max, width)
    return [corpus.target.decode(row) for row in rows]


def _checked(texts: Iterable[str] | Iterable[list[str] | tuple[str, ...]]) -> list[Any]:
    if isinstance(texts, str):
        raise TypeError("texts must be a list of texts; got a string. For one text, write [text]")
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a list of texts; got {type(texts).__name__}")
    texts = list(texts)
    if not texts:
        raise ValueError("texts must hold at least one; got none")
    for i, text in enumerate(texts):
        if not isinstance(text, str | list | tuple):
            raise TypeError(f"texts must be strings or lists of words; got {type(text).__name__} at place {i}")
        if isinstance(text, str) != isinstance(texts[0], str):
            raise TypeError(f"texts must be all strings or all lists of words; got {text!r} at place {i}")
    return texts


def translate_strings(
    model: Transformer,
    corpus: Corpus | Vocabularies,
    texts: list[str],
    n_max: int | None = None,
    width: int | None = None,
) -> tuple[list[str], list[int]]:
    """A string for each, those of like length together, and the places of those that were cut; see `translate`.

    The translation of a blank string is empty.

    >>> from attnlib.data.corpus import Corpus
    >>> corpus = Corpus.of_pairs([("ja", "yes"), ("nein", "no")])
    >>> translate_strings(translator(corpus), corpus, ["", " "])
    (['', ''], [])
    """
    sources = [read_text(text, corpus.source, f"texts[{i}]") for i, text in enumerate(texts)]
    order = sorted((i for i, source in enumerate(sources) if source), key=lambda i: len(sources[i]))
    written, cut = [""] * len(texts), []
    for start in range(0, len(order), TOGETHER):
        places = order[start : start + TOGETHER]
        limit = _limit(model, len(sources[places[-1]])) if n_max is None else n_max
        rows = _written(model, corpus, [sources[i] for i in places], limit, width)
        for i, row in zip(places, rows.tolist(), strict=True):
            text = corpus.target.decode(row)
            written[i] = text if isinstance(text, str) else " ".join(text)
            cut += [] if END in row else [i]
    return written, sorted(cut)


def _limit(model: Transformer, longest: int) -> int:
    limit = 2 * longest + N_MAX
    return min(limit, model.config.n_max) if model.config.position == "learned" else limit


@torch.no_grad()
def _written(
    model: Transformer, corpus: Corpus | Vocabularies, sources: list[list[int]], n_max: int, width: int | None
) -> Tensor:
    width = width or (BEAMS if isinstance(corpus.source, BytePairs) else 1)
    source = pad(sources).tokens.to(model.lm_head.weight.device)
    if width == 1:
        return greedy(model, source, n_max).cpu()
    return beam(model, source, n_max, width=width, length_penalty=PENALTY).tokens[:, 0].cpu()
