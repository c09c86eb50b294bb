r"""Texts from a hidden Markov chain, in which the probability of every missing and every next word can be computed.

.. math:: p(x_t = w \mid x_{\text{seen}}) \propto \sum_s \alpha_t(s)\, B_{sw}\, \beta_t(s)

A state that nobody sees moves by its table and writes a word at each step. What a model of such texts can reach at
best is known, and so is what it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.checks import check_at_least_one, check_boolean
from attnlib._base.seeds import Seed, generator

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray as Array

__all__ = ["HiddenMarkov"]


class HiddenMarkov:
    r"""A chain of hidden states: where it starts, how it moves, and what each state writes.

    ``start`` ``(n_states,)`` and all rows of ``moves`` ``(n_states, n_states)`` and ``writes`` ``(n_states, n_words)``
    are distributions. ``words`` names the words, in that order.

    Source: Rabiner (1989), *A Tutorial on Hidden Markov Models*, section III.

    Raises ``ValueError`` when shapes do not fit together or a row does not sum to one.

    >>> coin = HiddenMarkov([1, 0], [[0.9, 0.1], [0.1, 0.9]], [[1, 0], [0, 1]], ["heads", "tails"])
    >>> heads = np.array([[0, 0, 0]])
    >>> coin.following(heads)[0, 1].round(2)  # given what stands before
    array([0.9, 0.1])
    >>> coin.missing(heads, heads < 0)[0, 1].round(3)  # given both sides
    array([0.988, 0.012])
    """

    def __init__(
        self,
        start: Float[Array, " n_states"],
        moves: Float[Array, "n_states n_states"],
        writes: Float[Array, "n_states n_words"],
        words: Sequence[str],
    ) -> None:
        self.words = list(words)
        self.start, self.moves, self.writes = (np.asarray(x, dtype=float) for x in (start, moves, writes))
        n_states, n_words = len(self.start), len(self.words)
        shapes = {"start": (n_states,), "moves": (n_states, n_states), "writes": (n_states, n_words)}
        for name, shape in shapes.items():
            x = getattr(self, name)
            if x.shape != shape:
                raise ValueError(f"{name} must be {shape}; got {x.shape}")
            if (x < 0).any() or not np.allclose(x.sum(axis=-1), 1):
                raise ValueError(f"{name} must hold distributions, which sum to 1; got sums {x.sum(axis=-1)}")

    def draw(self, n: int, length: int, seed: Seed) -> tuple[Int[Array, "n length"], Int[Array, "n length"]]:
        """``n`` texts of ``length`` words, and the states that wrote them. Errors: see `attnlib.data.tasks`.

        >>> coin = HiddenMarkov([1, 0], [[0, 1], [1, 0]], [[1, 0], [0, 1]], ["heads", "tails"])
        >>> coin.draw(1, 4, seed=0)[0]
        array([[0, 1, 0, 1]])
        """
        check_at_least_one("n", n)
        check_at_least_one("length", length)
        rng, states, words = generator(seed), np.empty((n, length), int), np.empty((n, length), int)
        p = np.broadcast_to(self.start, (n, len(self.start)))
        for t in range(length):
            states[:, t] = _one_of_each(p, rng)
            words[:, t] = _one_of_each(self.writes[states[:, t]], rng)
            p = self.moves[states[:, t]]
        return words, states

    def following(self, words: Int[Array, "n length"]) -> Float[Array, "n length n_words"]:
        """The distribution of every word, given the words before it.

        Raises ``ValueError`` when the words are not ``(n, length)`` numbers of this chain.
        """
        before, _ = self._forward(self._written(words))
        return before @ self.writes

    def missing(
        self, words: Int[Array, "n length"], gaps: Bool[Array, "n length"]
    ) -> Float[Array, "n length n_words"]:
        """The distribution of every word, given all others but those in ``gaps``. What stands in a gap has no effect.

        Raises ``ValueError`` when the words are not ``(n, length)`` numbers of this chain, or gaps have another shape.
        """
        check_boolean("gaps", gaps)
        words = np.asarray(words)
        if np.shape(gaps) != words.shape:
            raise ValueError(f"gaps must have the shape of words, {words.shape}; got {np.shape(gaps)}")
        written = np.where(np.asarray(gaps)[..., None], 1.0, self._written(words))
        before, _ = self._forward(written)
        after = np.ones_like(before)
        for t in range(words.shape[1] - 1, 0, -1):
            earlier = (after[:, t] * written[:, t]) @ self.moves.T  # (n, n_states)
            after[:, t - 1] = earlier / earlier.sum(axis=-1, keepdims=True)
        p = (before * after) @ self.writes
        return p / p.sum(axis=-1, keepdims=True)

    def log_probability(self, words: Int[Array, "n length"]) -> Float[Array, " n"]:
        """The natural logarithm of the probability of each text.

        >>> coin = HiddenMarkov([1, 0], [[0.9, 0.1], [0.1, 0.9]], [[1, 0], [0, 1]], ["heads", "tails"])
        >>> np.exp(coin.log_probability(np.array([[0, 0, 1]]))).round(2)
        array([0.09])
        """
        with np.errstate(divide="ignore"):
            return np.log(self._forward(self._written(words))[1]).sum(axis=-1)

    def _written(self, words: Int[Array, "n length"]) -> Float[Array, "n length n_states"]:
        words = np.asarray(words)
        if words.ndim != 2 or words.dtype.kind not in "iu" or not words.size:
            raise ValueError(f"words must be (n, length) integers; got {words.dtype} of shape {words.shape}")
        if words.min() < 0 or words.max() >= len(self.words):
            raise ValueError(f"words must be from 0 to {len(self.words) - 1}; got {words.min()} to {words.max()}")
        return self.writes.T[words]

    def _forward(
        self, written: Float[Array, "n length n_states"]
    ) -> tuple[Float[Array, "n length n_states"], Float[Array, "n length"]]:
        """The states before each word is seen, given all earlier ones; and how probable each word then was."""
        before, probable = np.empty_like(written), np.empty(written.shape[:2])
        p = np.broadcast_to(self.start, written[:, 0].shape)
        for t in range(written.shape[1]):
            before[:, t] = p
            seen = p * written[:, t]
            probable[:, t] = seen.sum(axis=-1)
            p = seen / np.maximum(probable[:, t, None], np.finfo(float).tiny) @ self.moves
        return before, probable


def _one_of_each(p: Float[Array, "n m"], rng: np.random.Generator) -> Int[Array, " n"]:
    """A draw from every row."""
    below = p.cumsum(axis=-1) <= rng.random((len(p), 1)) * p.sum(axis=-1, keepdims=True)
    return below.sum(axis=-1)
