"""A model whose layers are one, as a model whose layers are copies of it: so that one of them can be changed alone."""

from __future__ import annotations

from dataclasses import replace

from attnlib.models.bert import BERT

__all__ = ["unshared"]


def unshared(model: BERT) -> BERT:
    """The same function, with a layer of its own at every depth: all equal, until one is cut or trained.

    Raises ``TypeError`` for anything but a `BERT`, ``ValueError`` where the layers are not shared.

    >>> from attnlib.models import BERTConfig
    >>> small = BERT(BERTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=3, share_layers=True))
    >>> len(small.layers), len(unshared(small).layers)
    (1, 3)
    """
    if not isinstance(model, BERT):
        raise TypeError(f"model must be a BERT; got {type(model).__name__}")
    if not model.config.share_layers:
        raise ValueError(
            "model must have one layer for all depths, share_layers=True; got a model with its own for each"
        )
    copy = BERT(replace(model.config, share_layers=False)).to(next(model.parameters()))
    weights = model.state_dict()
    for name in copy.state_dict():
        if name.startswith("layers."):
            weights[name] = weights["layers.0." + name.split(".", 2)[2]]
    copy.load_state_dict(weights)
    return copy.train(model.training)
