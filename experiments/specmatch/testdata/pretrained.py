"""How the embedded encoder of molecules was made and judged (needs RDKit and scikit-learn).
Frozen vectors are judged by experiments/admet.

    python pretrained.py split zinc250k.csv.gz DIR
        writes DIR/train.csv and DIR/valid.csv. Molecules are divided by their Bemis-Murcko
        scaffold: those whose scaffold's SHA-256 is a multiple of 20 are for validation.

    python pretrained.py validate VECTORS.npy MOLECULES.csv VECTORS.npy MOLECULES.csv
        fits ridge regression of descriptors on the first vectors, of molecules of the training
        part, and prints R² on the second ones, of the validation part.
"""
import gzip
import hashlib
import sys

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import QED, Crippen, Descriptors, rdMolDescriptors
from rdkit.Chem.Scaffolds import MurckoScaffold

DESCRIPTORS = {
    "logP": Crippen.MolLogP,
    "TPSA": rdMolDescriptors.CalcTPSA,
    "weight": Descriptors.MolWt,
    "H-bond donors": rdMolDescriptors.CalcNumHBD,
    "H-bond acceptors": rdMolDescriptors.CalcNumHBA,
    "rotatable bonds": rdMolDescriptors.CalcNumRotatableBonds,
    "rings": rdMolDescriptors.CalcNumRings,
    "sp3 share": rdMolDescriptors.CalcFractionCSP3,
    "QED": QED.qed,
}


def split(source, to):
    parts = {"train": ["smiles"], "valid": ["smiles"]}
    with gzip.open(source, "rt") as lines:
        next(lines)
        for line in lines:
            smiles = line.strip()
            scaffold = MurckoScaffold.MurckoScaffoldSmiles(smiles)
            held = int(hashlib.sha256(scaffold.encode()).hexdigest(), 16) % 20 == 0
            parts["valid" if held else "train"].append(smiles)
    for name, rows in parts.items():
        with open(f"{to}/{name}.csv", "w") as f:
            f.write("\n".join(rows) + "\n")
        print(name, len(rows) - 1)


def validate(train, train_csv, valid, valid_csv):
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import StandardScaler

    x, z = np.load(train).astype(np.float64), np.load(valid).astype(np.float64)
    scale = StandardScaler().fit(x)
    mols = [[Chem.MolFromSmiles(s) for s in pd.read_csv(p).smiles] for p in (train_csv, valid_csv)]
    scores = []
    for name, f in DESCRIPTORS.items():
        y, w = (np.array([f(m) for m in part]) for part in mols)
        fit = RidgeCV(np.logspace(-3, 4, 15)).fit(scale.transform(x), y)
        scores.append(fit.score(scale.transform(z), w))
        print(f"{name}\t{scores[-1]:.3f}")
    print(f"mean\t{np.mean(scores):.3f}")


{"split": split, "validate": validate}[sys.argv[1]](*sys.argv[2:])
