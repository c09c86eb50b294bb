"""Reactions and their maps, and the probes that ask a model about them."""

import numpy as np
import pytest
import torch

from attnlib.data.molecules import bonds, element, smiles_tokens, surroundings
from attnlib.data.reactions import KINDS, Alignment, reactions
from attnlib.probes.alignment import chance, interval, most_alike, points_right, same_place, shifted
from attnlib.probes.gaps import fill_gaps


def small(right, allowed=None):
    right = np.array(right, dtype=bool)
    allowed = np.ones_like(right) if allowed is None else np.array(allowed, dtype=bool)
    return Alignment(np.arange(right.shape[0]) + right.shape[1], np.arange(right.shape[1]), right, allowed)


@pytest.mark.parametrize("order", ["canonical", "random"])
def test_maps_are_maps(order):
    found = reactions(order=order)
    assert [sum(one.kind == kind for one in found) for kind in KINDS] == [30, 30, 30]
    assert len({one.name for one in found}) == 90
    for one in found:
        elements = np.array([element(token) or "" for token in one.tokens])
        came = one.origin[one.product_atoms]
        assert "".join(one.tokens[1:-1]) == one.smiles
        assert set(came) <= set(one.reactant_atoms)
        assert len(set(came)) == len(came)
        assert (elements[came] == elements[one.product_atoms]).all()
        assert (np.delete(one.origin, one.product_atoms) == -1).all()
        i, j = np.arange(len(came)), np.searchsorted(one.reactant_atoms, came)
        assert one.right[i, j].all()
        assert not (one.right & ~one.alignment(same_element=True).allowed).any()


def test_both_orders_are_the_same_molecule():
    for one, other in zip(reactions(), reactions(order="random"), strict=True):
        assert one.smiles.split(">>")[0] == other.smiles.split(">>")[0]
        mine, theirs = (set(x.origin[x.product_atoms]) for x in (one, other))
        assert mine == theirs
        # The map carries over: the same surroundings ask for the same atoms.
        joined = [*one.tokens[one.tokens.index(">>") + 1 : -1], ".", *other.tokens[other.tokens.index(">>") + 1 : -1]]
        seen, n = surroundings(joined)[:, -1], len(one.product_atoms)
        for pair in (one, other):
            assert len(pair.product_atoms) == n
        first, second = (
            dict(zip(x.origin[x.product_atoms], s, strict=True)) for x, s in ((one, seen[:n]), (other, seen[n:]))
        )
        assert first == second


def test_symmetry_is_counted():
    one = next(one for one in reactions() if "C(C)(C)" in one.smiles.split(">>")[1])
    assert one.right.sum(axis=1).max() > 1
    asked = one.alignment(reverse=True)
    assert (asked.right.sum(axis=1) > 0).all()
    assert asked.right.shape == (one.right.any(axis=0).sum(), len(one.product_atoms))
    assert asked.right.sum() == one.right.sum()
    for i, product_atom in enumerate(one.product_atoms):
        assert asked.right[list(asked.queries).index(one.origin[product_atom]), i]


def test_unknown_words_are_named():
    with pytest.raises(ValueError, match="kind must be one of 'patent', 'typical', 'complex'; got 'easy'"):
        reactions("easy")
    with pytest.raises(ValueError, match="order must be one of 'canonical', 'random'; got 'sorted'"):
        reactions(order="sorted")
    with pytest.raises(ValueError, match="smiles must consist of the tokens of SMILES; got 'CXC'"):
        smiles_tokens("CXC")


def test_bonds_and_surroundings():
    assert bonds(smiles_tokens("C%10CC%10.N")) == [(0, 1, 1), (1, 2, 1), (0, 2, 1)]
    assert bonds(smiles_tokens("C(F)(=O)C#N")) == [(0, 1, 1), (0, 2, 2), (0, 3, 1), (3, 4, 3)]
    assert bonds(smiles_tokens("C1CCC=1")) == [(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 2)]
    assert bonds(smiles_tokens("CC>>C")) == [(0, 1, 1)]
    with pytest.raises(ValueError, match=r"tokens must close all rings and branches; open are \['1', '\('\]"):
        bonds(smiles_tokens("C1CC(C"))
    seen = surroundings(smiles_tokens("CC(C)(C)O.CCO"), radius=2)
    assert len({*seen[[0, 2, 3], -1]}) == 1
    assert seen[0, 1] == seen[5, 1]
    assert seen[0, 2] != seen[5, 2]
    assert surroundings(smiles_tokens("CO"), radius=0).shape == (2, 2)


def test_points_right_reads_queries_and_keys():
    weights = torch.zeros(2, 5, 5)
    weights[0, 3, 1] = weights[0, 4, 2] = weights[1, 3, 4] = weights[1, 4, 0] = 1
    weights[:, :3] = torch.rand(2, 3, 5)  # no query's
    weights[1, 3, 2] = 0.5
    asked = small([[0, 1, 0], [0, 1, 0]])
    assert points_right(weights, asked).tolist() == [[True, False], [False, False]]
    only = small([[0, 1, 0], [0, 1, 0]], [[1, 1, 0], [0, 1, 1]])
    assert points_right(weights, only).tolist() == [[True, False], [False, True]]
    with pytest.raises(ValueError, match=r"weights must be \(\.\.\., n, n\) with n above 4; got \(4, 4\)"):
        points_right(torch.zeros(4, 4), asked)


def test_simpler_rules():
    asked = small([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
    assert chance(asked).tolist() == [0.5, 0.5, 0.0]
    whole = small(asked.right)
    assert chance(whole).tolist() == [0.25, 0.5, 0.25]
    assert same_place(whole).tolist() == [True, True, True]
    assert shifted(whole, 0).tolist() == [True, True, False]
    assert shifted(whole, 1).tolist() == [False, True, True]
    assert shifted(asked, 3).tolist() == [False, False, False]
    alike = np.array([[1, 1, 1, 1], [3, 0, 0, 0], [0, 0, 0, 5]])
    assert most_alike(whole, alike).tolist() == [True, False, True]
    with pytest.raises(ValueError, match=r"alike must be \(3, 4\), queries by keys; got \(4, 3\)"):
        most_alike(whole, alike.T)


def test_intervals_draw_whole_texts():
    apart = [np.zeros(50), np.ones(50)]
    assert interval(apart) == (0.0, 1.0)
    low, high = interval([np.array([0.0, 1.0])] * 20)
    assert low == high == 0.5
    rng = np.random.default_rng(0)
    low, high = interval([rng.normal(size=5) for _ in range(80)], level=0.9)
    assert low < 0 < high < 0.2
    with pytest.raises(ValueError, match="values must hold those of one text at least; got none"):
        interval([])


def test_gaps_are_filled_one_text_an_entry():
    class Counts(torch.nn.Module):
        """Says in every place how many gaps the text has."""

        def forward(self, tokens, scale=9.0):
            n = (tokens == 4).sum(dim=1, keepdim=True).expand_as(tokens)
            return scale * torch.nn.functional.one_hot(n, 5)

    tokens = torch.tensor([1, 2, 1, 3])
    filled = fill_gaps(Counts(), tokens, [[0], [0, 1], [2], [1, 2, 3]], gap=4)
    assert filled.right.tolist() == [True, False, True, True, False, False, True]
    assert filled.loss[0] < 0.01
    assert filled.loss[1] > 8
    assert fill_gaps(Counts(), tokens, [[0]], gap=4, scale=0.0).loss[0] == pytest.approx(np.log(5))
    assert tokens.tolist() == [1, 2, 1, 3]
    for gaps in ([[4]], [[-1]], [], [[]]):
        with pytest.raises(ValueError, match="gaps must hold positions from 0 to 3, one at least"):
            fill_gaps(Counts(), tokens, gaps, gap=4)
    with pytest.raises(ValueError, match=r"tokens must be those of one text, of shape \(n,\); got \(1, 4\)"):
        fill_gaps(Counts(), tokens[None], [[0]], gap=4)
