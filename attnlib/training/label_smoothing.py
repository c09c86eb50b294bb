r"""Label smoothing: a target that is not quite certain, and the loss that even a perfect model has with it."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from attnlib._base.checks import check_at_least_one, check_share
from attnlib.data.text import PAD

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

__all__ = ["smoothed_cross_entropy", "smoothing_floor"]


def smoothed_cross_entropy(
    logits: Float[Tensor, "batch n n_tokens"], target: Int[Tensor, "batch n"], smoothing: float = 0.1, pad: int = PAD
) -> tuple[Float[Tensor, ""], int]:
    r"""Cross-entropy against a target that keeps ``smoothing`` back and spreads it over all tokens.

    .. math:: -\sum_t \sum_y q_t(y) \log p_t(y), \qquad q_t(y) = (1 - \varepsilon)\,[y = y_t] + \frac{\varepsilon}{n}

    Returns the sum over the tokens that are not ``pad``, and their number: the mean over a batch is the one divided by
    the other, also when the batch is shared among processes.

    Raises ``ValueError`` when ``smoothing`` is outside [0, 1) or shapes do not fit, ``TypeError`` for no number.

    Source: Szegedy et al. (2016), section 7.

    >>> import torch
    >>> total, count = smoothed_cross_entropy(torch.zeros(1, 3, 4), torch.tensor([[1, 2, PAD]]))
    >>> total / count, count
    (tensor(1.3863), 2)
    """
    from torch.nn.functional import cross_entropy

    check_share("smoothing", smoothing)
    if logits.ndim != 3 or logits.shape[:-1] != target.shape:
        raise ValueError(
            f"logits must be (batch, n, n_tokens) for a target (batch, n); got {tuple(logits.shape)} and "
            f"{tuple(target.shape)}"
        )
    rows = logits.flatten(0, 1)  # (tokens, n_tokens): quicker with the vocabulary last
    total = cross_entropy(rows, target.flatten(), ignore_index=pad, label_smoothing=smoothing, reduction="sum")
    return total, int((target != pad).sum())


def smoothing_floor(n_tokens: int, smoothing: float = 0.1) -> float:
    r"""The least mean that `smoothed_cross_entropy` can have: the entropy of the smoothed target.

    .. math:: H(q) = -\sum_y q(y) \log q(y)

    Source: as `smoothed_cross_entropy`.

    >>> smoothing_floor(30, 0.0), round(smoothing_floor(30, 0.1), 3)
    (0.0, 0.643)
    """
    check_share("smoothing", smoothing)
    other = smoothing / check_at_least_one("n_tokens", n_tokens)
    right = 1 - smoothing + other
    rest = (n_tokens - 1) * other
    return -(right * log(right) + (rest * log(other) if rest else 0.0)) + 0.0  # not -0.0
