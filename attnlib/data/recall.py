r"""Facts and questions about them, one to a row: what a model must fetch from where it was said.

A row is :math:`[\text{name}, \text{value}]`: a name is a vector of length :math:`\sqrt{d}` that no other text has, a
value one of a few, as ones and zeros. A question has the name alone, and zeros for the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one
from attnlib._base.seeds import Seed, generator, tensors

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

__all__ = ["Recall", "common_facts", "recall"]


class Recall(NamedTuple):
    """What `recall` and `common_facts` return, for each place of each text.

    ``rows`` are what is read, ``values`` what belongs to the name, ``asks`` says where this is a question, ``source``
    where the fact stands, and ``mentioned`` where the name stood last before, in a fact or in a question; a first
    mention has its own place there.

    >>> Recall._fields
    ('rows', 'values', 'asks', 'source', 'mentioned')
    """

    rows: Float[Tensor, "batch n d_name+n_values"]
    values: Int[Tensor, "batch n"]
    asks: Bool[Tensor, "batch n"]
    source: Int[Tensor, "batch n"]
    mentioned: Int[Tensor, "batch n"]


def recall(batch: int, n: int, *, n_values: int = 16, d_name: int = 16, seed: Seed) -> Recall:
    r"""A text in which half of the places say something new and the others ask for something that was said.

    .. math:: y_i = v_{\text{source}(i)}, \qquad \text{source}(i) < i, \qquad
              p(i - \text{source}(i) = t) \propto 1 / t \text{ nearly}

    So there are as many questions about facts 1 to 2 places back as 32 to 64. A fact may be asked for again.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` for one below one.

    Source: after Arora et al. (2024), *Zoology*, section 3, whose texts ask for one of many pairs.

    >>> text = recall(1, 8, seed=0)
    >>> text.source.tolist(), text.asks.int().tolist()
    ([[0, 0, 0, 0, 4, 5, 0, 7]], [[0, 1, 1, 1, 0, 0, 1, 0]])
    """
    batch, n = check_at_least_one("batch", batch), check_at_least_one("n", n)
    rng, place = generator(seed), np.arange(n)
    fact = rng.random((batch, n)) < 0.5
    fact[:, 0] = True
    latest = np.maximum.accumulate(np.where(fact, place, 0), axis=1)  # the last fact up to each place
    back = np.floor(np.maximum(place, 1) ** rng.random((batch, n))).astype(int)
    asked_for = np.take_along_axis(latest, np.maximum(place - back, 0), axis=1)
    return _text(rng, np.where(fact, place, asked_for), n_values, d_name)


def common_facts(batch: int, n: int, facts: int = 1, *, n_values: int = 16, d_name: int = 16, seed: Seed) -> Recall:
    """A text with one fact, or a few, at random places; every other place asks for one of them, before it or after.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` for one below one or more facts than places.

    >>> common_facts(1, 6, facts=2, seed=0).source.tolist()
    [[4, 5, 4, 4, 4, 5]]
    """
    batch, n = check_at_least_one("batch", batch), check_at_least_one("n", n)
    if check_at_least_one("facts", facts) > n:
        raise ValueError(f"facts must be at most n = {n}, a place for each; got {facts}")
    rng, place = generator(seed), np.arange(n)
    chosen = np.argsort(rng.random((batch, n)), axis=1)[:, :facts]
    source = np.take_along_axis(chosen, rng.integers(facts, size=(batch, n)), axis=1)
    np.put_along_axis(source, chosen, place[chosen], axis=1)
    return _text(rng, source, n_values, d_name)


def _text(rng: np.random.Generator, source: np.ndarray, n_values: int, d_name: int) -> Recall:
    check_at_least_one("n_values", n_values)
    check_at_least_one("d_name", d_name)
    names = rng.standard_normal((*source.shape, d_name), dtype=np.float32)
    names *= d_name**0.5 / np.linalg.norm(names, axis=-1, keepdims=True)
    names = np.take_along_axis(names, source[..., None], axis=1)
    values = np.take_along_axis(rng.integers(n_values, size=source.shape), source, axis=1)
    asks = source != np.arange(source.shape[1])
    said = np.eye(n_values, dtype=np.float32)[values] * ~asks[..., None]
    return Recall(*tensors(np.concatenate([names, said], axis=-1), values, asks, source, _mentioned(source)))


def _mentioned(source: np.ndarray) -> np.ndarray:
    """Of each place, the last one before it that has the same source."""
    order = np.argsort(source, axis=1, kind="stable")  # places of one source side by side, from first to last
    found, sorted_source = order.copy(), np.take_along_axis(source, order, axis=1)
    again = sorted_source[:, 1:] == sorted_source[:, :-1]
    found[:, 1:] = np.where(again, order[:, :-1], order[:, 1:])
    places = np.empty_like(source)
    np.put_along_axis(places, order, found, axis=1)
    return places
