r"""What does a masked language model lose when something in it is cut? It fills gaps with and without.

.. math:: \text{loss} = -\log p(x_t \mid x \text{ with gaps at } T), \qquad t \in T
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import cross_entropy

from attnlib._base.checks import check_integers

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray as Array
    from torch import Tensor

__all__ = ["Filled", "fill_gaps"]


class Filled(NamedTuple):
    """What `fill_gaps` returns, an entry for each gap: the cross-entropy in nats, and whether the likeliest was right.

    >>> Filled._fields
    ('loss', 'right')
    """

    loss: Float[Array, " n_gaps"]
    right: Bool[Array, " n_gaps"]


def fill_gaps(
    model: Callable[..., Tensor], tokens: Int[Tensor, " n"], gaps: Sequence[Sequence[int]], gap: int, **options: object
) -> Filled:
    """Put the token ``gap`` at all positions of one entry of ``gaps``, and ask what stood there; for every entry anew.

    ``model`` takes ``(len(gaps), n)`` tokens and the ``options`` and returns logits ``(len(gaps), n, n_tokens)``. The
    result has the gaps of the first entry first.

    Raises ``ValueError`` when tokens are not one text, or a gap lies outside of it.

    >>> class Copier(torch.nn.Module):
    ...     def forward(self, tokens):
    ...         return 9.0 * torch.nn.functional.one_hot(tokens.roll(1, 1), 5)
    >>> fill_gaps(Copier(), torch.tensor([1, 1, 2, 2]), [[1], [3], [2]], gap=4).right
    array([ True,  True, False])
    """
    if tokens.ndim != 1 or not len(tokens):
        raise ValueError(f"tokens must be those of one text, of shape (n,); got {tuple(tokens.shape)}")
    places = [(i, t) for i, entry in enumerate(gaps) for t in check_integers("gaps", entry)]
    if not places or min(t for _, t in places) < 0 or max(t for _, t in places) >= len(tokens):
        raise ValueError(f"gaps must hold positions from 0 to {len(tokens) - 1}, one at least; got {gaps}")
    rows, positions = torch.tensor(places).T
    texts = tokens.repeat(len(gaps), 1)
    texts[rows, positions] = gap
    with torch.no_grad():
        logits = model(texts, **options)[rows, positions]
    loss = cross_entropy(logits, tokens[positions], reduction="none")
    return Filled(loss.cpu().numpy(), (logits.argmax(dim=-1) == tokens[positions]).cpu().numpy())
