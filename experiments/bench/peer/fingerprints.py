"""A random forest on ECFP counts of scikit-fingerprints, with its test metrics and processor time (scikit-fingerprints 2.1.0, RDKit,
scikit-learn, SciPy). The data are what `chemprop.py divide` writes. A forest needs no validation set, so it is fitted to
the training and the validation set.

    python3 fingerprints.py caco2-0.csv [--seed 0]
"""
import argparse, json, os

from chemprop import read, score


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()

    from skfp.fingerprints import ECFPFingerprint
    from skfp.preprocessing import MolFromSmilesTransformer
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    rows = read(a.data)
    fit = [r for r in rows if r["split"] != "test"]
    test = [r for r in rows if r["split"] == "test"]
    binary = {float(r["y"]) for r in rows} == {0, 1}
    forest = (RandomForestClassifier if binary else RandomForestRegressor)(random_state=a.seed)
    model = make_pipeline(MolFromSmilesTransformer(), ECFPFingerprint(count=True), forest)
    model.fit([r["smiles"] for r in fit], [float(r["y"]) for r in fit])
    smiles = [r["smiles"] for r in test]
    predicted = model.predict_proba(smiles)[:, 1] if binary else model.predict(smiles)
    cost = {"data": a.data, "seed": a.seed, "cpu_s": round(sum(os.times()[:4]), 1)}
    print(json.dumps(cost | score([float(r["y"]) for r in test], predicted, binary)))


if __name__ == "__main__":
    main()
