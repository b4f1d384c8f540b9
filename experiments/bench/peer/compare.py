"""chemprop and `specmatch finetune`, both by their defaults, on the seven sets of the page of evidence, with several
divisions and seeds (chemprop 2.3.1 in the environment of this script, RDKit, scikit-learn, SciPy; specmatch in PATH).

    python3 compare.py run DATA compare.jsonl
    python3 compare.py table compare.jsonl

run appends a line for each finished fit (set, division, seed, program), and skips what the file has, so that it can be
stopped and repeated. The smallest sets come first; within one, each division with the first seed. DATA is a folder in
which, at any depth, the sets are: esol.csv.gz, bace.csv.gz, caco2_wang.csv.gz and so on. A fit of specmatch is three
models, whose mean prediction counts; one of chemprop is a model. Each has one thread.

table prints a row for each set: means and standard errors over the divisions, of which each is a mean over its seeds.
"""
import argparse, json, math, os, statistics, subprocess, tempfile
from argparse import Namespace
from pathlib import Path

from chemprop import divide, processor_time, train

# The file, its columns of molecules and targets, and the metric, by the name on the page.
SETS = {
    "hERG": ("herg", "smiles", "y", "roc_auc"),
    "caco2": ("caco2_wang", "smiles", "y", "mae"),
    "clearance": ("clearance_microsome_az", "smiles", "y", "spearman"),
    "ESOL": ("esol", "smiles", "logp", "rmse"),
    "bace": ("bace", "mol", "Class", "roc_auc"),
    "HLM": ("biogen_hlm", "smiles", "y", "rmse"),
    "AMES": ("ames", "smiles", "y", "roc_auc"),
}
PROGRAMS = ["chemprop", "specmatch"]
BEST = {"roc_auc": 100, "spearman": 1, "mae": 0, "rmse": 0}


def finetune(path, seed):
    """The scores of the mean of three models, and their processor time."""
    with tempfile.TemporaryDirectory() as out:
        before = processor_time()
        command = ["specmatch", "finetune", "-in", path, "-target", "y", "-split", "split", "-seeds", "3",
                   "-first-seed", str(3 * seed), "-out", out + "/run"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"GOMAXPROCS": "1"})
        if done.returncode:
            raise SystemExit(done.stderr)
        rows = json.loads(Path(out, "run", "results.json").read_text())
        scores = {r["metric"].lower().replace("-", "_"): r["mean"] for r in rows if r["method"] == "together"}
        return {"cpu_s": round(processor_time() - before, 1)} | scores


def read(path):
    if not os.path.exists(path):
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def run(a):
    done = {(r["set"], r["division"], r["seed"], r["program"]) for r in read(a.lines)}
    for name in a.sets.split(","):
        file, smiles, target, metric = SETS[name]
        source, = Path(a.data).rglob(file + ".csv.gz")
        for seed in range(a.seeds):
            for division in range(a.divisions):
                for program in PROGRAMS:
                    key = {"set": name, "division": division, "seed": seed, "program": program}
                    if tuple(key.values()) in done:
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        table = folder + "/data.csv"
                        divide(Namespace(data=str(source), out=table, smiles=smiles, target=target, seed=division))
                        one = Namespace(data=table, seed=seed)
                        scores = train(one) if program == "chemprop" else finetune(table, seed)
                    line = key | {"metric": metric, "value": scores[metric], "cpu_s": scores["cpu_s"]}
                    with open(a.lines, "a") as f:
                        f.write(json.dumps(line) + "\n")
                    print(line, flush=True)


def mean_error(values):
    """The mean and its standard error; nan for one value."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), error


def table(a):
    lines = read(a.lines)
    print("| set | n (splits, seeds) | chemprop | finetune | finetune is better by | s, chemprop | s, finetune |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    ratios = []
    for name, (_, _, _, metric) in SETS.items():
        found = {(r["division"], r["seed"], r["program"]): r for r in lines if r["set"] == name}
        pairs = [k[:2] for k in found if k[2] == "chemprop" and (*k[:2], "specmatch") in found]
        if not pairs:
            continue
        divisions = sorted({division for division, _ in pairs})

        def means(program, key):
            return [statistics.mean(found[(d, s, program)][key] for d, s in pairs if d == division)
                    for division in divisions]

        scores = {p: means(p, "value") for p in PROGRAMS}
        best = BEST[metric]
        errors = {p: [abs(best - v) for v in scores[p]] for p in PROGRAMS}
        gains = [c - s for c, s in zip(errors["chemprop"], errors["specmatch"])]
        # Splits of a set are not independent: a set counts once.
        ratios.append(statistics.mean(math.log(s / c) for c, s in zip(errors["chemprop"], errors["specmatch"])))
        digits = 1 if best == 100 else 3
        cells = [f"{m:.{digits}f} ± {e:.{digits}f}" for m, e in map(mean_error, (*scores.values(), gains))]
        seconds = [f"{statistics.mean(means(p, 'cpu_s')):.0f}" for p in PROGRAMS]
        n = f"{len(pairs)} ({len(divisions)}, {len({seed for _, seed in pairs})})"
        print("| " + " | ".join([f"{name}, {metric}", n, *cells, *seconds]) + " |")
    if ratios:
        mean, error = mean_error(ratios)
        print(f"\nerror, finetune / chemprop, geometric mean over {len(ratios)} sets: "
              f"{100 * math.expm1(mean):+.1f} ± {100 * error:.1f} %")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    to = p.add_subparsers(required=True)
    r, t = to.add_parser("run"), to.add_parser("table")
    r.add_argument("data"), r.add_argument("lines"), r.set_defaults(run=run)
    r.add_argument("--sets", default=",".join(SETS)), r.add_argument("--divisions", type=int, default=3)
    r.add_argument("--seeds", type=int, default=3)
    t.add_argument("lines"), t.set_defaults(run=table)
    a = p.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
