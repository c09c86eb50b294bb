"""The model card of the GPT that the course ships, with the numbers that were measured."""

from __future__ import annotations

from typing import Any

from attnlib.pretraining.documentation import HELD_OUT, PACKAGES

__all__ = ["card"]

TEXT = """\
# technical-english

A GPT of {parameters:.2f} million parameters ({layers} layers, {heads} heads, {d_model} wide, {n_max} tokens of \
context), for lesson 16. It has the architecture of GPT-2, and is stored as GPT-2 is published, in half precision: \
`attnlib.models.GPT.from_pretrained` reads it, and so does Hugging Face's `GPT2LMHeadModel`.

**Trained on** docstrings and comments of {n_packages} packages that `make lab` installs, without tests, examples at \
a prompt, and paragraphs that had stood before: {trained_on:.1f} million characters in {tokens:.1f} million tokens, \
read {epochs:.1f} times. The packages are those of `constraints.txt`; their names and licences stand in \
`attnlib/pretraining/documentation.py`, their versions in `scores.json`.

**Trained by** `make pretrain`, on two processor cores that did other work beside it, in {hours:.1f} hours, with one \
seed; measured and stored by \
`python -m attnlib.pretraining.report pretraining --to attnlib/models/shipped/technical-english`.

**Licence.** The weights are under the MIT licence of this repository. The texts are under the licences of their \
packages, all of them BSD, MIT or PSF-like ({licences}); none of the texts is stored here.

**What it scores**, in bits per character on the documentation of {held_out} ({n_held_out:.2f} million characters), \
of which it has read no paragraph word for word:

| | bits per character |
| --- | ---: |
| this model | {gpt:.3f} |
{ngrams}
| `xz`, after the same text | {xz:.3f} |

N-grams are Kneser–Ney's, counted in the same text. `xz` learns from the held-out text too, while it packs it: lesson \
16 shows what that is worth. The whole curve of the training stands in `scores.json`; where it \
is ahead of n-grams, and on which other packages, in [SCORES.md](SCORES.md).

**Not good for** anything but a lesson. It writes sentences that sound like documentation and say nothing; it knows \
no facts; it cannot answer, translate or program; it has seen hardly a word that is not technical English.
"""


def card(scores: dict[str, Any], settings: dict[str, Any], n_parameters: int) -> str:
    """The card as Markdown; ``scores`` is what `attnlib.pretraining.report` writes, ``settings`` the model's."""
    bits, tokens = scores["bits per character"], scores["tokens"]["trained on"]
    rows = [f"| {name} | {value:.3f} |" for name, value in bits.items() if "gram" in name]
    n_read = scores["while it was trained"]["steps"][-1] * scores["tokens a step"]
    return TEXT.format(
        parameters=n_parameters / 1e6,
        layers=settings["n_layer"],
        heads=settings["n_head"],
        d_model=settings["n_embd"],
        n_max=settings["n_positions"],
        n_packages=len(PACKAGES),
        trained_on=scores["characters"]["trained on"] / 1e6,
        tokens=tokens / 1e6,
        epochs=n_read / tokens,
        hours=scores["hours"],
        licences=", ".join(sorted(set(PACKAGES.values()))),
        held_out=" and ".join(HELD_OUT),
        n_held_out=scores["characters"]["held out"] / 1e6,
        gpt=bits["GPT"],
        ngrams="\n".join(rows),
        xz=bits["xz"],
    )
