"""Train the GPT that the course ships, from the command line: ``make pretrain``.

``python -m attnlib.pretraining.train --checkpoint FOLDER`` reads the documentation of the installed packages, trains,
and writes the model into the folder as Hugging Face's GPT-2 is published. The same command goes on where it was
stopped, or killed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlib._base.command_line import count, folder_name, rate, seed

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

__all__ = ["main"]

TEXT, HELD_OUT_TEXT, TOKENIZER, SOURCES = "text.npy", "held_out.npy", "tokenizer.json", "sources.json"
N_TOKENS, LENGTH, BATCH = 4096, 256, 8
STOPPED = 130  # what a shell expects of a program that Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as ``arguments``, those of the command line unless given, ask for, and return the exit status.

    >>> main(["--help"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    options = _parser().parse_args(arguments)
    folder = Path(options.checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        tokenizer, tokens, held_out, n_characters = _read(folder)
        return _train(options, folder, tokenizer, tokens, held_out, n_characters)
    except (ValueError, FloatingPointError, ModuleNotFoundError) as error:  # they say what is wrong, or missing
        _parser().exit(2, f"attnlib.pretraining.train: {error}\n")
    except KeyboardInterrupt:
        print("Interrupted. To go on, give the same command again.", file=sys.stderr)
    return STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnlib.pretraining.train",
        description="Train a small GPT on the documentation of the installed packages.",
        epilog="Example: python -m attnlib.pretraining.train --checkpoint pretraining",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--checkpoint",
        metavar="FOLDER",
        type=folder_name,
        required=True,
        help="where all is kept; a run that is there is gone on with",
    )
    add("--steps", metavar="N", type=count, default=8000, help="steps in all")
    add("--batch", metavar="N", type=count, default=BATCH, help=f"windows of {LENGTH} tokens at each step")
    add("--lr", metavar="X", type=rate, default=2e-3, help="the highest learning rate")
    add("--d-model", metavar="N", type=count, default=192, help="numbers in a row")
    add("--n-heads", metavar="N", type=count, default=6, help="heads of an attention")
    add("--layers", metavar="N", type=count, default=5, help="layers")
    add("--seed", metavar="N", type=seed, default=0, help="of the first weights, and of the windows")
    add("--save-every", metavar="N", type=count, default=100, help="steps from one checkpoint to the next")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU where there is one")
    add(
        "--precision",
        choices=("auto", "float32", "bfloat16"),
        default="auto",
        help="of matrix products; auto: bfloat16 where the hardware has it",
    )
    return parser


def _read(folder: Path) -> tuple[Tokenizer, np.ndarray, np.ndarray, int]:
    """The text in tokens, the held-out text in tokens, and its characters; made at the first call, kept for others."""
    from attnlib.models.loading import open_tokenizer
    from attnlib.pretraining.documentation import HELD_OUT, PACKAGES, documents, folder_of
    from attnlib.pretraining.tokens import byte_pairs, encode

    distributions = packages_distributions()
    for name in (*PACKAGES, *HELD_OUT):
        folder_of(name)  # raises where one is missing, before anything is read
    versions = {name: version(distributions[name][0]) for name in [*PACKAGES, *HELD_OUT]}
    if (folder / SOURCES).exists():
        made = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
        if made["versions"] != versions:
            changed = sorted(name for name in versions if made["versions"].get(name) != versions[name])
            raise ValueError(
                f"{folder} must be of these packages; other versions of {', '.join(changed)} were read for it. "
                "Install those, or name another folder"
            )
        tokenizer = open_tokenizer(folder / TOKENIZER)
    else:
        print("Reading the documentation of the installed packages …", file=sys.stderr)
        seen: set[bytes] = set()  # no paragraph that is trained on is in what is held out
        kept, held_out = (documents(packages, seen=seen) for packages in (PACKAGES, HELD_OUT))
        tokenizer = byte_pairs(kept, N_TOKENS)
        tokenizer.save(str(folder / TOKENIZER))
        np.save(folder / TEXT, encode(tokenizer, kept).astype(np.uint16))
        np.save(folder / HELD_OUT_TEXT, encode(tokenizer, held_out).astype(np.uint16))
        made = {"versions": versions, "characters": {"trained on": sum(map(len, kept)) + len(kept)}}
        made["characters"]["held out"] = sum(map(len, held_out)) + len(held_out)
        (folder / SOURCES).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")  # last: now all is there
    return tokenizer, np.load(folder / TEXT), np.load(folder / HELD_OUT_TEXT), made["characters"]["held out"]


def _train(
    options: argparse.Namespace,
    folder: Path,
    tokenizer: Tokenizer,
    tokens: np.ndarray,
    held_out: np.ndarray,
    n_characters: int,
) -> int:
    import torch

    from attnlib.models import GPT, GPTConfig
    from attnlib.pretraining.windows import log_probabilities, next_token_loss, windows
    from attnlib.training import fit, warmup_cosine

    device = _device(options.device)
    sizes = {"d_model": options.d_model, "n_heads": options.n_heads, "n_layers": options.layers}
    torch.manual_seed(options.seed)
    model = GPT(GPTConfig(n_tokens=N_TOKENS, n_max=LENGTH, **sizes)).to(device)
    part = held_out[:40_000]
    share = n_characters * len(part) / len(held_out)

    def bits(model: torch.nn.Module) -> float:
        with _precision(options.precision, device):
            return -float(log_probabilities(model, part).sum() / np.log(2) / share)

    def loss(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
        with _precision(options.precision, device):
            return next_token_loss(model, batch)

    history = fit(
        model,
        windows(tokens, LENGTH, options.batch, seed=options.seed),
        loss,
        steps=options.steps,
        lr=options.lr,
        optimizer=lambda parameters, lr: torch.optim.AdamW(
            parameters, lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True
        ),
        schedule=warmup_cosine(min(200, options.steps // 2), options.steps),
        seed=options.seed,
        metrics={"bits per character, held out": bits},
        every=500,
        checkpoint=folder,
        save_every=options.save_every,
    )
    print(history)
    if history.interrupted:
        print("To go on, give the same command again.", file=sys.stderr)
        return STOPPED
    model.save_published(folder)
    print(f"The model is in {folder}: GPT.from_pretrained reads it, and so does Hugging Face's GPT2LMHeadModel.")
    return 0


def _device(name: str) -> torch.device:
    import torch

    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def _precision(name: str, device: torch.device) -> Any:
    """Matrix products in bfloat16, where that is asked for, or fast; weights and sums stay float32."""
    import torch

    fast = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
    wanted = name == "bfloat16" or (name == "auto" and fast)
    return torch.autocast(device.type, torch.bfloat16) if wanted else nullcontext()


if __name__ == "__main__":
    sys.exit(main())
