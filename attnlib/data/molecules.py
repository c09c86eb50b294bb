r"""Molecules as text: SMILES, its tokens, its atoms, and which of them are bound.

Letters are atoms, ``=`` and ``#`` bonds, parentheses branches, pairs of digits rings. Hydrogen is left out. Small
letters are atoms of aromatic rings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.checks import check_size

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray as Array

__all__ = ["TOKEN", "bonds", "element", "smiles_tokens", "surroundings"]

# Schwaller et al. (2018), "Found in Translation"; this is the form of the package rxnmapper.
TOKEN = r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
ELEMENT = re.compile(r"\[\d*([A-Z][a-z]?|[a-z]{1,2}?)(?=[^a-z]|$)")
ORDER = {"=": 2, "#": 3}
SPECIAL = ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]")


def smiles_tokens(smiles: str) -> list[str]:
    """The tokens of a SMILES, which together are the whole of it. Raises ``ValueError`` where a character is none.

    >>> smiles_tokens("CC(=O)[O-].[Na+]")
    ['C', 'C', '(', '=', 'O', ')', '[O-]', '.', '[Na+]']
    """
    tokens = re.findall(TOKEN, smiles)
    if "".join(tokens) != smiles:
        raise ValueError(f"smiles must consist of the tokens of SMILES; got {smiles!r}, of which they are {tokens}")
    return tokens


def element(token: str) -> str | None:
    """The element of an atom, the same in and out of rings; None for a token that is no atom.

    >>> [element(token) for token in ("c", "Cl", "[C@@H]", "[nH]", "=", "[CLS]")]
    ['C', 'Cl', 'C', 'N', None, None]
    """
    if token in SPECIAL:
        return None
    found = ELEMENT.match(token)
    if found:
        return found[1].capitalize()
    return token.capitalize() if token[0].isalpha() else None


def bonds(tokens: Sequence[str]) -> list[tuple[int, int, int]]:
    """The pairs of atoms that are bound, by their numbers among the atoms, and by how many bonds.

    In aromatic rings it is one. Raises ``ValueError`` for a ring or a branch that stays open.

    >>> bonds(smiles_tokens("CC(=O)O.C1CC1"))
    [(0, 1, 1), (1, 2, 2), (1, 3, 1), (4, 5, 1), (5, 6, 1), (4, 6, 1)]
    """
    found, last, order, stack, rings, n = [], None, 1, [], {}, 0
    for token in tokens:
        if element(token):
            if last is not None:
                found.append((last, n, order))
            last, order, n = n, 1, n + 1
        elif token in ORDER:
            order = ORDER[token]
        elif token == "(":
            stack.append(last)
        elif token == ")" and stack:
            last = stack.pop()
        elif token in (".", ">>"):
            last = None
        elif token[-1].isdigit():
            if token in rings:
                first, before = rings.pop(token)
                found.append((first, last, max(before, order)))
            else:
                rings[token] = last, order
            order = 1
    if rings or stack:
        raise ValueError(f"tokens must close all rings and branches; open are {[*rings, *('(' for _ in stack)]}")
    return found


def surroundings(tokens: Sequence[str], radius: int = 6) -> Int[Array, "n_atoms n_rounds"]:
    """What each atom is: its element; its charge, ring and number of bonds; its neighbours too; and so on, outwards.

    Column by column, atoms with the same number are alike up to there. ``radius`` says how far out the last one looks.
    Numbers of one call may be compared: give a whole reaction.

    Source: Morgan (1965); Weisfeiler and Leman (1968).

    >>> surroundings(smiles_tokens("CCO.CCN"), radius=1)[:, 2].tolist()
    [0, 1, 2, 0, 3, 4]
    """
    check_size("radius", radius)
    atoms = [token for token in tokens if element(token)]
    near: list[list[tuple[int, int]]] = [[] for _ in atoms]
    for i, j, order in bonds(tokens):
        near[i].append((order, j))
        near[j].append((order, i))
    columns = [_numbered([element(token) for token in atoms])]
    own = [(columns[0][i], "+" in token, "-" in token, token.strip("[")[0].islower()) for i, token in enumerate(atoms)]
    columns.append(_numbered([(*one, len(others)) for one, others in zip(own, near, strict=True)]))
    for _ in range(radius):
        last = columns[-1]
        columns.append(_numbered([(last[i], *sorted((n, last[j]) for n, j in near[i])) for i in range(len(atoms))]))
    return np.array(columns).T


def _numbered(things: Sequence[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things]
