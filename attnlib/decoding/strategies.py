r"""Decoding: from a model that says how likely each next token is, to a sequence.

.. math:: p(y \mid x) = \prod_t p(y_t \mid y_{<t}, x)

`greedy` takes the likeliest token each time, `beam` looks for a likely sequence, `sample` draws one, `stream` hands
out each token as it is written. Any model with ``prefill(source, n_max)`` and ``step(tokens, state)`` will do, and
every position is read once: what is kept of it is in the state, which for a Transformer is its key–value cache.

A model in training mode is in evaluation mode while it writes, so nobody else should use it meanwhile, from another
thread; a model in evaluation mode can write in several.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Never

import torch

from attnlib._base.checks import check_words
from attnlib._base.seeds import Seed
from attnlib.decoding.beam_search import BeamSearchResult, check_beams, search
from attnlib.decoding.generation import Choose, SequenceModel, evaluating, generate, read_prompt, stream_tokens
from attnlib.decoding.sampling import draw, likeliest

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["beam", "greedy", "sample", "stream"]


def greedy(
    model: SequenceModel,
    source: Int[Tensor, "batch n_source"],
    n_max: int,
    *,
    prompt: Int[Tensor, "batch n"] | None = None,
    **_others: Never,
) -> Int[Tensor, "batch n"]:
    r"""The likeliest next token, again and again, until every sequence has ended or ``n_max`` tokens are written.

    .. math:: y_t = \arg\max_y \; p(y \mid y_{<t}, x), \qquad y_0 = \text{start}

    The start is not returned; an end is, and after it stands padding. ``prompt`` holds tokens that are written
    already, as many for each source; they are returned too, and ``n_max`` counts them. The source is read once and
    every target position once, thanks to the cache. The model is in evaluation mode meanwhile.

    Raises ``TypeError`` when ``model`` cannot `prefill` and `step` or tokens are no integers, ``ValueError`` when
    ``n_max`` is below one, a token is not of its vocabulary, or a prompt leaves no room or is not of words only.

    Source: Sutskever, Vinyals, Le (2014), section 3.2, with a beam of one.

    >>> from attnlib.nn.transformer import Transformer

    >>> from attnlib.nn.config import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> greedy(model, torch.tensor([[4, 5, 6]]), n_max=4).shape[0]
    1
    """
    check_words("greedy", _others)
    return _whole(model, source, n_max, prompt, likeliest)


def sample(
    model: SequenceModel,
    source: Int[Tensor, "batch n_source"],
    n_max: int,
    *,
    seed: Seed,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    prompt: Int[Tensor, "batch n"] | None = None,
    **_others: Never,
) -> Int[Tensor, "batch n"]:
    r"""Each token drawn with its probability, after `probabilities` has made the distribution sharper or shorter.

    .. math:: y_t \sim p_\text{temperature, top k, top p}(\cdot \mid y_{<t}, x)

    The random numbers come from ``seed`` alone, and torch's own stay where they are. What is returned, ``prompt`` and
    what is raised are as in `greedy`; ``temperature``, ``top_k`` and ``top_p`` are checked by `probabilities`.

    Source: Graves (2013), section 2.1; for the options see `probabilities`.

    >>> from attnlib.nn.transformer import Transformer

    >>> from attnlib.nn.config import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> source = torch.tensor([[4, 5, 6]])
    >>> torch.equal(sample(model, source, 4, seed=0), sample(model, source, 4, seed=0))
    True
    """
    check_words("sample", _others)
    return _whole(model, source, n_max, prompt, draw(seed, temperature, top_k, top_p))


def stream(
    model: SequenceModel,
    source: Int[Tensor, "batch n_source"],
    n_max: int,
    *,
    seed: Seed | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    prompt: Int[Tensor, "batch n"] | None = None,
    **_others: Never,
) -> Iterator[Int[Tensor, " batch"]]:
    r"""The tokens of `greedy`, or with a ``seed`` those of `sample`, each as soon as it is known: ``(batch,)`` a time.

    .. math:: y_1, \; y_2, \; y_3, \; \ldots

    The prompt is not handed out again. Between two tokens the model is as it was, so that a loop may stop at any
    place, or be interrupted, and whoever uses the model next finds it in its own mode.

    Raises ``ValueError`` when options of `sample` come without a seed; otherwise as these, before the first token.

    Source: as `greedy` and `sample`.

    >>> from attnlib.nn.transformer import Transformer

    >>> from attnlib.nn.config import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> tokens = stream(model, torch.tensor([[4, 5, 6]]), n_max=4)
    >>> next(tokens).shape
    torch.Size([1])
    """
    check_words("stream", _others)
    if seed is None and (temperature, top_k, top_p) != (1.0, None, None):
        raise ValueError("seed must be given with temperature, top_k and top_p, which are for drawing; got None")
    choose = likeliest if seed is None else draw(seed, temperature, top_k, top_p)
    return stream_tokens(model, source, n_max, prompt, choose)


def beam(
    model: SequenceModel,
    source: Int[Tensor, "batch n_source"],
    n_max: int,
    *,
    width: int = 4,
    length_penalty: float = 0.0,
    n_best: int = 1,
    prompt: Int[Tensor, "batch n"] | None = None,
    **_others: Never,
) -> BeamSearchResult:
    r"""The likeliest sequences among those whose every beginning is one of the ``width`` likeliest of its length.

    .. math:: \text{score}(y) = \frac{\log p(y \mid x)}{\big((5 + |y|) / 6\big)^{\text{length\_penalty}}}

    Here :math:`|y|` counts the tokens written, the end too, and not the ``prompt``. At each step all continuations
    of the beams are ranked by their probability, and the likeliest are kept: ``width`` of them, less those that ended
    before. So a beam that ends keeps its place, is never written on, and ``width=1`` is `greedy`. A beam is given up
    when even certainty from there to ``n_max`` would not lift its score, :math:`\log p / ((5 + n_\text{max}) / 6)^
    \text{length\_penalty}`, above that of the ``n_best``-th which ended; the search is over when none is left. What
    has not ended after ``n_max`` tokens is taken as it stands. Where fewer than ``n_best`` are possible, the rest has
    the score minus infinity.

    Raises ``ValueError`` when ``width`` is below one or above the size of the vocabulary, ``n_best`` below one or
    above ``width``, or the penalty negative; ``TypeError`` when the model's state has no ``select``; otherwise as
    `greedy`.

    Source: Sutskever, Vinyals, Le (2014), section 3.2, for the beams; Wu et al. (2016), section 7, for the penalty.

    >>> from attnlib.nn.transformer import Transformer

    >>> from attnlib.nn.config import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> found = beam(model, torch.tensor([[4, 5, 6]]), n_max=4, width=3, n_best=2)
    >>> found.tokens.shape[:2], bool(found.scores[0, 0] >= found.scores[0, 1])
    (torch.Size([1, 2]), True)
    """
    check_words("beam", _others)
    check_beams(width, length_penalty, n_best)
    with evaluating(model):
        prompted = read_prompt(model, source, n_max, prompt)
        return search(model, prompted, n_max, width=width, alpha=length_penalty, n_best=n_best)


def _whole(model: SequenceModel, source: Tensor, n_max: int, prompt: Tensor | None, choose: Choose) -> Tensor:
    with evaluating(model):
        pieces = [x if x.ndim == 2 else x[:, None] for x in generate(model, source, n_max, prompt, choose)]
    return torch.cat(pieces, dim=1)
