"""chemprop by its defaults, one model of nine endpoints with gaps, on the table that `go run ./experiments/admet
-dataset expansionrx` writes (chemprop 2.3.1 in the environment of this script).

    python3 expansionrx.py RUN/expansionrx.csv --seed 0

A random eighth of the molecules of the part train validates. It prints the relative absolute error of each endpoint on
the part test, their mean, and the processor time on one thread.
"""
import argparse, csv, json, os, random, statistics, subprocess, sys, tempfile

from chemprop import processor_time, read


def train(rows, endpoints, seed, folder):
    """The rows of the test part as chemprop predicts them."""
    fitted = [i for i, r in enumerate(rows) if r["part"] == "train"]
    validating = set(random.Random(seed).sample(fitted, len(fitted) // 8))
    table = os.path.join(folder, "data.csv")
    with open(table, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["smiles", "split", *endpoints])
        for i, r in enumerate(rows):
            w.writerow([r["smiles"], "val" if i in validating else r["part"], *(r[e] for e in endpoints)])
    command = [os.path.join(os.path.dirname(sys.executable), "chemprop"), "train", "-i", table,
               "-o", os.path.join(folder, "run"), "--smiles-columns", "smiles", "--target-columns", *endpoints,
               "--splits-column", "split", "--accelerator", "cpu", "--pytorch-seed", str(seed),
               "--task-type", "regression"]
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open(os.path.join(folder, "log"), "w") as log:
        done = subprocess.run(command, stdout=log, stderr=log, env=os.environ | one)
    if done.returncode:
        sys.exit(open(log.name).read())
    return read(os.path.join(folder, "run", "model_0", "test_predictions.csv"))


def relative_error(observed, predicted):
    """The sum of absolute errors, divided by that of the mean of the observed values."""
    pairs = [(float(y), float(p)) for y, p in zip(observed, predicted) if y != ""]
    mean = statistics.mean(y for y, _ in pairs)
    return sum(abs(p - y) for y, p in pairs) / sum(abs(y - mean) for y, _ in pairs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("table")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    rows = read(a.table)
    endpoints = [name for name in rows[0] if name not in ("smiles", "part")]
    before = processor_time()
    with tempfile.TemporaryDirectory() as folder:
        predicted = train(rows, endpoints, a.seed, folder)
    tested = [r for r in rows if r["part"] == "test"]
    if [r["smiles"] for r in tested] != [r["smiles"] for r in predicted]:
        sys.exit("chemprop's predictions are not of the molecules of the test part, in their order")
    errors = {e: relative_error([r[e] for r in tested], [r[e] for r in predicted]) for e in endpoints}
    line = {"seed": a.seed, "cpu_s": round(processor_time() - before, 1), "rae": statistics.mean(errors.values())}
    print(json.dumps(line | {e: round(v, 3) for e, v in errors.items()}))


if __name__ == "__main__":
    main()
