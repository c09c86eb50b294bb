r"""Chemical reactions as text, with the atom of which each atom of the product came.

A reaction is written as ``reactants>>product``, each a SMILES: see `attnlib.data.molecules`.
"""

from __future__ import annotations

from csv import DictReader
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attnlib._base.checks import check_one_of, check_size
from attnlib.data.molecules import bonds, element, smiles_tokens, surroundings

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray as Array

__all__ = ["KINDS", "ORDERS", "Alignment", "Reaction", "reactions"]

KINDS = ("patent", "typical", "complex")
ORDERS = ("canonical", "random")


class Alignment(NamedTuple):
    """Which tokens ask, which may be pointed at, and which of these are right.

    ``queries`` and ``keys`` are positions; ``right[i, j]`` says whether ``keys[j]`` is right for ``queries[i]``, and
    ``allowed[i, j]`` whether it may be chosen at all.

    >>> Alignment._fields
    ('queries', 'keys', 'right', 'allowed')
    """

    queries: Int[Array, " n_q"]
    keys: Int[Array, " n_k"]
    right: Bool[Array, "n_q n_k"]
    allowed: Bool[Array, "n_q n_k"]


class Reaction(NamedTuple):
    """A reaction: its ``name``, of which ``kind`` it is, its ``smiles``, its tokens, and the map of its atoms.

    ``tokens`` begin with ``[CLS]`` and end with ``[SEP]``, so that positions are those that a model reads.
    ``reactant_atoms`` and ``product_atoms`` are the positions of atoms. ``origin`` has an entry for each token: for an
    atom of the product the position of the atom it came from, -1 elsewhere. ``right[i, j]`` is True where product atom
    i may have come from reactant atom j: from the mapped one or from one that is equivalent to it by symmetry, as the
    three methyls of a tert-butyl group are.

    >>> Reaction._fields
    ('name', 'kind', 'smiles', 'tokens', 'reactant_atoms', 'product_atoms', 'origin', 'right')
    """

    name: str
    kind: str
    smiles: str
    tokens: tuple[str, ...]
    reactant_atoms: Int[Array, " n_r"]
    product_atoms: Int[Array, " n_p"]
    origin: Int[Array, " n"]
    right: Bool[Array, "n_p n_r"]

    def alignment(self, *, reverse: bool = False, same_element: bool = False) -> Alignment:
        """From each atom of the product to those of the reactants; with ``reverse`` from each that is kept.

        With ``same_element`` only atoms of the same element may be chosen.
        """
        queries, keys, right = self.product_atoms, self.reactant_atoms, self.right
        if reverse:
            kept = right.any(axis=0)
            queries, keys, right = keys[kept], queries, right[:, kept].T
        elements = np.array([element(token) or "" for token in self.tokens])
        same = elements[queries][:, None] == elements[keys]
        return Alignment(queries, keys, right, same if same_element else np.ones_like(right))

    def alike(self) -> Int[Array, "n_p n_r"]:
        """How far out the surroundings of a product's atom and a reactants' atom are the same, counted in steps.

        0 are other elements, 1 the same, 2 with as many bonds, 3 with the same neighbours, and so on. A rule without
        any training: an atom comes from the one whose surroundings are the same the farthest.

        >>> one = reactions()[0]
        >>> one.alike().shape == one.right.shape
        True
        """
        seen, atoms = surroundings(self.tokens), np.r_[self.reactant_atoms, self.product_atoms]
        product, reactants = (seen[np.searchsorted(atoms, at)] for at in (self.product_atoms, self.reactant_atoms))
        return (product[:, None] == reactants).cumprod(axis=-1).sum(axis=-1)

    def matched(self, scores: Float[Array, "n_p n_r"], *, rounds: int = 5, weight: float = 3.0) -> Bool[Array, " n_p"]:
        """Which atoms of the product are right if all are mapped together: to the largest sum of ``scores``.

        No atom is used twice, and only atoms of one element go together. After a first map an atom's score grows by
        ``weight`` for each of its neighbours that went to a neighbour, and all are mapped again, in ``rounds``.

        Raises ``ValueError`` when scores have another shape.

        Source: Kuhn (1955), the assignment; neighbours as in Schwaller et al. (2021).

        >>> one = reactions()[0]
        >>> one.matched(one.right).all()
        np.True_
        """
        from scipy.optimize import linear_sum_assignment  # it takes a while to import

        scores = np.asarray(scores, dtype=float)
        if scores.shape != self.right.shape:
            raise ValueError(f"scores must be {self.right.shape}, product by reactants; got {scores.shape}")
        near, n_r = np.zeros((sum(self.right.shape),) * 2), len(self.reactant_atoms)
        for i, j, _ in bonds(self.tokens):
            near[i, j] = near[j, i] = 1
        low = scores.min() - weight * len(near)  # another element, whatever the neighbours say
        together, other = np.zeros_like(scores), self.alike() == 0
        for _ in range(check_size("rounds", rounds) + 1):
            grown = scores + weight * near[n_r:, n_r:] @ together @ near[:n_r, :n_r]
            rows, columns = linear_sum_assignment(np.where(other, low, grown), maximize=True)
            together = np.zeros_like(scores)
            together[rows, columns] = 1
        return (self.right & (together > 0)).any(axis=1)


def reactions(kind: str | None = None, *, order: str = "canonical") -> list[Reaction]:
    """90 published reactions with the maps of their atoms, 30 of each kind; or those of one ``kind``.

    ``"patent"`` reactions are from United States patents, ``"typical"`` and ``"complex"`` ones are other reactions,
    the last with atoms that move in ways that are hard to see: so their authors sorted them, in 2019. With
    ``order="random"`` the product is written from another atom on, in another order: the same molecule.

    Raises ``ValueError`` for an unknown kind or order.

    Source: Jaworski et al. (2019), *Automatic mapping of atoms across both simple and complex chemical reactions*,
    Nature Communications 10, 1434; of its supplement, as in the package synrbl. See reactions.md beside this file.

    >>> first = reactions("complex")[0]
    >>> len(reactions()), first.kind, first.right.shape == (len(first.product_atoms), len(first.reactant_atoms))
    (90, 'complex', True)
    """
    if kind is not None:
        check_one_of("kind", kind, KINDS)
    check_one_of("order", order, ORDERS)
    return [reaction for reaction in _read(order) if kind in (None, reaction.kind)]


@cache
def _read(order: str) -> tuple[Reaction, ...]:
    lines = files("attnlib.data").joinpath("reactions.csv").read_text(encoding="utf-8").splitlines()
    return tuple(_reaction(row, order) for row in DictReader(line for line in lines if not line.startswith("#")))


def _reaction(row: dict[str, str], order: str) -> Reaction:
    product, mapped = ("product", "map") if order == "canonical" else ("random_product", "random_map")
    origin_of, classes = _numbers(row[mapped]), _numbers(row["reactant_classes"])
    smiles = f"{row['reactants']}>>{row[product]}"
    tokens = ("[CLS]", *smiles_tokens(smiles), "[SEP]")
    atoms = np.array([i for i, token in enumerate(tokens) if element(token)])
    arrow = tokens.index(">>")
    sources, targets = atoms[atoms < arrow], atoms[atoms > arrow]
    origin = np.full(len(tokens), -1)
    origin[targets] = sources[origin_of]
    # Atoms that are equivalent in the product may change places, and so may those of the reactants.
    twins = _numbers(row[f"{product}_classes"])
    right = (twins[:, None] == twins).astype(int) @ (classes[origin_of][:, None] == classes) > 0
    return Reaction(row["name"], row["kind"], smiles, tokens, sources, targets, origin, right)


def _numbers(text: str) -> Int[Array, " n"]:
    return np.array([int(number) for number in text.split()])
