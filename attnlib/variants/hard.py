r"""Other ways to take the sum, and another use for the weights: hard, two-level and pointing attention.

Soft attention averages over positions. Hard attention picks one. Two-level attention picks, softly, a sentence and
then a word in it. A pointer network has no values at all: the weights are its answer. The weights of all of them
are those of `attnlib.core`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib._base.arrays import Array, is_torch, namespace
from attnlib._base.checks import check_floats, check_one_of, check_positive
from attnlib.core.arguments import check_arguments, check_numbers
from attnlib.core.softmax import softmax
from attnlib.scores import masked_scores, scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

__all__ = ["Chosen", "hard_attention", "score_function_loss"]

How = Literal["sample", "argmax", "straight_through"]


class Chosen(NamedTuple):
    r"""What `hard_attention` returns: ``out`` ``(..., n_q, d_v)``, one-hot ``weights``, ``log_prob`` ``(..., n_q)``.

    .. math:: \text{out}_i = v_{j_i}, \qquad \text{log\_prob}_i = \log \alpha_{i j_i}

    >>> Chosen._fields
    ('out', 'weights', 'log_prob')
    """

    out: Array
    weights: Array
    log_prob: Array


def hard_attention(
    q: Float[Array, "... n_q d"],
    k: Float[Array, "... n_k d"],
    v: Float[Array, "... n_k d_v"],
    *,
    score: Callable[[Array, Array], Array] = scaled_dot,
    mask: Bool[Array, "... n_q n_k"] | None = None,
    how: How = "sample",
    temperature: float = 1.0,
    generator: np.random.Generator | torch.Generator | None = None,
) -> Chosen:
    r"""Each query takes the value of one position, instead of the mean over all of them.

    .. math:: \text{out}_i = v_{j_i}, \qquad j_i \sim \alpha_i = \text{softmax}(s(q_i, K))
              \quad\text{or}\quad j_i = \arg\max_j s(q_i, k_j)

    Parameters
    ----------
    q, k, v, score, mask
        As in `attnlib.attention`. A query that may attend to nothing gets weights, an output and a logarithm of zero.
    how
        "sample" draws the position, "argmax" takes the likeliest, the first of equals. Neither has a gradient by
        ``q`` and ``k`` except through ``log_prob``, for `score_function_loss`. "straight_through" (torch only) draws
        it as well, and lends it the gradient of a soft choice, in which :math:`g` is the noise of that draw, with
        Gumbel's distribution:

        .. math:: \frac{\partial\, \text{weights}_i}{\partial s} := \frac{\partial}{\partial s}
                  \text{softmax}\!\left(\frac{s_i + g_i}{\tau}\right), \qquad j_i = \arg\max_j\, (s_{ij} + g_{ij})
    temperature
        :math:`\tau` of "straight_through". What is drawn does not depend on it; to draw from a sharper softmax, give
        a score that is larger.
    generator
        A `numpy.random.Generator` or a `torch.Generator`, as the arrays are. Without one: a new one with NumPy,
        torch's own with torch.

    Raises
    ------
    ValueError, TypeError
        As `attnlib.attention`; another ``how``; a temperature that is not positive, or given where it has no effect;
        "straight_through" with NumPy arrays; a generator of the other library.

    Notes
    -----
    Source: Xu et al. (2015), section 4.1, for the sample; Jang, Gu, Poole (2017), sections 2.1 and 2.2, and Maddison,
    Mnih, Teh (2017) for the noise and its temperature.

    Examples
    --------
    >>> import numpy as np
    >>> q, k = np.array([[1.0, 0.0]]), np.eye(2)
    >>> out, weights, log_prob = hard_attention(q, k, v=np.array([[1.0], [2.0]]), how="argmax")
    >>> out, weights, np.exp(log_prob).round(2)
    (array([[1.]]), array([[1., 0.]]), array([0.67]))
    """
    library = check_arguments(q, k, v, score, mask)
    check_numbers(q, k, v, library)
    _check_choice(how, temperature, generator, like=q)
    scores = masked_scores(q, k, score, mask, library=library)  # (..., n_q, n_k)
    xp, alpha = library.xp, softmax(scores, library)
    wide = alpha if alpha.dtype.itemsize > 2 else xp.astype(alpha, xp.float32)  # half precision draws coarsely
    noise = xp.zeros_like(wide) if how == "argmax" else _gumbel(wide, generator)
    logs = xp.where(wide > 0, xp.log(xp.where(wide > 0, wide, 1.0)), -inf) + noise
    best = xp.argmax(logs, axis=-1, keepdims=True) if alpha.shape[-1] else xp.zeros(())
    one_hot = (_places(alpha) == best) & (alpha > 0)  # where nothing is allowed, nothing is chosen
    weights = xp.astype(one_hot, alpha.dtype)
    likely = xp.sum(weights * alpha, axis=-1)
    if how == "straight_through":
        soft = softmax((scores + xp.astype(noise, scores.dtype)) / temperature, library)
        weights = (soft - soft.detach()) + weights  # in this order the forward pass is exactly one-hot
    return Chosen(weights @ v, weights, xp.log(xp.where(likely > 0, likely, 1.0)))


def score_function_loss(
    log_prob: Float[Tensor, ...], reward: Float[Tensor, ...], baseline: float | Float[Tensor, ...] = 0.0
) -> Float[Tensor, ""]:
    r"""A number to minimise whose gradient is an unbiased estimate of that of minus the expected reward.

    .. math:: L = -\operatorname{mean}\big( (r - b) \log \alpha_j \big), \qquad
              \nabla\, \mathbb{E}_j [r_j] = \mathbb{E}_j\big[ (r_j - b)\, \nabla \log \alpha_j \big]

    ``reward`` :math:`r` and ``baseline`` :math:`b` are constants here, whatever they were made from. Where the reward
    has a gradient of its own, by the values or what comes after them, add minus its mean to the loss. A baseline that
    does not depend on what was drawn leaves the estimate unbiased; near the mean reward it takes away variance.

    Raises ``TypeError`` when log_prob or reward is no floating-point tensor, ``ValueError`` when their shapes differ
    or the baseline does not broadcast to them.

    Source: Williams (1992), section 4, *REINFORCE*; in attention: Xu et al. (2015), section 4.1.

    >>> import torch
    >>> score_function_loss(torch.tensor([-1.0, -2.0]), reward=torch.tensor([3.0, 1.0]), baseline=2.0)
    tensor(-0.5000)
    """
    check_floats(log_prob=log_prob, reward=reward)
    if not is_torch(log_prob):
        raise TypeError("log_prob must be a torch tensor, since its gradient is what is wanted; got a NumPy array")
    if log_prob.shape != reward.shape:
        got = f"log_prob {tuple(log_prob.shape)} and reward {tuple(reward.shape)}"
        raise ValueError(f"log_prob and reward must have one shape, a number for each choice; got {got}")
    advantage = (reward - baseline).detach()
    if advantage.shape != reward.shape:
        got = f"baseline {tuple(baseline.shape)} and reward {tuple(reward.shape)}"
        raise ValueError(f"baseline must broadcast to reward; got {got}")
    return -(advantage * log_prob).mean()


def _check_choice(how: object, temperature: float, generator: object, like: Array) -> None:
    check_one_of("how", how, get_args(How))
    check_positive("temperature", temperature)
    if how != "straight_through" and temperature != 1:
        raise ValueError(f"temperature has an effect with how='straight_through' only; got {temperature} and {how!r}")
    if how == "straight_through" and not is_torch(like):
        raise TypeError("how='straight_through' needs torch tensors, since it is about gradients; got NumPy arrays")
    if generator is not None:
        wanted = torch.Generator if is_torch(like) else np.random.Generator
        if not isinstance(generator, wanted):
            library = "torch" if is_torch(like) else "numpy.random"
            raise TypeError(f"generator must be a {library}.Generator; got {type(generator).__name__}")


def _gumbel(like: Array, generator: np.random.Generator | torch.Generator | None) -> Array:
    """Noise whose addition to log weights makes the largest of them a draw: minus the log of an exponential."""
    if is_torch(like):  # uniform numbers are the same on every CPU, which exponential_() promises nobody
        uniform = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)
        return -(-(1 - uniform).log()).clamp_min(torch.finfo(like.dtype).tiny).log()
    return (generator or np.random.default_rng()).gumbel(size=like.shape).astype(like.dtype)


def _places(like: Array) -> Array:
    return namespace(like).arange(like.shape[-1], device=like.device)
