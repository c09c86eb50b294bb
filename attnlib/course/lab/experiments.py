"""Experiments on a patient: each changes one thing that should not matter, and says what moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch

from attnlib.course.lab.patients import Patient
from attnlib.data.text import END, FIRST, PAD
from attnlib.nn.tokens import shift_right
from attnlib.nn.transformer import Transformer
from attnlib.probes import Report, attention_maps, first_difference, padded_loss, step_by_step

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "EXPERIMENTS",
    "NUMBERS",
    "answer",
    "batch",
    "beams",
    "falls",
    "first",
    "half",
    "loss",
    "maps",
    "padding",
    "reference",
    "sizes",
    "steps",
    "twice",
]

NUMBERS = (7, 21, 342, 905)  # four of different lengths


@torch.no_grad()
def falls(one: Patient) -> Report:
    """Is the loss lower after training than before?

    >>> from attnlib.course.lab import patient
    >>> falls(patient(1))
    The loss falls.
    """
    ok = sum(one.history.loss[-10:]) < sum(one.history.loss[:10])
    return _report("falls", ok, "The loss falls.", "The loss does not fall.")


@torch.no_grad()
def twice(one: Patient) -> Report:
    """Does the same question get the same answer?

    >>> from attnlib.course.lab import patient
    >>> twice(patient(1))
    Asked twice, it gives the same logits.
    """
    asked = one.batch(*NUMBERS)
    ok = _same(one.logits(asked), one.logits(asked))
    return _report("twice", ok, "Asked twice, it gives the same logits.", "Asked twice, it gives two answers.")


@torch.no_grad()
def answer(one: Patient) -> Report:
    """Does the prediction of word t depend on word t, or on a later one?

    >>> from attnlib.course.lab import patient
    >>> answer(patient(1))
    No prediction changes with the word that it is to predict, or with a later one.
    """
    asked = one.batch(342)
    before, leaks = one.logits(asked)[0], []
    for s in range(len(before)):
        target = asked.target.clone()
        target[0, s] = FIRST + (target[0, s] - FIRST + 1) % 8  # another word
        after = one.logits(asked._replace(target=target))[0]
        leaks += [(t, s) for t in range(s + 1) if not _same(before[t], after[t])]
    found = f"The prediction of word {leaks[0][0]} changes with word {leaks[0][1]} of the answer." if leaks else ""
    well = "No prediction changes with the word that it is to predict, or with a later one."
    return _report("answer", not leaks, well, found)


@torch.no_grad()
def padding(one: Patient) -> Report:
    """Does padding after the source change anything?

    >>> from attnlib.course.lab import patient
    >>> padding(patient(1))
    Two places of padding after the source change nothing.
    """
    asked = one.batch(342)
    longer = torch.cat([asked.source, asked.source.new_full((1, 2), PAD)], dim=1)
    ok = _same(one.logits(asked), one.logits(asked._replace(source=longer)))
    found = "Two places of padding after the source change the logits."
    return _report("padding", ok, "Two places of padding after the source change nothing.", found)


@torch.no_grad()
def batch(one: Patient) -> Report:
    """Is each of four numbers, of different lengths, answered as if it were alone?

    >>> from attnlib.course.lab import patient
    >>> batch(patient(1))
    Each of four is answered as if it were alone.
    """
    together, wrong = one.logits(one.batch(*NUMBERS)), []
    for row, n in zip(together, NUMBERS, strict=True):
        alone = one.logits(one.batch(n))[0]
        wrong += [] if _same(alone, row[: len(alone)]) else [n]
    found = f"In a batch of four, the answer changes for {', '.join(map(str, wrong))}."
    return _report("batch", not wrong, "Each of four is answered as if it were alone.", found)


def steps(one: Patient) -> Report:
    """Do single steps with the cache give what the whole pass gives?

    >>> from attnlib.course.lab import patient
    >>> steps(patient(1))
    Step by step it gives the same as all at once (5 positions).
    """
    asked = one.batch(342)

    def step(tokens: Tensor, state: object) -> tuple[Tensor, object]:
        state = one.model.prefill(asked.source, n_max=8) if state is None else state
        return one.model.step(tokens, state), state

    return step_by_step(lambda target: one.model(asked.source, target).logits, step, shift_right(asked.target))


@torch.no_grad()
def first(one: Patient) -> Report:
    """The same for the first step alone, when nothing is in the cache yet.

    >>> from attnlib.course.lab import patient
    >>> first(patient(1))
    The first step alone gives what the whole pass gives.
    """
    asked = one.batch(342)
    target = shift_right(asked.target)
    stepped = one.model.step(target[:, :1], one.model.prefill(asked.source, n_max=8))
    ok = _same(one.model(asked.source, target).logits[:, :1], stepped)
    found = "The first step alone differs from the whole pass."
    return _report("first", ok, "The first step alone gives what the whole pass gives.", found)


@torch.no_grad()
def loss(one: Patient) -> Report:
    """Does the loss leave the padding of the target out, and count all else?

    >>> from attnlib.course.lab import patient
    >>> loss(patient(1))
    The loss leaves the padding out (14 of 20 positions are real).
    """
    asked = one.batch(*NUMBERS)
    real, (_, counted) = int((asked.target != PAD).sum()), one.loss(one.logits(asked), asked.target)
    if counted < real:
        return Report("loss", False, f"The loss counts {counted} positions, but {real} have a word.")

    def mean(logits: Tensor, target: Tensor) -> Tensor:
        total, count = one.loss(logits, target)
        return total / count

    return padded_loss(mean, one.logits(asked), asked.target, asked.target_lengths)


@torch.no_grad()
def sizes(one: Patient) -> Report:
    """Does it run with four heads of width 5, 20 in all, though its rows have 32?

    >>> from attnlib.course.lab import patient
    >>> sizes(patient(1))
    With heads of width 5, 20 in all where rows have 32, it runs.
    """
    said = "With heads of width 5, 20 in all where rows have 32, it"
    try:
        one.untrained(d_head=5).logits(one.batch(*NUMBERS))
    except (RuntimeError, ValueError) as error:
        return Report("sizes", False, f"{said} does not run: {str(error).partition(chr(10))[0]}.")
    return Report("sizes", True, f"{said} runs.")


@torch.no_grad()
def reference(one: Patient) -> Report:
    """Does the course's own model, with the patient's weights, answer the same?

    >>> from attnlib.course.lab import patient
    >>> reference(patient(1))
    The course's model gives the same logits with these weights.
    """
    asked = one.batch(342)
    target = shift_right(asked.target)
    with torch.random.fork_rng(devices=[]):
        course = Transformer(one.model.config).to(one.model.lm_head.weight).eval()
    course.load_state_dict(one.model.state_dict())
    ok = _same(one.model(asked.source, target).logits, course(asked.source, target).logits)
    found = "The course's model gives other logits with these weights. "
    found += first_difference(one.model, course, asked.source, target).sentence
    return _report("reference", ok, "The course's model gives the same logits with these weights.", found)


@torch.no_grad()
def half(one: Patient) -> Report:
    """Are the logits finite in half precision, too?

    >>> from attnlib.course.lab import patient
    >>> half(patient(1))
    In half precision its logits are numbers.
    """
    state = {name: weights.clone() for name, weights in one.model.state_dict().items()}
    found = "In half precision its logits are NaN."
    try:
        one.model.half()
        ok = bool(one.logits(one.batch(*NUMBERS)).isfinite().all())
    except ValueError:  # attention refuses NaN
        ok = False
    except RuntimeError as error:
        ok, found = False, f"In half precision it does not run: {error}."
    finally:
        one.model.double().load_state_dict(state)
    return _report("half", ok, "In half precision its logits are numbers.", found)


@torch.no_grad()
def maps(one: Patient) -> Report:
    """Do the maps that it shows come from the pass that made the output?

    >>> from attnlib.course.lab import patient
    >>> maps(patient(2))
    Its maps are those of the pass that made the output.
    """
    asked = one.batch(342)
    made = attention_maps(one.model, asked.source, one.read(asked.target))["decoder.layers.0.self_attention"]
    found = "Its maps are not those of the pass that made the output."
    return _report("maps", _same(one.maps(asked), made), "Its maps are those of the pass that made the output.", found)


def beams(one: Patient) -> Report:
    """Does only padding follow the end of each of four beams?

    >>> from attnlib.course.lab import patient
    >>> beams(patient(1))
    Nothing but padding follows the end of a beam.
    """
    found = one.search(one.model, one.batch(*NUMBERS).source, 8, width=4, n_best=4).tokens
    ended = (found == END).int()
    behind = (ended.cumsum(-1) - ended) > 0
    said = "More tokens follow the end of a beam."
    ok = bool((found[behind] == PAD).all())
    return _report("beams", ok, "Nothing but padding follows the end of a beam.", said)


_IN_ORDER = (falls, twice, answer, padding, batch, steps, first, loss, sizes, reference, half, maps, beams)
EXPERIMENTS: dict[str, Callable[[Patient], Report]] = {ask.__name__: ask for ask in _IN_ORDER}  # all, by name


def _report(name: str, ok: bool, well: str, found: str) -> Report:
    return Report(name, ok, well if ok else found)


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-6, atol=1e-8)
