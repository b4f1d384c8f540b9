"""How the embedded encoder of molecules was made and judged (needs RDKit and scikit-learn).
Frozen vectors are judged by experiments/admet.

    python pretrained.py split zinc250k.csv.gz DIR
        writes DIR/train.csv and DIR/valid.csv. Molecules are divided by their Bemis-Murcko
        scaffold: those whose scaffold's SHA-256 is a multiple of 20 are for validation.

    python pretrained.py validate VECTORS.npy MOLECULES.csv VECTORS.npy MOLECULES.csv
        fits ridge regression of descriptors on the first vectors, of molecules of the training
        part, and prints R² on the second ones, of the validation part.

    python pretrained.py limits VALID.csv SPECMATCH
        asks whether vectors of molecules with stereocentres stay the same in another spelling and
        differ from those of the mirror image, by the median distance of two molecules, and how often
        the free base is nearest to a hydrochloride. SPECMATCH is the program.

    python pretrained.py beside RUN RUN
        prints by how much (in hundredths of the logarithm) the errors of vectors on validation parts differ
        in two runs of experiments/admet with the methods counts and vectors, the second from the first, and the p of
        paired t-tests (the mean of the sets by Welch's degrees of freedom), without a correction.

    python pretrained.py fits RESULTS.json METHOD METHOD
        prints the ratio of the second method's error to the first one's in rows of experiments/admet. For several
        seeds, it adds by how much the score differs, with its standard error and the p of a paired t-test without
        a correction. The end is the geometric mean over the sets with its standard error and the p of Wilcoxon's
        signed ranks.
"""
import gzip
import hashlib
import json
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


def limits(path, program):
    import random
    import subprocess
    import tempfile

    from rdkit.Chem import rdFingerprintGenerator

    def embed(smiles):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/m.csv", "w") as f:
                f.write("\n".join(["smiles", *smiles]) + "\n")
            subprocess.run([program, "embed", "-in", f"{d}/m.csv", "-out", f"{d}/v.npy"], check=True, capture_output=True)
            return np.load(f"{d}/v.npy").astype(np.float64)

    def mirror(smiles):
        m = Chem.MolFromSmiles(smiles)
        for a in m.GetAtoms():
            a.InvertChirality()
        return Chem.MolToSmiles(m)

    amine = Chem.MolFromSmarts("[NX3;H0,H1,H2;!$(N-[C,S]=[O,S,N]);!$(N-a)]")

    def hydrochloride(smiles):
        m = Chem.RWMol(Chem.MolFromSmiles(smiles))
        a = m.GetAtomWithIdx(m.GetSubstructMatch(amine)[0])
        a.SetFormalCharge(1)
        a.SetNumExplicitHs(a.GetTotalNumHs() + 1)
        a.SetNoImplicit(True)
        Chem.SanitizeMol(m)
        return Chem.MolToSmiles(m) + ".[Cl-]"

    random.seed(0)
    every = list(pd.read_csv(path).smiles)
    random.shuffle(every)
    chiral = [s for s in every if Chem.FindMolChiralCenters(Chem.MolFromSmiles(s))][:1000]
    free = [s for s in every if "+" not in s and Chem.MolFromSmiles(s).HasSubstructMatch(amine)][:1000]
    some = embed(every[:2000])
    scaled = lambda x: ((x - some.mean(0)) / (some.std(0) + 1e-9)).clip(-10, 10)
    unit = np.median(np.linalg.norm(scaled(some[:1000]) - scaled(some[1000:]), axis=1))
    own = scaled(embed(chiral))
    for name, other in (("mirror image", [mirror(s) for s in chiral]),
                        ("other spelling", [Chem.MolToSmiles(Chem.MolFromSmiles(s), doRandom=True) for s in chiral])):
        d = np.linalg.norm(own - scaled(embed(other)), axis=1) / unit
        print(f"{name}: median distance {np.median(d):.4f}, equal {np.mean(d < 1e-3):.3f}")
    salts = [hydrochloride(s) for s in free]
    x, y = scaled(embed(salts)), scaled(embed(free))
    near = ((y * y).sum(1) - 2 * x @ y.T).argmin(1)
    print(f"salts: nearest base is its own {np.mean(near == np.arange(len(free))):.3f} of {len(free)}")
    g = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    a, b = (np.stack([g.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(s)) for s in part]).astype(float) for part in (salts, free))
    dot = a @ b.T
    near = (dot / ((a * a).sum(1)[:, None] + (b * b).sum(1) - dot)).argmax(1)
    print(f"salts by counts: {np.mean(near == np.arange(len(free))):.3f}")


def beside(base, other):
    """How two run directories of experiments/admet differ on validation parts, and how vectors do from counts on test parts."""
    def read(path):
        lines = [json.loads(line) for line in open(path + "/done.jsonl")]
        return {(r["Set"], r["Method"], l["unit"].split("=")[1]): r for l in lines for r in [l["result"]]}
    from scipy import stats
    a, b = read(base), read(other)
    error = lambda r: 100 - r["Valid"] if r["Valid"] > 20 else r["Valid"]  # ROC-AUC in %, or RMSE
    show = lambda v: f"{np.mean(v):5.1f} ± {np.std(v, ddof=1) / len(v) ** 0.5:.1f}"
    logs = {}
    for s, method, seed in a:
        if method == "vectors":
            logs.setdefault(s, []).append(100 * np.log(error(b[s, method, seed]) / error(a[s, method, seed])))
    for s, v in logs.items():
        print(f"{s:10} {show(v)}   p = {stats.ttest_1samp(v, 0).pvalue:.5f}")
        if (s, "counts", "0") in b:
            gain = [b[s, "vectors", str(k)]["Value"] - b[s, "counts", str(k)]["Value"] for k in range(len(v))]
            print(f"{'':10} vectors - counts on test parts, first three {show(gain[:3])}, all {show(gain)}")
    each = [np.var(v, ddof=1) / len(v) for v in logs.values()]
    mean, error = np.mean([np.mean(v) for v in logs.values()]), sum(each) ** 0.5 / len(each)
    freedom = sum(each) ** 2 / sum(e ** 2 / (len(v) - 1) for e, v in zip(each, logs.values()))
    print(f"mean       {mean:5.1f} ± {error:.1f}   p = {2 * stats.t.sf(abs(mean) / error, freedom):.5f}")


def fits(path, first, second):
    """How the errors of two methods differ in rows of experiments/admet, paired by seed."""
    from scipy import stats
    best = {"mae": 0, "rmse": 0, "spearman": 1}  # others are in %
    rows = {(r["dataset"], r["method"]): r for r in json.load(open(path))}
    ratios = {}
    for name in dict.fromkeys(name for name, _ in rows):
        a, b = ([abs(best.get(r["metric"], 100) - v) for v in r["per_seed"]] for r in (rows[name, first], rows[name, second]))
        ratios[name] = np.mean(np.log(np.divide(b, a)))
        scores = [rows[name, method]["per_seed"] for method in (second, first)]
        gain, more = np.subtract(*scores), ""
        if len(gain) > 1:
            error = gain.std(ddof=1) / len(gain) ** 0.5
            more = f"  {gain.mean():+.3f} ± {error:.3f}, p = {stats.ttest_rel(*scores).pvalue:.3f}"
        print(f"{name:35} {np.exp(ratios[name]):.3f}{more}")
    for left_out in (None, "hia_hou"):
        v = np.array([x for name, x in ratios.items() if name != left_out])
        print(f"{'all' if left_out is None else 'without ' + left_out}: {100 * np.expm1(v.mean()):.1f} ± "
              f"{100 * v.std(ddof=1) / len(v) ** 0.5:.1f} % (n = {len(v)}, better on {(v < 0).sum()}), p = {stats.wilcoxon(v).pvalue:.3f}")


{"split": split, "validate": validate, "limits": limits, "beside": beside, "fits": fits}[sys.argv[1]](*sys.argv[2:])
