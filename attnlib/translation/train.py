"""Train a translator from the command line, by one process or, under torchrun, by several.

``python -m attnlib.translation.train --pairs texts.tsv --checkpoint FOLDER`` trains on pairs of your own, ``numbers``
instead of ``--pairs texts.tsv`` on a corpus of the course. All that it takes to use the translator is written into the
folder, for `attnlib.translation.open_translator`. The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from attnlib._base.command_line import OneLineParser, count, folder_name, rate, seed

if TYPE_CHECKING:
    import torch

    from attnlib.training.history import History

__all__ = ["main"]

CORPORA = {"numbers": "German to English numbers", "french": "English to French sentences"}
COURSE = {"steps": 700, "lr": 3e-3, "d_model": 64, "layers": 2, "dropout": 0.0}
OWN = {"steps": 2500, "lr": 3e-3, "d_model": 128, "layers": 3, "dropout": 0.1}  # with --pairs
LEAST = 20  # pairs that are held out of a file, or a twentieth of it, 500 at most
STOPPED = 130  # what a shell expects of a program that Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as ``arguments``, those of the command line unless given, ask for, and return the exit status.

    It is 0 when all steps are done, 130 after an interruption. Bad arguments end the program with status 2.

    >>> main(["latin"])
    Traceback (most recent call last):
    ...
    SystemExit: 2
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.corpus is None) == (options.pairs is None):
        parser.error(
            f"one of {', '.join(CORPORA)} or --pairs FILE must be given; got {'both' if options.pairs else 'none'}"
        )
    try:
        history = _trained(options) if options.pairs is None else _trained_on_pairs(options)
    except (ValueError, FloatingPointError, ModuleNotFoundError) as error:  # they say what is wrong, or missing
        parser.error(str(error))
    except KeyboardInterrupt:
        history = None
    if history is None or history.interrupted:
        _say(f"{history or 'Interrupted.'} To go on, give the same command again.")
        return STOPPED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m attnlib.translation.train",
        description="Train a translator, on your own pairs or the course's. The same command goes on where it was "
        "stopped.",
        epilog="Example: python -m attnlib.translation.train --pairs texts.tsv --checkpoint my_translator, and then "
        'python -m attnlib.translation my_translator "Open the file". Several processes, one for each GPU: torchrun '
        "--nproc-per-node=N -m attnlib.translation.train ...",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("corpus", nargs="?", choices=CORPORA, help="; ".join(f"{name}: {words}" for name, words in CORPORA.items()))
    add(
        "--pairs",
        metavar="FILE",
        help="your own: a source, a tab and its translation on each line. Pieces of words are learned, the weights "
        "that translate held-out pairs best are kept, and training stops when they stay the best",
    )
    add("--checkpoint", metavar="FOLDER", type=folder_name, required=True, help="where all is written")

    def size(name: str, kind: Callable[[str], float], what: str) -> None:
        field = name.strip("-").replace("-", "_")
        add(name, metavar="N", type=kind, help=f"{what} (default: {COURSE[field]}, of --pairs {OWN[field]})")

    size("--steps", count, "in all; the learning rate falls to 0 at the last")
    add("--seed", metavar="N", type=seed, default=0, help="of weights, batches and dropout (default: 0)")
    add("--batch", metavar="N", type=count, default=64, help="pairs in a step, of all processes (default: 64)")
    size("--lr", rate, "the highest learning rate")
    size("--d-model", count, "numbers in a row")
    add("--n-heads", metavar="N", type=count, default=4, help="heads, which divide --d-model (default: 4)")
    size("--layers", count, "of the encoder, and of the decoder")
    size("--dropout", float, "the chance that a number is dropped in training")
    add("--save-every", metavar="N", type=count, default=100, help="steps between checkpoints (default: 100)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU where there is one (default)")
    return parser


def _filled(options: argparse.Namespace, usual: Mapping[str, float]) -> dict[str, Any]:
    """Fill up ``options``; the sizes of the model among them."""
    for name, value in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    layers = {"n_encoder_layers": options.layers, "n_decoder_layers": options.layers}
    return layers | {"d_model": options.d_model, "n_heads": options.n_heads, "dropout": options.dropout}


def _trained(options: argparse.Namespace) -> History:
    from attnlib import translation  # torch takes its time, for which nobody should wait who asked for help
    from attnlib.training import fit

    sizes, device = _filled(options, COURSE), _device(options.device)
    corpus = translation.CORPORA[options.corpus]()
    model = translation.translator(corpus, seed=options.seed, **sizes).to(device)
    history = fit(
        model,
        corpus.batches(options.batch, seed=options.seed),
        translation.loss(),
        **translation.recipe(options.steps, options.lr),
        seed=options.seed,
        checkpoint=options.checkpoint,
        save_every=options.save_every,
    )
    if _is_first():
        translation.save_translator(model, corpus, options.checkpoint)
        if not history.interrupted:
            right = translation.exact_match(model, corpus)
            print(f"{history}\n{right:.1%} of {len(corpus.held_out)} held-out pairs translated without a mistake.")
            print(f"Weights, vocabularies and settings are in {options.checkpoint}: open_translator reads them.")
    return history


def _trained_on_pairs(options: argparse.Namespace) -> History:
    from attnlib._base.seeds import generator
    from attnlib.data.corpus import Corpus
    from attnlib.data.tsv import read_pairs
    from attnlib.translation.model import translate_strings, translator
    from attnlib.translation.training import pace, steps_done, string_scores, train_translator

    sizes, device = _filled(options, OWN), _device(options.device)
    pairs = list(dict.fromkeys(read_pairs(options.pairs)))  # none both to train on and held out
    held_out = min(500, max(LEAST, len(pairs) // 20))
    if len(pairs) < 2 * held_out:
        few = f"{2 * LEAST} different pairs, or more, of which {LEAST} are held out"
        raise ValueError(f"argument --pairs: must hold {few}; {options.pairs} has {len(pairs)}")
    order = generator(options.seed).permutation(len(pairs))
    corpus = Corpus.of_pairs([pairs[i] for i in order], held_out)
    model = translator(corpus, seed=options.seed, **sizes).to(device)
    left = max(0, options.steps - steps_done(options.checkpoint))
    will = pace(model, corpus, left, batch_size=options.batch)
    _say(f"{corpus}.\n{left} steps take {_time(will.seconds)} at most, at {will.words:,.0f} words a second.")
    history = train_translator(
        model,
        corpus,
        options.checkpoint,
        steps=options.steps,
        lr=options.lr,
        batch_size=options.batch,
        save_every=options.save_every,
        seed=options.seed,
    )
    if _is_first() and not history.interrupted:
        written, _ = translate_strings(model, corpus, [example.source for example in corpus.held_out])
        scores = string_scores(written, [example.target for example in corpus.held_out])
        said = ", ".join(f"{name} {score:.1f}" for name, score in scores.items())
        print(f"{history}\nThe best weights on {held_out} held-out pairs, by which they were chosen: {said}.")
        print(f"They are in {options.checkpoint}, with pieces and settings: open_translator reads them.")
    return history


def _time(seconds: float) -> str:
    """Seconds as one says them.

    >>> _time(40), _time(250)
    ('40 seconds', '5 minutes')
    """
    return f"{ceil(seconds)} seconds" if seconds <= 90 else f"{ceil(seconds / 60)} minutes"


def _device(name: str) -> torch.device:
    """The device of this process: each of those on one machine has a GPU of its own."""
    import torch

    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    mine, needed = (int(os.environ.get(*known)) for known in (("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1")))
    if needed > torch.cuda.device_count():
        raise ValueError(
            f"argument --device: each process on a machine needs a GPU of its own, {needed} in all; "
            f"there are {torch.cuda.device_count()}"
        )
    torch.cuda.set_device(mine)
    return torch.device("cuda", mine)


def _is_first() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _say(text: str) -> None:
    if _is_first():
        print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
