"""How the embedded encoder of molecules was made and judged (needs RDKit and scikit-learn).

    python pretrained.py split zinc250k.csv.gz DIR
        writes DIR/train.csv and DIR/valid.csv. Molecules are divided by their Bemis-Murcko
        scaffold: those whose scaffold's SHA-256 is a multiple of 20 are for validation.

    python pretrained.py validate VECTORS.npy MOLECULES.csv VECTORS.npy MOLECULES.csv
        fits ridge regression of descriptors on the first vectors, of molecules of the training
        part, and prints R² on the second ones, of the validation part.

    python pretrained.py frozen NAME NAME.csv.gz VECTORS.npy
        fits a linear model to each task of a set of MoleculeNet, on the vectors and on Morgan
        fingerprints (2048 bits, radius 2): logistic regression and ROC-AUC in %, for esol,
        freesolv and lipo ridge regression and RMSE. 80, 10 and 10 % by scaffold, as Hu et al.
        divide; the strength of the regularisation is the one of three that is best on the validation
        part, and for toxcast the middle one.
        The vectors are those of specmatch embed, with VECTORS.npy.ids.csv beside them.

    python pretrained.py morgan NAME.csv.gz TEST.csv...
        fits ridge regression on Morgan fingerprints for the random divisions of specmatch
        finetune, whose predictions of the test records are TEST.csv, to all other records.
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


COLUMNS = {  # SMILES and targets; None is all but these and the SMILES
    "bbbp": ("smiles", ["p_np"]), "bace": ("mol", ["Class"]), "hiv": ("smiles", ["HIV_active"]),
    "clintox": ("smiles", ["FDA_APPROVED", "CT_TOX"]), "tox21": ("smiles", None), "toxcast": ("smiles", None),
    "sider": ("smiles", None), "muv": ("smiles", None),
    "esol": ("smiles", ["logp"]), "freesolv": ("smiles", ["freesolv"]), "lipo": ("smiles", ["lipo"]),
}


def table(name, path):
    t = pd.read_csv(path)
    smiles, targets = COLUMNS[name]
    targets = targets or [c for c in t.columns if c not in (smiles, "mol_id")]
    return t[smiles].str.strip(), t[targets].to_numpy(dtype=np.float64)


def morgan_matrix(mols):
    from rdkit.Chem import rdFingerprintGenerator
    from scipy.sparse import csr_matrix

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return csr_matrix(np.stack([generator.GetFingerprintAsNumPy(m) for m in mols]).astype(np.float64))


def scaffold_parts(smiles, mols):
    groups = {}
    for i, m in enumerate(mols):
        groups.setdefault(MurckoScaffold.MurckoScaffoldSmiles(mol=m, includeChirality=True), []).append(i)
    parts, n = ([], [], []), len(mols)
    for g in sorted(groups.values(), key=lambda g: (len(g), g[0]), reverse=True):
        if len(parts[0]) + len(g) <= 0.8 * n:
            parts[0].extend(g)
        elif len(parts[0]) + len(parts[1]) + len(g) <= 0.9 * n:
            parts[1].extend(g)
        else:
            parts[2].extend(g)
    return [np.array(p) for p in parts]


def frozen(name, path, vectors):
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    smiles, y = table(name, path)
    h, rows = np.load(vectors).astype(np.float64), pd.read_csv(vectors + ".ids.csv")["id"].to_numpy() - 1
    mols = [Chem.MolFromSmiles(smiles[i]) for i in rows]
    good = [k for k, m in enumerate(mols) if m is not None]
    h, y, mols = h[good], y[rows[good]], [mols[k] for k in good]
    train, valid, test = scaffold_parts(smiles, mols)
    numbers = name in ("esol", "freesolv", "lipo")
    results = {}
    for what, x in [("vectors", StandardScaler().fit(h[train]).transform(h)), ("Morgan", morgan_matrix(mols))]:
        best = None
        strengths = [1, 10, 100] if numbers else [0.01, 0.1, 1]
        for strength in strengths if y.shape[1] < 100 else strengths[1:2]:  # toxcast has 617 tasks
            scores = []
            for task in range(y.shape[1]):
                have = [p[~np.isnan(y[p, task])] for p in (train, valid, test)]
                t = [y[p, task] for p in have]
                if numbers:
                    fit = Ridge(strength).fit(x[have[0]], t[0])
                    scores.append([-np.sqrt(np.mean((fit.predict(x[p]) - w) ** 2)) for p, w in zip(have[1:], t[1:])])
                    continue
                if len(set(t[0])) < 2:
                    continue
                fit = LogisticRegression(C=strength, solver="liblinear").fit(x[have[0]], t[0])
                scores.append([100 * roc_auc_score(w, fit.decision_function(x[p])) if len(set(w)) == 2 else np.nan for p, w in zip(have[1:], t[1:])])
            mean = np.nanmean(np.array(scores), axis=0)
            if best is None or mean[0] > best[0]:
                best = mean
        results[what] = abs(best[1])
    print(f"| {name} | {len(mols)} | {results['vectors']:.2f} | {results['Morgan']:.2f} |", flush=True)


def morgan(path, *tests):
    from sklearn.linear_model import RidgeCV

    smiles, y = table(path.split("/")[-1].split(".")[0], path)
    x, errors = morgan_matrix([Chem.MolFromSmiles(s) for s in smiles]), []
    for test in tests:
        held = np.isin(np.arange(len(y)) + 1, pd.read_csv(test)["id"])
        fit = RidgeCV(np.logspace(-1, 3, 9)).fit(x[~held], y[~held, 0])
        errors.append(np.sqrt(np.mean((fit.predict(x[held]) - y[held, 0]) ** 2)))
    print(f"{path}: {np.mean(errors):.3f} ± {np.std(errors, ddof=1):.3f} of {np.round(errors, 3)}")


{"split": split, "validate": validate, "frozen": frozen, "morgan": morgan}[sys.argv[1]](*sys.argv[2:])
