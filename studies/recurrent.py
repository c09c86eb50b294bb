"""What lesson 05 asks of recurrent networks, five seeds each. ``make studies`` writes ``recurrent.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib.data.reversal import Reversal, copying, reversal
from attnlib.decoding import greedy
from attnlib.nn import Seq2Seq, shift_right
from attnlib.nn.recurrent import CELLS, Memory
from attnlib.training import fit, warmup_cosine
from studies.machine import described
from studies.tables import per_cent, table

SEEDS, STEPS, RATE, BATCH = range(5), 240, 8.5e-3, 96
LETTERS = {"n_symbols": 26, "distinct": True}
LENGTHS = (2, 6, 10, 14, 20)
PLACES = range(1, 11)

HEAD = f"""\
# One vector, or attention: five seeds each

Made by `make studies`, on {described()}.

Each network learns to write words of 1 to 10 different letters backwards, in batches of {BATCH}, in double precision.
Unless a column says what else, a cell has the letters that it then writes right by itself, in per cent of 200 new
words, one number a seed. Guessing gets 4. Unless something else is said: a GRU, {STEPS} steps, a largest rate of
{RATE}.
"""


def page() -> str:
    """All tables, as Markdown."""
    torch.set_default_dtype(torch.float64)
    with tqdm(total=140, desc="networks") as bar:
        return "\n".join([HEAD, size_or_time(bar), weights(bar), cells(bar), practice(bar)])


def size_or_time(bar: tqdm) -> str:
    """More numbers in the one vector, or more steps of training, or both."""
    kinds = {
        "one vector of 68": {"d_model": 68},
        "twice the steps": {"d_model": 68, "steps": 2 * STEPS},
        "four times the steps": {"d_model": 68, "steps": 4 * STEPS},
        "twice the vector": {"d_model": 136},
        "twice the vector, half the rate": {"d_model": 136, "rate": RATE / 2},
        "twice the vector, twice the steps": {"d_model": 136, "steps": 2 * STEPS},
        "attention, states of 64": {"attend": "bahdanau"},
        "attention, four times the steps": {"attend": "bahdanau", "steps": 4 * STEPS},
    }
    lengths = (4, 10, 20)
    rows = [["", "parameters", *(f"{n} letters" for n in lengths)], [":---"] + 4 * ["---:"]]
    for name, options in kinds.items():
        models = [trained(seed, bar, **options) for seed in SEEDS]
        n_parameters = sum(p.numel() for p in models[0].parameters())
        rows.append([name, f"{n_parameters:,}", *right(models, lengths)])
    return f"## The size, or the time\n\n{table(rows)}"


def weights(bar: tqdm) -> str:
    """Where the largest weight falls: in Bahdanau's attention with one thing exchanged, then on the way to Luong's.

    In Luong's the context goes to the output alone: it comes too late for the state that asked for it.
    """
    kinds = {
        "Bahdanau": {"attend": "bahdanau"},
        "read from both ends": {"attend": "bahdanau", "bidirectional": True},
        "bilinear score": {"attend": "bahdanau", "score": "general"},
        "new state asks": {"kind": ContextKept, "score": "additive"},
        "new state asks, next step gets no context": {"attend": "luong", "score": "additive"},
        "the same, and bilinear score: Luong": {"attend": "luong"},
    }
    columns = ("largest weight on the letter", "one place after it", "letters right, of ten")
    rows = [["", *columns], [":---"] + 3 * ["---:"]]
    new = reversal(200, 10, seed=(99, 10, 0), **LETTERS)
    for name, options in kinds.items():
        models = [trained(seed, bar, **options) for seed in SEEDS]
        largest = [model(new.source, None, shift_right(new.target)).weights.argmax(-1) for model in models]
        # The first letter that is written is left out: there is no place after the last.
        on = ((places == new.alignment)[:, 1:].float().mean().item() for places in largest)
        after = ((places == new.alignment + 1)[:, 1:].float().mean().item() for places in largest)
        rows.append([name, per_cent(on), per_cent(after), *right(models, [10])])
    return f"## What moves the weight\n\n{table(rows)}"


class ContextKept(Seq2Seq):
    """The new state asks, and what it got enters the next step too: of Bahdanau's model, only who asks has changed."""

    def __init__(self, n_source: int, n_target: int, **options: object) -> None:
        super().__init__(n_source, n_target, attend="luong", **options)
        self.decoder = CELLS["gru"](2 * self.d_model, self.d_model, batch_first=True)

    def _first_state(self, memory: Memory) -> tuple[Tensor, Tensor]:
        state = super()._first_state(memory)  # (1, batch, d_model)
        return state, torch.zeros_like(state)

    def _decode(
        self, tokens: Tensor, state: tuple[Tensor, Tensor], memory: Memory
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        steps = []
        for now in self.embed_target(tokens).split(1, dim=1):
            before = state[1].transpose(0, 1)  # (1, batch, d_model) -> (batch, 1, d_model)
            new, hidden = self.decoder(torch.cat([now, before], -1), state[0])
            context, weights = self._attend(new, memory)
            steps.append((new, context, weights))
            state = hidden, context.transpose(0, 1)
        states, contexts, weights = (torch.cat(parts, 1) for parts in zip(*steps, strict=True))
        return self.out(self.join(torch.cat([states, contexts], -1)).tanh()), weights, state


def cells(bar: tqdm) -> str:
    """The plain cell and the LSTM beside the GRU, with one vector and with attention."""
    rows = [["cell", "joined by", *(f"{n} letters" for n in LENGTHS)], 2 * [":---"] + len(LENGTHS) * ["---:"]]
    kinds = {
        "plain cell": ("rnn", STEPS),
        "GRU": ("gru", STEPS),
        "LSTM": ("lstm", STEPS),
        "plain cell, four times the steps": ("rnn", 4 * STEPS),
        "LSTM, four times the steps": ("lstm", 4 * STEPS),
    }
    for name, (cell, steps) in kinds.items():
        for way, options in {"one vector": {"d_model": 68}, "attention": {"attend": "bahdanau"}}.items():
            models = [trained(seed, bar, cell=cell, steps=steps, **options) for seed in SEEDS]
            rows.append([name, way, *right(models, LENGTHS)])
    return f"## Three cells\n\n{table(rows)}"


def practice(bar: tqdm) -> str:
    """Which letters of ten one vector keeps, when first steps are practised most and when all are practised alike."""
    rows = [["task", "trained on words of", *map(str, PLACES)], 2 * [":---"] + len(PLACES) * ["---:"]]
    for name, task in {"backwards": reversal, "copying": copying}.items():
        for letters, shortest in {"1 to 10 letters": 1, "10 letters": 10}.items():
            models = [trained(seed, bar, task=task, shortest=shortest, d_model=68) for seed in SEEDS]
            shares = torch.stack([_by_place(model, task) for model in models]).median(0).values
            rows.append([name, letters, *(f"{100 * share:.0f}" for share in shares)])
    says = "The letters before are given right. The median of five seeds, by the letter's place in the source:"
    return f"## What is practised\n\n{says}\n\n{table(rows)}"


def _by_place(model: Seq2Seq, task: Callable[..., Reversal]) -> Tensor:
    """The share of right letters at each place of the source, of 1,000 words of ten letters."""
    new = task(1000, len(PLACES), seed=(99, len(PLACES), 0), **LETTERS)
    with torch.no_grad():
        wrote = model(new.source, None, shift_right(new.target)).logits.argmax(-1)
    return (wrote == new.target).double().mean(0)[new.alignment[0]]


def trained(
    seed: int,
    bar: tqdm,
    *,
    task: Callable[..., Reversal] = reversal,
    shortest: int = 1,
    steps: int = STEPS,
    rate: float = RATE,
    kind: type[Seq2Seq] = Seq2Seq,
    **options: object,
) -> Seq2Seq:
    """A network as lesson 05 trains it, on words of ``shortest`` to ten letters."""
    torch.manual_seed(seed)
    model = kind(30, 30, **options)

    def batch(step: int) -> Reversal:
        return task(BATCH, shortest + step % (11 - shortest), seed=(seed, step), **LETTERS)

    fit(model, batch, loss, steps=steps, lr=rate, schedule=warmup_cosine(30, steps), progress=False)
    bar.update()
    return model


def loss(model: Seq2Seq, data: Reversal) -> Tensor:
    """Teacher forcing: the cross entropy of each next letter, given the true ones before it."""
    logits = model(data.source, data.lengths, shift_right(data.target)).logits
    return cross_entropy(logits.mT, data.target)


def right(models: Sequence[Seq2Seq], lengths: Sequence[int]) -> list[str]:
    """Letters written right by each model, reading its own; a cell of the table for each length."""
    cells = []
    for n in lengths:
        new = reversal(200, n, seed=(99, n, 0), **LETTERS)
        cells.append(per_cent((greedy(model, new.source, n) == new.target).float().mean().item() for model in models))
    return cells
