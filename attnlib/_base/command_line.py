"""What the command lines take: each function reads one word, or says what is wrong with it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from math import isfinite
from typing import NoReturn

__all__ = ["OneLineParser", "count", "folder_name", "rate", "seed", "size"]


class OneLineParser(ArgumentParser):
    """Says what is wrong in one line, and once a machine, though several processes were given the same arguments.

    >>> OneLineParser(prog="python -m attnlib.translation").prog
    'python -m attnlib.translation'
    """

    def error(self, message: str) -> NoReturn:
        """End the program with status 2."""
        said = f"{self.prog.removeprefix('python -m ')}: {message}\n"
        self.exit(2, said if os.environ.get("LOCAL_RANK", "0") == "0" else None)


def size(text: str) -> int:
    """A whole number that is not negative.

    >>> size("0")
    0
    """
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(f"must be an integer; got {text}") from None
    if number < 0:
        raise ArgumentTypeError(f"must not be negative; got {text}")
    return number


def seed(text: str) -> int:
    """A seed, as torch takes it.

    >>> seed("7")
    7
    """
    if size(text) >= 2**63:
        raise ArgumentTypeError(f"must be below 2**63; got {text}")
    return int(text)


def folder_name(text: str) -> str:
    """The name of a folder, which need not be there.

    >>> folder_name("run")
    'run'
    """
    if not text:
        raise ArgumentTypeError("must name a folder; got nothing")
    return text


def count(text: str) -> int:
    """A whole number, at least 1.

    >>> count("12")
    12
    """
    if size(text) == 0:
        raise ArgumentTypeError("must be at least 1; got 0")
    return int(text)


def rate(text: str) -> float:
    """A positive number.

    >>> rate("1e-3")
    0.001
    """
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number; got {text}") from None
    if not (isfinite(number) and number > 0):
        raise ArgumentTypeError(f"must be positive and finite; got {text}")
    return number
