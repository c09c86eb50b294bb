r"""Interventions: change one thing inside a model while it runs, and see what becomes of its answer.

A map of weights says where a model's attention was. Whether the answer came from there, only an intervention can say:
`cut` closes chosen places of an attention, `patch` puts another input's rows where this one's were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch
from torch import Tensor, nn

from attnlib._base.checks import check_integers, check_size
from attnlib.nn.foreign import as_keywords, diverted, is_published
from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Closing = Callable[[int, int, int, int], Bool[Tensor, "batch n_heads n_q n_k"]]
    Positions = Sequence[int | Sequence[int]] | Tensor | None

__all__ = ["cut", "patch"]


@contextmanager
def cut(
    attentions: nn.Module | Iterable[nn.Module],
    query: Positions,
    key: Positions,
    *,
    heads: Sequence[int] | None = None,
) -> Iterator[None]:
    r"""Inside the ``with``, no weight goes from position ``query[b]`` to ``key[b]`` of sequence b; others grow to one.

    .. math:: \alpha_{ij} = \frac{m_{ij} \exp s_{ij}}{\sum_{j'} m_{ij'} \exp s_{ij'}}, \qquad
              m_{ij} = 0 \text{ for i in query, j in key}

    ``query`` and ``key`` hold one entry for each sequence of the batch: a position, or a list of them. None stands for
    all positions. ``heads`` names some of the heads; all of them, unless given. A query with nothing left gets zeros.

    ``attentions`` are `attnlib.nn.MultiHeadAttention`, `torch.nn.MultiheadAttention` (where a query with nothing left
    would get NaN, and is refused), or those attentions of models of `transformers` that look up by name the function
    that attends (its ``AttentionInterface``), such as those at ``bert.encoder.layer[0].attention.self``,
    ``gpt.transformer.h[0].attn`` and ``t5.decoder.block[0].layer[0].SelfAttention``; Bloom, DeBERTa, Falcon, RoFormer
    and XLNet are written without. Fast kernels are switched off where they take no such mask.

    Raises ``TypeError`` for anything else, ``ValueError`` for none at all, for a head or a position that is not
    there, another number of sequences, or a model that runs with a cache, and so not on all positions.

    Source: Geva et al. (2023), *attention knockout*.

    >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    >>> with cut(layer, query=[0], key=[[1, 2]]):
    ...     weights = layer(x, weights=True).weights
    >>> weights[0, :, 0].tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    several = isinstance(attentions, Iterable) and not isinstance(attentions, nn.Module | str)
    layers = list(attentions) if several else [attentions]
    if not layers:
        raise ValueError("attentions must hold at least one; got none")
    heads = None if heads is None else check_integers("heads", heads)
    for layer in layers:
        _check_kind(layer)
        sizes = (getattr(layer, name, None) for name in ("n_heads", "num_heads", "num_attention_heads"))
        _check_heads(heads, next(filter(None, sizes), None))
    close = partial(_closed, query, key, heads)
    with ExitStack() as stack:
        for layer in layers:
            if is_published(layer):
                stack.enter_context(diverted(layer, close=partial(_without_cache, layer, close)))
            else:
                ours = isinstance(layer, MultiHeadAttention)
                hook = partial(_close_ours if ours else _close_torchs, close)
                stack.callback(layer.register_forward_pre_hook(hook, with_kwargs=True).remove)
        yield


@contextmanager
def patch(module: nn.Module, position: Positions, rows: Float[Tensor, "batch n d"]) -> Iterator[None]:
    r"""Inside the ``with``, ``module`` gives at ``position[b]`` of sequence b what ``rows`` has there.

    .. math:: y_i = \begin{cases} \text{rows}_i & i \text{ in position} \\ \text{module}(x)_i & \text{elsewhere}
              \end{cases}

    For a module that returns ``(batch, n, d)``, or a tuple that begins with it: run it on another input first, keep
    what it gave, and put some of that in.

    Raises ``ValueError`` when ``rows`` has another shape than the output, or a position is not there.

    Source: Geiger et al. (2021), *interchange intervention*.

    >>> layer, x = nn.Linear(4, 4), torch.randn(1, 3, 4)
    >>> with patch(layer, position=[0], rows=torch.zeros(1, 3, 4)):
    ...     (layer(x) == 0).all(dim=-1)
    tensor([[ True, False, False]])
    """

    def replaced(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        own = output[0] if isinstance(output, tuple) else output
        if own.ndim != 3 or rows.shape != own.shape:
            raise ValueError(
                "rows and the output must have one shape, (batch, n, d); "
                f"got {tuple(rows.shape)} and {tuple(own.shape)}"
            )
        here = _marked("position", position, len(own), own.shape[-2]).to(own.device)
        new = torch.where(here[..., None], rows.to(own), own)
        if not isinstance(output, tuple):
            return new
        return type(output)(new, *output[1:]) if hasattr(output, "_fields") else (new, *output[1:])

    hook = module.register_forward_hook(replaced)
    try:
        yield
    finally:
        hook.remove()


def _closed(
    query: Positions, key: Positions, heads: Sequence[int] | None, batch: int, n_heads: int, n_q: int, n_k: int
) -> Bool[Tensor, "batch n_heads n_q n_k"]:
    """True where nothing may be read."""
    _check_heads(heads, n_heads)
    asks, answers = _marked("query", query, batch, n_q), _marked("key", key, batch, n_k)
    chosen = torch.zeros(n_heads, dtype=torch.bool)
    chosen[list(range(n_heads) if heads is None else heads)] = True
    return asks[:, None, :, None] & answers[:, None, None, :] & chosen[:, None, None]


def _check_kind(layer: object) -> None:
    if isinstance(layer, MultiHeadAttention | nn.MultiheadAttention):
        return
    if not isinstance(layer, nn.Module) or not is_published(layer):
        raise TypeError(
            "attentions must be MultiHeadAttention of attnlib, MultiheadAttention of torch or attentions of "
            "transformers that look up the function that attends in its AttentionInterface, as those of BERT, GPT-2 "
            f"and Llama do; got {type(layer).__name__}, which is none of these"
        )


def _check_heads(heads: Sequence[int] | None, n_heads: int | None) -> None:
    for head in heads or ():
        if check_size("heads", head) >= (n_heads or head + 1):  # unknown until it runs
            raise ValueError(f"heads must lie between 0 and {n_heads - 1}; got {head}")


def _without_cache(layer: nn.Module, close: Closing, batch: int, n_heads: int, n_q: int, n_k: int) -> Tensor:
    if n_q != n_k and getattr(layer, "is_causal", False):
        raise ValueError("cut needs all positions at once: run the model without a cache")
    return close(batch, n_heads, n_q, n_k)


def _close_ours(close: Closing, layer: MultiHeadAttention, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Close these places in the mask of a layer that is about to run."""
    if options.get("cache") is not None:
        raise ValueError("cut needs all positions at once: run the model without a cache")
    x_q = args[0] if args else options["x_q"]
    if x_q.ndim != 3:
        raise ValueError(f"cut needs inputs of shape (batch, n, d_model); got {tuple(x_q.shape)}")
    x_k = args[1] if len(args) > 1 else options.get("x_k")
    closed = close(len(x_q), layer.n_heads, x_q.shape[-2], (x_q if x_k is None else x_k).shape[-2]).to(x_q.device)
    mask = options.get("mask")
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None]  # the same for every head
    return args, options | {"mask": ~closed if mask is None else mask & ~closed}


def _close_torchs(close: Closing, layer: nn.MultiheadAttention, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The same for torch's layer, whose masks are True, or -inf, where nothing may be read."""
    given = as_keywords(layer, args, options)
    x_q, x_k, mask, padding = (given.get(name) for name in ("query", "key", "attn_mask", "key_padding_mask"))
    if x_q.is_nested:
        raise ValueError("cut needs plain tensors: give nn.TransformerEncoder enable_nested_tensor=False")
    if x_q.ndim != 3:
        raise ValueError(f"cut needs inputs with a batch, of three axes; got {tuple(x_q.shape)}")
    batch, n_q = x_q.shape[:2] if layer.batch_first else x_q.shape[1::-1]
    n_k = x_k.shape[1 if layer.batch_first else 0]
    closed = close(batch, layer.num_heads, n_q, n_k).to(x_q.device)
    total = torch.zeros(closed.shape, dtype=x_q.dtype, device=x_q.device)  # (batch, n_heads, n_q, n_k)
    if mask is not None:
        total = total + _added(mask if mask.ndim == 2 else mask.view_as(total), total)
    before = total if padding is None else total + _added(padding[:, None, None, :], total)
    lost = (before.masked_fill(closed, -torch.inf) == -torch.inf).all(-1) & (before > -torch.inf).any(-1)
    if lost.any():
        b, _, i = lost.nonzero()[0].tolist()
        raise ValueError(
            f"cut leaves query {i} of sequence {b} nothing to read, for which torch's MultiheadAttention gives NaN. "
            "attnlib.MultiHeadAttention.from_torch gives zeros"
        )
    added = {"attn_mask": total.masked_fill(closed, -torch.inf).flatten(0, 1), "is_causal": False}
    if padding is not None:
        added["key_padding_mask"] = _added(padding, total)
    return (), given | added


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of torch's in numbers that are added to the scores."""
    if mask.dtype != torch.bool:
        return mask.to(like)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, -torch.inf)


def _marked(name: str, positions: Positions, batch: int, n: int) -> Bool[Tensor, "batch n"]:
    """True at the positions of each sequence."""
    if positions is None:
        return torch.ones(batch, n, dtype=torch.bool)
    positions = positions.tolist() if hasattr(positions, "tolist") else positions
    positions = list(positions) if isinstance(positions, Iterable) else [positions]
    if len(positions) != batch:
        raise ValueError(f"{name} must hold an entry for each of the {batch} sequences; got {len(positions)}")
    marked = torch.zeros(batch, n, dtype=torch.bool)
    for row, entry in zip(marked, positions, strict=True):
        for position in check_integers(name, entry if isinstance(entry, Sequence) else [entry]):
            if check_size(name, position) >= n:
                raise ValueError(f"{name} must hold positions from 0 to {n - 1}; got {position}")
            row[position] = True
    return marked
