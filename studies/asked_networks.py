"""The networks of ``seeds_in_words.py``, what they are trained on, and how well they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlib import translation
from attnlib.data.asked import TASKS
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.data.text import END, PAD, START, Pairs, Vocabulary
from attnlib.models import GPT, T5, GPTConfig, T5Config
from attnlib.nn import Transformer, shift_right
from attnlib.pretraining import corrupt_spans, draw_spans, sentinel
from attnlib.training import fit, smoothed_cross_entropy

SEEDS, STEPS, BATCH = range(3), 500, 64
SIZES = {"d_model": 64, "d_ff": 128, "tie": "all"}
SENTINELS = tuple(map(sentinel, range(9)))
Batches = Callable[[int], Pairs]


class Mixed:
    """Batches of any questions, drawn anew for each step."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self.corpus, self.seed = corpus, seed

    def __call__(self, step: int) -> Pairs:
        """The batch of one step."""
        rows = np.random.default_rng((self.seed, step)).integers(len(self.corpus.train), size=BATCH)
        return self.corpus.batch([self.corpus.train[i] for i in rows])


class OneTask(Mixed):
    """Batches of one task each, drawn anew for each step, whatever the length."""

    def __call__(self, step: int) -> Pairs:
        """The batch of one step."""
        rng = np.random.default_rng((self.seed, step))
        task = rng.choice(list(TASKS))
        own = [example for example in self.corpus.train if example.facts["task"] == task]
        return self.corpus.batch([own[i] for i in rng.integers(len(own), size=BATCH)])


class LanguageModel(GPT):
    """A GPT that goes on with the answer to a question; with ``prefix`` that is read from both sides."""

    def __init__(self, n_tokens: int, *, prefix: bool) -> None:
        super().__init__(GPTConfig(n_tokens=n_tokens, n_max=32, d_model=64, d_ff=128, n_heads=4, n_layers=2))
        self.prefix = prefix
        for weight in (w for w in self.parameters() if w.ndim == 2):
            nn.init.normal_(weight, std=64**-0.5)

    def logits(self, text: Tensor, lengths: Tensor) -> Tensor:
        """After each token of ``text``, whose first ``lengths`` are the question."""
        n = text.shape[1]
        x = self.positional.add_to(self.table(text))
        mask = torch.ones(n, n, dtype=torch.bool).tril().expand(len(text), n, n)
        if self.prefix:
            mask = mask | (torch.arange(n) < lengths[:, None])[:, None]
        for layer in self.layers:
            x = layer(x, mask=mask).out
        return self.out(self.norm(x))


def answer_loss(model: LanguageModel, batch: Pairs, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """Of the answers alone; each row is its question, `START`, its answer."""
    text, answers = joined(batch)
    return smoothed_cross_entropy(model.logits(text[:, :-1], batch.source_lengths), answers[:, 1:], smoothing)


def joined(batch: Pairs) -> tuple[Tensor, Tensor]:
    """Question, `START` and answer in one row, filled up behind; and the same with `PAD` before the answer."""
    rows = [[*s[:n].tolist(), START] for s, n in zip(batch.source, batch.source_lengths, strict=True)]
    answers = [t[:n].tolist() for t, n in zip(batch.target, batch.target_lengths, strict=True)]
    width = max(len(a) + len(b) for a, b in zip(rows, answers, strict=True))
    text, target = torch.full((2, len(rows), width), PAD)
    for i, (a, b) in enumerate(zip(rows, answers, strict=True)):
        text[i, : len(a) + len(b)] = torch.tensor(a + b)
        target[i, len(a) : len(a) + len(b)] = torch.tensor(b)
    return text, target


@torch.no_grad()
def continued(model: LanguageModel, corpus: Corpus, examples: Sequence[Example], n_max: int = 8) -> list[list[str]]:
    """What a language model answers, each time the likeliest token."""
    written: dict[int, list[str]] = {}
    for length in {len(e.source) for e in examples}:
        rows = [i for i, e in enumerate(examples) if len(e.source) == length]
        text = torch.tensor([[*corpus.source.encode(examples[i].source), START] for i in rows])
        lengths = torch.full((len(rows),), length)
        for _ in range(n_max):
            text = torch.cat([text, model.logits(text, lengths)[:, -1:].argmax(-1)], dim=1)
        written |= {i: corpus.target.decode(row[length + 1 :]) for i, row in zip(rows, text, strict=True)}
    return [written[i] for i in range(len(examples))]


def own_choices(corpus: Corpus, seed: int) -> T5:
    """T5's norm, positions and initial weights."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "d_ff": 128, "n_heads": 4}
    return T5(T5Config(n_tokens=len(corpus.source), start=START, end=END, **sizes))


def translated(model: Transformer, corpus: Corpus, examples: Sequence[Example]) -> list[list[str]]:
    """What an encoder–decoder answers."""
    return translation.translate(model, corpus, [example.source for example in examples])


def by_answer(model: Transformer, batch: Pairs) -> tuple[Tensor, int]:
    """The mean over answers of the mean over their tokens."""
    total = torch.zeros(())
    for length in batch.target_lengths.unique().tolist():
        rows = batch.target_lengths == length
        some = Pairs(*(part[rows] for part in batch))
        part, count = translation.loss()(model, some._replace(target=some.target[:, :length]))
        total = total + part / count * rows.sum()
    return total, len(batch.target)


def trained(
    model: nn.Module, corpus: Corpus, seed: int, *, steps: int = STEPS, batches: Any = None, loss: Any = None
) -> nn.Module:
    """After ``steps`` of the lesson's recipe."""
    batches = Mixed(corpus, seed) if batches is None else batches(seed=seed)
    fit(model, batches, loss or translation.loss(), seed=seed, progress=False, **translation.recipe(steps))
    return model


def share(written: Sequence[Sequence[str]], examples: Sequence[Example]) -> float:
    """How many are right."""
    return float(np.mean([tuple(w) == e.target for w, e in zip(written, examples, strict=True)]))


def gaps(texts: Sequence[Sequence[str]], words: Vocabulary, *, seed: int) -> Batches:
    """Texts with spans taken out, drawn anew each time."""

    def batch(step: int) -> Pairs:
        chosen = np.random.default_rng((seed, step)).integers(len(texts), size=BATCH)
        examples = []
        for i, text in enumerate(texts[j] for j in chosen):
            spans = draw_spans(len(text), seed=(seed, step, i), share=0.3, mean_length=2)
            source, target = corrupt_spans(text, spans)
            examples.append(Example(("fill", ":", *source), target))
        return Corpus(examples, [], words, words).batch(examples)

    return batch


@torch.no_grad()
def gap_losses(model: Transformer, texts: Sequence[Sequence[str]], words: Vocabulary) -> tuple[float, float]:
    """The loss of a token that was taken out of new texts, in nats: with its own source, and with another text's.

    Sentinels and `END`, which are written beside these tokens, are not counted.
    """
    marks = torch.tensor([PAD, END, *words.encode(SENTINELS)])
    found = []
    for shift in (0, 1):
        losses = []
        for step in range(5):
            batch = gaps(texts, words, seed=99)(step)
            logits = model(batch.source.roll(shift, 0), shift_right(batch.target)).logits
            each = cross_entropy(logits.mT, batch.target, reduction="none")
            losses.append(each[~torch.isin(batch.target, marks)])
        found.append(torch.cat(losses).mean().item())
    return found[0], found[1]
