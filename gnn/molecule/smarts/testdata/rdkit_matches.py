#!/usr/bin/env python3
"""Writes the patterns of RDKit's data and their matches in molecules, for TestRDKit.

    python3 rdkit_matches.py patterns PATTERNS.tsv
    python3 rdkit_matches.py matches PATTERNS.tsv OUT.tsv N FILE ...

The first writes the table of patterns: a name and a SMARTS string on a line. They are facts from the files of RDKit (BSD
licence): its fragment counts (FragmentDescriptors.csv), functional groups (Functional_Group_Hierarchy.txt), alerts
(RLewis_smarts.txt), every sixth of the PAINS (wehi_pains.csv), the alerts of its QED, and lines of language.txt, which were
written for these tests. The second takes every N-th molecule of tables with SMILES (.csv.gz) and lists of them, and writes a
line for each: SMILES, a tab, and a CRC-32 of its matches followed by the number of matches of every pattern that matches.
Needs RDKit, release 2026.09.1 for the numbers that are quoted.
"""
import csv
import gzip
import os
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata"))
from rdkit import Chem, RDConfig, RDLogger
from rdkit.Chem import QED
from rdkit_digests import strings


def patterns():
    data = RDConfig.RDDataDir
    with open(os.path.join(data, "FragmentDescriptors.csv")) as f:
        for line in f:
            parts = line.rstrip("\n").split("\t")
            if line[0] != "#" and len(parts) >= 3:
                yield parts[0].replace("=", "_").replace("-", "_"), parts[2]
    with open(os.path.join(data, "Functional_Group_Hierarchy.txt")) as f:
        for line in f:
            parts = [p for p in line.strip().split("\t") if p]
            if not line.startswith("//") and len(parts) >= 2:
                yield parts[0].strip(), parts[1].strip()
    with open(os.path.join(data, "SmartsLib", "RLewis_smarts.txt")) as f:
        for line in f:
            parts = line.split()
            if len(parts) == 2 and line[0] not in "#>":
                yield parts[1], parts[0]
    with open(os.path.join(data, "Pains", "wehi_pains.csv")) as f:
        for k, row in enumerate(csv.reader(f)):
            if k % 6 == 0:
                yield row[1].strip("<>").replace("regId=", "pains_"), row[0]
    for k, smarts in enumerate(QED.StructuralAlertSmarts):
        yield "qed_%d" % k, smarts
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "language.txt")) as f:
        for k, line in enumerate(f):
            if not line.startswith("# "):
                yield "language_%d" % k, line.strip()


def write_patterns(path):
    known = set()
    with open(path, "w") as out:
        for name, smarts in patterns():
            query = Chem.MolFromSmarts(smarts)
            if query is None or smarts in known:
                print("skipped:", name, smarts)
                continue
            known.add(smarts)
            out.write(name + "\t" + smarts + "\n")


def write_matches(table, path, n, files):
    queries = []
    with open(table) as f:
        for line in f:
            smarts = line.rstrip("\n").split("\t")[1]
            text = smarts.replace("!@", "").replace("@[", "").replace("-@", "").replace("=@", "")
            chiral = "[C@" in text or "/" in text or "\\" in text
            queries.append((Chem.MolFromSmarts(smarts), chiral))
    seen = set()
    with open(path, "w") as out:
        for file in files:
            start, spent, count = time.process_time(), 0.0, 0
            with (gzip.open if file.endswith(".gz") else open)(file, "rt") as f:
                for k, smiles in enumerate(strings(f, file)):
                    if k % n or smiles in seen:
                        continue
                    seen.add(smiles)
                    mol = Chem.MolFromSmiles(smiles) if smiles else None
                    if mol is None:
                        continue
                    count += 1
                    start = time.process_time()
                    found = [mol.GetSubstructMatches(q, maxMatches=10**7, useChirality=c) for q, c in queries]
                    spent += time.process_time() - start
                    text = ""
                    for i, matches in enumerate(found):
                        for atoms in sorted(sorted(m) for m in matches):
                            text += "%d:%s\n" % (i, " ".join(map(str, atoms)))
                    counts = " ".join("%d:%d" % (i, len(m)) for i, m in enumerate(found) if m)
                    out.write("%s\t%d %s\n" % (smiles, zlib.crc32(text.encode()), counts))
            print(file, count, "molecules, %.2f s of processor time for matches" % spent, flush=True)


RDLogger.DisableLog("rdApp.*")
if sys.argv[1] == "patterns":
    write_patterns(sys.argv[2])
else:
    write_matches(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:])
