r"""Generated data with a known right answer, and the known place where it stands: where attention ought to look.

Every function draws a new batch from its ``seed``, an integer or a tuple of them, and from nothing else: the same
arguments give the same data. So ``reversal(32, 8, seed=(r, s))`` is step s of run r whoever asks, and data for a
test need only another seed. Errors are named alike: ``TypeError`` when a size or the seed is not an integer,
``ValueError`` when it is out of range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_at_least_one, check_size
from attnlib._base.seeds import Seed, generator, tensors
from attnlib.data.documents import Documents, document_vocabulary, documents
from attnlib.data.reversal import NOWHERE, Reversal, copying, reversal
from attnlib.data.text import END, FIRST, PAD, START

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = [
    "END",
    "FIRST",
    "IGNORE",
    "NOWHERE",
    "PAD",
    "START",
    "Documents",
    "Latest",
    "Lookback",
    "Neighbours",
    "Reversal",
    "Sorting",
    "Twins",
    "copying",
    "document_vocabulary",
    "documents",
    "latest",
    "lookback",
    "neighbours",
    "reversal",
    "sorting",
    "twins",
]

IGNORE = -100  # a target that `torch.nn.functional.cross_entropy` leaves out


class Sorting(NamedTuple):
    """What `sorting` returns: ``numbers`` ``(batch, length, 1)`` float32 and ``order`` ``(batch, length)`` int64.

    >>> Sorting._fields
    ('numbers', 'order')
    """

    numbers: Float[Tensor, "batch length 1"]
    order: Int[Tensor, "batch length"]


def sorting(batch: int, length: int, *, seed: Seed) -> Sorting:
    r"""Point at numbers from the smallest to the largest; they are uniform between 0 and 1.

    .. math:: x_{o_0} \le x_{o_1} \le \dots \le x_{o_{n-1}}

    Source: Vinyals, Bengio, Kudlur (2016), the experiment on sorting.

    >>> data = sorting(1, 3, seed=0)
    >>> data.numbers.squeeze(-1), data.order
    (tensor([[0.5222, 0.8897, 0.9929]]), tensor([[0, 1, 2]]))
    """
    batch, length = check_at_least_one("batch", batch), check_at_least_one("length", length)
    numbers = generator(seed).random((batch, length), dtype=np.float32)
    return Sorting(*tensors(numbers[..., None], numbers.argsort(axis=1, kind="stable")))


class Neighbours(NamedTuple):
    """What `neighbours` returns: both ``(batch, n, d)`` float32.

    >>> Neighbours._fields
    ('content', 'target')
    """

    content: Float[Tensor, "batch n d"]
    target: Float[Tensor, "batch n d"]


def neighbours(batch: int, n: int, d: int, *, seed: Seed) -> Neighbours:
    r"""What stands to the left, less what stands to the right: a weighted mean of the two cannot say it.

    .. math:: y_i = x_{i-1} - x_{i+1}

    The row is a ring, so every position has both. Contents are standard normal: they say nothing about positions.

    Raises ``ValueError`` too when ``n`` is below 3, where left and right are one.

    >>> data = neighbours(1, 3, 1, seed=0)
    >>> data.content.squeeze(-1), data.target.squeeze(-1)
    (tensor([[ 0.4560, -2.1591, -2.1300]]), tensor([[ 0.0291,  2.5859, -2.6151]]))
    """
    batch, d = check_at_least_one("batch", batch), check_at_least_one("d", d)
    if check_size("n", n) < 3:
        raise ValueError(f"n must be at least 3, for left and right to differ; got {n}")
    content = generator(seed).standard_normal((batch, n, d), dtype=np.float32)
    return Neighbours(*tensors(content, np.roll(content, 1, axis=1) - np.roll(content, -1, axis=1)))


class Lookback(NamedTuple):
    """What `lookback` returns: both ``(batch, length)`` int64.

    >>> Lookback._fields
    ('tokens', 'target')
    """

    tokens: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]


def lookback(batch: int, length: int, *, offset: int = 3, n_symbols: int = 8, seed: Seed) -> Lookback:
    r"""Say what stood ``offset`` positions ago: a matter of position alone.

    .. math:: y_t = x_{t - \text{offset}}

    Tokens are 0 to ``n_symbols - 1``. Where nothing stood yet the target is `IGNORE`.

    Raises ``ValueError`` too when ``offset`` is not below ``length``.

    >>> lookback(1, 5, seed=0)
    Lookback(tokens=tensor([[4, 7, 7, 4, 2]]), target=tensor([[-100, -100, -100,    4,    7]]))
    """
    batch, length = check_at_least_one("batch", batch), check_at_least_one("length", length)
    offset, n_symbols = check_size("offset", offset), check_at_least_one("n_symbols", n_symbols)
    if offset >= length:
        raise ValueError(f"offset must be below length = {length}, or there is nothing to say; got {offset}")
    tokens = generator(seed).integers(n_symbols, size=(batch, length))
    target = np.full_like(tokens, IGNORE)
    target[:, offset:] = tokens[:, : length - offset]
    return Lookback(*tensors(tokens, target))


class Latest(NamedTuple):
    """What `latest` returns: all ``(batch, length)`` int64.

    >>> Latest._fields
    ('tokens', 'target', 'position')
    """

    tokens: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]
    position: Int[Tensor, "batch length"]


def latest(batch: int, length: int, *, n_symbols: int = 8, chance: float = 0.2, seed: Seed) -> Latest:
    r"""Say which symbol was the last one with a mark, this one included: content and order together.

    .. math:: y_t = x_{p_t}, \qquad p_t = \max \{\, s \le t : x_s \text{ has a mark} \,\}

    Token ``symbol`` is a symbol without a mark, token ``symbol + n_symbols`` the same symbol with one, so there are
    ``2 * n_symbols`` tokens; a target is a symbol, below ``n_symbols``. A mark has probability ``chance``. Before
    the first, ``target`` is `IGNORE` and ``position``, which is :math:`p`, `NOWHERE`.

    Raises ``ValueError`` too when ``chance`` is not between 0 and 1.

    >>> data = latest(1, 6, n_symbols=3, chance=0.5, seed=0)
    >>> data.tokens, data.target
    (tensor([[1, 5, 5, 1, 3, 2]]), tensor([[-100,    2,    2,    2,    0,    0]]))
    """
    batch, length = check_at_least_one("batch", batch), check_at_least_one("length", length)
    n_symbols = check_at_least_one("n_symbols", n_symbols)
    if not 0 <= chance <= 1:
        raise ValueError(f"chance must be between 0 and 1; got {chance}")
    rng = generator(seed)
    symbols = rng.integers(n_symbols, size=(batch, length))
    marked = rng.random((batch, length)) < chance
    position = np.maximum.accumulate(np.where(marked, np.arange(length), NOWHERE), axis=1)
    target = np.where(position >= 0, np.take_along_axis(symbols, position, axis=1), IGNORE)
    return Latest(*tensors(symbols + n_symbols * marked, target, position))


class Twins(NamedTuple):
    """What `twins` returns: all ``(batch, 2 * n_symbols)`` int64.

    >>> Twins._fields
    ('tokens', 'target', 'twin')
    """

    tokens: Int[Tensor, "batch n"]
    target: Int[Tensor, "batch n"]
    twin: Int[Tensor, "batch n"]


def twins(batch: int, n_symbols: int = 8, *, seed: Seed) -> Twins:
    r"""Every symbol stands twice in a ring. Find the other one, and say what stands to the left of it.

    .. math:: y_t = x_{w_t - 1}, \qquad w_t \ne t, \quad x_{w_t} = x_t

    Tokens and targets are 0 to ``n_symbols - 1``, and ``twin`` is :math:`w`. Finding it is a matter of content,
    its left neighbour one of position.

    >>> data = twins(1, 3, seed=0)
    >>> data.tokens, data.twin, data.target
    (tensor([[0, 2, 1, 0, 1, 2]]), tensor([[3, 5, 4, 0, 2, 1]]), tensor([[1, 1, 0, 2, 2, 0]]))
    """
    batch, n_symbols = check_at_least_one("batch", batch), check_at_least_one("n_symbols", n_symbols)
    ordered = np.broadcast_to(np.repeat(np.arange(n_symbols), 2), (batch, 2 * n_symbols))
    tokens = generator(seed).permuted(ordered, axis=1)
    places = tokens.argsort(axis=1, kind="stable")  # of the first symbol, twice, of the second, twice, ...
    other = places.reshape(batch, n_symbols, 2)[..., ::-1].reshape(batch, -1)  # the two places of a symbol, exchanged
    twin = np.empty_like(places)
    np.put_along_axis(twin, places, other, axis=1)
    return Twins(*tensors(tokens, np.take_along_axis(np.roll(tokens, 1, axis=1), twin, axis=1), twin))
