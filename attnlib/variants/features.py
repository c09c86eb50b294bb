r"""Features: a kernel as an inner product, so that attention's sum can be taken before the query is known.

.. math:: \kappa(q, k) = \phi(q) \cdot \phi(k)

Every function takes rows ``(..., n, d)`` and gives as many positive numbers to each, ``(..., n, n_features)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.arrays import Array, is_torch, namespace
from attnlib._base.checks import check_at_least_one, check_floats, check_pair, check_rank, check_size, check_weight

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["elu_plus_one", "linear_score", "positive_features", "random_directions"]


def elu_plus_one(x: Float[Array, "... n d"]) -> Float[Array, "... n d"]:
    r"""As many features as dimensions: each alone, made positive.

    .. math:: \phi(x) = \text{elu}(x) + 1 = \begin{cases} x + 1 & x > 0 \\ e^x & x \le 0 \end{cases}

    Raises ``TypeError`` when ``x`` is not a floating-point array.

    Source: Katharopoulos et al. (2020), section 3.2.3, equation 7.

    >>> elu_plus_one(np.array([[-1.0, 0.0, 2.0]])).round(3)
    array([[0.368, 1.   , 3.   ]])
    """
    check_floats(x=x)
    xp = namespace(x)
    below = xp.where(x > 0, xp.zeros_like(x), x)  # so that no gradient passes by way of an overflow
    return xp.where(x > 0, x + 1, xp.exp(below))


def positive_features(x: Float[Array, "... n d"], w: Float[Array, "m d"]) -> Float[Array, "... n m"]:
    r"""Random features whose inner product is, on average, the exponential of the scaled dot product.

    .. math:: \phi_c(x) = \frac{1}{\sqrt m} \exp\!\left( w_c \cdot x' - \frac{\lVert x' \rVert^2}{2} \right), \quad
              x' = \frac{x}{d^{1/4}}, \qquad
              \mathbb{E}_w\, [\phi(q) \cdot \phi(k)] = \exp \frac{q \cdot k}{\sqrt d}

    ``w`` holds the m directions, from `random_directions`. The more there are, the smaller the error; it grows with
    the lengths of queries and keys.

    Raises ``ValueError`` when ``x`` is not ``(..., n, d)`` or ``w`` not ``(m, d)``, ``TypeError`` when they are not
    floating-point arrays of one library and dtype.

    Source: Choromanski et al. (2021), section 2.3, lemma 1, and equation 5.

    >>> w = random_directions(4, 1000, seed=1)
    >>> q, k = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.8, 0.6, 0.0, 0.0]])
    >>> (positive_features(q, w) @ positive_features(k, w).T).round(1), np.exp(q @ k.T / 2).round(1)
    (array([[1.5]]), array([[1.5]]))
    """
    check_floats(x=x)
    check_rank("(..., n, d)", x=x)
    d = x.shape[-1]
    check_weight("w", w, (-1, d), "(m, d)", like=x)
    xp, x = namespace(x), x / d**0.25
    return xp.exp(x @ w.mT - xp.sum(x * x, axis=-1, keepdims=True) / 2) / w.shape[0] ** 0.5


def random_directions(
    d: int, n_features: int, *, seed: int = 0, orthogonal: bool = True, like: Array | None = None
) -> Float[Array, "n_features d"]:
    r"""Normal vectors for `positive_features`: independent, or at right angles to each other, d at a time.

    .. math:: w_c \sim \mathcal{N}(0, I_d), \qquad w_c \cdot w_{c'} = 0 \text{ within each } d \text{ of them}

    Directions at right angles repeat each other less, and the error is smaller; each alone is still normal. The
    array is NumPy's, in float64, unless ``like`` is given, and then it has its library, dtype and device.

    Raises ``TypeError`` when a size or the seed is not an integer, ``ValueError`` for a size below one.

    Source: Choromanski et al. (2021), section 2.4; Yu et al. (2016), *Orthogonal random features*.

    >>> w = random_directions(3, 5)
    >>> (w @ w.T).round(6)[0, :4] == 0
    array([False,  True,  True, False])
    """
    check_at_least_one("d", d)
    check_at_least_one("n_features", n_features)
    rng = np.random.default_rng([check_size("seed", seed), d, n_features])
    w = rng.normal(size=(n_features, d))
    if orthogonal:
        lengths = np.linalg.norm(w, axis=1, keepdims=True)  # as long as they would be
        w = lengths * np.concatenate([_rotation(d, rng) for _ in range(0, n_features, d)])[:n_features]
    if like is None:
        return w
    check_floats(like=like)
    return namespace(like).asarray(w, dtype=like.dtype, device=like.device)


def _rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows at right angles, all directions being as likely: without the signs, those of LAPACK would not be."""
    rows, r = np.linalg.qr(rng.normal(size=(d, d)))
    return rows * np.sign(np.diag(r))


def linear_score(
    q: Float[Array, "... n_q d"], k: Float[Array, "... n_k d"], features: Callable[[Array], Array] = elu_plus_one
) -> Float[Array, "... n_q n_k"]:
    r"""The score with which `attnlib.attention` is linear attention: the logarithm of the features' inner product.

    .. math:: s_{ij} = \log\, (\phi(q_i) \cdot \phi(k_j)), \qquad
              \alpha_{ij} = \frac{\phi(q_i) \cdot \phi(k_j)}{\sum_{j'} \phi(q_i) \cdot \phi(k_{j'})}

    It computes every pair, as any score does: `linear_attention` gives the same output without.

    Raises as `attnlib.dot`; where features are negative `attnlib.attention` may find that the score is NaN.

    Source: Katharopoulos et al. (2020), section 3.2, equations 3 and 4.

    >>> linear_score(np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]])).round(3)
    array([[1.099]])
    """
    check_pair(q, k)
    kernel = features(q) @ features(k).mT  # (..., n_q, n_k)
    if is_torch(kernel):
        return kernel.log()
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant: no weight
        return np.log(kernel)
