"""The sentences that lesson 13 asks its translators, where everything stands in them, and ways to be closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from attnlib import translation
from attnlib.interventions import cut
from attnlib.translation import other_gender
from studies.tables import listed, per_cent

torch.set_default_dtype(torch.float64)  # in single precision another processor ends in another network

Way = tuple[Any, Any, Any]  # layers, query, key: what `cut` takes

corpus = translation.french()
jury = [e for e in corpus.held_out if e.facts["gender"] != e.facts["other"]]
batch, each = corpus.batch(jury), torch.arange(len(jury))
IT, REFERENT, DISTRACTOR, ADJECTIVE, PRONOUN = (
    torch.tensor([e.facts[fact] for e in jury]) for fact in ("it", "referent", "distractor", "adjective", "pronoun")
)
WROTE, WROTE_OTHER = ([[i + 1 for i in e.facts[f"wrote_{noun}"]] for e in jury] for noun in ("referent", "distractor"))
IS_ANIMAL = torch.tensor([e.source[e.facts["referent"]] == e.facts["made of"]["animal"] for e in jury])
IL = torch.tensor([e.facts["gender"] == "m" for e in jury])
KINDS = {"animals": IS_ANIMAL, "places": ~IS_ANIMAL}
LIES = {
    f"another {noun} {how}": {side: getattr(lie, side) for side in sides}
    for noun in ("referent", "distractor")
    for lie in [corpus.batch([other_gender(e, noun) for e in jury])]
    for how, sides in (("written", ["target"]), ("read", ["source"]), ("both", ["source", "target"]))
}


@contextmanager
def closed(*ways: Way) -> Iterator[None]:
    """Close several ways at once."""
    with ExitStack() as stack:
        for layers, query, key in ways:
            stack.enter_context(cut(layers, query, key))
        yield


def share(found: Tensor, among: Tensor) -> float:
    """The mean of ones and zeros among some."""
    return found[among].double().mean().item()


def by_kind(found: Tensor) -> str:
    """In per cent, about animals and about places."""
    return per_cent(share(found, among) for among in KINDS.values())


def by_pronoun(found: Tensor, among: Tensor) -> str:
    """In per cent of these sentences, where *il* is right and where *elle* is."""
    return listed(100 * share(found, among & pronoun) for pronoun in (IL, ~IL))
