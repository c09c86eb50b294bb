"""A model for a corpus, what it is trained with, and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attnlib._needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._checks import check_share, check_size
from attnlib.data.corpus import Corpus
from attnlib.data.text import Pairs, pad
from attnlib.decoding.strategies import greedy
from attnlib.nn.config import TransformerConfig
from attnlib.nn.tokens import shift_right
from attnlib.nn.transformer import Transformer
from attnlib.training.label_smoothing import smoothed_cross_entropy
from attnlib.training.schedules import warmup_cosine

if TYPE_CHECKING:
    from torch import Tensor

    from attnlib.translation.saved import Vocabularies

__all__ = ["loss", "recipe", "translate", "translator"]


def translator(corpus: Corpus, *, seed: int = 0, **options: Any) -> Transformer:
    """An untrained model for ``corpus``: two layers a side, four heads, 64 numbers a row, unless ``options`` say else.

    ``options`` are those of `attnlib.nn.TransformerConfig`. The caller's random numbers go on as if none had
    been drawn.

    >>> from attnlib.data.corpus import numbers
    >>> translator(numbers(30, 5)).lm_head.weight.shape
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

    >>> from attnlib.data.corpus import numbers
    >>> corpus = numbers(30, 5)
    >>> total, count = loss()(translator(corpus), corpus.batches(4, seed=0)(0))
    """
    check_share("smoothing", smoothing)

    def of(model: Transformer, batch: Pairs) -> tuple[Tensor, int]:
        logits = model(batch.source, shift_right(batch.target)).logits
        return smoothed_cross_entropy(logits, batch.target, smoothing)

    return of


@torch.no_grad()
def translate(
    model: Transformer, corpus: Corpus | Vocabularies, texts: Iterable[Sequence[str]], n_max: int = 32
) -> list[list[str]]:
    """What ``model`` writes, token by token the likeliest, for source texts given as lists of tokens.

    ``corpus`` is what it was trained on, or the vocabularies that `open_translator` returns.

    Raises ``ValueError`` when a token is not of the source's vocabulary, or there is no text.

    >>> from attnlib.data.corpus import numbers
    >>> corpus = numbers(30, 5)
    >>> translation = translate(translator(corpus), corpus, [["ein", "und", "zwanzig"]])
    """
    texts = [list(text) for text in texts]
    for text in texts:
        if unknown := [token for token in text if token not in corpus.source]:
            raise ValueError(f"texts must hold tokens that the model was trained on; got {unknown[0]!r}")
    source = pad([corpus.source.encode(text) for text in texts]).tokens.to(model.lm_head.weight.device)
    return [corpus.target.decode(row) for row in greedy(model, source, n_max).cpu()]
