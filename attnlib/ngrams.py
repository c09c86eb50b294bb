r"""N-grams: what comes next, counted. Smoothed by Kneser and Ney, they are what a language model must beat.

A `PageCache` lets them, or any other model, look up what stands further up on the same page.

.. math:: p_k(w \mid h) = \frac{c(hw) - D(c(hw))}{c(h)} + \gamma(h)\, p_{k-1}(w \mid h')
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

    Tokens = Sequence[int] | Int[np.ndarray, " n"]
    LogP = Float[np.ndarray, " n"]

__all__ = ["KneserNey", "PageCache", "page_matches"]

TINY = np.finfo(float).tiny  # so that what all give no chance to is no 0 / 0


class _Order(NamedTuple):
    """The k-grams of one length, in order, with what is left of their counts, and sums by context."""

    keys: np.ndarray  # number of the first k - 1 tokens × n_tokens + the last token
    left: np.ndarray  # count less discount
    total: np.ndarray  # for each (k-1)-gram, the counts of what follows it
    spare: np.ndarray  # and their discounts, which go to the shorter context


class KneserNey:
    r"""Interpolated Kneser–Ney with three discounts for each length, those for counts of 1, 2 and more.

    .. math:: p_k(w \mid h) = \frac{c(hw) - D(c(hw))}{\sum_v c(hv)} + \frac{\sum_v D(c(hv))}{\sum_v c(hv)}\,
              p_{k-1}(w \mid h'), \qquad D_i = i - (i + 1) \frac{n_1}{n_1 + 2 n_2} \frac{n_{i+1}}{n_i}

    Here :math:`h` are the last k − 1 tokens and :math:`h'` those without the first of them. Only the longest k-grams
    are counted as they stand; of a shorter one, :math:`c` is how many different tokens stand before it. Below the
    single tokens lies the uniform distribution. :math:`n_i` says how many k-grams have a count of i.

    ``order`` is the longest k, ``n_tokens`` the size of the vocabulary; tokens are whole numbers below it.

    Raises ``TypeError`` or ``ValueError`` for sizes below one, or tokens that are none.

    Source: Chen, Goodman (1999), section 3, *modified* Kneser–Ney.

    >>> model = KneserNey(2, n_tokens=3).fit([0, 1, 0, 1, 0, 2, 0, 1, 2])
    >>> model.probabilities([0]).sum().round(6), model.probabilities([0]).argmax()
    (np.float64(1.0), np.int64(1))
    """

    def __init__(self, order: int, n_tokens: int) -> None:
        self.order = check_at_least_one("order", order)
        self.n_tokens = check_at_least_one("n_tokens", n_tokens)

    def fit(self, tokens: Tokens) -> KneserNey:
        """Count the k-grams of one long text, and return the model."""
        tokens = self._checked(tokens)
        if len(tokens) < self.order:
            raise ValueError(f"tokens must be at least order = {self.order} of them; got {len(tokens)}")
        self._orders: list[_Order] = []
        shorter = np.zeros(len(tokens) + 1, dtype=np.int64)  # numbers of the (k-1)-grams, by where they end
        keys, n_contexts = np.zeros(1, dtype=np.int64), 1
        for k in range(1, self.order + 1):
            longer, first, numbers, counts = np.unique(
                shorter[:-1] * self.n_tokens + tokens[k - 1 :],
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if k > 1:  # of a (k-1)-gram, how many different k-grams end in it
                before = np.bincount(shorter[1:][first], minlength=len(keys))
                self._orders.append(self._order(keys, before.clip(min=1), n_contexts))
                n_contexts = len(keys)
            keys, shorter = longer, numbers
        self._orders.append(self._order(keys, counts, n_contexts))
        return self

    def log_probabilities(self, tokens: Tokens) -> Float[np.ndarray, " n"]:
        """The logarithm of the probability of each token of a text, after those before it.

        >>> model = KneserNey(2, n_tokens=3).fit([0, 1, 0, 1, 0, 2, 0, 1, 2])
        >>> np.exp(model.log_probabilities([0, 1])).round(2)
        array([0.28, 0.4 ])
        """
        tokens = self._checked(tokens)
        p, context = np.full(len(tokens), 1 / self.n_tokens), np.zeros(len(tokens), dtype=np.int64)
        for order in self._orders:
            number = _find(order.keys, np.where(context < 0, -1, context * self.n_tokens + tokens))
            total = np.where(context < 0, 0, order.total[context])
            known = np.where(number < 0, 0.0, order.left[number]) + order.spare[context] * p
            p = np.where(total > 0, known / np.maximum(total, 1), p)
            context = np.concatenate([[-1], number[:-1]])  # a k-gram is the context of the token after it
        return np.log(p)

    def probabilities(self, context: Tokens) -> Float[np.ndarray, " n_tokens"]:
        """The distribution over the next token after ``context``, of which the last ``order - 1`` count."""
        context = self._checked(context)
        p = np.full(self.n_tokens, 1 / self.n_tokens)
        for k, order in enumerate(self._orders):
            number = 0
            for shorter, token in zip(self._orders, context[len(context) - k :], strict=False):
                number = int(_find(shorter.keys, np.array([number * self.n_tokens + token]))[0])
                if number < 0:
                    return p
            if k > len(context) or order.total[number] == 0:
                return p
            low, high = np.searchsorted(order.keys, [number * self.n_tokens, (number + 1) * self.n_tokens])
            p = order.spare[number] * p
            p[order.keys[low:high] % self.n_tokens] += order.left[low:high]
            p /= order.total[number]
        return p

    def _order(self, keys: np.ndarray, counts: np.ndarray, n_contexts: int) -> _Order:
        n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)  # n_1 to n_4
        y = n[0] / (n[0] + 2 * n[1]) if n[0] else 0.5
        expected = [i - (i + 1) * y * n[i] / n[i - 1] if n[i - 1] else i * (1 - y) for i in (1, 2, 3)]
        discounts = np.clip(expected, 0.1, (1, 2, 3))  # so that something is always left for what was never seen
        taken, contexts = discounts[np.minimum(counts, 3) - 1], keys // self.n_tokens
        sums = (np.bincount(contexts, weights=x, minlength=n_contexts) for x in (counts, taken))
        return _Order(keys, counts - taken, *sums)

    def _checked(self, tokens: Tokens) -> np.ndarray:
        tokens = _whole_numbers(tokens)
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < self.n_tokens:
            got = tokens.min() if tokens.min() < 0 else tokens.max()
            raise ValueError(f"tokens must be from 0 to {self.n_tokens - 1}; got {got}")
        return tokens


def page_matches(tokens: Tokens, length: int, *, end: int = 0) -> Float[np.ndarray, " n"]:
    r"""What exact matches further up on its page say of each token of a text; NaN where there is no match.

    .. math:: a_\ell(t) = \frac{\#\{s < t : x_s = x_t,\ x_{s-\ell \ldots s-1} = x_{t-\ell \ldots t-1}\}}
              {\#\{s < t : x_{s-\ell \ldots s-1} = x_{t-\ell \ldots t-1}\}}

    Places s are those of the page of t, which begins after a token ``end`` and reaches to the next; so do
    the ``length`` tokens before them. With length 0 every place matches. It is attention with a 0/1 kernel: keys are
    what stands before a place, values the token at it.

    Raises ``ValueError`` for a length below 0, ``TypeError`` for tokens that are no whole numbers.

    Source: Kuhn, De Mori (1990) for length 0, a *cache*; Jelinek, Merialdo, Roukos, Strauss (1991) for longer ones.

    >>> page_matches([1, 2, 1, 2, 0, 2], 0).round(1)
    array([nan, 0. , 0.5, 0.3, 0. , nan])
    >>> page_matches([1, 2, 1, 2, 0, 2], 1)
    array([nan, nan, nan,  1.,  0., nan])
    """
    tokens, length = _whole_numbers(tokens).tolist(), check_size("length", length)
    found, start = np.full(len(tokens), np.nan), 0
    followed: defaultdict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    for t, token in enumerate(tokens):
        if t - length >= start:
            here = followed[tuple(tokens[t - length : t])]
            if here:
                found[t] = here[token] / here.total()
            here[token] += 1
        if token == end:
            start, followed = t + 1, defaultdict(Counter)
    return found


class PageCache:
    r"""A model of text mixed with `page_matches` of all lengths up to ``longest``, by weights that are fitted.

    .. math:: p'(x_t) = w_{m} p(x_t) + \sum_{\ell=0}^{m} w_{m \ell}\, a_\ell(t), \qquad
              w_m + \sum_{\ell=0}^m w_{m \ell} = 1

    Here :math:`m` is the longest match at t; there is one set of weights for each m, and where nothing matches, at the
    beginning of a page, p stays. Weights are fitted by expectation maximisation, which raises the likelihood at every
    step: fit them on other pages than those that are scored.

    ``log_p`` are the logarithms of the probabilities that the model gives to each of ``tokens``.

    Raises ``ValueError`` for ``longest`` below 0, or unless there is one ``log_p`` for each token, ``RuntimeError``
    when it has not been fitted.

    Source: Jelinek, Mercer (1980) for the weights.

    >>> tokens = [1, 2, 1, 2, 1, 2, 0] * 3
    >>> cache = PageCache(1).fit(np.log(np.full(21, 0.25)), tokens)
    >>> [w.round(2).tolist() for w in cache.weights]  # of the model, of length 0, of length 1
    [[0.99, 0.01], [0.33, 0.0, 0.67]]
    """

    def __init__(self, longest: int, *, end: int = 0) -> None:
        self.longest = check_size("longest", longest)
        self.end = end

    def fit(self, log_p: LogP, tokens: Tokens, *, steps: int = 100) -> PageCache:
        """Fit the weights on some pages, and return the mixture."""
        steps = check_at_least_one("steps", steps)
        self.weights = []
        for m, (_, parts) in enumerate(self._parts(log_p, tokens)):
            w = np.full(m + 2, 1 / (m + 2))
            for _ in range(steps if parts.size else 0):
                share = w[:, None] * parts
                w = (share / share.sum(axis=0).clip(min=TINY)).mean(axis=1)
            self.weights.append(w)
        return self

    def log_probabilities(self, log_p: LogP, tokens: Tokens) -> LogP:
        """The logarithm of the mixture's probability of each token."""
        if not hasattr(self, "weights"):
            raise RuntimeError("fit the weights first, on other pages: PageCache(longest).fit(log_p, tokens)")
        mixed = np.exp(np.asarray(log_p, dtype=float))
        for w, (places, parts) in zip(self.weights, self._parts(log_p, tokens), strict=True):
            mixed[places] = w @ parts
        return np.log(mixed)

    def _parts(self, log_p: LogP, tokens: Tokens) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each longest match m: where it is, and there the model's probability and those of m + 1 matches."""
        p = np.exp(np.asarray(log_p, dtype=float))
        if p.shape != np.shape(tokens):
            raise ValueError(f"log_p must be one for each token; got {p.shape} for tokens of {np.shape(tokens)}")
        matches = np.stack([page_matches(tokens, length, end=self.end) for length in range(self.longest + 1)])
        longest = np.isfinite(matches).sum(axis=0) - 1  # who matches in three tokens matches in two
        groups = [longest == m for m in range(self.longest + 1)]
        return [(at, np.vstack([p[at], matches[: m + 1, at]])) for m, at in enumerate(groups)]


def _whole_numbers(tokens: Tokens) -> np.ndarray:
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or (tokens.size and not np.issubdtype(tokens.dtype, np.integer)):
        raise TypeError(f"tokens must be one list of whole numbers; got {tokens.dtype} {tokens.shape}")
    return tokens.astype(np.int64)


def _find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each of ``wanted`` stands in ``keys``, which are in order; -1 where it does not."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)
