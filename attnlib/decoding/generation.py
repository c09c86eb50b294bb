"""What greedy decoding, beams, sampling and streams share: how a model that writes begins, and how it is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from attnlib._base.checks import check_at_least_one
from attnlib._base.renamed import say_renamed
from attnlib.data.text import END, PAD, START
from attnlib.nn.tokens import check_tokens

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = [
    "Choose",
    "Prompted",
    "SequenceModel",
    "SpecialTokens",
    "evaluating",
    "generate",
    "read_prompt",
    "special_tokens",
    "stream_tokens",
]


Choose = Callable[[Tensor], Tensor]  # from logits (batch, vocabulary) to a token for each row


class SequenceModel(Protocol):
    """A model that can be decoded from: `attnlib.nn.Transformer`, `attnlib.nn.Seq2Seq`, or yours."""

    def prefill(self, source: Any, n_max: int) -> Any:
        """Read the source, and make room for ``n_max`` positions: a state. For beams it has ``select(rows)``.

        Of a model that goes on with the source itself, ``config.start`` is None, and its last token is read later.
        """

    def step(self, tokens: Int[Tensor, "batch n"], state: Any) -> Float[Tensor, "batch n vocabulary"]:
        """Logits after each of the next tokens, which join those that ``state`` has seen."""


class SpecialTokens(NamedTuple):
    """The tokens that are no words.

    Without a ``start``, a text goes on after the last token of the source; without an ``end``, it goes on.
    """

    pad: int
    start: int | None
    end: int | None


class Prompted(NamedTuple):
    """A model that has read the source, the start and the prompt; ``logits`` ``(batch, vocabulary)`` say what next."""

    state: Any
    logits: Float[Tensor, "batch vocabulary"]
    prompt: Int[Tensor, "batch n"]


def special_tokens(model: object) -> SpecialTokens:
    """Those of ``model.config``, or else of `attnlib.data.text`; without padding, what has ended is filled with ends.

    >>> special_tokens(object())
    SpecialTokens(pad=0, start=1, end=2)
    """
    config = getattr(model, "config", None)
    names = zip(SpecialTokens._fields, (PAD, START, END), strict=True)
    words = SpecialTokens(*(getattr(config, name, usual) for name, usual in names))
    return words if words.pad is not None else words._replace(pad=words.end or 0)


def read_prompt(
    model: SequenceModel, source: Int[Tensor, "batch n_source"], n_max: int, prompt: Tensor | None
) -> Prompted:
    """Read what is there. Raises as `attnlib.decoding.greedy` says.

    >>> from attnlib.nn.recurrent import Seq2Seq
    >>> read_prompt(Seq2Seq(9, 7), torch.tensor([[4, 5]]), 5, prompt=None).logits.shape
    torch.Size([1, 7])
    """
    prefill = getattr(model, "prefill", None)
    if prefill is None and hasattr(model, "remember"):
        say_renamed(f"{type(model).__name__}.remember", "prefill")
        prefill = model.remember
    if not (callable(prefill) and callable(getattr(model, "step", None))):
        had = "prefill(source, n_max) and step(tokens, state), as Transformer and Seq2Seq have"
        raise TypeError(f"model must have {had}; got {type(model).__name__}")
    n_max, words = check_at_least_one("n_max", n_max), special_tokens(model)
    check_tokens("source", source)
    prompt = source.new_empty(len(source), 0) if prompt is None else _checked(prompt, model, source, n_max, words)
    state = prefill(source, n_max)
    start = source[:, -1:] if words.start is None else torch.full_like(source[:, :1], words.start)
    first = torch.cat([start, prompt], dim=1)
    return Prompted(state, model.step(first, state)[:, -1], prompt)


def generate(
    model: SequenceModel, source: Tensor, n_max: int, prompt: Tensor | None, choose: Choose
) -> Iterator[Tensor]:
    """First the prompt, ``(batch, n)``, then one token after another, ``(batch,)`` each.

    >>> from attnlib.nn.recurrent import Seq2Seq
    >>> first, *rest = generate(Seq2Seq(9, 7), torch.tensor([[4, 5]]), 3, None, lambda logits: logits.argmax(-1))
    >>> first.shape, rest[0].shape
    (torch.Size([1, 0]), torch.Size([1]))
    """
    state, logits, prompt = read_prompt(model, source, n_max, prompt)
    yield prompt
    words, ended = special_tokens(model), torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for left in reversed(range(n_max - prompt.shape[1])):
        token = choose(logits.masked_fill(ended[:, None], 0.0)).where(~ended, words.pad).to(source)
        yield token
        ended |= token == words.end
        if not left or ended.all():
            return
        logits = model.step(token[:, None], state)[:, -1]


def stream_tokens(
    model: SequenceModel, source: Tensor, n_max: int, prompt: Tensor | None, choose: Choose
) -> Iterator[Tensor]:
    """The new ones of `generate`. Bad arguments are named at once, and between two tokens ``model`` is as it was.

    >>> from attnlib.nn.recurrent import Seq2Seq
    >>> next(stream_tokens(Seq2Seq(9, 7), torch.tensor([[4, 5]]), 3, None, lambda logits: logits.argmax(-1))).shape
    torch.Size([1])
    """
    written = generate(model, source, n_max, prompt, choose)
    with evaluating(model):
        next(written)  # the prompt

    def rest() -> Iterator[Tensor]:
        while True:
            with evaluating(model):
                token = next(written, None)
            if token is None:
                return
            yield token

    return rest()


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Inside, ``model`` is in evaluation mode and no gradients are recorded; afterwards all is as it was.

    >>> model = torch.nn.Dropout()
    >>> with evaluating(model):
    ...     print(model.training)
    False
    >>> model.training
    True
    """
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    training = [vars(module) for module in modules if module.training]
    try:
        _set(training, False)
        with torch.no_grad():
            yield
    finally:
        _set(training, True)


def _set(training: list[dict[str, Any]], value: bool) -> None:
    """Set all at once: no interruption comes between two of them, since this loop is not Python's."""
    deque(map(dict.__setitem__, training, repeat("training"), repeat(value)), maxlen=0)


def _checked(prompt: Tensor, model: object, source: Tensor, n_max: int, words: SpecialTokens) -> Tensor:
    head = getattr(model, "lm_head", None) or getattr(model, "out", None)  # the last layer, if it has this name
    check_tokens("prompt", prompt, getattr(head, "out_features", None))
    if len(prompt) != len(source):
        raise ValueError(f"prompt must have a row for each of {len(source)} sources; got {len(prompt)}")
    if prompt.shape[1] >= n_max:
        raise ValueError(f"prompt must be shorter than n_max = {n_max}, which counts it; got {prompt.shape[1]} tokens")
    for name in ("pad", "start", "end"):
        if getattr(words, name) is not None and (prompt == getattr(words, name)).any():
            raise ValueError(f"prompt must be of words only; got {getattr(words, name)}, which is {name}")
    return prompt.to(source)
