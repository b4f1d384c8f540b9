"""How the embedded encoder of molecules was made and judged (needs RDKit and scikit-learn).

    python pretrained.py split zinc250k.csv.gz DIR
        writes DIR/train.csv and DIR/valid.csv. Molecules are divided by their Bemis-Murcko
        scaffold: those whose scaffold's SHA-256 is a multiple of 20 are for validation.

    python pretrained.py validate VECTORS.npy MOLECULES.csv VECTORS.npy MOLECULES.csv
        fits ridge regression of descriptors on the first vectors, of molecules of the training
        part, and prints R² on the second ones, of the validation part.

    python pretrained.py frozen NAME NAME.csv.gz LABEL=VECTORS.npy...
        fits a linear model to a set of MoleculeNet on every file of vectors, on Morgan bits and on
        Morgan counts (2048 columns, radius 2): logistic regression of all tasks at once, their mean
        ROC-AUC in %, for esol, freesolv and lipo ridge regression and RMSE. Neither penalises the
        intercept. Vectors are standardised, counts are the logarithm of one more. Three divisions of
        80, 10 and 10 % by scaffold: as Hu et al. divide, and two with the scaffolds of less
        than a twentieth of the molecules in random order. The strength of the regularisation is that of five that is best on the validation
        part. Behind it the mean of the five nearest neighbours, by Euclidean distance, and by
        Tanimoto similarity for bits and counts. Prints one JSON object.
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


def morgan_matrix(mols, counts=False):
    from rdkit.Chem import rdFingerprintGenerator
    from scipy.sparse import csr_matrix

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    of = generator.GetCountFingerprintAsNumPy if counts else generator.GetFingerprintAsNumPy
    return csr_matrix(np.stack([of(m) for m in mols]).astype(np.float32))


def scaffold_parts(smiles, mols, seed=None):
    groups = {}
    for i, m in enumerate(mols):
        groups.setdefault(MurckoScaffold.MurckoScaffoldSmiles(mol=m, includeChirality=True), []).append(i)
    parts, n = ([], [], []), len(mols)
    order = sorted(groups.values(), key=lambda g: (len(g), g[0]), reverse=True)
    if seed is not None:
        large = [g for g in order if len(g) > 0.05 * n]  # for the training part, as in chemprop
        small = order[len(large):]
        np.random.default_rng(seed).shuffle(small)
        order = large + small
    for g in order:
        if len(parts[0]) + len(g) <= 0.8 * n:
            parts[0].extend(g)
        elif len(parts[0]) + len(parts[1]) + len(g) <= 0.9 * n:
            parts[1].extend(g)
        else:
            parts[2].extend(g)
    return [np.array(p) for p in parts]


def logistic(x, y, strength):
    """Weights [columns x tasks] and intercepts of penalised logistic regressions; NaN is no label."""
    from scipy.optimize import minimize

    known = ~np.isnan(y)
    sign, n = np.where(known, 2 * np.nan_to_num(y) - 1, 0).astype(np.float32), max(1, known.sum())
    columns, tasks = x.shape[1], y.shape[1]

    def loss(w):
        w = w.reshape(columns + 1, tasks).astype(np.float32)
        margin = sign * (x @ w[:-1] + w[-1])
        value = np.logaddexp(0, -margin)[known].sum() / n + 0.5 * strength * (w[:-1].astype(np.float64) ** 2).sum() / tasks
        slope = -sign / (1 + np.exp(np.clip(margin, -60, 60))) / n
        g = np.vstack([x.T @ slope + strength / tasks * w[:-1], slope.sum(0)])
        return float(value), g.astype(np.float64).ravel()

    w = minimize(loss, np.zeros((columns + 1) * tasks), jac=True, method="L-BFGS-B", options={"maxiter": 200, "maxcor": 10}).x
    w = w.reshape(columns + 1, tasks)
    return lambda z: z @ w[:-1].astype(np.float32) + w[-1]


def ridge(x, y, strength):
    from sklearn.linear_model import Ridge

    fit = Ridge(strength * len(y)).fit(x.astype(np.float64), y[:, 0])
    return lambda z: fit.predict(z)[:, None]


def neighbours(x, y, z, similarity):
    """Means of the labels of the five training rows of x that are most similar to each of z."""
    out = np.empty((z.shape[0], y.shape[1]))
    filled, known = np.nan_to_num(y), ~np.isnan(y)
    for lo in range(0, z.shape[0], 512):
        s = similarity(z[lo:lo + 512], x)
        near = np.argpartition(-s, 5, axis=1)[:, :5]
        out[lo:lo + 512] = filled[near].sum(1) / np.maximum(1, known[near].sum(1))
    return out


def euclidean(a, b):
    return 2 * a @ b.T - (b * b).sum(1)


def tanimoto(a, b):
    dot = (a @ b.T).toarray()
    aa, bb = np.asarray(a.multiply(a).sum(1)), np.asarray(b.multiply(b).sum(1)).T
    return dot / (aa + bb - dot)


def frozen(name, path, *vectors):
    import json

    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    smiles, y = table(name, path)
    kinds, rows = {}, None
    for pair in vectors:
        label, file = pair.split("=", 1)
        kinds[label], rows = np.load(file).astype(np.float32), pd.read_csv(file + ".ids.csv")["id"].to_numpy() - 1
    mols = [Chem.MolFromSmiles(smiles[i]) for i in rows]
    good = [k for k, m in enumerate(mols) if m is not None]
    y, mols = y[rows[good]], [mols[k] for k in good]
    kinds = {label: h[good] for label, h in kinds.items()}
    kinds["bits"], kinds["counts"] = morgan_matrix(mols), morgan_matrix(mols, counts=True)
    numbers = name in ("esol", "freesolv", "lipo")
    strengths = [0.001, 0.01, 0.1, 1, 10] if numbers else [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]

    def score(want, got):
        if numbers:
            return -float(np.sqrt(np.mean((want - got) ** 2)))
        areas = []
        for task in range(want.shape[1]):
            k = ~np.isnan(want[:, task])
            if len(set(want[k, task])) == 2:
                areas.append(roc_auc_score(want[k, task], got[k, task]))
        return 100 * float(np.mean(areas)) if areas else -np.inf

    out = {"set": name, "molecules": len(mols), "linear": {}, "neighbours": {}}
    for seed in (None, 0, 1):
        train, valid, test = scaffold_parts(smiles, mols, seed)
        for label, h in kinds.items():
            sparse = label in ("bits", "counts")
            x = h.log1p() if label == "counts" else h if sparse else StandardScaler().fit(h[train]).transform(h).clip(-10, 10)
            best = (-np.inf, None)
            for strength in strengths if y.shape[1] < 100 else strengths[2:4]:  # toxcast has 617 tasks
                fit = (ridge if numbers else logistic)(x[train], y[train], strength)
                best = max(best, (score(y[valid], fit(x[valid])), score(y[test], fit(x[test]))))
            out["linear"].setdefault(label, []).append(round(abs(best[1]), 4))
            near = neighbours(h[train] if sparse else x[train], y[train], h[test] if sparse else x[test], tanimoto if sparse else euclidean)
            out["neighbours"].setdefault(label, []).append(round(abs(score(y[test], near)), 4))
    print(json.dumps(out), flush=True)


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
