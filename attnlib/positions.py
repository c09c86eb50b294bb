r"""Positions: ways to tell attention, which is blind to order, where its inputs stand.

`sinusoidal` codes are added to the inputs, the biases of `alibi` to the scores, and `rotary` turns queries and keys.
The two that have parameters are modules, `attnlib.nn.LearnedPositions` and `attnlib.nn.RelativeBias`. Arrays are
NumPy's, in float64, unless ``like`` is a torch tensor, and then they have its dtype and device.
"""

from __future__ import annotations

from math import exp2, floor, log, log2
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.arrays import Array, is_torch, namespace, tracing
from attnlib._base.checks import check_floats, check_one_of, check_positive, check_rank, check_size
from attnlib.masks import _positions

if TYPE_CHECKING:
    from types import ModuleType

    from jaxtyping import Float, Int

__all__ = ["alibi", "alibi_slopes", "relative_buckets", "rotary", "rotation", "sinusoidal"]

LAYOUTS = ("halves", "pairs")


def sinusoidal(
    n: int, d: int, *, start: int = 0, base: float = 10000.0, like: Array | None = None
) -> Float[Array, "n d"]:
    r"""A code for each position: pairs of a sine and a cosine, from fast to slow, like the hands of many clocks.

    .. math:: \text{PE}_{p, 2i} = \sin \frac{p}{\text{base}^{2i/d}}, \qquad
              \text{PE}_{p, 2i+1} = \cos \frac{p}{\text{base}^{2i/d}}

    For positions ``start``, ``start + 1``, …, to be added to inputs of size ``d``. The inner product of two codes
    depends on how far apart they are, and on nothing else.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when one is negative, ``d`` is odd or ``base``
    is not positive.

    Source: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal(3, 4).round(2)
    array([[ 0.  ,  1.  ,  0.  ,  1.  ],
           [ 0.84,  0.54,  0.01,  1.  ],
           [ 0.91, -0.42,  0.02,  1.  ]])
    """
    n, start = check_size("n", n), check_size("start", start)
    xp, _ = _host(like)
    angles = _angles(xp, n, start, _frequencies("d", d, base))
    return _like(xp.stack([xp.sin(angles), xp.cos(angles)], axis=-1).reshape(n, d), like)  # (n, d / 2, 2) -> (n, d)


def rotation(k: int, d: int, *, base: float = 10000.0) -> Float[np.ndarray, "d d"]:
    r"""The matrix that moves every sinusoidal code by ``k`` positions, forwards or (negative) back.

    .. math:: \text{PE}_{p+k} = \text{PE}_p \, M_k \;\text{ for all } p, \qquad
              M_k = \text{diag}_i \begin{pmatrix} \cos k\omega_i & -\sin k\omega_i \\
              \sin k\omega_i & \cos k\omega_i \end{pmatrix}, \qquad \omega_i = \text{base}^{-2i/d}

    It turns each pair of columns by an angle of its own, and does not depend on ``p``.

    Raises ``ValueError`` when ``d`` is odd or negative or ``base`` is not positive.

    Source: Vaswani et al. (2017), section 3.5, which says that there is such a matrix.

    >>> codes = sinusoidal(9, 4)
    >>> bool(np.allclose(codes[5:], codes[:4] @ rotation(5, 4)))
    True
    """
    angles = k * _frequencies("d", d, base)
    matrix, even = np.zeros((d, d)), np.arange(0, d, 2)
    matrix[even, even] = matrix[even + 1, even + 1] = np.cos(angles)
    matrix[even + 1, even] = np.sin(angles)
    matrix[even, even + 1] = -np.sin(angles)
    return matrix


def relative_buckets(
    n_q: int,
    n_k: int | None = None,
    *,
    n_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
    like: Array | None = None,
) -> Int[Array, "n_q n_k"]:
    r"""Which of ``n_buckets`` the distance of each key from each query falls into: near ones alone, far ones together.

    .. math:: b(r) = \begin{cases} r & r < e \\
              \min\bigl(B - 1,\; e + \bigl\lfloor \tfrac{\log(r/e)}{\log(\text{max\_distance}/e)} (B - e) \bigr\rfloor
              \bigr) & r \ge e \end{cases}, \qquad e = \lfloor B/2 \rfloor

    Here :math:`r` is how far the key stands before the query, and :math:`B` the number of buckets. With
    ``bidirectional``, each direction has half of the buckets: :math:`B/2` is added for keys after the query. Without,
    keys after the query fall into bucket 0, and are expected to be masked. With ``n_q < n_k`` the last query stands
    at the last key, as in `attnlib.causal`.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when ``n_q > n_k``, when there are too few
    buckets (4 and an even number with two directions, 2 with one), or ``max_distance`` is not beyond :math:`e`.

    Source: Raffel et al. (2020), section 2.1; the logarithm is that of their code.

    >>> relative_buckets(1, 10, n_buckets=8, max_distance=10, bidirectional=False)
    array([[7, 7, 6, 5, 4, 4, 3, 2, 1, 0]])
    """
    n_buckets, max_distance = check_size("n_buckets", n_buckets), check_size("max_distance", max_distance)
    one_way = n_buckets // 2 if bidirectional else n_buckets
    alone = one_way // 2
    if alone == 0 or (bidirectional and n_buckets % 2):
        expected = "even and at least 4" if bidirectional else "at least 2"
        raise ValueError(f"n_buckets must be {expected} with bidirectional={bidirectional}; got {n_buckets}")
    if max_distance <= alone:
        raise ValueError(
            f"max_distance must exceed the {alone} distances with buckets of their own; got {max_distance}"
        )
    xp, host = _host(like)
    query, key = _positions(n_q, n_k, host)
    before = query - key
    distance = xp.abs(before) if bidirectional else xp.clip(before, 0, None)
    beyond = xp.astype(xp.clip(distance, alone, None), xp.float64) / alone
    far = xp.log(beyond) / log(max_distance / alone) * (one_way - alone)
    far = xp.astype(xp.floor(far + 1e-9), xp.int64)  # a whole number stays one, however the logarithms were rounded
    bucket = xp.where(distance < alone, distance, xp.clip(alone + far, None, one_way - 1))
    bucket = bucket + (one_way * (before < 0) if bidirectional else 0)
    return bucket if like is None else namespace(like).asarray(bucket, device=like.device)


def alibi_slopes(n_heads: int) -> Float[np.ndarray, " n_heads"]:
    r"""How fast each head forgets: slopes that fall by the same factor from head to head, down to 1/256.

    .. math:: m_h = 2^{-8h/n_\text{heads}}, \qquad h = 1, \dots, n_\text{heads}

    That is for a power of two. For other numbers of heads, the slopes for the power of two below come first, and then
    every other one of those for the power of two above.

    Raises ``TypeError`` when ``n_heads`` is not an integer, ``ValueError`` when it is not positive.

    Source: Press, Smith, Lewis (2022), section 3; other numbers of heads as in their code.

    >>> alibi_slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> alibi_slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    if check_size("n_heads", n_heads) == 0:
        raise ValueError("n_heads must be at least 1; got 0")
    below = 2 ** floor(log2(n_heads))
    slopes = [exp2(-8 * h / below) for h in range(1, below + 1)]
    between = [exp2(-8 * h / (2 * below)) for h in range(1, 2 * below, 2)]
    return np.array((slopes + between)[:n_heads])


def alibi(
    n_heads: int, n_q: int, n_k: int | None = None, *, like: Array | None = None
) -> Float[Array, "n_heads n_q n_k"]:
    r"""A bias that costs each key its distance from the query, times the slope of the head; to be added to scores.

    .. math:: b_{hij} = -m_h \, |i' - j|, \qquad i' = i + n_k - n_q

    With ``n_q < n_k`` the last query stands at the last key, as in `attnlib.causal`. The paper has a causal mask
    beside it, and so no keys after the query; here they cost as much as those before.

    Raises ``TypeError`` when a size is not an integer, ``ValueError`` when one is negative, ``n_q > n_k`` or there
    are no heads.

    Source: Press, Smith, Lewis (2022), section 3.

    >>> alibi(2, 3)[0]
    array([[-0.    , -0.0625, -0.125 ],
           [-0.0625, -0.    , -0.0625],
           [-0.125 , -0.0625, -0.    ]])
    """
    xp, host = _host(like)
    query, key = _positions(n_q, n_k, host)
    return _like(-xp.asarray(alibi_slopes(n_heads))[:, None, None] * xp.abs(query - key), like)


def rotary(
    x: Float[Array, "... n d"],
    *,
    start: int = 0,
    base: float = 10000.0,
    layout: str = "halves",
    d_rotary: int | None = None,
) -> Float[Array, "... n d"]:
    r"""Queries or keys turned by their position, pair by pair, so that their scores know how far apart they stand.

    .. math:: \begin{pmatrix} x'_a \\ x'_b \end{pmatrix} = \begin{pmatrix} \cos p\omega_i & -\sin p\omega_i \\
              \sin p\omega_i & \cos p\omega_i \end{pmatrix} \begin{pmatrix} x_a \\ x_b \end{pmatrix},
              \qquad \omega_i = \text{base}^{-2i/d}

    ``layout`` says which dimensions ``a``, ``b`` make pair ``i``: ``"halves"`` takes ``i`` and ``i + d/2`` (GPT-NeoX,
    Hugging Face's Llama), ``"pairs"`` takes ``2i`` and ``2i + 1`` (the paper, GPT-J). They differ by the order of the
    columns only, but weights trained with one are of no use to the other. ``start`` is the position of the first row:
    the number of keys in a cache. ``d_rotary`` turns the first dimensions and leaves the rest as they are; :math:`d`
    is then that.

    Angles are computed in float64 and half precision is turned in float32, since position 1001 is no bfloat16.

    Raises ``TypeError`` when ``x`` is not a floating-point array, ``ValueError`` when it is not ``(..., n, d)``, when
    the rotated dimensions are odd or too many, or ``layout`` is another word.

    Source: Su et al. (2021), section 3.2.2, equation 34; halves as in Black et al. (2022).

    >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]])).round(2)
    array([[1.  , 0.  ],
           [0.54, 0.84]])
    """
    check_floats(x=x)
    check_rank("(..., n, d)", x=x)
    start = check_size("start", start)
    d = x.shape[-1] if d_rotary is None else check_size("d_rotary", d_rotary)
    check_one_of("layout", layout, LAYOUTS)
    if d > x.shape[-1]:
        raise ValueError(f"d_rotary must not exceed the last axis of x, {x.shape[-1]}; got {d}")
    name = "the last axis of x" if d_rotary is None else "d_rotary"
    host, xp = _host(x)[0], namespace(x)
    angles = _angles(host, x.shape[-2], start, _frequencies(name, d, base))
    wide = x if xp.finfo(x.dtype).bits >= 32 else xp.astype(x, xp.float32)
    cos, sin = (_like(f(angles), wide) for f in (host.cos, host.sin))
    first, second = (slice(0, d // 2), slice(d // 2, d)) if layout == "halves" else (slice(0, d, 2), slice(1, d, 2))
    a, b = wide[..., first], wide[..., second]
    turned = [a * cos - b * sin, b * cos + a * sin]
    if layout == "pairs":
        turned = [xp.reshape(xp.stack(turned, axis=-1), (*x.shape[:-1], d))]
    return xp.astype(xp.concat([*turned, wide[..., d:]], axis=-1), x.dtype, copy=False)


def _frequencies(name: str, d: int, base: float) -> Float[np.ndarray, " half"]:
    """How far each pair turns from one position to the next; the first by one, the last by little."""
    if check_size(name, d) % 2:
        raise ValueError(f"{name} must be even, since dimensions are turned in pairs; got {d}")
    check_positive("base", base)
    return float(base) ** (-np.arange(0, d, 2) / max(d, 1))


def _host(like: Array | None) -> tuple[ModuleType, Array | None]:
    """What computes, and an array of its own: NumPy, in float64; but torch where it traces a graph.

    There a length may be a symbol, of which NumPy knows nothing.
    """
    if like is None or not tracing():
        return np, None
    xp = namespace(like)
    return xp, xp.empty(0)


def _angles(xp: ModuleType, n: int, start: int, frequencies: np.ndarray) -> Float[Array, "n half"]:
    return xp.arange(start, start + n)[:, None] * xp.asarray(frequencies)


def _like(numbers: Array, like: Array | None) -> Array:
    """The numbers in the library, dtype and device of ``like``."""
    if like is None:
        return numbers
    check_floats(like=like)
    if is_torch(like):
        import torch

        return torch.as_tensor(numbers).to(like.dtype).to(like.device)
    xp = namespace(like)
    return xp.asarray(numbers, dtype=like.dtype, device=like.device)
