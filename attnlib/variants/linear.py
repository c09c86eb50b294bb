r"""Linear attention: the sum over the keys is taken once, for all queries, or carried on from key to key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from attnlib._base.arrays import Array, broadcast_shapes, is_array, namespace, split_rows
from attnlib._base.checks import check_at_least_one, check_mask
from attnlib.core.arguments import check_arguments, check_numbers
from attnlib.scores import scaled_dot
from attnlib.variants.features import elu_plus_one

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["LinearAttended", "LinearState", "linear_attention"]


class LinearState(NamedTuple):
    r"""What linear attention keeps of its keys and values: ``values`` ``(..., m, d_v)`` and ``total`` ``(..., m)``.

    .. math:: S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \qquad z_t = z_{t-1} + \phi(k_t)

    Its size does not depend on how many there were.

    >>> LinearState._fields
    ('values', 'total')
    """

    values: Array
    total: Array


class LinearAttended(NamedTuple):
    r"""What `linear_attention` returns: ``out`` ``(..., n_q, d_v)`` and the ``state`` after the last key.

    .. math:: \text{out}_t = \frac{\phi(q_t)^\top S_t}{\phi(q_t)^\top z_t}

    >>> LinearAttended._fields
    ('out', 'state')
    """

    out: Array
    state: LinearState


def linear_attention(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    features: Callable[[Array], Array] = elu_plus_one,
    mask: Bool[Array, "... 1 n_k"] | None = None,
    causal: bool = False,
    state: LinearState | None = None,
    block: int = 64,
) -> LinearAttended:
    r"""The output of `attnlib.attention` with the score `linear_score`, in time and memory that grow as the length.

    .. math:: \text{out}_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j)\, v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)}
              = \sum_j \frac{\phi(q_i) \cdot \phi(k_j)}{\sum_{j'} \phi(q_i) \cdot \phi(k_{j'})}\, v_j

    The sums over j do not depend on the query. With ``causal`` they run to j = i, and attention is a recurrent
    network: `LinearState` is what it carries on. For training, whole blocks are taken at a time: what a query reads
    in its own block comes from pairs, what it reads before that from the state.

    Parameters
    ----------
    q, k, v
        As in `attnlib.attention`.
    features
        :math:`\phi`, a function of rows ``(..., n, d)`` that gives ``(..., n, m)``, none of them negative:
        `elu_plus_one`, or ``functools.partial(positive_features, w=random_directions(d, m))``.
    mask
        Boolean, True for keys that may be attended to, ``(..., 1, n_k)``: the same for every query, as padding is.
    causal
        True hides the keys after each query; then there are as many keys as queries.
    state
        What earlier calls returned: the keys since then are added to it.
    block
        With ``causal``, how many positions are taken at a time. It does not change the output.

    Raises
    ------
    ValueError, TypeError
        As `attnlib.attention`; ``causal`` with other numbers of keys than of queries, a mask that differs by query,
        features or a state of another shape.

    Notes
    -----
    Source: Katharopoulos et al. (2020), sections 3.2 to 3.4; blocks as in Hua et al. (2022), section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from attnlib import attention
    >>> from attnlib.variants import linear_score
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 100, 4))
    >>> out, state = linear_attention(q, k, v, causal=True)
    >>> bool(np.allclose(out, attention(q, k, v, score=linear_score, causal=True).out))
    True
    >>> state.values.shape, state.total.shape
    ((4, 4), (4,))
    """
    library = check_arguments(q, k, v, scaled_dot, None, causal)
    check_numbers(q, k, v, library)
    _check(q, k, v, mask, causal, block)
    xp = library.xp
    wide = q.dtype if q.dtype.itemsize > 2 else xp.float32  # as sums are long
    phi_q, phi_k = (_features(features, name, x, wide) for name, x in {"q": q, "k": k}.items())
    if mask is not None:
        phi_k = xp.where((mask if mask.ndim > 1 else mask[None]).mT, phi_k, 0.0)
    ones = xp.ones((*v.shape[:-1], 1), dtype=wide, device=v.device)
    v_one = xp.concat([xp.astype(v, wide, copy=False), ones], axis=-1)  # the last column sums the weights
    seen = _before(state, phi_k, v_one)
    if causal:
        total, seen = _block_by_block(phi_q, phi_k, v_one, seen, block)
    else:
        seen = seen + phi_k.mT @ v_one  # (..., m, d_v + 1)
        total = phi_q @ seen  # (..., n_q, d_v + 1)
    weight = total[..., -1:]
    out = total[..., :-1] / xp.where(weight > 0, weight, 1.0)
    return LinearAttended(xp.astype(out, v.dtype, copy=False), LinearState(seen[..., :-1], seen[..., -1]))


def _block_by_block(phi_q: Array, phi_k: Array, v_one: Array, seen: Array, block: int) -> tuple[Array, Array]:
    """Sums up to each query, and those up to the end."""
    xp, out = namespace(phi_q), []
    for q, k, v in zip(*(split_rows(x, block) for x in (phi_q, phi_k, v_one)), strict=True):
        out.append(q @ seen + xp.tril(q @ k.mT) @ v)  # (..., block, d_v + 1)
        seen = seen + k.mT @ v
    return xp.concat(out, axis=-2), seen


def _features(features: Callable[[Array], Array], name: str, x: Array, dtype: object) -> Array:
    phi = features(x)
    if not is_array(phi) or phi.ndim != x.ndim or phi.shape[:-1] != x.shape[:-1]:
        got = tuple(phi.shape) if is_array(phi) else type(phi).__name__
        raise ValueError(f"features must give (..., n, m) for {name} {tuple(x.shape)}; got {got}")
    return namespace(phi).astype(phi, dtype, copy=False)


def _before(state: LinearState | None, phi_k: Array, v_one: Array) -> Array | float:
    """The sums of earlier calls, values and total side by side: ``(..., m, d_v + 1)``."""
    m, d_v = phi_k.shape[-1], v_one.shape[-1] - 1
    if state is None:
        lead = broadcast_shapes(phi_k.shape[:-2], v_one.shape[:-2])
        return namespace(phi_k).zeros((*lead, m, d_v + 1), dtype=phi_k.dtype, device=phi_k.device)
    values, total = state
    if values.shape[-2:] != (m, d_v) or total.shape != values.shape[:-1]:
        got = f"values {tuple(values.shape)} and total {tuple(total.shape)}"
        raise ValueError(f"state must hold values (..., m = {m}, d_v = {d_v}) and a total (..., m); got {got}")
    return namespace(phi_k).concat([values, total[..., None]], axis=-1)


def _check(q: Array, k: Array, v: Array, mask: Array | None, causal: bool, block: int) -> None:
    check_at_least_one("block", block)
    if causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"causal needs as many keys as queries, those before them being in state; got {k.shape[-2]} keys "
            f"and {q.shape[-2]} queries"
        )
    if mask is not None:
        check_mask(mask, (*broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2]), 1, k.shape[-2]), like=q)
