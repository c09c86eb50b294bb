"""Write attnlib/models/shipped/rxnmapper/SCORES.md: what the heads of the model point at, and what they are for.

Ten minutes on one core. Everything is measured on `attnlib.data.reactions`, whose maps others have published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from attnlib.data.molecules import surroundings
from attnlib.data.reactions import KINDS, Alignment, Reaction, reactions
from attnlib.interventions import cut
from attnlib.models import BERT, pretrained
from attnlib.models.unsharing import unshared
from attnlib.probes.alignment import chance, interval, most_alike, points_right, same_place, shifted
from attnlib.probes.gaps import Filled, fill_gaps

TARGET = Path(__file__).resolve().parents[1] / "attnlib/models/shipped/rxnmapper/SCORES.md"
LAYER, HEAD = 10, 5  # of which rxnmapper reads its maps (rxnmapper/core.py), counted from 0
SETTINGS = [("canonical", reverse, same) for reverse in (False, True) for same in (False, True)]
SETTINGS += [("random", False, same) for same in (False, True)]
NAMES = {
    (False, False): "from product to reactants",
    (False, True): "from product to reactants of the same element",
    (True, False): "from reactants to product",
    (True, True): "from reactants to product, of the same element",
}
MODEL, TOKENIZER = pretrained("rxnmapper")
SINGLE, GAP = unshared(MODEL), TOKENIZER.token_to_id("[MASK]")
Values = Sequence[np.ndarray]


def main() -> None:
    """Measure and write."""
    lines = [
        "# What the heads point at, and what they are for",
        "",
        "Written by `python tools/measure_rxnmapper.py`; do not edit. Layers and heads are counted from 0. In square",
        "brackets: 95 % intervals, reactions drawn anew. An atom that symmetry makes like the right one is right.",
    ]
    for order, reverse, same in SETTINGS:
        lines += pointing(order, reverse, same)
    lines += masses()
    every = [[[int(t) for t in one.product_atoms]] for one in reactions()]
    rng = np.random.default_rng(0)
    single = [[[int(t)] for t in sorted(rng.permutation(one.product_atoms)[:6])] for one in reactions()]
    lines += cuts("All atoms of the product are gaps", every)
    lines += cuts("One atom of the product is a gap; up to six a reaction, one after the other", single)
    lines += pointed_cuts(single)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def weights_of(model: BERT, reaction: Reaction) -> torch.Tensor:
    """All weights: (layers, heads, n, n)."""
    with torch.no_grad():
        return torch.stack(model.encode(tokens_of(reaction)[None], weights=True).weights)[:, 0]


def tokens_of(reaction: Reaction) -> torch.Tensor:
    """The tokens as the model reads them."""
    return torch.tensor(TOKENIZER.encode(reaction.smiles).ids)


def same_surroundings(reaction: Reaction, alignment: Alignment, *, reverse: bool = False) -> np.ndarray:
    """The rule that knows the molecules: the atom whose surroundings are the same the farthest out."""
    alike = reaction.alike()
    return most_alike(alignment, alike[:, reaction.right.any(axis=0)].T if reverse else alike)


def pointing(order: str, reverse: bool, same: bool) -> list[str]:
    """A section: layer by head, and what simpler rules reach."""
    found = reactions(order=order)
    asked = [one.alignment(reverse=reverse, same_element=same) for one in found]
    hits = [points_right(weights_of(MODEL, one), alignment) for one, alignment in zip(found, asked, strict=True)]
    table = np.concatenate(hits, axis=-1).mean(axis=-1)
    lines = ["", f"## Products in {order} order: {NAMES[reverse, same]}", "", "Right, in per cent:", ""]
    lines += ["| layer | " + " | ".join(f"head {h}" for h in range(table.shape[1])) + " |", "|" + " --- |" * 9]
    lines += [f"| {i} | " + " | ".join(f"{100 * share:.1f}" for share in row) + " |" for i, row in enumerate(table)]
    best = tuple(int(i) for i in np.unravel_index(table.argmax(), table.shape))
    lines += ["", f"The best is layer {best[0]}, head {best[1]}.", ""]
    lines += ["| | all | " + " | ".join(KINDS) + " |", "|" + " --- |" * 5]
    place = [same_place(alignment) for alignment in asked]
    steps = range(-40, 41)
    shares = {step: np.concatenate([shifted(alignment, step) for alignment in asked]).mean() for step in steps}
    step = max(shares, key=shares.get)
    rows = {
        f"layer {LAYER}, head {HEAD}": [hit[LAYER, HEAD] for hit in hits],
        f"layer {best[0]}, head {best[1]}": [hit[best] for hit in hits],
        "any atom that is allowed": [chance(alignment) for alignment in asked],
        "the same place along": place,
        f"the best shift for all, {step}": [shifted(alignment, step) for alignment in asked],
        "the best shift for each, known": [
            max((shifted(alignment, step) for step in steps), key=np.mean) for alignment in asked
        ],
        "the same surroundings": [
            same_surroundings(*pair, reverse=reverse) for pair in zip(found, asked, strict=True)
        ],
    }
    lines += [f"| {name} | {by_kind(values, found)} |" for name, values in rows.items()]
    random = []
    for seed in range(5):
        torch.manual_seed(seed)
        drawn = BERT(MODEL.config).eval()
        pairs = zip(found, asked, strict=True)
        hit = np.concatenate([points_right(weights_of(drawn, one), asks) for one, asks in pairs], axis=-1)
        random.append(f"{100 * hit.mean(axis=-1).max():.1f}")
    lines += ["", f"With random weights, the best of all heads, five times: {', '.join(random)}."]
    return lines + ([] if reverse or same else kept_and_changed(found, asked, rows))


def kept_and_changed(found: list[Reaction], asked: list[Alignment], rows: dict[str, Values]) -> list[str]:
    """Who is in the mean: atoms whose bonds stay as they are, and others; carbon, and others."""
    kept, carbon = [], []
    for one, alignment in zip(found, asked, strict=True):
        seen, atoms = surroundings(one.tokens), np.r_[one.reactant_atoms, one.product_atoms]
        was, now = (seen[np.searchsorted(atoms, p)] for p in (one.origin[alignment.queries], alignment.queries))
        kept.append((was[:, :3] == now[:, :3]).all(axis=1))
        carbon.append(np.array([one.tokens[t] in ("C", "c", "[C@@H]", "[C@H]") for t in alignment.queries]))
    lines = ["", "| | bonds and neighbours stay | something changes | carbon | other atoms |", "|" + " --- |" * 5]
    for name in (f"layer {LAYER}, head {HEAD}", "the same surroundings"):
        values, cells = np.concatenate(list(rows[name])), []
        for groups in (kept, carbon):
            group = np.concatenate(groups)
            cells += [
                f"{100 * values[group].mean():.1f} of {group.sum()}",
                f"{100 * values[~group].mean():.1f} of {(~group).sum()}",
            ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def by_kind(values: Values, found: list[Reaction]) -> str:
    """The mean in per cent, over all and over each kind."""
    low, high = interval(list(values))
    cells = [f"{100 * np.concatenate(list(values)).mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"]
    for kind in KINDS:
        chosen = [value for value, one in zip(values, found, strict=True) if one.kind == kind]
        cells.append(f"{100 * np.concatenate(chosen).mean():.1f}")
    return " | ".join(cells)


def masses() -> list[str]:
    """How much of its weight each head spends from the atoms of the product on the reactants."""
    shares = []
    for one in reactions():
        reactants, _, _ = sides(one)
        shares.append(weights_of(MODEL, one)[:, :, one.product_atoms][..., reactants].sum(dim=-1).mean(dim=-1))
    mean = torch.stack(shares).mean(dim=0)
    lines = ["", "## Weight that goes from the atoms of the product to the reactants, in per cent", ""]
    lines += ["| layer | " + " | ".join(f"head {h}" for h in range(8)) + " |", "|" + " --- |" * 9]
    return lines + [
        f"| {i} | " + " | ".join(f"{100 * x:.1f}" for x in row.tolist()) + " |" for i, row in enumerate(mean)
    ]


def sides(reaction: Reaction) -> tuple[list[int], list[int], list[int]]:
    """The positions of reactants, of the product, and of what belongs to neither."""
    arrow, n = reaction.tokens.index(">>"), len(reaction.tokens)
    return list(range(1, arrow)), list(range(arrow + 1, n - 1)), [0, arrow, n - 1]


def cuts(title: str, gaps: list[list[list[int]]]) -> list[str]:
    """A section: what filling these gaps loses when heads are cut from the product to the reactants."""

    def measure(layers: Iterable[int] = range(12), heads: Sequence[int] | None = None, way: str = "") -> list[Filled]:
        filled = []
        for one, places in zip(reactions(), gaps, strict=True):
            reactants, product, neither = sides(one)
            query, key = (reactants, product) if way == "reverse" else (product, reactants)
            query = query + neither if way == "no detour" else query
            chosen = [SINGLE.layers[i].self_attention for i in layers]
            together = cut(chosen, [query] * len(places), [key] * len(places), heads=heads)
            with nullcontext() if way == "intact" else together:
                filled.append(fill_gaps(SINGLE, tokens_of(one), places, GAP))
        return filled

    rows: dict[str, Callable[[], list[Filled]]] = {
        **{f"head {h}": (lambda h=h: measure(heads=[h])) for h in range(8)},
        "all heads but 5": lambda: measure(heads=[0, 1, 2, 3, 4, 6, 7]),
        "all heads": measure,
        "all heads, and from >>, [CLS] and [SEP]": lambda: measure(way="no detour"),
        "head 5, from reactants to product": lambda: measure(heads=[5], way="reverse"),
        "all heads, from reactants to product": lambda: measure(way="reverse"),
        "head 5, layer 10 alone": lambda: measure([10], [5]),
        "head 5, layers 0 to 3": lambda: measure(range(4), [5]),
        "head 5, layers 4 to 7": lambda: measure(range(4, 8), [5]),
        "head 5, layers 8 to 11": lambda: measure(range(8, 12), [5]),
    }
    tokens = np.concatenate(
        [tokens_of(one)[[t for place in places for t in place]] for one, places in zip(reactions(), gaps, strict=True)]
    )
    _, counts = np.unique(tokens, return_counts=True)
    lines = ["", f"## {title}: what is lost by cutting, from product to reactants, in every layer", ""]
    lines += [
        f"{len(tokens)} gaps. The most frequent token is right in {100 * counts.max() / counts.sum():.1f} %.",
        "",
    ]
    return lines + compared(measure(way="intact"), rows)


def compared(intact: list[Filled], rows: dict[str, Callable[[], list[Filled]]]) -> list[str]:
    """A table: cross-entropy and share of right answers, and how far they are from those of the intact model."""
    lines = ["| cut | cross-entropy | more | right | points |", "|" + " --- |" * 5]
    for name, measured in {"nothing": lambda: intact, **rows}.items():
        filled, cells = measured(), []
        for values, before, scale, digits in (
            ([one.loss for one in filled], [one.loss for one in intact], 1, 3),
            ([one.right.astype(float) for one in filled], [one.right.astype(float) for one in intact], 100, 1),
        ):
            more = [after - earlier for after, earlier in zip(values, before, strict=True)]
            low, high = (scale * end for end in interval(more))
            mean = scale * np.concatenate(more).mean()
            cells += [f"{scale * np.concatenate(values).mean():.{digits}f}"]
            cells += [f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def pointed_cuts(gaps: list[list[list[int]]]) -> list[str]:
    """A section: from the gap alone, only the right atom is cut, or as many wrong ones of the same element."""

    def measure(which: str, heads: Sequence[int] | None) -> list[Filled]:
        filled, rng = [], np.random.default_rng(1)
        for one, places in zip(reactions(), gaps, strict=True):
            alignment, keys = one.alignment(same_element=True), []
            for (gap,) in places:
                i = int(np.searchsorted(alignment.queries, gap))
                right, wrong = alignment.right[i], ~alignment.right[i] & alignment.allowed[i]
                chosen = (
                    alignment.keys[right]
                    if which == "right"
                    else rng.permutation(alignment.keys[wrong])[: right.sum()]
                )
                keys.append([int(key) for key in chosen] if which != "nothing" else [])
            with cut([layer.self_attention for layer in SINGLE.layers], places, keys, heads=heads):
                filled.append(fill_gaps(SINGLE, tokens_of(one), places, GAP))
        return filled

    rows: dict[str, Callable[[], list[Filled]]] = {
        "head 5, to the right atom": lambda: measure("right", [5]),
        "head 5, to as many wrong ones of its element": lambda: measure("wrong", [5]),
        "all heads but 5, to the right atom": lambda: measure("right", [0, 1, 2, 3, 4, 6, 7]),
        "all heads, to the right atom": lambda: measure("right", None),
    }
    lines = [
        "",
        "## One atom of the product is a gap: what is lost by cutting, from the gap alone, in every layer",
        "",
    ]
    return lines + compared(measure("nothing", None), rows)


if __name__ == "__main__":
    main()
