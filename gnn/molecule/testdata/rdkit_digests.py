#!/usr/bin/env python3
"""Writes what RDKit says of atoms, bonds and fingerprints of real molecules, for TestDigests.

    python3 rdkit_digests.py TABLES FILE ...

for tables with SMILES (.csv.gz) and lists of them; testdata/digests is of molecules.txt, anyorder.txt
and rings.txt.
TABLES, a folder, gets a NAME.tsv for each file with a line for every molecule that was not in
a file before:

    SMILES <tab> properties <tab> Morgan counts, radius 2 <tab> the same, radius 3 with chirality <tab> centres

where the second to fourth are checksums (CRC-32) of the text that properties and counts
return, and the last is the number of stereocentres, / and that of those without a tag; or
SMILES <tab> rejected. Needs RDKit, release 2026.09.1 for the numbers that are quoted.
"""
import csv
import gzip
import os
import sys
import time
import zlib

from rdkit import Chem, RDLogger
from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

MORGAN = rdFingerprintGenerator.GetMorganGenerator(radius=2)
CHIRAL = rdFingerprintGenerator.GetMorganGenerator(radius=3, includeChirality=True)
CIP = {Chem.BondStereo.STEREOE: "E", Chem.BondStereo.STEREOZ: "Z"}


def properties(mol):
    atoms = ["%d.%d.%d.%d.%d%s" % (int(a.GetHybridization()), a.GetTotalNumHs(), a.GetDegree(), a.GetTotalValence(), a.IsInRing(),
                                    a.GetProp("_CIPCode") if a.HasProp("_CIPCode") else "") for a in mol.GetAtoms()]
    bonds = ["%d%d%s" % (b.GetIsConjugated(), b.IsInRing(), CIP.get(b.GetStereo(), "")) for b in mol.GetBonds()]
    return " ".join(atoms) + "|" + " ".join(bonds)


def counts(generator, mol):
    return ",".join("%d:%d" % c for c in sorted(generator.GetSparseCountFingerprint(mol).GetNonzeroElements().items()))


def line(smiles):
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return "rejected"
    digests = [zlib.crc32(s.encode()) for s in (properties(mol), counts(MORGAN, mol), counts(CHIRAL, mol))]
    return "%d\t%d\t%d\t%d/%d" % (*digests, rdMolDescriptors.CalcNumAtomStereoCenters(mol),
                                  rdMolDescriptors.CalcNumUnspecifiedAtomStereoCenters(mol))


def strings(f, path):
    if ".csv" not in path:  # molecules.txt, rings.txt
        yield from (row.split()[0] for row in f if row.strip() and not row.startswith("# "))
        return
    rows = csv.DictReader(f)
    column = next(c for c in rows.fieldnames if c in ("mol", "smiles"))
    yield from (row[column].strip() for row in rows)


def main():
    RDLogger.DisableLog("rdApp.*")
    os.makedirs(sys.argv[1], exist_ok=True)
    seen = set()
    for path in sys.argv[2:]:
        name = os.path.basename(path).split(".")[0]
        start = time.process_time()
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f, open(os.path.join(sys.argv[1], name + ".tsv"), "w") as out:
            for smiles in strings(f, path):
                if smiles and smiles not in seen:
                    seen.add(smiles)
                    out.write(smiles + "\t" + line(smiles) + "\n")
        print(name, "%.1f s" % (time.process_time() - start), len(seen), flush=True)


if __name__ == "__main__":
    main()
