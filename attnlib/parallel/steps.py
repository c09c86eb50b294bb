r"""One step of a language model in several processes, four ways. Each gives the loss and gradients of one process.

Every function is for all processes of a group to call (`attnlib.parallel.run`), with the same model, an
`attnlib.models.GPT`, and the same ``tokens (batch, n + 1)``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from attnlib.parallel.heads import gather_heads, shard_heads
from attnlib.parallel.ring import shard_positions
from attnlib.parallel.traffic import bytes_sent
from attnlib.training import fit

__all__ = ["Step", "alone", "heads", "next_token_loss", "positions", "texts", "train", "weights"]


class Step(NamedTuple):
    """What a step found: the loss of this process's part, whole gradients, and how many numbers it holds as weights.

    ``sent`` are the bytes that this process sent, forward and backward, and ``seconds`` what that took.

    >>> Step._fields
    ('loss', 'gradients', 'held', 'sent', 'seconds')
    """

    loss: float
    gradients: dict[str, Tensor]
    held: int
    sent: int | None
    seconds: float


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over all places of what the right token was short of certainty, in nats."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


def alone(model: nn.Module, tokens: Tensor) -> Step:
    """The step that the others must equal: all of it in one process."""
    with _measured() as spent:
        loss = next_token_loss(model(tokens[:, :-1]).logits, tokens[:, 1:])
        loss.backward()
    return Step(loss.item(), _gradients(model), _numbers(model.parameters()), *spent)


def texts(model: nn.Module, tokens: Tensor) -> Step:
    """Texts, rows of the batch, over processes; gradients are averaged."""
    shared, mine = DistributedDataParallel(model), tokens.chunk(dist.get_world_size())[dist.get_rank()]
    with _measured() as spent:
        loss = next_token_loss(shared(mine[:, :-1]).logits, mine[:, 1:])
        loss.backward()
    return Step(loss.item(), _gradients(model), _numbers(model.parameters()), *spent)


def weights(model: nn.Module, tokens: Tensor) -> Step:
    """Texts over processes, and weights too: each layer is gathered before it is used, and forgotten after."""
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    mine = tokens.chunk(dist.get_world_size())[dist.get_rank()]
    with _measured() as spent:
        loss = next_token_loss(model(mine[:, :-1]).logits, mine[:, 1:])
        loss.backward()
    held = _numbers(p.to_local() for p in model.parameters())
    return Step(loss.item(), {name: p.grad.full_tensor() for name, p in model.named_parameters()}, held, *spent)


def heads(model: nn.Module, tokens: Tensor) -> Step:
    """Heads and hidden units over processes; what they make is added up, twice a layer forward and twice backward."""
    shard_heads(model)
    with _measured() as spent:
        loss = next_token_loss(model(tokens[:, :-1]).logits, tokens[:, 1:])
        loss.backward()
    held = _numbers(p.to_local() if isinstance(p, DTensor) else p for p in model.parameters())
    return Step(loss.item(), gather_heads(model, of="gradients"), held, *spent)


def positions(model: nn.Module, tokens: Tensor) -> Step:
    """Positions over processes; keys and values go round, and gradients are averaged."""
    shard_positions(model)
    rank, size, n = dist.get_rank(), dist.get_world_size(), tokens.shape[1] - 1
    here = slice(rank * n // size, (rank + 1) * n // size)
    inputs, targets = tokens[:, :-1][:, here], tokens[:, 1:][:, here]
    with _measured() as spent:
        x = model.positional.add_to(model.table(inputs), start=here.start)
        for layer in model.layers:
            x = layer(x, causal=True, **model.positional.attention_options(n, n, like=x)).out
        loss = next_token_loss(model.lm_head(model.norm(x)), targets)
        loss.backward()
        gradients = parameters_to_vector([p.grad for p in model.parameters()]) / size
        dist.all_reduce(gradients)
    vector_to_parameters(gradients, [p.grad for p in model.parameters()])
    return Step(loss.item(), _gradients(model), _numbers(model.parameters()), *spent)


def train(
    model: nn.Module, tokens: Tensor, folder: Path, n_steps: int, killed_at: int | None = None
) -> dict[str, Tensor]:
    """The weights after ``n_steps`` on rows of ``tokens``, saved in ``folder`` at every fourth; it goes on from there.

    In the step ``killed_at`` process 2 kills itself, as a lack of memory would.
    """

    def batches(step: int) -> Tensor:
        if step == killed_at and dist.get_rank() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return tokens[(torch.arange(4) + step) % len(tokens)]

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return next_token_loss(model(batch[:, :-1]).logits, batch[:, 1:])

    fit(model, batches, loss, steps=n_steps, lr=1e-3, checkpoint=folder, save_every=4, progress=False)
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@contextmanager
def _measured() -> Iterator[list[Any]]:
    """Bytes sent inside, and seconds, from when all processes have come to its beginning until all are at its end."""
    spent: list[Any] = []
    _meet()
    before, began = bytes_sent(), perf_counter()
    yield spent
    _meet()
    now, seconds = bytes_sent(), perf_counter() - began
    spent += [None if now is None or before is None else now - before, seconds]


def _meet() -> None:
    if dist.is_initialized():
        dist.barrier()


def _gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.detach().clone() for name, p in model.named_parameters()}


def _numbers(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)
