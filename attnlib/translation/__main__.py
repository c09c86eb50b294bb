"""Translate from the command line, with a translator that was saved: ``python -m attnlib.translation FOLDER TEXT``.

Without a text it reads lines from a pipe, and writes a line for each. Words may be written together, where the
translator knows their parts: ``einundzwanzig`` is ``ein und zwanzig``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib._command_line import OneLineParser, count, folder_name

if TYPE_CHECKING:
    from attnlib.nn.transformer import Transformer
    from attnlib.translation.saved import Vocabularies

__all__ = ["main", "words_of"]

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
        "--longest", metavar="N", type=count, default=32, help="words that are written at most, as 8 (default: 32)"
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
    model: Transformer, words: Vocabularies, texts: Sequence[str], longest: int, unknown: list[str]
) -> Iterator[str]:
    """A translation for each text, or for each line that comes in; of an empty line, an empty one.

    So has a line with a word that is not known: what is wrong with it is said at once, and stands in ``unknown``.
    """
    from attnlib.translation.model import translate

    lines: Iterator[str] = iter(texts or sys.stdin)
    place, size = ("text", len(texts)) if texts else ("line", 1 if sys.stdin.isatty() else TOGETHER)
    start = 1
    while some := list(islice(lines, size)):
        tokens = []
        for i, line in enumerate(some, start):
            try:
                tokens.append(_known(line, words.source, f"{place} {i}"))
            except ValueError as error:
                if texts:
                    raise
                print(f"attnlib.translation: {error}", file=sys.stderr)
                unknown.append(str(error))
                tokens.append([])
        written = iter(translate(model, words, filter(None, tokens), longest) if any(tokens) else ())
        for each in tokens:
            yield " ".join(next(written)).replace("' ", "'") if each else ""
        start += len(some)


def _known(line: str, known: Container[str], place: str) -> list[str]:
    tokens = []
    for word in line.split():
        found = words_of(word, known) or words_of(word.lower(), known)
        if not found:
            raise ValueError(f"{place} must have words that the translator was trained on; got {word!r}")
        tokens += found
    return tokens


def words_of(word: str, known: Container[str]) -> list[str]:
    """The fewest known words that ``word`` is written from, one after another; none where it cannot be.

    >>> words_of("einundzwanzig", ["ein", "und", "zwan", "zig", "zwanzig"]), words_of("elf", ["eins"])
    (['ein', 'und', 'zwanzig'], [])
    """
    best: list[list[str] | None] = [[]]  # for each beginning of the word
    for stop in range(1, len(word) + 1):
        ways = [
            [*before, word[start:stop]]
            for start, before in enumerate(best)
            if before is not None and word[start:stop] in known
        ]
        best.append(min(ways, key=len, default=None))
    return best[-1] or []


if __name__ == "__main__":
    sys.exit(main())
