"""The half of ``in_words.py`` over real texts: JupyterLab's interface, from English to Chinese."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from attnlib import translation
from attnlib.core import attention
from attnlib.data import interface_texts
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.data.interface_texts import near_pairs, normalised
from attnlib.data.text import Vocabulary
from attnlib.nn import Transformer
from attnlib.pretraining import byte_pairs
from attnlib.scores import dot
from attnlib.training import fit
from studies.asked_networks import BATCH, SEEDS, SENTINELS, gap_losses, gaps
from studies.tables import listed, table

LARGE = {"d_model": 128, "d_ff": 512, "tie": "all", "dropout": 0.1}
LONGEST = 40  # tokens of a text that is trained on
GAPS, PAIRS, FEWER = 400, 1100, 700  # steps: from scratch on pairs, or on gaps and then on fewer pairs
Texts = Sequence[tuple[str, str]]

TEXTS = f"""
## JupyterLab's interface, English to Chinese

2,743 pairs, cut into 2,000 tokens by byte-pair encoding; two layers a side of {LARGE["d_model"]}, dropout
{LARGE["dropout"]}, batches of {BATCH}, greedy decoding. BLEU and chrF of 300 held-out texts, none of them near one of
the 2,743, and per cent written as the translators did. The gaps are in the same English and Chinese
texts, which are then translated.

"""


class Interface:
    """A network for pairs of texts, what it is trained on, and what it writes."""

    def __init__(self, train: Texts) -> None:
        self.tokenizer = byte_pairs([text for pair in train for text in pair], 2000)
        self.texts = [text for text in map(self.cut, (t for pair in train for t in pair)) if 2 < len(text) <= LONGEST]
        pairs = [Example(("Chinese", ":", *self.cut(a)), tuple(self.cut(b))) for a, b in train]
        self.words = Vocabulary([*self.texts, ["Chinese", "fill", ":", *SENTINELS]])
        fit_in = [pair for pair in pairs if max(map(len, pair[:2])) <= LONGEST]
        self.corpus = Corpus(fit_in, [], self.words, self.words)

    def cut(self, text: str) -> list[str]:
        """The pieces of a text, as strings."""
        return self.tokenizer.encode(text).tokens

    def known(self, text: str) -> list[str]:
        """Those pieces that the network knows."""
        return [token for token in self.cut(text)[:LONGEST] if token in self.words]

    def untrained(self, seed: int) -> Transformer:
        """As all begin."""
        return translation.translator(self.corpus, seed=seed, **LARGE)

    def train(self, model: Transformer, seed: int, steps: int, *, fill: bool = False) -> Transformer:
        """``model`` itself, after so many steps on gaps or on pairs."""
        batches = gaps(self.texts, self.words, seed=seed) if fill else self.corpus.batches(BATCH, seed=seed)
        recipe = translation.recipe(steps, lr=2e-3)
        fit(model, batches, translation.loss(), seed=seed, progress=False, **recipe)
        return model

    def write(self, model: Transformer, english: Sequence[str]) -> list[str]:
        """Its translations."""
        sources = [["Chinese", ":", *self.known(text)] for text in english]
        return [self.whole(row) for row in translation.translate(model, self.corpus, sources, 48)]

    def whole(self, pieces: Sequence[str]) -> str:
        """The text of its pieces; what is no piece of a text is left out."""
        numbers = [self.tokenizer.token_to_id(piece) for piece in pieces]
        return self.tokenizer.decode([number for number in numbers if number]).replace("\ufffd", "").strip()


def interface() -> str:
    """All about these texts."""
    train, held_out = interface_texts()
    english, right = sides(held_out)
    room = Interface(train)
    written, losses = networks(room, english, right)
    rows = [["", "steps on gaps", "steps on pairs", "BLEU", "chrF", "as the translators"], [":---"] + 5 * ["---:"]]
    rows.append(["copying the English", "", "", *scores([english], right, percent=True)])
    stored = translation.TranslationMemory(train).translate(english)
    rows.append(["translation memory", "", "", *scores([stored], right, percent=True)])
    rows += [[*name, *scores(some, right, percent=True)] for name, some in written.items()]
    first = next(iter(written.values()))
    said = "; ".join(f"{own:.1f}, and with the source of another text {other:.1f}" for own, other in losses)
    return "".join(
        [
            table(rows),
            f"\nNetworks read at most {LONGEST} tokens of a text, and are trained on ",
            f"the {len(room.corpus.train):,} pairs in which neither side has more, *Chinese :* included.\n",
            f"\nNats for a token taken out of the held-out texts, marks aside, after {GAPS} steps on gaps: {said}.\n",
            "\n## By what is asked\n" + by_kind(english, right, first, train),
            "\n## Exact answers\n" + exact_ones(english, right, first, train),
            "\n## Examples\n" + examples(english, right, first[0], train),
            "\n## A random split\n" + random_split([*train, *held_out]),
            "\n## The memory's bandwidth\n" + by_bandwidth(train, english, right),
        ]
    )


def networks(
    room: Interface, english: Sequence[str], right: Sequence[str]
) -> tuple[dict[tuple[str, str, str], list[list[str]]], list[tuple[float, float]]]:
    """What networks write, three seeds each, by name and steps; and their losses in gaps after the steps on these."""
    pieces = [part for part in (room.known(text) for text in [*english, *right]) if len(part) > 2]
    written: dict[tuple[str, str, str], list[list[str]]] = {}
    losses = []
    for first in (0, GAPS):
        for seed in SEEDS:
            begun = room.untrained(seed)
            if first:
                room.train(begun, seed, first, fill=True)
                losses.append(gap_losses(begun, pieces, room.words))
            for steps in (FEWER,) if first else (PAIRS, FEWER):
                name = ("pretrained" if first else "from scratch", str(first), f"{steps:,}")
                some = room.write(room.train(deepcopy(begun), seed, steps), english)
                written.setdefault(name, []).append(some)
                print(*name, seed, *scores([some], right), losses[-1:], file=sys.stderr, flush=True)
    return written, losses


def by_kind(english: list[str], right: list[str], written: list[list[str]], train: Texts) -> str:
    """Scores of known words and new ones, in short texts and longer."""
    known = {word for text, _ in train for word in words(text)}
    new = np.array([not known.issuperset(words(text)) for text in english])
    long = np.array([len(words(text)) > 3 for text in english])
    stored = translation.TranslationMemory(train).translate(english)
    rows = [["", "texts", "memory, BLEU", "network, BLEU", "network, exact"], [":---"] + 4 * ["---:"]]
    for i, which in enumerate(("all words known", "a word that is new")):
        for j, length in enumerate(("up to three words", "more than three")):
            kind = (new == i) & (long == j)
            bleu, _, exact = scores([pick(kind, some) for some in written], pick(kind, right))
            memory = scores([pick(kind, stored)], pick(kind, right))[0]
            rows.append([f"{which}, {length}", str(int(kind.sum())), memory, bleu, exact])
    return (
        "\nThe networks from scratch, 1,100 steps, three seeds. A word is what stands between blanks after"
        "\nplaceholders, punctuation and capitals were taken away; it is new if no stored English text has it.\n\n"
        + table(rows)
    )


def exact_ones(english: list[str], right: list[str], written: list[list[str]], train: Texts) -> str:
    """How many exact answers stand in one piece in a stored Chinese text."""
    stored = [chinese for _, chinese in train]
    exact = [[i for i, text in enumerate(some) if text == right[i]] for some in written]
    whole = [[i for i in some if any(right[i] in text for text in stored)] for some in exact]
    apart = [sorted(set(some) - set(found)) for some, found in zip(exact, whole, strict=True)]
    rows = [["", "three seeds"], [":---", "---:"]]
    for name, some in {"exact": exact, "in one piece in a stored Chinese text": whole, "in none": apart}.items():
        rows.append([name, ", ".join(str(len(one)) for one in some)])
    by = {i: sum(i in some for some in apart) for i in sorted(set().union(*apart))}
    lines = [["", "English", "Chinese"], 3 * [":---"]]
    lines += [[f"{n} of 3", english[i], right[i]] for i, n in sorted(by.items(), key=lambda item: -item[1])]
    return (
        "\nOf the same networks.\n\n"
        + table(rows)
        + "\nThose in none, and by how many networks they were written:\n\n"
        + table(cleaned(lines))
    )


def examples(english: list[str], right: list[str], written: list[str], train: Texts) -> str:
    """Some short texts, as the first network from scratch wrote them."""
    memory = translation.TranslationMemory(train)
    known = {word for text, _ in train for word in words(text)}
    nearest = memory.attend(english).argmax(axis=1)
    lines = [["English", "its words", "found by the memory", "translators", "network"], 5 * [":---"]]
    for i in [i for i, text in enumerate(english) if len(text) < 40][::16]:
        kind = "known" if known.issuperset(words(english[i])) else "one is new"
        lines.append([english[i], kind, train[nearest[i]][0], right[i], written[i]])
    return (
        "\nEvery sixteenth of the held-out texts of less than 40 letters, in alphabetical order: the stored English"
        "\nthat the memory finds, and what the first network from scratch writes.\n\n" + table(cleaned(lines))
    )


def random_split(everything: Texts) -> str:
    """The memory and the network, where the texts to hold out were drawn at random."""
    order = np.random.default_rng(0).permutation(len(everything))
    drawn, rest = ([everything[i] for i in part] for part in (order[:300], order[300:]))
    english, right = sides(drawn)
    room = Interface(rest)
    written = [room.write(room.train(room.untrained(seed), seed, PAIRS), english) for seed in SEEDS]
    stored = translation.TranslationMemory(rest).translate(english)
    pairs = near_pairs([text for text, _ in [*drawn, *rest]])
    beside = np.isin(np.arange(300), [i for i, j in pairs if i < 300 <= j])
    rows = [["", "texts", "memory, BLEU", "network, BLEU", "memory, exact", "network, exact"], [":---"] + 5 * ["---:"]]
    for name, kind in {"all": beside | True, "a stored text is near": beside, "none is near": ~beside}.items():
        of_memory = scores([pick(kind, stored)], pick(kind, right))
        of_network = scores([pick(kind, some) for some in written], pick(kind, right))
        rows.append([name, str(int(kind.sum())), of_memory[0], of_network[0], of_memory[2], of_network[2]])
        print(*rows[-1], file=sys.stderr, flush=True)
    return (
        "\n300 texts drawn from all 3,043, the rest stored and trained on; from scratch, 1,100 steps, three seeds."
        "\nNear: the two English texts overlap by 0.6 or more.\n\n" + table(rows)
    )


def by_bandwidth(train: Texts, english: list[str], right: list[str]) -> str:
    """The memory's BLEU, where each stored text asks all the others, and of the held-out texts."""
    sources, targets = sides(train)
    different = sorted(set(targets))
    one_hot = (np.array(targets)[:, None] == np.array(different)).astype(np.float32)
    rows = [["bandwidth", "stored, each left out", "held out"], 3 * ["---:"]]
    for bandwidth in (0.02, 0.05, 0.1, 0.2):
        memory = translation.TranslationMemory(train, bandwidth=bandwidth)
        keys = memory.features(sources)
        others = ~np.eye(len(keys), dtype=bool)
        found = attention(keys / np.float32(bandwidth), keys, one_hot, score=dot, mask=others).out.argmax(axis=1)
        left_out = scores([[different[i] for i in found]], targets)[0]
        rows.append([str(bandwidth), left_out, scores([memory.translate(english)], right)[0]])
    return "\nBLEU.\n\n" + table(rows)


def words(text: str) -> list[str]:
    """What stands between blanks, without placeholders, punctuation and capitals."""
    return normalised(text).split()


def sides(pairs: Texts) -> tuple[list[str], list[str]]:
    """All English texts, and all Chinese ones."""
    return [a for a, _ in pairs], [b for _, b in pairs]


def pick(kind: np.ndarray, texts: Sequence[str]) -> list[str]:
    """Those of a kind."""
    return [text for text, is_one in zip(texts, kind, strict=True) if is_one]


def cleaned(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Without what would be the border of a cell."""
    return [[cell.replace("|", "/") for cell in line] for line in lines]


def scores(written: Sequence[Sequence[str]], right: Sequence[str], *, percent: bool = False) -> list[str]:
    """BLEU, chrF and the number of exact matches, or their share in per cent, one a seed."""
    found = [translation.text_scores(some, right) for some in written]
    cells = [listed((one[name] for one in found), 1) for name in ("BLEU", "chrF")]
    exact = [sum(w == r for w, r in zip(some, right, strict=True)) for some in written]
    return [*cells, listed(100 * n / len(right) for n in exact) if percent else listed(exact)]
