"""Translate from the command line, with a translator that was saved: ``python -m attnlib.translation FOLDER TEXT``.

Without a text it reads lines from a pipe, and writes a line for each. What is read, and what is refused, is as
`attnlib.translation.translate` says.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib._base.command_line import OneLineParser, count, folder_name

if TYPE_CHECKING:
    from attnlib.nn.transformer import Transformer
    from attnlib.translation.saved import Vocabularies

__all__ = ["main"]

TOGETHER = 64  # lines of a pipe that are translated at once

EXAMPLES = """\
examples:
  python -m attnlib.translation.train numbers --checkpoint my_numbers     makes a translator, in minutes
  python -m attnlib.translation my_numbers einundzwanzig "drei tausend"   translates each text
  python -m attnlib.translation my_numbers < numbers.txt > translated.txt translates each line
  echo siebzig | python -m attnlib.translation my_numbers --longest 8     writes 8 words at most
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Translate as ``arguments``, those of the command line unless given, ask for, and return the exit status, 0.

    A folder without a translator, or a text with a word that it does not know, ends the program with status 2. A
    line of a pipe with such a word is named and stays empty; the others are translated, and the status is 1.

    >>> main(["no folder", "eins"])
    Traceback (most recent call last):
    ...
    SystemExit: 2
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown: list[str] = []
    try:
        model, words = _opened(options.folder)
        for translation in _translated(model, words, options.text, options.longest, unknown):
            print(translation, flush=True)
    except BrokenPipeError:  # whoever read has had enough; Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, ModuleNotFoundError) as error:
        parser.error(str(error))
    return 1 if unknown else 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m attnlib.translation",
        description="Translate with a translator that attnlib.translation.train or save_translator has written.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="FOLDER", type=folder_name, help="where the translator is, as my_numbers")
    parser.add_argument(
        "text", metavar="TEXT", nargs="*", help='what to translate, as "drei tausend"; none: each line of a pipe'
    )
    parser.add_argument(
        "--longest",
        metavar="N",
        type=count,
        help="words, or pieces of them, written at most (default: twice a text's, and 32)",
    )
    return parser


def _opened(folder: str) -> tuple[Transformer, Vocabularies]:
    from attnlib.translation.saved import open_translator  # torch takes its time, and --help shall not

    make = f"python -m attnlib.translation.train numbers --checkpoint {folder}"
    if not Path(folder).is_dir():
        kind = "is a file" if Path(folder).exists() else "is not there"
        raise ValueError(f"FOLDER must hold a translator; {folder} {kind}. To make one there: {make}")
    try:
        return open_translator(folder)
    except FileNotFoundError as error:
        missing = Path(error.filename or str(error)).name
        raise ValueError(f"FOLDER must hold a translator; {folder} has no {missing}. To make one: {make}") from None


def _translated(
    model: Transformer, words: Vocabularies, texts: Sequence[str], longest: int | None, unknown: list[str]
) -> Iterator[str]:
    """A translation for each text, or for each line that comes in; of an empty line, an empty one.

    So has a line that is refused: what is wrong with it is said at once, and stands in ``unknown``.
    """
    from attnlib.data.subwords import BytePairs
    from attnlib.translation.model import translate_strings
    from attnlib.translation.reading import read_text

    lines: Iterator[str] = iter(texts or sys.stdin)
    place, size = ("text", len(texts)) if texts else ("line", 1 if sys.stdin.isatty() else TOGETHER)
    start = 1
    while some := list(islice(lines, size)):
        for i, line in enumerate(some):
            try:
                read_text(line, words.source, f"{place} {start + i}")
            except ValueError as error:
                if texts:
                    raise
                _say(str(error))
                unknown.append(str(error))
                some[i] = ""
        written, cut = translate_strings(model, words, some, longest)
        for i in cut:
            _say(f"the translation of {place} {start + i} was cut: it had no end after so many words; see --longest")
        for each in written:
            yield each.replace("\n", " ") if isinstance(words.target, BytePairs) else each.replace("' ", "'")
        start += len(some)


def _say(text: str) -> None:
    print(f"attnlib.translation: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
