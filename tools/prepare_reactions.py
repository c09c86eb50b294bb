"""Write attnlib/data/reactions.csv: reactions without maps, and the maps beside them, from those that synrbl carries.

Needs RDKit, which the course does not: ``python tools/prepare_reactions.py FOLDER``, where FOLDER is the unpacked
source distribution of synrbl 1.0.6 (``pip download --no-deps --no-binary :all: synrbl==1.0.6``).

A reaction is taken where its mapped and its unmapped form agree, every heavy atom of its largest product is mapped to
one atom of the reactants, of the same element, the model that is shipped has a token for everything, no atom needs
brackets for its hydrogen alone, and it is neither tiny nor long. Of these, 30 of each kind are drawn.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from pathlib import Path

from rdkit import Chem, RDLogger

from attnlib.data.molecules import element, smiles_tokens

ROOT = Path(__file__).resolve().parents[1]
FILES = {"patent": "patent.csv", "typical": "typical.csv", "complex": "complex.csv"}
VOCABULARY = ROOT / "attnlib/models/shipped/rxnmapper/vocab.txt"
PLAIN = re.compile(r"\[[BCNOSP]H?\d?\]")  # as RDKit writes atoms beside metals now, and did not in 2019
EACH, FEWEST_ATOMS, MOST_TOKENS = 30, 8, 150
HEADER = """\
# {n} reactions of the supplement of Jaworski et al. (2019), Nature Communications 10, 1434, CC BY 4.0, as they are
# in synrbl 1.0.6 (MIT). Written anew, without maps and with the largest product only: tools/prepare_reactions.py.
# What the columns mean, and how the maps were made: reactions.md.
"""


def main() -> None:
    """Read, choose, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the unpacked source distribution of synrbl 1.0.6")
    folder = parser.parse_args().folder / "Data/Raw_data/Jaworski"
    RDLogger.DisableLog("rdApp.*")
    known, chosen, seen = set(VOCABULARY.read_text(encoding="utf-8").split("\n")), [], set()
    for kind, name in FILES.items():
        with (folder / name).open(encoding="utf-8") as file:
            rows = list(enumerate(csv.DictReader(file)))
        random.Random(0).shuffle(rows)
        found = []
        for i, row in rows:
            made = reaction(row["reaction"], row["mapped_reaction"], known, seed=i)
            if made and made["product"] not in seen:
                seen.add(made["product"])
                found.append({"name": f"{kind} {i}", "kind": kind} | made)
        print(f"{kind}: {len(found)} of {len(rows)} are fit")
        chosen += sorted(found[:EACH], key=lambda made: int(made["name"].split()[1]))
    with (ROOT / "attnlib/data/reactions.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER.format(n=len(chosen)))
        writer = csv.DictWriter(file, chosen[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(chosen)


def reaction(plain: str, mapped: str, known: set[str], seed: int) -> dict[str, str] | None:
    """A row of the table, or None where the reaction is not fit."""
    try:
        reactants, products = (merged(*sides) for sides in zip(plain.split(">>"), mapped.split(">>"), strict=True))
    except ValueError:
        return None
    product = max(products, key=lambda molecule: (molecule.GetNumAtoms(), smiles_of(molecule)[0]))
    parts = sorted(((*smiles_of(molecule), molecule) for molecule in reactants), key=lambda part: part[0])
    whole, atoms = Chem.Mol(), []
    for _, order, molecule in parts:
        whole = Chem.CombineMols(whole, molecule)
        atoms += [molecule.GetAtomWithIdx(i) for i in order]
    numbers = [atom.GetIntProp("number") for atom in atoms]
    text, order = smiles_of(product)
    other, other_order = smiles_of(product, seed=seed)
    left = ".".join(part[0] for part in parts)
    tokens = smiles_tokens(f"{left}>>{text}") + smiles_tokens(other)
    wanted = [product.GetAtomWithIdx(i).GetIntProp("number") for i in order]
    fits = (
        not set(tokens) - known
        and not any(PLAIN.fullmatch(token) for token in tokens)
        and product.GetNumAtoms() >= FEWEST_ATOMS
        and len(smiles_tokens(f"{left}>>{text}")) <= MOST_TOKENS
        and all(number > 0 and numbers.count(number) == 1 and wanted.count(number) == 1 for number in wanted)
        and text not in {part[0] for part in parts}
    )
    if not fits:
        return None
    origin = {number: i for i, number in enumerate(numbers)}
    kinds = [atom.GetSymbol() for atom in atoms]
    if any(kinds[origin[n]] != product.GetAtomWithIdx(i).GetSymbol() for n, i in zip(wanted, order, strict=True)):
        return None
    ranks = classes(whole)
    place, steps = {}, 0
    for _, part_order, molecule in parts:
        place |= {steps + i: steps + j for i, j in enumerate(part_order)}
        steps += molecule.GetNumAtoms()
    twins = classes(product)
    check(left, kinds)
    check(text, [product.GetAtomWithIdx(i).GetSymbol() for i in order])
    check(other, [product.GetAtomWithIdx(i).GetSymbol() for i in other_order])
    return {
        "reactants": left,
        "product": text,
        "map": join(origin[number] for number in wanted),
        "reactant_classes": join(ranks[place[i]] for i in range(len(atoms))),
        "product_classes": join(twins[i] for i in order),
        "random_product": other,
        "random_map": join(origin[product.GetAtomWithIdx(i).GetIntProp("number")] for i in other_order),
        "random_product_classes": join(twins[i] for i in other_order),
    }


def merged(plain: str, mapped: str) -> list[Chem.Mol]:
    """The molecules of one side as they stand without a map, with each atom's number of the map, 0 where it has none.

    Raises ``ValueError`` where a molecule cannot be read, or a mapped one is not among the others.
    """
    numbered = [numbered_molecule(text) for text in mapped.split(".")]
    found = []
    for text in plain.split("."):
        molecule = Chem.MolFromSmiles(text)
        if molecule is None or not molecule.GetNumAtoms():
            raise ValueError(text)
        twin = next((one for one in numbered if smiles_of(one)[0] == smiles_of(molecule)[0]), None)
        if twin is not None:
            numbered.remove(twin)
        else:
            for atom in molecule.GetAtoms():
                atom.SetIntProp("number", 0)
        found.append(molecule if twin is None else twin)
    if any(one.GetNumAtoms() > 1 for one in numbered):
        raise ValueError(mapped)
    return found


def numbered_molecule(text: str) -> Chem.Mol:
    """A molecule whose map is kept in a property. Atoms like [#6:1], silent on hydrogen, get what they need.

    Raises ``ValueError`` where it cannot be read.
    """
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None or not molecule.GetNumAtoms():
        raise ValueError(text)
    for atom in molecule.GetAtoms():
        atom.SetIntProp("number", atom.GetAtomMapNum())
        atom.SetAtomMapNum(0)
        if "#" in text and "[#" in text:
            atom.SetNoImplicit(False)
            atom.SetNumExplicitHs(0)
    try:
        Chem.SanitizeMol(molecule)
        molecule = Chem.RemoveHs(molecule)
    except Chem.MolSanitizeException as error:
        raise ValueError(text) from error
    Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)
    return molecule


def smiles_of(molecule: Chem.Mol, seed: int | None = None) -> tuple[str, list[int]]:
    """The canonical SMILES, or a random one, and the atoms in the order in which it names them."""
    places = list(range(molecule.GetNumAtoms()))
    if seed is not None:
        random.Random(seed).shuffle(places)
    copy = Chem.RenumberAtoms(molecule, places)
    text = Chem.MolToSmiles(copy, canonical=seed is None)
    order = copy.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"]
    return text, [places[i] for i in order]


def classes(molecule: Chem.Mol) -> list[int]:
    """The same number for atoms that are equivalent by symmetry."""
    return list(Chem.CanonicalRankAtoms(molecule, breakTies=False))


def check(text: str, symbols: list[str]) -> None:
    """Raise unless the atoms among the tokens are these, in this order."""
    found = [element(token) for token in smiles_tokens(text) if element(token)]
    if found != symbols:
        raise ValueError(f"{text} must name {symbols}; its tokens name {found}")


def join(numbers: object) -> str:
    """Numbers as they stand in a column."""
    return " ".join(map(str, numbers))


if __name__ == "__main__":
    main()
