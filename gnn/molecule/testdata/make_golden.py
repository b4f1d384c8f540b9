#!/usr/bin/env python3
"""Writes rdkit.json: what RDKit makes of the molecules in molecules.txt.

    python3 make_golden.py

Needs RDKit; rdkit.json was made with release 2022.09.3, and the elements Uun to
Uuo with 2022.09.5. Release 2026.09.1 gave the elements, the rings, and the molecules whose verdict
or tag changed with it. For every line there is
either "rejected" or atoms ([Z, tag, hydrogens, aromatic]), bonds ([begin, end,
type, direction]) in the categories of Hu et al. (2020), rings, the SMILES of the
Bemis-Murcko scaffold with chirality, and other spellings of the molecule. There
is also the periodic table: [symbol, outer electrons, most common isotope,
valences].
"""
import json
import os

import rdkit
from rdkit import Chem, RDLogger
from rdkit.Chem.Scaffolds import MurckoScaffold

TYPES = {Chem.BondType.SINGLE: 0, Chem.BondType.DOUBLE: 1, Chem.BondType.TRIPLE: 2, Chem.BondType.AROMATIC: 3,
         Chem.BondType.QUADRUPLE: 4}
DIRECTIONS = {Chem.BondDir.NONE: 0, Chem.BondDir.ENDUPRIGHT: 1, Chem.BondDir.ENDDOWNRIGHT: 2}


def scaffold(mol):
    try:
        return MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=True)
    except Exception:  # a scaffold that is no molecule
        return None


def describe(smiles):
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return {"smiles": smiles, "rejected": True}
    out = {"smiles": smiles}
    # Tags beyond the tetrahedral ones are one category.
    out["atoms"] = [[a.GetAtomicNum(), min(int(a.GetChiralTag()), 3), a.GetTotalNumHs(), int(a.GetIsAromatic())]
                    for a in mol.GetAtoms()]
    out["bonds"] = [[b.GetBeginAtomIdx(), b.GetEndAtomIdx(), TYPES[b.GetBondType()], DIRECTIONS[b.GetBondDir()]]
                    for b in mol.GetBonds()]
    out["rings"] = sorted(sorted(r) for r in mol.GetRingInfo().AtomRings())
    out["scaffold"] = scaffold(mol)
    canonical = Chem.MolToSmiles(mol)
    spellings = set()
    for seed in range(1, 20):
        for s in Chem.MolToRandomSmilesVect(mol, 1, randomSeed=seed):
            again = Chem.MolFromSmiles(s)
            # RDKit does not always read what it wrote; its scaffold depends on
            # which of two substituents the direction was written at; and it takes
            # the two configurations of a centre with two neighbours for the same.
            if (again is not None and Chem.MolToSmiles(again) == canonical and scaffold(again) == out["scaffold"]
                    and not any(a.GetChiralTag() and a.GetDegree() < 3 for a in mol.GetAtoms())):
                spellings.add(s)
    out["spellings"] = sorted(spellings)[:3]
    return out


def main():
    RDLogger.DisableLog("rdApp.*")
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "molecules.txt")) as f:
        lines = [line.strip() for line in f]
    table = Chem.GetPeriodicTable()
    elements = [[table.GetElementSymbol(z), table.GetNOuterElecs(z), table.GetMostCommonIsotope(z), list(table.GetValenceList(z))]
                for z in range(119)]
    molecules = [describe(s) for s in lines if s and not s.startswith("# ")]
    with open(os.path.join(here, "rdkit.json"), "w") as f:
        f.write('{"rdkit": "%s", "elements": %s, "molecules": [\n' % (rdkit.__version__, json.dumps(elements, separators=(",", ":"))))
        f.write(",\n".join(json.dumps(m, separators=(",", ":")) for m in molecules))
        f.write("\n]}\n")


main()
