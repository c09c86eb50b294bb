"""The front door: ``python -m publish lessons``, ``book`` or ``slides``, each with ``--help``."""

import sys
from importlib import import_module

DOORS = {"lessons": "build", "book": "make", "slides": "make"}


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or [""]
    if what not in DOORS:
        sys.exit(f"python -m publish {' | '.join(DOORS)}: which? Each has its --help.")
    sys.exit(import_module(f"publish.{what}.{DOORS[what]}").main(rest))
