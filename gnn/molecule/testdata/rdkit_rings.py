#!/usr/bin/env python3
"""Writes the rings that RDKit finds, for TestRings.

    python3 rdkit_rings.py OUT.tsv POLYCYCLES [ROWS FILE ...]

writes the molecules of rings.txt, POLYCYCLES random saturated polycycles, and ROWS random
molecules of the tables FILE (.csv.gz). A line is

    SMILES <tab> another SMILES <tab> sizes of the rings

where the second SMILES lists the atoms in a random order. Needs RDKit, release 2026.09.1 for
the numbers that are quoted. rings.tsv has 60 polycycles.
"""
import csv
import gzip
import os
import random
import sys

from rdkit import Chem, RDLogger
from rdkit_digests import strings


def polycycle():
    """Returns a random tree of carbons with random bonds between them."""
    n = random.randint(6, 24)
    bonds = set()
    degree = [0] * n

    def bond(a, b):
        bonds.add((a, b))
        degree[a] += 1
        degree[b] += 1

    for b in range(1, n):
        bond(random.choice([a for a in range(b) if degree[a] < 4]), b)
    for _ in range(random.randint(2, 8)):
        a, b = sorted(random.sample(range(n), 2))
        if (a, b) not in bonds and degree[a] < 4 and degree[b] < 4:
            bond(a, b)
    mol = Chem.RWMol()
    for _ in range(n):
        mol.AddAtom(Chem.Atom(6))
    for a, b in bonds:
        mol.AddBond(a, b, Chem.BondType.SINGLE)
    return Chem.MolToSmiles(mol)


def molecules():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rings.txt")
    with open(path) as f:
        yield from strings(f, path)
    for _ in range(int(sys.argv[2])):
        yield polycycle()
    for path in sys.argv[4:]:
        with gzip.open(path, "rt") as f:
            rows = list(strings(f, path))
        yield from random.sample(rows, min(int(sys.argv[3]), len(rows)))


def main():
    RDLogger.DisableLog("rdApp.*")
    random.seed(1)
    with open(sys.argv[1], "w") as out:
        for smiles in molecules():
            mol = Chem.MolFromSmiles(smiles)
            if mol is None:
                continue
            order = list(range(mol.GetNumAtoms()))
            random.shuffle(order)
            info = mol.GetRingInfo()
            sizes = sorted(len(ring) for ring in info.AtomRings())
            other = Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False)
            if Chem.MolFromSmiles(other) is None:  # RDKit does not always read what it wrote
                other = smiles
            out.write("%s\t%s\t%s\n" % (smiles, other, " ".join(map(str, sizes))))


if __name__ == "__main__":
    main()
