#!/usr/bin/env python3
"""Writes golden.json.gz: what RDKit and scikit-learn make of 2,000 molecules, for the tests of package library.

    python3 make_golden.py ZINC.csv.gz

Every hundredth molecule of a table with a column smiles is taken. Needs RDKit (release 2026.09.1) and
scikit-learn; sums of bits that two molecules share are of RDKit's fingerprints, not of a library's here.
"""
import csv
import gzip
import json
import sys

import numpy
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.Scaffolds import MurckoScaffold
from rdkit.ML.Cluster import Butina
from rdkit.SimDivFilters.rdSimDivPickers import MaxMinPicker
from sklearn.decomposition import PCA

COUNT = 2000
PAIRS = 10000
CUTOFF = 0.4  # similarity of a cluster's molecules to its centre
PICKS = 200


def main():
    with gzip.open(sys.argv[1], "rt") as f:
        rows = [row["smiles"].strip() for row in csv.DictReader(f)]
    smiles = rows[:: len(rows) // COUNT][:COUNT]
    mols = [Chem.MolFromSmiles(s) for s in smiles]
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits = [generator.GetFingerprint(m) for m in mols]
    counts = [generator.GetSparseCountFingerprint(m) for m in mols]
    pairs = [(k % COUNT, (k * 7919 + k // COUNT) % COUNT) for k in range(PAIRS)]
    golden = {
        "smiles": smiles,
        "bits": [DataStructs.TanimotoSimilarity(bits[i], bits[j]) for i, j in pairs],
        "counts": [DataStructs.TanimotoSimilarity(counts[i], counts[j]) for i, j in pairs],
    }
    distances = [1 - s for i in range(COUNT) for s in DataStructs.BulkTanimotoSimilarity(bits[i], bits[:i])]
    golden["clusters"] = Butina.ClusterData(distances, COUNT, 1 - CUTOFF, isDistData=True)
    picker = MaxMinPicker()
    golden["picks"] = {
        "seed 42": list(picker.LazyBitVectorPick(bits, COUNT, PICKS, seed=42)),
        "seed 7": list(picker.LazyBitVectorPick(bits, COUNT, PICKS, seed=7)),
        "first 17, 3, 1999": list(picker.LazyBitVectorPick(bits, COUNT, PICKS, [17, 3, 1999])),
    }
    golden["scaffolds"] = [MurckoScaffold.MurckoScaffoldSmiles(mol=m, includeChirality=True) for m in mols[:200]]
    matrix = numpy.zeros((COUNT, 2048))
    for row, fingerprint in zip(matrix, bits):
        row[list(fingerprint.GetOnBits())] = 1
    pca = PCA(2, svd_solver="full")
    golden["pca"] = pca.fit_transform(matrix)[:20].round(6).tolist()
    golden["ratios"] = pca.explained_variance_ratio_.tolist()
    with gzip.GzipFile("golden.json.gz", "wb", mtime=0) as f:
        f.write(json.dumps(golden, separators=(",", ":")).encode())


main()
