"""What `specmatch predict -explain` says of atoms, against targets whose parts by atom are known (RDKit; specmatch in
PATH).

    python3 explain.py FILE crippen|halogens [FLAG ...]

FILE is a table with a column smiles. The target is Crippen's logP, of which each atom with its hydrogens has a part
(Wildman and Crippen 1999), or the number of halogens. Of at most 1,500 molecules, three fifths are fitted to by
`specmatch finetune` with the flags, and the first 100 of the test part are explained. Printed are means over
molecules: Pearson's correlation with the true parts, the absolute error of a part, and what is missing in the sum, in
parts of the difference of a prediction from the mean. For halogens, also what one contributes, and in how many
molecules they come first.
"""
import argparse, csv, gzip, json, random, statistics, subprocess, tempfile
from pathlib import Path

from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolDescriptors


def crippen(mol):
    """The part of each atom with its hydrogens in logP."""
    full = Chem.AddHs(mol)
    parts = [logp for logp, _ in rdMolDescriptors._CalcCrippenContribs(full)]
    for atom in list(full.GetAtoms())[mol.GetNumAtoms():]:
        parts[atom.GetNeighbors()[0].GetIdx()] += parts[atom.GetIdx()]
    return parts[:mol.GetNumAtoms()]


def halogens(mol):
    return [float(atom.GetSymbol() in ("F", "Cl", "Br", "I")) for atom in mol.GetAtoms()]


TRUTHS = {"crippen": crippen, "halogens": halogens}


def specmatch(*arguments):
    done = subprocess.run(["specmatch", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


def explanations(a, folder):
    """Pairs of an explanation and the true parts, of test molecules."""
    opened = gzip.open(a.file, "rt") if a.file.endswith(".gz") else open(a.file)
    with opened as f:
        smiles = [row["smiles"] for row in csv.DictReader(f)]
    random.Random(1).shuffle(smiles)
    truths = {}
    rows = []
    for k, text in enumerate(smiles[:1500]):
        mol = Chem.MolFromSmiles(text)
        if mol is None:
            continue
        truths[str(k)] = TRUTHS[a.truth](mol)
        part = ("train", "train", "train", "valid", "test")[k % 5]
        rows.append({"id": k, "smiles": text, "y": round(sum(truths[str(k)]), 4), "split": part})
    for name, chosen in {"all": rows, "test": [r for r in rows if r["split"] == "test"][:100]}.items():
        with open(folder / f"{name}.csv", "w", newline="") as f:
            table = csv.DictWriter(f, ["id", "smiles", "y", "split"])
            table.writeheader()
            table.writerows(chosen)
    common = ["-id", "id"]
    specmatch("finetune", "-in", folder / "all.csv", *common, "-target", "y", "-split", "split", "-out", folder / "run",
              *a.flags)
    specmatch("predict", "-in", folder / "test.csv", *common, "-model", folder / "run", "-explain",
              folder / "why.jsonl", "-out", folder / "out.csv")
    for line in (folder / "why.jsonl").read_text().splitlines():
        why = json.loads(line)
        yield why, truths[why["id"]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("truth", choices=TRUTHS)
    a, a.flags = p.parse_known_args()
    RDLogger.DisableLog("rdApp.*")
    correlations, errors, halogen_parts, missing, differences = [], [], [], [], []
    first = molecules = 0
    with tempfile.TemporaryDirectory() as folder:
        for why, truth in explanations(a, Path(folder)):
            parts = why["nodes"]["y"]
            difference = why["prediction"]["y"] - why["mean"]["y"]
            differences.append(abs(difference))
            missing.append(abs(difference - sum(parts)))
            errors += [abs(x - y) for x, y in zip(parts, truth)]
            if len(set(truth)) > 1 and len(set(parts)) > 1:
                correlations.append(statistics.correlation(parts, truth))
            count = int(sum(truth))
            if a.truth == "halogens" and count:
                molecules += 1
                halogen_parts += [x for x, y in zip(parts, truth) if y]
                order = sorted(range(len(parts)), key=lambda i: -parts[i])
                first += all(truth[i] for i in order[:count])
    error = statistics.stdev(correlations) / len(correlations) ** 0.5
    print(f"{len(differences)} molecules: correlation {statistics.mean(correlations):.3f} ± {error:.3f} "
          f"(n = {len(correlations)}), error of a part {statistics.mean(errors):.3f}, "
          f"missing in the sum {sum(missing) / sum(differences):.1%}")
    if molecules:
        print(f"a halogen contributes {statistics.mean(halogen_parts):.3f} (n = {len(halogen_parts)}); "
              f"halogens come first in {first} of {molecules} molecules")


if __name__ == "__main__":
    main()
