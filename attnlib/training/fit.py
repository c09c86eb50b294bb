r"""Training: one loop for every model of the course, which can be stopped at any moment and gone on with exactly.

`fit` takes a model, batches and a loss, and returns a `History`. The same seed gives the same weights, bit for bit,
on one machine; with ``checkpoint``, also when the run was interrupted, or killed, in between; by several processes
as by one, if torchrun starts them. Weights are kept as safetensors, so that no file is able to run code when read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from attnlib.training.arguments import Settings, check_model
from attnlib.training.distributed import joined
from attnlib.training.history import History
from attnlib.training.interrupts import Interrupts
from attnlib.training.random_state import own_stream
from attnlib.training.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

__all__ = ["fit"]

Model = TypeVar("Model", bound="Module")
Batch = TypeVar("Batch")


def fit(
    model: Model,
    batches: Callable[[int], Batch],
    loss: Callable[[Model, Batch], Tensor | tuple[Tensor, Tensor | float]],
    *,
    steps: int,
    lr: float = 3e-3,
    optimizer: Callable[[Iterable[Tensor], float], Optimizer] | None = None,
    schedule: Callable[[int], float] | None = None,
    clip: float | None = 1.0,
    seed: int = 0,
    metrics: Mapping[str, Callable[[Model], float]] | None = None,
    every: int = 50,
    patience: int | None = None,
    watch: str = "lowest loss",
    checkpoint: str | Path | None = None,
    save_every: int = 100,
    progress: bool | Callable[[float], str] = True,
) -> History:
    r"""Train ``model`` in place, and say how it went.

    .. math:: \theta_{s+1} = \theta_s - \text{lr} \cdot \text{schedule}(s) \cdot
              \text{optimizer}(\nabla_\theta \, \text{loss}(\theta_s, \text{batch}_s))

    Parameters
    ----------
    model
        Any module; parameters that need no gradient stay as they are. It is trained in training mode, and left in
        evaluation mode, ready to be used.
    batches
        A function from the step, 0, 1, 2, …, to its batch. Not an iterator: step 700 must have the same batch
        whether or not steps 0 to 699 ran in this process, or a run that goes on would see other data.
        `attnlib.data.text.by_length` makes one, and so does ``lambda step: reversal(32, 8, seed=(0, step))``. What it
        draws at random must come from the step, or from torch. Tensors in the batch are moved to the device of the
        model.
    loss
        ``loss(model, batch)`` gives one number, a tensor with a gradient: a mean over the rows of the batch. Or two, a
        sum and how many terms it has; then sum / count is the loss. Write it so where rows have different numbers of
        terms, as sentences have: several processes can add up sums and counts, while a mean of their means would not
        be that of the batch.
    steps
        How many steps in all, those of a checkpoint included.
    lr, optimizer
        ``optimizer(parameters, lr)`` makes it; by default `torch.optim.AdamW` with betas of 0.9 and 0.98 and a
        weight decay of 0.01.
    schedule
        A function from the step to a factor on ``lr``, as `warmup_cosine` makes one.
    clip
        The largest norm of the gradient, to which a longer one is shortened; None leaves all as they are.
    seed
        Of the random numbers that training draws from torch (dropout). The caller's go on as if none had been.
    metrics, every
        ``{name: function of the model}``, looked at whenever ``every`` more steps are taken, and at the end, in
        evaluation mode, without gradients. What they draw at random has no effect on training.
    patience, watch
        Stop when ``patience`` looks in a row brought nothing better. ``watch`` says what is better: "highest
        accuracy" or "lowest error", for a metric of that name, or "lowest loss", the mean of the training loss
        since the look before.
    checkpoint, save_every
        A folder: every ``save_every`` steps, and at the end, all that the run is is written there. When there is
        something already, the run goes on from it, exactly as it would have gone; more ``steps`` than before are
        fine, other settings are an error. A crash, also while it is being written, leaves it whole.
    progress
        Show a bar while it runs. ``TQDM_DISABLE=1`` in the environment turns all of them off. A function from the
        terms of the loss that were trained on in a second, as tokens are, to words puts these beside the bar.

    Raises
    ------
    TypeError, ValueError
        Arguments of the wrong kind or out of range; a loss that is neither one number nor two; a checkpoint of
        another run, with what differs; a batch that cannot be shared by several processes.
    RuntimeError
        Another of the processes failed, which says why.
    FloatingPointError
        The loss or its gradient is NaN or infinite. The message names the step; the model is as it was before it.

    Notes
    -----
    An interruption (Ctrl-C, a notebook's stop button) is no error here: the step is finished, a checkpoint written,
    and the history of what was trained returned, with ``interrupted`` set. A second one breaks off the step too,
    without a trace of it in the model. With a checkpoint, calling again goes on; without one, it begins another
    run, from the weights as they are.

    Started by ``torchrun --nproc-per-node=4 script.py``, or where the caller has made a process group, 4 processes
    train the model together, each of which calls `fit` alike. All ask for the whole batch of a step, whose random
    numbers then come from the step alone; process r takes rows r, r + 4, … of every tensor in it (a batch is a tensor,
    or a tuple, list, dict or dataclass of them). The gradient is that of the whole batch, so that losses and weights
    are as in one process up to rounding. What is not: dropout, for which each has its own random numbers, and batch
    normalisation, which sees a share. Process 0 begins with its weights, looks at the metrics and writes the
    checkpoint, in a folder that all can read. To go on with another number of processes is no error; exactly as it
    would have gone it goes on with the same. An interruption of one, or a SIGTERM, is one of all. On GPUs, put the
    model of each on a GPU of its own: ``model.to(f"cuda:{os.environ['LOCAL_RANK']}")``.

    Source: Loshchilov, Hutter (2019) for AdamW; Pascanu, Mikolov, Bengio (2013), section 3.2, for the clipping;
    Li et al. (2020), *PyTorch Distributed*, section 3, for the gradients of several processes.

    Examples
    --------
    >>> from torch import nn
    >>> import torch
    >>> x = torch.linspace(-1, 1, 20)[:, None]
    >>> model = nn.Linear(1, 1)
    >>> history = fit(model, lambda step: x, lambda model, x: ((model(x) - 3 * x) ** 2).mean(), steps=300, lr=0.1)
    >>> history.steps, round(model.weight.item(), 2)
    (300, 3.0)
    """
    check_model(model)
    settings = Settings(
        batches,
        loss,
        steps,
        lr,
        optimizer,
        schedule,
        clip,
        seed,
        metrics,
        every,
        patience,
        watch,
        checkpoint,
        save_every,
    )
    with joined(model) as processes:
        run = Run(model, settings, processes)
        model.train()
        try:
            return _trained(run, progress)
        finally:
            run.end()
            model.eval()


def _trained(run: Run, progress: bool | Callable[[float], str]) -> History:
    processes, steps = run.processes, run.settings.steps
    with own_stream(run.model, processes.seed(run.settings.seed)), Interrupts(processes.size > 1) as interrupts:
        run.resume()
        try:
            with _bar(steps, run.history.steps, progress if processes.rank == 0 else False) as tick:
                run.go(interrupts, tick)
        except KeyboardInterrupt:
            if interrupts.holding or processes.size > 1:  # an update was torn, and there is no way back
                raise
            interrupts.wanted = True
        return run.finish(interrupts)


@contextmanager
def _bar(steps: int, done: int, progress: bool | Callable[[float], str]) -> Iterator[Callable[[float, float], None]]:
    # In a notebook tqdm does not look at the variable by itself. And even a bar that is off takes a lock which all
    # processes share that were forked from one: should one of them be killed just then, the others wait for ever.
    if not progress or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        yield lambda loss, terms: None
        return
    from tqdm.auto import tqdm  # here, since it looks at the notebook it is in

    with tqdm(total=steps, initial=done, leave=False, desc="training") as bar:
        total, started = 0.0, perf_counter()

        def tick(loss: float, terms: float) -> None:
            nonlocal total
            total += terms
            said = [f"loss {loss:.3g}"]
            if callable(progress):
                said.append(progress(total / (perf_counter() - started)))
            bar.set_postfix_str(", ".join(said), refresh=False)
            bar.update()

        yield tick
