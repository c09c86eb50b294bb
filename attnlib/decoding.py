r"""Decoding: from a model that says how likely each next token is, to a sequence.

.. math:: y_t = \arg\max_y \; p(y \mid y_{<t}, x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib._checks import check_at_least_one
from attnlib.transformer import Transformer

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["greedy"]


@torch.no_grad()
def greedy(model: Transformer, source: Int[Tensor, "batch n_source"], n_max: int) -> Int[Tensor, "batch n"]:
    r"""The likeliest next token, again and again, until every sequence has ended or ``n_max`` tokens are written.

    .. math:: y_t = \arg\max_y \; p(y \mid y_{<t}, x), \qquad y_0 = \text{start}

    The start is not returned; an end is, and after it stands padding. The source is read once and every target
    position once, thanks to the cache. The model is in evaluation mode meanwhile.

    Raises ``TypeError`` or ``ValueError`` as `attnlib.transformer.Transformer`, and when ``n_max`` is below one.

    Source: Sutskever, Vinyals, Le (2014), section 3.2, with a beam of one.

    >>> from attnlib.transformer import TransformerConfig
    >>> model = Transformer(TransformerConfig(n_source=9, n_target=9, d_model=8, n_heads=2))
    >>> greedy(model, torch.tensor([[4, 5, 6]]), n_max=4).shape[0]
    1
    """
    n_max, config = check_at_least_one("n_max", n_max), model.config
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        state = model.remember(source, n_max)
        token = torch.full((len(source), 1), config.start, dtype=source.dtype, device=source.device)
        ended, written = torch.zeros_like(token, dtype=torch.bool), []
        while len(written) < n_max and not ended.all():
            token = model.step(token, state).argmax(-1).where(~ended, config.pad)
            written.append(token)
            ended |= token == config.end
    finally:
        for module, mode in modes:
            module.training = mode
    return torch.cat(written, dim=1)
