"""chemprop by its defaults, with its test metrics and processor time (chemprop 2.3.1, RDKit, scikit-learn, SciPy).

    python3 chemprop.py divide caco2_wang.csv.gz caco2-0.csv --seed 0
    python3 chemprop.py divide esol.csv.gz esol-0.csv --target logp
    python3 chemprop.py train caco2-0.csv --seed 0

divide writes a table smiles, y, split for `chemprop train --splits-column` and for `specmatch finetune -split split`:
a set with train and test in a column split has a random eighth of train validate, and others are divided by scaffold,
80, 10 and 10 %. Another seed takes another eighth, or the scaffolds with at most 5 % of the molecules in another order.
compare.py does both, for several sets, divisions and seeds.
"""
import argparse, csv, gzip, json, os, random, resource, subprocess, sys, tempfile


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as f:
        return list(csv.DictReader(f))


def divide(a):
    rows = [r for r in read(a.data) if r[a.target] != ""]
    if "split" in rows[0]:
        part = [r["split"] for r in rows]
        train = [i for i, p in enumerate(part) if p == "train"]
        for i in random.Random(a.seed).sample(train, len(train) // 8):
            part[i] = "valid"
    else:
        from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
        groups = {}
        for i, r in enumerate(rows):
            groups.setdefault(MurckoScaffoldSmiles(r[a.smiles], includeChirality=True), []).append(i)
        part, sizes = [""] * len(rows), {"train": 0, "valid": 0}
        order = sorted(groups.values(), key=lambda g: (-len(g), -g[0]))
        if a.seed > 0:
            small = [g for g in order if len(g) <= 0.05 * len(rows)]
            order = order[:len(order) - len(small)] + random.Random(a.seed).sample(small, len(small))
        for g in order:
            to = "train" if sizes["train"] + len(g) <= 0.8 * len(rows) else \
                "valid" if sizes["train"] + sizes["valid"] + len(g) <= 0.9 * len(rows) else "test"
            sizes[to] = sizes.get(to, 0) + len(g)
            for i in g:
                part[i] = to
    with open(a.out, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["smiles", "y", "split"])
        w.writerows([r[a.smiles], r[a.target], p] for r, p in zip(rows, part))


def train(a):
    rows = read(a.data)
    binary = {float(r["y"]) for r in rows} == {0, 1}
    with tempfile.TemporaryDirectory() as out:
        table = os.path.join(out, "data.csv")
        with open(table, "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(["smiles", "y", "split"])
            w.writerows([r["smiles"], r["y"], "val" if r["split"] == "valid" else r["split"]] for r in rows)
        command = [os.path.join(os.path.dirname(sys.executable), "chemprop"), "train", "-i", table,
                   "-o", os.path.join(out, "run"), "--smiles-columns", "smiles", "--target-columns", "y",
                   "--splits-column", "split", "--accelerator", "cpu", "--pytorch-seed", str(a.seed),
                   "--task-type", "classification" if binary else "regression"]
        with open(os.path.join(out, "log"), "w") as log:
            before = processor_time()
            one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            done = subprocess.run(command, stdout=log, stderr=log, env=os.environ | one)
        used = processor_time() - before
        if done.returncode:
            sys.exit(open(os.path.join(out, "log")).read())
        predicted = [float(r["y"]) for r in read(os.path.join(out, "run", "model_0", "test_predictions.csv"))]
    observed = [float(r["y"]) for r in rows if r["split"] == "test"]
    cost = {"data": a.data, "seed": a.seed, "cpu_s": round(used, 1)}
    return cost | score(observed, predicted, binary)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def score(y, p, binary):
    from scipy.stats import spearmanr
    from sklearn import metrics
    if binary:
        return {"roc_auc": 100 * metrics.roc_auc_score(y, p)}
    return {"rmse": metrics.mean_squared_error(y, p) ** 0.5, "mae": metrics.mean_absolute_error(y, p),
            "r2": metrics.r2_score(y, p), "spearman": float(spearmanr(y, p).statistic)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    to = p.add_subparsers(required=True)
    d, t = to.add_parser("divide"), to.add_parser("train")
    d.add_argument("data"), d.add_argument("out"), d.set_defaults(run=divide)
    d.add_argument("--smiles", default="smiles"), d.add_argument("--target", default="y")
    t.add_argument("data"), t.set_defaults(run=lambda a: print(json.dumps(train(a))))
    for each in d, t:
        each.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
