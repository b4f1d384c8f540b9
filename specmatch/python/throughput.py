#!/usr/bin/env python3
"""Molecules a second through Python beside those of the command line, in turn.

    python3 throughput.py zinc250k.csv.gz [RUNS [ROWS]]
    python3 throughput.py --single zinc250k.csv.gz

The first ROWS (100,000) molecules of a table with a column smiles are embedded RUNS (3) times by
`specmatch embed` from one file into another, by Embedder().stream and by Embedder().transform of
the installed package. Seconds are of the wall and of the processor, in all processes. --single embeds 1,000 molecules one by one.
"""
import csv
import gzip
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median

from specmatch_cl import Embedder, tool


def read(path, rows):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="") as f:
        return [row["smiles"].strip() for row in islice(csv.DictReader(f), rows)]


def single(path):
    smiles, embedder = read(path, 1000), Embedder()
    began = time.monotonic()
    for molecule in smiles:
        embedder.transform([molecule])
    print(f"{len(smiles)} molecules one by one: {time.monotonic() - began:.1f} s")


def main():
    if sys.argv[1] == "--single":
        return single(sys.argv[2])
    path, runs, rows = sys.argv[1], *map(int, sys.argv[2:] + [3, 100_000][len(sys.argv) - 2:])
    smiles = read(path, rows)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "molecules.csv")
        table.write_text("\n".join(["smiles", *smiles, ""]), encoding="utf-8")
        command = [tool.program(), "embed", "-in", str(table), "-out", f"{folder}/vectors.npy"]
        ways = {
            "command line": lambda: subprocess.run(command, check=True, capture_output=True),
            "stream": lambda: sum(map(len, Embedder().stream(smiles))),
            "transform": lambda: Embedder().transform(smiles),
        }
        seconds = {name: [] for name in ways}
        for _ in range(runs):
            for name, way in ways.items():
                before, began = sum(os.times()[:4]), time.monotonic()
                way()
                seconds[name].append((time.monotonic() - began, sum(os.times()[:4]) - before))
                print(f"{name}: {seconds[name][-1][0]:.1f} s wall, {seconds[name][-1][1]:.1f} s processor", flush=True)
                Path(f"{folder}/vectors.npy").unlink(missing_ok=True)
    wall, processor = ([median(s[k] for s in of) for of in seconds.values()] for k in (0, 1))
    for name, w, p in zip(ways, wall, processor):
        print(f"{name}: {len(smiles) / w:,.0f} molecules a second, {wall[0] / w:.0%} of the command line's; "
              f"{p:.1f} s of processor time, {processor[0] / p:.0%}")


if __name__ == "__main__":
    main()
