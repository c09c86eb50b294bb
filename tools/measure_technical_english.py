"""Write attnlib/models/shipped/technical-english/SCORES.md: where the GPT is ahead of n-grams, and by what.

A quarter of an hour on one core. The documentation of the installed packages is read as `make pretrain` reads it.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from attnlib.decoding import greedy, sample
from attnlib.models import pretrained
from attnlib.ngrams import KneserNey, PageCache, page_matches
from attnlib.pretraining import documents, encode, held_out_sample, log_probabilities
from attnlib.pretraining.documentation import HELD_OUT

FOLDER = Path(__file__).resolve().parents[1] / "attnlib/models/shipped/technical-english"
OTHERS = ("hypothesis", "docutils", "click", "PIL", "prompt_toolkit", "pexpect", "mistune")  # neither trained on
MODEL, TOKENIZER = pretrained("technical-english")
N_TOKENS = MODEL.config.n_tokens


def main() -> None:
    """Measure and write."""
    made = json.loads((FOLDER / "scores.json").read_text(encoding="utf-8"))["tokens"]["trained on"]
    if len(trained_on()) != made:
        raise SystemExit(f"The model was trained on {made:,} tokens; these packages have {len(trained_on()):,}")
    parts = [HEAD, contexts(), places(), mixed(), shuffled(), packages(), repetitions()]
    (FOLDER / "SCORES.md").write_text("\n".join(parts), encoding="utf-8")


HEAD = """\
# Where the GPT is ahead of n-grams

Written by `python tools/measure_technical_english.py`; do not edit. Bits are for a character unless something else
is said. All n-grams are Kneser–Ney's, over the tokens of the GPT, and have counted what it was trained on. A page
is one docstring, or one block of comments; the GPT reads each page by itself.
"""


@cache
def read_before() -> tuple[list[str], frozenset[bytes]]:
    """The texts that the model was trained on, and marks of their paragraphs."""
    seen: set[bytes] = set()
    return documents(seen=seen), frozenset(seen)


@cache
def trained_on() -> np.ndarray:
    """The same texts, in tokens."""
    return encode(TOKENIZER, read_before()[0])


@cache
def counted(order: int) -> KneserNey:
    """N-grams of all of it."""
    return KneserNey(order, N_TOKENS).fit(trained_on())


@cache
def networkx() -> tuple[list[str], np.ndarray, dict[str, np.ndarray]]:
    """Four hundred pages, their tokens, and what 6-grams and the GPT give to each token after the first."""
    texts = held_out_sample()
    tokens = encode(TOKENIZER, texts)
    return texts, tokens, {"6-grams": counted(6).log_probabilities(tokens)[1:], "GPT": by_page(texts)}


def by_page(texts: Sequence[str], **how: int) -> np.ndarray:
    """The GPT's log-probabilities, each page by itself."""
    return np.concatenate([log_probabilities(MODEL, encode(TOKENIZER, [text]), **how) for text in texts])


def bits(log_p: np.ndarray, texts: Sequence[str]) -> float:
    """Bits per character, with one for the end of each text."""
    return float(-log_p.sum() / np.log(2) / (sum(map(len, texts)) + len(texts)))


def contexts() -> str:
    """How much of the page it needs: each token after exactly so many others, or as many as there are."""
    texts, _, log_p = networkx()
    texts, n = texts[:100], len(encode(TOKENIZER, texts[:100])) - 1
    paid = {"6-grams, which see 5": bits(log_p["6-grams"][:n], texts)}
    for context in (5, 12, 24, 48):
        exact = by_page(texts, context=context, stride=1, batch_size=128)
        paid[f"GPT, {context}"] = bits(exact, texts)
    paid["GPT, the page"] = bits(log_p["GPT"][:n], texts)
    lead = paid["6-grams, which see 5"] - paid["GPT, the page"]
    rows = [
        (name, f"{value:.2f}", f"{100 * (paid['6-grams, which see 5'] - value) / lead:.0f}")
        for name, value in paid.items()
    ]
    words = "The first hundred pages of NetworkX; the lead over 6-grams in per cent of that with the whole page."
    return section("How many tokens back it may look", words, ["tokens back", "bits", "lead"], rows)


def places() -> str:
    """The lead by the place on the page, and by its length."""
    _, tokens, log_p = networkx()
    ends = np.flatnonzero(tokens[1:] == 0)
    lengths = np.diff(ends, prepend=-1)
    place = np.concatenate([np.arange(n) for n in lengths])
    rows, edges = [], [0, 5, 12, 25, 50, 100, 200]
    for low, high in zip(edges, [*edges[1:], len(place)], strict=True):
        here = (place >= low) & (place < high)
        name = f"{low + 1} to {high}" if high <= edges[-1] else f"from {low + 1} on"
        cost = [-log_p[who][here].mean() / np.log(2) for who in ("6-grams", "GPT")]
        rows.append((name, f"{100 * here.mean():.0f}", *(f"{x:.2f}" for x in cost)))
    words = f"All four hundred pages: half of them have at most {np.median(lengths):.0f} tokens. Bits for a token."
    return section("Where on the page", words, ["tokens", "per cent", "6-grams", "GPT"], rows)


def mixed() -> str:
    """Both with the page looked up, by weights that are fitted on the other three hundred pages."""
    texts, tokens, log_p = networkx()
    ends = np.flatnonzero(tokens == 0)[::100]  # where each hundred begins and ends
    columns: dict[str, list[float]] = {}
    for i, (a, b) in enumerate(pairwise(ends)):
        pages, inside = texts[100 * i : 100 * (i + 1)], slice(a, b)
        outside = np.r_[0:a, b : len(tokens) - 1]
        for name, x in log_p.items():
            columns.setdefault(name, []).append(bits(x[inside], pages))
            for m in range(3):
                fitted = PageCache(m).fit(x[outside], tokens[1:][outside])
                both = fitted.log_probabilities(x[inside], tokens[1:][inside])
                columns.setdefault(f"{name} and page, {m}", []).append(bits(both, pages))
    rows = [(name, *(f"{x:.2f}" for x in values)) for name, values in columns.items()]
    words = "Mixed with exact matches of up to so many tokens further up on the page, by weights fitted on the other\n"
    words += "three hundred pages."
    names = ["", *(f"pages {100 * i + 1} to {100 * i + 100}" for i in range(4))]
    return section("With the page looked up", words, names, rows)


def shuffled() -> str:
    """The same words in another order, and what each kind of token costs then."""
    texts = [text for text in held_out_sample()[:100] if len(text.split()) > 30][:15]
    orders = [
        [in_another_order(text, np.random.default_rng([seed, i])) for i, text in enumerate(texts)] for seed in range(4)
    ]
    rows, found = [], {}
    payers = {f"{k}-grams": partial(by_counting, k) for k in (1, 2, 3, 6)}
    payers |= {"6-grams and page": looking_up, "GPT": by_page}
    for name, log_p in payers.items():
        found[name] = [log_p(some) for some in orders]
        written = bits(log_p(texts), texts)
        mixed = [bits(x, some) for x, some in zip(found[name], orders, strict=True)]
        rows.append((name, f"{written:.2f}", ", ".join(f"{x:.2f}" for x in mixed), f"{np.mean(mixed) - written:.2f}"))
    words = "The first fifteen pages of more than thirty words, and four times with the words shuffled. Blanks and\n"
    words += "ends of lines stay where they are."
    whole = section("Shuffled words", words, ["", "as written", "shuffled", "lost"], rows)
    return whole + "\n" + by_kind(orders, {name: found[name] for name in ("6-grams", "GPT")})


def in_another_order(text: str, rng: np.random.Generator) -> str:
    """Its words shuffled, between the blanks and ends of lines that it has."""
    words = iter(rng.permutation(text.split()))
    return re.sub(r"\S+", lambda _: next(words), text)


KINDS = {  # a kind of token -> is it frequent, and has the page used it before?
    "rare, said before": (False, True),
    "rare, new": (False, False),
    "frequent, said before": (True, True),
    "frequent, new": (True, False),
}


def by_kind(orders: Sequence[Sequence[str]], found: dict[str, list[np.ndarray]]) -> str:
    """What each order of the words costs, by what the page has used before and by what is frequent."""
    most = np.bincount(trained_on()).argsort()[-100:]
    masks = []
    for texts in orders:
        pages = [encode(TOKENIZER, [text]) for text in texts]
        again = np.concatenate([page_matches(page, 0)[1:] for page in pages]) > 0
        frequent = np.isin(np.concatenate([page[1:] for page in pages]), most)
        masks.append([(frequent == f) & (again == a) for f, a in KINDS.values()])
    rows = []
    for name, log_p in found.items():
        costs = [[-x[kind].mean() / np.log(2) for kind in kinds] for x, kinds in zip(log_p, masks, strict=True)]
        rows.append((name, *(", ".join(f"{cost:.1f}" for cost in kind) for kind in np.transpose(costs))))
    words = "The same four shufflings, bits for a token: has the page used it before, and is it one of the hundred\n"
    words += "that are most frequent in what all have read?"
    return section("Shuffled words by kind", words, ["", *KINDS], rows)


def by_counting(order: int, texts: Sequence[str]) -> np.ndarray:
    """The log-probabilities of n-grams, page by page."""
    return np.concatenate([counted(order).log_probabilities(encode(TOKENIZER, [text]))[1:] for text in texts])


def looking_up(texts: Sequence[str]) -> np.ndarray:
    """6-grams that look up the page, mixed by weights that are fitted on the last three hundred pages of NetworkX."""
    _, tokens, log_p = networkx()
    others = slice(np.flatnonzero(tokens == 0)[100], None)
    weights = PageCache(2).fit(log_p["6-grams"][others], tokens[1:][others])
    rows = [encode(TOKENIZER, [text]) for text in texts]
    pairs = zip(np.split(by_counting(6, texts), np.cumsum([len(row) - 1 for row in rows])[:-1]), rows, strict=True)
    return np.concatenate([weights.log_probabilities(x, row[1:]) for x, row in pairs])


def packages() -> str:
    """The first pages of packages that are neither trained on nor held out."""
    texts_before, seen = read_before()
    weights = PageCache(2).fit(networkx()[2]["6-grams"], networkx()[1][1:])
    before = "\0".join(texts_before).encode()
    alone, rows = len(lzma.compress(before, preset=9)), []
    for name in (*HELD_OUT, *OTHERS):
        texts = documents([name], seen=set(seen))[:60]
        tokens = encode(TOKENIZER, texts)
        n_grams, gpt = by_counting(6, texts), by_page(texts)
        looked_up = weights.log_probabilities(n_grams, tokens[1:])
        packed = 8 * (len(lzma.compress(before + "\0".join(texts).encode(), preset=9)) - alone)
        n = sum(map(len, texts)) + len(texts)
        paid = (bits(gpt, texts), bits(n_grams, texts), bits(looked_up, texts), packed / n)
        rows.append((name, f"{n:,}", *(f"{x:.2f}" for x in paid)))
    words = (
        "The first sixty pages of each. The weights of the page are those of NetworkX; `xz` has packed before what\n"
    )
    words += "the others have read."
    return section("Other packages", words, ["", "characters", "GPT", "6-grams", "6-grams and page", "xz"], rows)


def repetitions() -> str:
    """How often it says again what it has said, in a hundred tokens after the first twelve of a page."""
    prompts = beginnings()[:20]
    rows = [("greedy", *repeated([greedy(MODEL, prompts, 100).tolist()]))]
    for temperature in (0.5, 0.8, 1.0):
        drawn = [sample(MODEL, prompts, 100, seed=seed, temperature=temperature).tolist() for seed in range(4)]
        rows.append((f"temperature {temperature}", *repeated(drawn)))
    people = [encode(TOKENIZER, [text])[12:112].tolist() for text in held_out_sample()]
    rows.append(("what people wrote", *repeated([people])))
    words = (
        "Pieces of four tokens that stood in the same text before, in per cent, of texts with more than 40 tokens;\n"
    )
    words += "each temperature from four seeds. Twenty beginnings; all four hundred pages of people."
    return section("What it writes", words, ["", "repeated", "texts that count"], rows)


def beginnings() -> torch.Tensor:
    """The first twelve tokens of every page that goes on for more than a hundred."""
    return torch.tensor(
        np.stack([row[:12] for text in held_out_sample() if len(row := encode(TOKENIZER, [text])) > 120])
    )


def repeated(runs: Sequence[Sequence[Sequence[int]]], n: int = 4) -> tuple[str, str]:
    """The mean share for each run, and of how many texts."""
    shares, counts = [], []
    for rows in runs:
        texts = [[token for token in row if token] for row in rows]
        pieces = [[tuple(text[i : i + n]) for i in range(len(text) - n + 1)] for text in texts if len(text) > 40]
        shares.append(f"{100 * np.mean([1 - len(set(some)) / len(some) for some in pieces]):.0f}")
        counts.append(str(len(pieces)))
    return ", ".join(shares), ", ".join(counts)


def section(title: str, words: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading, what is measured, and a table."""
    sides = ["---"] + ["---:"] * (len(names) - 1)
    lines = [names, sides, *rows]
    return f"## {title}\n\n{words}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
