"""What lesson 18 changes in its trainings, three seeds each. ``make seeds`` writes ``SEEDS_IN_WORDS.md``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import described
from tables import table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from attnlib import translation
from attnlib.data import interface_texts
from attnlib.data.asked import TASKS, asked
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.data.numbers import english, german
from attnlib.data.text import END, PAD, START, Pairs, Vocabulary, by_length
from attnlib.models import GPT, T5, GPTConfig, T5Config
from attnlib.nn import Transformer
from attnlib.pretraining import byte_pairs, corrupt_spans, draw_spans, sentinel
from attnlib.training import fit

SEEDS, STEPS, BATCH = range(3), 500, 64
SIZES = {"d_model": 64, "d_ff": 128, "tie": "all"}
LARGE = {"d_model": 128, "d_ff": 512, "tie": "all", "dropout": 0.1}
LONGEST = 40  # tokens of a text that is trained on
Batches = Callable[[int], Pairs]

HEAD = f"""\
# What changes a network that is asked in words, three seeds each

Made by `make seeds`, on {described()}. In every cell one number a seed.
"""

ASKED = f"""
## The tasks of lesson 18

{STEPS} steps of {BATCH} questions, unless something else is said; per cent right of 200 new questions of each task.
Operations are those of one forward pass over {BATCH} questions and their answers, in millions.

"""

FEW = """
## From German to English with few pairs

Numbers below 10,000, per cent right of 200 new ones. Pretrained: half of the 1,000 steps filled spans in 3,000 German
and 3,000 other numbers in English, which are no pairs. From scratch: all 1,000 steps on the pairs.

"""

TEXTS = f"""
## JupyterLab's interface, English to Chinese

2,743 pairs, cut into 2,000 tokens by byte-pair encoding; two layers a side of {LARGE["d_model"]}, dropout
{LARGE["dropout"]}, batches of {BATCH}, greedy decoding. BLEU and chrF of 300 held-out texts, none of them near one of
the 2,743, and per cent written as the translators did. Pretrained: 400 steps filled spans in the same English and
Chinese texts, 700 steps translated. From scratch: all 1,100 steps translated.

"""


def page() -> str:
    """All tables, as Markdown."""
    return "".join([HEAD, ASKED, asked_in_words(), FEW, few_pairs(), TEXTS, interface()])


# --- the tasks of lesson 18 ---


class Mixed:
    """Batches of any questions, drawn anew for each step."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self.corpus, self.seed = corpus, seed

    def __call__(self, step: int) -> Pairs:
        """The batch of one step."""
        rows = np.random.default_rng((self.seed, step)).integers(len(self.corpus.train), size=BATCH)
        return self.corpus.batch([self.corpus.train[i] for i in rows])


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


def answer_loss(model: LanguageModel, batch: Pairs) -> tuple[Tensor, int]:
    """Of the answers alone; each row is its question, `START`, its answer."""
    text, answers = joined(batch)
    logits = model.logits(text[:, :-1], batch.source_lengths)
    return cross_entropy(logits.flatten(0, 1), answers[:, 1:].flatten(), ignore_index=PAD, reduction="sum"), int(
        batch.target_lengths.sum()
    )


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
    """T5's norm, positions and first weights."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "d_ff": 128, "n_heads": 4}
    return T5(T5Config(n_tokens=len(corpus.source), start=START, end=END, **sizes))


def asked_in_words() -> str:
    """One thing changed at a time."""
    corpus = asked()
    pairs = [(corpus.source.encode(e.source), [*corpus.target.encode(e.target), END]) for e in corpus.train]

    def usual(seed: int) -> Transformer:
        return translation.translator(corpus, seed=seed, **SIZES)

    def language(seed: int, prefix: bool) -> LanguageModel:
        torch.manual_seed(seed)
        return LanguageModel(len(corpus.source), prefix=prefix)

    ways: dict[str, tuple[Callable[[int], nn.Module], dict[str, Any]]] = {
        "as the lesson": (usual, {}),
        "three times as long": (usual, {"steps": 3 * STEPS}),
        "batches of like length": (usual, {"batches": partial(by_length, pairs, BATCH)}),
        "the loss of each answer counts alike": (usual, {"loss": by_answer}),
        "T5's own choices": (partial(own_choices, corpus), {}),
        "causal language model": (partial(language, prefix=False), {"loss": answer_loss}),
        "prefix language model": (partial(language, prefix=True), {"loss": answer_loss}),
    }
    rows = [["", "parameters", "operations", *TASKS], [":---"] + 6 * ["---:"]]
    for name, (build, options) in ways.items():
        models = [trained(build(seed), corpus, seed, **options) for seed in SEEDS]
        write = continued if isinstance(models[0], LanguageModel) else translated
        size = sum(p.numel() for p in models[0].parameters())
        loss = answer_loss if isinstance(models[0], LanguageModel) else translation.loss()
        cells = [f"{size:,}", f"{operations(models[0], loss, Mixed(corpus, 0)(0)) / 1e6:.0f}"]
        for task in TASKS:
            some = [e for e in corpus.held_out if e.facts["task"] == task]
            cells.append(listed([share(write(model, corpus, some), some) for model in models]))
        rows.append([name, *cells])
        print(rows[-1], file=sys.stderr, flush=True)
    return table(rows)


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


def operations(model: nn.Module, loss: Any, batch: Pairs) -> int:
    """Multiplications and additions of one forward pass."""
    with FlopCounterMode(display=False) as counter:
        loss(model, batch)
    return counter.get_total_flops()


def share(written: Sequence[Sequence[str]], examples: Sequence[Example]) -> float:
    """How many are right."""
    return float(np.mean([tuple(w) == e.target for w, e in zip(written, examples, strict=True)]))


# --- few pairs ---


def few_pairs() -> str:
    """German to English, with 100 pairs and with 400."""
    numbers = np.random.default_rng(0).permutation(10_000).tolist()
    test = [Example(("english", ":", *german(n)), tuple(english(n))) for n in numbers[:200]]
    texts = [german(n) for n in numbers[1000:4000]] + [english(n) for n in numbers[4000:7000]]
    words = Vocabulary([*texts, ["english", "fill", ":", *map(sentinel, range(9))]])
    rows = [["", *(f"{n} pairs" for n in (100, 400))], [":---"] + 2 * ["---:"]]
    for name, first in {"from scratch": 0, "pretrained": STEPS}.items():
        row = [name]
        for count in (100, 400):
            pairs = [Example(("english", ":", *german(n)), tuple(english(n))) for n in numbers[200 : 200 + count]]
            corpus = Corpus(pairs, test, words, words)
            found = []
            for seed in SEEDS:
                model = translation.translator(corpus, seed=seed, **SIZES)
                if first:
                    trained(model, corpus, seed, steps=first, batches=partial(gaps, texts, words))
                trained(model, corpus, seed, steps=2 * STEPS - first)
                found.append(translation.exact_match(model, corpus))
            row.append(listed(found))
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return table(rows)


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


# --- JupyterLab's interface ---


def interface() -> str:
    """English to Chinese: copying, the memory, and networks with and without pretraining."""
    train, held_out = interface_texts()
    tokenizer = byte_pairs([text for pair in train for text in pair], 2000)
    cut = partial(tokens, tokenizer)
    texts = [text for text in (cut(text) for pair in train for text in pair) if 2 < len(text) <= LONGEST]
    pairs = [Example(("Chinese", ":", *cut(a)), tuple(cut(b))) for a, b in train]
    pairs = [pair for pair in pairs if max(map(len, pair[:2])) <= LONGEST]
    words = Vocabulary([*texts, ["Chinese", "fill", ":", *map(sentinel, range(9))]])
    corpus = Corpus(pairs, [], words, words)
    english, right = (list(side) for side in zip(*held_out, strict=True))
    rows = [["", "BLEU", "chrF", "as the translators"], [":---"] + 3 * ["---:"]]
    rows.append(["copying the English", *scores([english], right)])
    rows.append(["translation memory", *scores([translation.TranslationMemory(train).translate(english)], right)])
    examples = []
    for name, first in {"from scratch": 0, "pretrained": 400}.items():
        written = []
        for seed in SEEDS:
            model = translation.translator(corpus, seed=seed, **LARGE)
            recipe = partial(translation.recipe, lr=2e-3)
            if first:
                fit(
                    model,
                    gaps(texts, words, seed=seed),
                    translation.loss(),
                    seed=seed,
                    progress=False,
                    **recipe(first),
                )
            batches = corpus.batches(BATCH, seed=seed)
            fit(model, batches, translation.loss(), seed=seed, progress=False, **recipe(1100 - first))
            known = [[token for token in cut(text)[:LONGEST] if token in words] for text in english]
            rows_ = translation.translate(model, corpus, [["Chinese", ":", *text] for text in known], 48)
            written.append([text_of(tokenizer, row) for row in rows_])
            print(name, seed, scores(written[-1:], right), file=sys.stderr, flush=True)
        rows.append([name, *scores(written, right)])
        examples.append(written[0])
    return table(rows) + shown(english, right, examples[0], train)


def shown(english: list[str], right: list[str], written: list[str], train: Sequence[tuple[str, str]]) -> str:
    """Scores by kind, and every thirtieth text, as the first network from scratch and the memory wrote them."""
    memory = translation.TranslationMemory(train)
    known = {word for text, _ in train for word in text.casefold().split()}
    stored = memory.translate(english)
    kinds = np.array([all(word in known for word in text.casefold().split()) for text in english])
    rows = [["", "texts", "memory, BLEU", "network, BLEU"], [":---"] + 3 * ["---:"]]
    for name, kind in {"all words known": kinds, "a word that is new": ~kinds}.items():
        pick = partial(lambda kind, texts: [t for t, k in zip(texts, kind, strict=True) if k], kind)
        cells = [translation.text_scores(pick(some), pick(right))["BLEU"] for some in (stored, written)]
        rows.append([name, str(int(kind.sum())), *(f"{cell:.1f}" for cell in cells)])
    out = "\nThe first network from scratch, and the memory, by what is asked:\n\n" + table(rows) + "\nExamples:\n\n"
    lines = [["English", "translators", "memory", "network"], 4 * [":---"]]
    short = [i for i, text in enumerate(english) if len(text) < 40][::16]
    lines += [[text.replace("|", "/") for text in (english[i], right[i], stored[i], written[i])] for i in short]
    return out + table(lines)


def tokens(tokenizer: Any, text: str) -> list[str]:
    """The pieces of a text, as strings."""
    return tokenizer.encode(text).tokens


def text_of(tokenizer: Any, pieces: Sequence[str]) -> str:
    """The text of its pieces; what is no piece of a text is left out."""
    numbers = [tokenizer.token_to_id(piece) for piece in pieces]
    return tokenizer.decode([number for number in numbers if number]).replace("\ufffd", "").strip()


def scores(written: Sequence[Sequence[str]], right: Sequence[str]) -> list[str]:
    """BLEU, chrF and exact matches, one number a seed."""
    found = [translation.text_scores(some, right) for some in written]
    same = [100 * np.mean([w == r for w, r in zip(some, right, strict=True)]) for some in written]
    cells = [", ".join(f"{one[name]:.1f}" for one in found) for name in ("BLEU", "chrF")]
    return [*cells, ", ".join(f"{one:.0f}" for one in same)]


def listed(shares: Sequence[float]) -> str:
    """Per cent, with commas."""
    return ", ".join(f"{100 * one:.0f}" for one in shares)


if __name__ == "__main__":
    (Path(__file__).parent / "SEEDS_IN_WORDS.md").write_text(page(), encoding="utf-8")
