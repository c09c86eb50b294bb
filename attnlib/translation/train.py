"""Train one of the course's translators from the command line, by one process or, under torchrun, by several.

``python -m attnlib.translation.train numbers --checkpoint FOLDER`` trains, and writes all that it takes to use the
translator into the folder, for `attnlib.translation.open_translator`. The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlib._command_line import OneLineParser, count, folder_name, rate, seed

if TYPE_CHECKING:
    import torch

    from attnlib.training.history import History

__all__ = ["main"]

CORPORA = {"numbers": "German to English numbers", "french": "English to French sentences"}
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
    try:
        history = _trained(options)
    except (ValueError, FloatingPointError, ModuleNotFoundError) as error:  # they say what is wrong, or missing
        parser.error(str(error))
    except KeyboardInterrupt:
        history = None
    if history is None or history.interrupted:
        _say(f"{history or 'Interrupted.'} To go on, give the same command again.")
        return STOPPED
    return 0


def _parser() -> argparse.ArgumentParser:
    shown = argparse.ArgumentDefaultsHelpFormatter
    parser = OneLineParser(
        prog="python -m attnlib.translation.train",
        description="Train one of the course's translators. The same command goes on where it was stopped.",
        epilog="Example: python -m attnlib.translation.train numbers --checkpoint my_numbers, and then python -m "
        "attnlib.translation my_numbers einundzwanzig. Several processes, one for each GPU: torchrun "
        "--nproc-per-node=N -m attnlib.translation.train ...",
        formatter_class=shown,
        allow_abbrev=False,
    )
    what = "; ".join(f"{name}: {words}" for name, words in CORPORA.items())
    parser.add_argument("corpus", choices=CORPORA, help=what)
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        type=folder_name,
        required=True,
        default=argparse.SUPPRESS,
        help="where all is written",
    )
    add = parser.add_argument
    add("--steps", metavar="N", type=count, default=700, help="in all; the learning rate falls to 0 at the last")
    add("--seed", metavar="N", type=seed, default=0, help="of the first weights, the batches and dropout")
    add("--batch", metavar="N", type=count, default=64, help="pairs in a step, those of all processes together")
    add("--lr", metavar="X", type=rate, default=3e-3, help="the highest learning rate")
    add("--d-model", metavar="N", type=count, default=64, help="numbers in a row")
    add("--n-heads", metavar="N", type=count, default=4, help="heads of an attention, which divide --d-model")
    add("--layers", metavar="N", type=count, default=2, help="of the encoder, and of the decoder")
    add("--dropout", metavar="P", type=float, default=0.0, help="the chance that a number is dropped in training")
    add("--save-every", metavar="N", type=count, default=100, help="steps from one checkpoint to the next")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU where there is one")
    return parser


def _trained(options: argparse.Namespace) -> History:
    from attnlib import translation  # torch takes its time, for which nobody should wait who asked for help
    from attnlib.training import fit

    device = _device(options.device)
    corpus = translation.CORPORA[options.corpus]()
    sizes = {"d_model": options.d_model, "n_heads": options.n_heads, "dropout": options.dropout}
    layers = {"n_encoder_layers": options.layers, "n_decoder_layers": options.layers}
    model = translation.translator(corpus, seed=options.seed, **sizes, **layers).to(device)
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
