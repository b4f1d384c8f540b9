#!/usr/bin/env python3
"""Writes what RDKit makes of salts and ions, for TestStandardTable.

    python3 rdkit_standard.py OUT.tsv FILE ...

takes the molecules of standard.txt, and those of tables with SMILES (.csv.gz, .smi) that have
several fragments or charges. A line is

    SMILES <tab> its largest fragment <tab> its neutral form <tab> both

by LargestFragmentChooser(preferOrganic=True) and Uncharger(). Needs RDKit, release 2026.09.1
for the numbers that are quoted. standard.tsv is of standard.txt.
"""
import gzip
import os
import sys

from rdkit import Chem, RDLogger
from rdkit.Chem.MolStandardize import rdMolStandardize
from rdkit_digests import strings

CHOOSER = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
UNCHARGER = rdMolStandardize.Uncharger()


def main():
    RDLogger.DisableLog("rdApp.*")
    here = os.path.dirname(os.path.abspath(__file__))
    seen = set()
    with open(sys.argv[1], "w") as out:
        for path in [os.path.join(here, "standard.txt")] + sys.argv[2:]:
            with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
                for smiles in strings(f, path):
                    if smiles in seen or not any(c in smiles for c in ".+-"):
                        continue
                    seen.add(smiles)
                    mol = Chem.MolFromSmiles(smiles)
                    if mol is None or ("." not in smiles and not any(a.GetFormalCharge() for a in mol.GetAtoms())):
                        continue
                    largest = CHOOSER.choose(mol)
                    forms = [largest, UNCHARGER.uncharge(mol), UNCHARGER.uncharge(largest)]
                    out.write("\t".join([smiles] + [Chem.MolToSmiles(m) for m in forms]) + "\n")


if __name__ == "__main__":
    main()
