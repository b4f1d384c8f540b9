#!/usr/bin/env python3
"""Writes RDKit's descriptors of molecules, for TestRDKit: descriptors.tsv of ../../testdata/molecules.txt.

    python3 rdkit_descriptors.py [--all] OUT.tsv N FILE ...

takes every N-th molecule of tables with SMILES (.csv.gz) and lists of them. A line is SMILES and the descriptors; the first
line is their names. With --all they are all that RDKit lists, for TestRDKitAll: all.tsv of every sixth molecule of the same
list; values that RDKit does not compute are nan. Needs RDKit, release 2026.09.1 for the numbers that are quoted.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata"))
import gzip

from rdkit import Chem, RDLogger
from rdkit.Chem import Descriptors
from rdkit_digests import strings

RING = [f"Num{a}{b}" for a in ("Aliphatic", "Aromatic", "Saturated") for b in ("Carbocycles", "Heterocycles", "Rings")]
NAMES = (["MolWt", "ExactMolWt", "HeavyAtomMolWt", "HeavyAtomCount", "NHOHCount", "NOCount"] + RING + """NumHeterocycles RingCount
NumHAcceptors NumHDonors NumHeteroatoms NumRotatableBonds FractionCSP3 NumAmideBonds NumBridgeheadAtoms NumSpiroAtoms
NumAtomStereoCenters NumUnspecifiedAtomStereoCenters NumValenceElectrons TPSA LabuteASA BalabanJ BertzCT HallKierAlpha
Kappa1 Kappa2 Kappa3 Phi Chi0 Chi1 Chi0n Chi1n Chi2n Chi3n Chi4n Chi0v Chi1v Chi2v Chi3v Chi4v
FpDensityMorgan1 FpDensityMorgan2 FpDensityMorgan3 MolLogP MolMR""".split())
ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")
    NAMES = [name for name, _ in Descriptors.descList]
FUNCTIONS = [dict(Descriptors.descList)[name] for name in NAMES]


def value(function, mol):
    try:
        return function(mol)
    except Exception:
        if not ALL:
            raise
        return float("nan")


def main():
    RDLogger.DisableLog("rdApp.*")
    seen = set()
    with open(sys.argv[1], "w") as out:
        out.write("smiles\t" + "\t".join(NAMES) + "\n")
        for path in sys.argv[3:]:
            start, n = time.process_time(), 0
            with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
                for k, smiles in enumerate(strings(f, path)):
                    if k % int(sys.argv[2]) or smiles in seen:
                        continue
                    seen.add(smiles)
                    mol = Chem.MolFromSmiles(smiles) if smiles else None
                    if mol is not None:
                        n += 1
                        out.write(smiles + "\t" + "\t".join("%.10g" % value(f, mol) for f in FUNCTIONS) + "\n")
            print(path, n, "%.2f s" % (time.process_time() - start), flush=True)


main()
