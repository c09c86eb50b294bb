"""Probes of an attention alone: is it a weighted mean, by the weights that it returns, and of scores that are scaled?

A model is here a function ``model(q, k, v)`` of queries ``(batch, n_q, d)``, keys ``(batch, n_k, d)`` and values
``(batch, n_k, d_v)``. It returns ``(batch, n_q, ...)``, or a tuple of that and its weights, ``(batch, n_q, n_k)`` or
``(batch, heads, n_q, n_k)``. In eval mode it draws random numbers only with ``random=True``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch

from attnlib.probes.influence import by_change
from attnlib.probes.outputs import UnfitError, change
from attnlib.probes.report import Report, round_two
from attnlib.probes.subject import Subject, observe, probe

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from attnlib._base.arrays import Array

__all__ = ["scaling", "weighted_mean"]


@probe
def weighted_mean(
    model: Callable,
    q: Float[Array, "batch n_q d"],
    k: Float[Array, "batch n_k d"],
    v: Float[Array, "batch n_k d_v"],
    *,
    tolerance: float | None = None,
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Is every output a weighted mean of the values, and are the weights those that are returned?

    .. math:: y_i = \sum_h \sum_j \alpha^{(h)}_{ij}\, v_j M_h + b, \qquad \alpha^{(h)}_{ij} \ge 0, \quad
              \sum_j \alpha^{(h)}_{ij} = 1

    for some matrices :math:`M_h` and a row :math:`b`, which need not be known: values and outputs may be projected.
    It is tried whether an output reads another query, as where a softmax runs over them; whether values that are all
    equal give equal outputs, as they do when weights sum to one; whether twice the change of a value is twice that of
    the output. If weights are returned, their rows are added up; and what the change of each value does to each
    output is compared with them, by least squares. A map that was made in a second pass, with other numbers or
    another dropout, or is a mean over heads, does not explain it: ``training=True`` shows the dropout, and also that
    weights are returned as they were before it, as `attnlib.attention` does.

    Raises ``TypeError`` or ``ValueError`` when an argument, the output or the weights have another shape or type.

    >>> q, k, v = torch.randn(3, 2, 4, 8)
    >>> weighted_mean(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, q, k, v)
    A weighted mean: the weights of each query sum to one (4 queries, 4 keys). They are not returned.
    >>> weighted_mean(lambda q, k, v: (q @ k.mT).softmax(-2) @ v, q, k, v).ok
    False
    """
    with observe(model, q, training=training, random=random, tolerance=tolerance, seed=seed) as subject:
        subject.pooled = False
        more = _tensors(subject, k=k, v=v)
        before = subject.baseline(*more)
        weights = _weights(subject, more[0].shape[1])
        said = _queries_apart(subject, more, before)
        said += [] if subject.is_random else _sums(subject, more)
        moved, doubled = _moved(subject, more, before)
        if change(moved.flatten(2), doubled.flatten(2) / 2).max() > 10 * subject.tolerance:
            said.append("Twice the change of a value is not twice that of the output: the weights read the values.")
        if weights is not None:
            said += [] if subject.is_random else _rows(weights, subject.tolerance)
            said += _explained(moved, weights, subject.tolerance)
    told = "They are not returned." if weights is None else "Those that are returned have made the output."
    sums = "one draw" if subject.is_random else "the weights of each query sum to one"
    fine = f"A weighted mean: {sums} ({subject.x.shape[1]} queries, {more[0].shape[1]} keys). {told}"
    matrix = None if weights is None else weights.mean((0, 1)).numpy()
    return Report("weighted_mean", not said, " ".join(said) or fine, matrix, ("key", "query"))


def _tensors(subject: Subject, **arrays: Array) -> list[Tensor]:
    found = []
    for name, x in arrays.items():
        if isinstance(x, torch.Tensor) == subject.numpy or x.ndim != 3 or len(x) != len(subject.x):
            raise ValueError(f"{name} must be (batch, n_k, d) of the library and batch of q; got {tuple(x.shape)}")
        found.append(torch.as_tensor(x).detach().clone())
    if found[0].shape[1] != found[-1].shape[1]:
        raise ValueError(f"k and v must have one length; got {found[0].shape[1]} and {found[-1].shape[1]}")
    return found


def _weights(subject: Subject, n_k: int) -> Float[Tensor, "batch heads n_q n_k"] | None:
    """Those of the latest output, if it has any."""
    output = subject.output
    found = output[1] if isinstance(output, tuple) and len(output) > 1 else getattr(output, "weights", None)
    if found is None:
        return None
    weights = torch.as_tensor(found).detach().cpu().double()
    batch, n_q = subject.x.shape[:2]
    weights = weights[:, None] if weights.ndim == 3 else weights
    if weights.ndim != 4 or weights.shape[::2] != (batch, n_q) or weights.shape[3] != n_k:
        raise ValueError(f"weights must be (batch, heads, n_q, n_k) or (batch, n_q, n_k); got {tuple(found.shape)}")
    return weights


def _queries_apart(subject: Subject, more: list[Tensor], before: Tensor) -> list[str]:
    reads = by_change(subject, before, draws=1, more=more) > subject.tolerance
    mixed = reads & ~torch.eye(len(reads), dtype=torch.bool)
    if not mixed.any():
        return []
    i, other = mixed.nonzero()[0].tolist()
    return [f"Output {i} reads query {other}: a softmax runs over the queries, or they are mixed."]


def _sums(subject: Subject, more: list[Tensor]) -> list[str]:
    """Equal values must give equal outputs, but for queries that read none."""
    k, v = more
    same = v[:, :1].expand_as(v)
    answer, other = (subject.answer(subject.x, k, values) for values in (same, 2 * same + 1))
    for y, there in zip(answer, change(answer, other) > subject.tolerance, strict=True):
        rows = y[there]
        if len(rows) and change(rows[None], rows[:1].expand_as(rows)[None]).max() > subject.tolerance:
            return ["Equal values give unequal outputs: the weights of a query do not sum to one."]
    return []


def _moved(subject: Subject, more: list[Tensor], before: Tensor) -> tuple[Tensor, Tensor]:
    """What one change of each value, and twice that change, does to each output: ``(batch, n_q, n_k, d)``."""
    k, v = more
    step = torch.randn(v.shape[2], generator=subject.generator).to(v)
    found = []
    for times in (1, 2):
        rows = []
        for j in range(v.shape[1]):
            changed = v.clone()
            changed[:, j] += times * step
            rows.append(subject.answer(subject.x, k, changed) - before)
        found.append(torch.stack(rows, dim=2))
    return found[0], found[1]


def _rows(weights: Tensor, tolerance: float) -> list[str]:
    """Weights must not be negative, and the rows of those that read anything must sum to one."""
    if weights.min() < -tolerance:
        return [f"A weight is negative: {round_two(float(weights.min()))}."]
    sums = weights.sum(-1)
    wrong = ((sums - 1).abs() > 10 * tolerance) & (sums != 0)
    if not wrong.any():
        return []
    if ((weights.sum(-2) - 1).abs() < 10 * tolerance).all():
        return ["Columns of weights sum to one, and rows do not: the softmax runs over the queries."]
    if weights.shape[1] > 1 and ((weights.sum(1) - 1).abs() < 10 * tolerance).all():
        return ["Weights sum to one over the heads, and rows do not: the softmax runs over the heads."]
    b, h, i = wrong.nonzero()[0].tolist()
    return [f"The weights of query {i} sum to {round_two(float(sums[b, h, i]))}, not to one (head {h}, sequence {b})."]


def _explained(moved: Tensor, weights: Tensor, tolerance: float) -> list[str]:
    """The changes must be sums of the weights of each head, times a row that is the same for all pairs."""
    told = weights.movedim(1, -1).flatten(0, 2)  # (batch * n_q * n_k, heads)
    seen = moved.flatten(0, 2)  # (batch * n_q * n_k, d)
    rest = seen - told @ torch.linalg.lstsq(told, seen, driver="gelsd").solution
    if rest.abs().max() <= 10 * tolerance * seen.abs().max():
        return []
    share = 1 - float(rest.square().sum() / seen.square().sum())
    return [
        f"The weights that are returned explain {share:.0%} of what the values do: they are not those that made the "
        "output, but of a second pass, before dropout, or a mean over heads."
    ]


@probe
def scaling(
    model: Callable,
    q: Float[Array, "batch n_q d"],
    k: Float[Array, "batch n_k d"],
    v: Float[Array, "batch n_k d_v"],
    *,
    project: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
    scale: float | None = None,
    tolerance: float | None = None,
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Are scores dot products, and what are they multiplied with?

    .. math:: \log \alpha_{ij} - \log \alpha_{ij'} = c\,(q_i \cdot k_j - q_i \cdot k_{j'}), \qquad
              c = \frac{1}{\sqrt{d_\text{head}}}

    ``model(q, k, v)`` returns its output and its weights. A layer that projects first says how: ``project(q, k)``
    gives its queries and keys, ``(batch, heads, n, d_head)``. ``scale`` is :math:`c` where it shall be another.
    A bias, as of positions, leaves no such :math:`c`, which is said.

    Raises ``TypeError`` or ``ValueError`` when an argument, the output or the weights have another shape or type, or
    there are no weights.

    Source: Vaswani et al. (2017), section 3.2.1.

    >>> q, k, v = torch.randn(3, 2, 4, 16)
    >>> scaling(lambda q, k, v: (v, (q @ k.mT / 4).softmax(-1)), q, k, v)
    Scores are dot products times 0.25 = 1/√16.
    >>> scaling(lambda q, k, v: (v, (q @ k.mT).softmax(-1)), q, k, v)
    Scores are dot products times 1: they are not scaled. 1/√16 would be 0.25.
    """
    with observe(model, q, training=training, random=random, tolerance=tolerance, seed=seed) as subject:
        more = _tensors(subject, k=k, v=v)
        subject.pooled = False
        subject.baseline(*more)
        weights = _weights(subject, more[0].shape[1])
        if weights is None:
            raise ValueError("model must return its weights too, as (output, weights); got no weights")
        with torch.no_grad():
            queries, keys = (subject.x, more[0]) if project is None else project(subject.x, more[0])
    dots = queries.cpu().double() @ keys.cpu().double().mT  # (batch, [heads,] n_q, n_k)
    dots = dots[:, None] if dots.ndim == 3 else dots
    c, rest = _factor(dots.expand_as(weights), weights)
    d, d_model = queries.shape[-1], subject.x.shape[-1]
    wanted = 1 / sqrt(d) if scale is None else scale
    if rest > max(1e-4, 100 * subject.tolerance):
        return Report("scaling", False, "Scores are no dot products times one number: a bias, or another score.")
    name = f"1/√{d}" if scale is None else "what was asked"
    said = f"Scores are dot products times {round_two(c)}"
    if abs(c - wanted) <= max(1e-3, 100 * subject.tolerance) * wanted:
        return Report("scaling", True, f"{said} = {name}.")
    known = {"they are not scaled": 1.0, "they are divided by d, not by √d": 1 / d}
    known |= {"they are divided by √d_model, not by √d_head": 1 / sqrt(d_model)} if d_model != d else {}
    why = next((f": {words}" for words, value in known.items() if np.isclose(c, value, rtol=1e-3)), "")
    return Report("scaling", False, f"{said}{why}. {name} would be {round_two(wanted)}.")


def _factor(dots: Tensor, weights: Tensor) -> tuple[float, float]:
    """The number by which dot products become logarithms of weights, and the largest rest; hidden keys apart."""
    seen = weights > 0
    many = seen.sum(-1, keepdim=True).clamp_min(1)

    def centred(x: Tensor) -> Tensor:
        x = torch.where(seen, x, 0.0)
        return torch.where(seen, x - x.sum(-1, keepdim=True) / many, 0.0)

    x, y = centred(dots), centred(weights.clamp_min(torch.finfo(weights.dtype).tiny).log())
    if not x.square().sum():
        raise UnfitError("No query reads two keys, so that scores cannot be compared.")
    c = float((x * y).sum() / x.square().sum())
    return c, float((y - c * x).abs().max() / y.abs().max().clamp_min(1e-12))
