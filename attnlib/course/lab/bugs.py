"""Twelve mistakes, each a few lines over the course's own model. If you want to find them yourself, do not read on.

A bug takes a patient and changes it: an attention goes through another function, an embedding through another
`forward`, or a part around the model is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from attnlib import masks
from attnlib.core.attention import Attended, attention
from attnlib.decoding.beam_search import BeamSearchResult
from attnlib.decoding.strategies import beam
from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from attnlib.course.lab.patients import Patient
    from attnlib.data.text import Pairs

__all__ = ["BUGS"]


def healthy(patient: Patient) -> None:
    """Nothing is wrong."""


def inverted_mask(patient: Patient) -> None:
    """A mask that is True at padding, as `torch.nn.MultiheadAttention` takes it, where True may be attended to."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, **options: Any) -> Attended:
        return attention(q, k, v, mask=None if mask is None else ~mask, **options)

    _through(attend, _of_source(patient))


def guessed_axis(patient: Patient) -> None:
    """A mask with as many rows as there are heads is taken for one with a row for each head."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, **options: Any) -> Attended:
        if mask is not None and len(mask) == q.shape[1]:
            mask = mask.transpose(0, 1)  # (batch, 1, 1, n_k) -> (1, n_heads, 1, n_k)
        return attention(q, k, v, mask=mask, **options)

    _through(attend, _of_source(patient))


def short_cache_mask(patient: Patient) -> None:
    """The mask of a step is made before the new key joins the cache, and hides it."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, **options: Any) -> Attended:
        if q.shape[-2] > 1:
            return attention(q, k, v, causal=causal, **options)
        n_k = k.shape[-2]
        return attention(q, k, v, **options | {"mask": torch.arange(n_k) < n_k - 1})

    _through(attend, _of_target(patient))


def wide_window(patient: Patient) -> None:
    """The triangle of the causal mask has one diagonal too many."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, **options: Any) -> Attended:
        window = masks.window(q.shape[-2], k.shape[-2], back=k.shape[-2], ahead=1, like=q)
        return attention(q, k, v, **options | {"mask": window})

    _through(attend, _of_target(patient))


def finite_fill(patient: Patient) -> None:
    """A mask of zeros and ones is multiplied by minus a million, which half precision does not have."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        weights: bool = True,
        **options: Any,
    ) -> Attended:
        seen = masks.combine(masks.causal(q.shape[-2], k.shape[-2], like=q) if causal else None, mask)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if seen is not None:
            scores = scores + (~seen).to(q) * torch.tensor(-1e6).to(q)
        alpha = scores.softmax(-1)
        return Attended(alpha @ v, alpha if weights else None)

    _through(attend, [*_of_source(patient), *_of_target(patient)])


def square_product(patient: Patient) -> None:
    """The matrix of a projection is used the other way round, which fits as long as it is square."""

    class Linear(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return torch.einsum("...i,ij->...j", x, self.weight) + self.bias

    for module in [*_of_source(patient), *_of_target(patient)]:
        module.out_proj.__class__ = Linear


def other_maps(patient: Patient) -> None:
    """The maps come from a second pass, which was given no mask."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, **options: Any) -> Attended:
        return attention(q, k, v, **options)

    def maps(batch: Pairs) -> Tensor:
        [module] = _of_target(patient)
        module.attend = attend
        try:
            return patient._maps(batch)
        finally:
            del module.attend

    patient.maps = maps


def dropout_stays(patient: Patient) -> None:
    """`torch.nn.functional.dropout` drops unless it is told that nobody trains."""
    for embedding in (patient.model.source_embedding, patient.model.target_embedding):
        embedding.forward = _then(partial(dropout, p=0.1), embedding.forward)


def restarted_positions(patient: Patient) -> None:
    """With a cache, every new token is told that it stands at position 0."""
    embed = patient.model.target_embedding.forward
    patient.model.target_embedding.forward = lambda tokens, start=0: embed(tokens)


def padding_in_the_loss(patient: Patient) -> None:
    """The mean is taken over all positions, padding included."""

    def loss(logits: Tensor, target: Tensor) -> tuple[Tensor, int]:
        return cross_entropy(logits.mT, target, label_smoothing=0.1, reduction="sum"), target.numel()

    patient.loss = loss


def no_shift(patient: Patient) -> None:
    """The decoder reads at each position the word that it is to predict there."""

    def read(target: Tensor) -> Tensor:
        return target

    patient.read = read


def endless_beams(patient: Patient) -> None:
    """A beam that has written its end is continued like the others."""

    def search(model: Any, source: Tensor, n_max: int, **options: Any) -> BeamSearchResult:
        words = SimpleNamespace(pad=model.config.pad, start=model.config.start, end=None)
        return beam(SimpleNamespace(prefill=model.prefill, step=model.step, config=words), source, n_max, **options)

    patient.search = search


BUGS: dict[str, Callable[[Patient], None]] = {
    "nothing": healthy,
    "inverted mask": inverted_mask,
    "guessed axis": guessed_axis,
    "short cache mask": short_cache_mask,
    "wide window": wide_window,
    "finite fill": finite_fill,
    "square product": square_product,
    "other maps": other_maps,
    "dropout stays": dropout_stays,
    "restarted positions": restarted_positions,
    "padding in the loss": padding_in_the_loss,
    "no shift": no_shift,
    "endless beams": endless_beams,
}


def _of_source(patient: Patient) -> list[MultiHeadAttention]:
    """The attentions to the source, where padding is masked."""
    model = patient.model
    own = [layer.self_attention for layer in model.encoder.layers]
    return own + [layer.cross_attention for layer in model.decoder.layers]


def _of_target(patient: Patient) -> list[MultiHeadAttention]:
    return [layer.self_attention for layer in patient.model.decoder.layers]


def _through(attend: Callable[..., Attended], modules: Iterable[MultiHeadAttention]) -> None:
    for module in modules:
        module.attend = attend


def _then(after: Callable[[Tensor], Tensor], forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *inputs: after(forward(*inputs))
