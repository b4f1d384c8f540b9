"""The page At scale: every block of it runs, and gives the vectors of one process."""
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from specmatch_cl import Embedder, tool

FOLDER = Path(__file__).parents[2] / "cmd" / "specmatch"
SMILES = ["C" * (1 + n % 23) + "O" * (n % 3) for n in range(2500)]


def blocks(language):
    page = (FOLDER / "scale.md").read_text(encoding="utf-8")
    return re.findall(f"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@pytest.fixture
def molecules(tmp_path):
    """A folder with molecules.csv, whose last record cannot be read."""
    rows = [f"{s},m{n}" for n, s in enumerate([*SMILES, "C("])]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,name", *rows, ""]), encoding="utf-8")
    return tmp_path


def run(folder, line):
    """Runs a line of the shell, where the program and those of this environment are found."""
    path = os.pathsep.join([str(Path(tool.program()).parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    script = ["bash", "-euo", "pipefail", "-c", line]
    subprocess.run(script, cwd=folder, check=True, env={**os.environ, "PATH": path}, timeout=300)


def test_filter(molecules):
    table = molecules / "molecules.csv"
    with gzip.open(molecules / "molecules.csv.gz", "wb") as packed:
        packed.write(table.read_bytes())
    table.unlink()
    line, = [block for block in blocks("bash") if "gunzip" in block]
    run(molecules, line)
    text = gzip.decompress((molecules / "vectors.csv.gz").read_bytes()).decode()
    header, *rows = [row.split(",") for row in text.splitlines()]
    assert header[0] == "id" and [row[0] for row in rows] == [f"m{n}" for n in range(len(SMILES))]
    want = Embedder(readout="last:mean").transform(SMILES)
    assert np.array([row[1:] for row in rows], np.float32).tobytes() == want.tobytes()


def test_matrices_of_a_filter(molecules):
    command = [tool.program(), "embed", "-in", "-", "-format", "csv", "-out", "-", "-out-format", "npy"]
    data = (molecules / "molecules.csv").read_bytes()
    stream = io.BytesIO(subprocess.run(command, input=data, check=True, capture_output=True).stdout)
    matrices = []
    while stream.tell() < len(stream.getvalue()):
        matrices.append(np.load(stream))
    rows = np.concatenate(matrices)
    assert rows[:-1].tobytes() == Embedder().transform(SMILES).tobytes() and np.isnan(rows[-1]).all()


def test_snakemake(molecules):
    if not shutil.which("snakemake", path=str(Path(sys.executable).parent)) and not shutil.which("snakemake"):
        pytest.skip("Snakemake is not installed")
    shutil.copy(FOLDER / "cluster" / "Snakefile", molecules)
    line, = [block for block in blocks("bash") if "snakemake" in block]
    run(molecules, line)
    run(molecules, "specmatch embed -in molecules.csv -float16 -out whole.npy")
    assert (molecules / "vectors.npy").read_bytes() == (molecules / "whole.npy").read_bytes()
    assert (molecules / "vectors.npy.ids.csv").read_bytes() == (molecules / "whole.npy.ids.csv").read_bytes()


def test_dask(molecules, monkeypatch):
    pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")
    import pandas

    monkeypatch.chdir(molecules)
    block, = blocks("python")
    small, replaced = re.subn('blocksize="16MB"', 'blocksize="16KB"', block)  # several partitions of a small file
    assert replaced == 1
    exec(compile(small, "scale.md", "exec"), {})
    assert len(list((molecules / "vectors").glob("*.parquet"))) > 1
    rows = pandas.read_parquet(molecules / "vectors").to_numpy()
    assert rows[:-1].tobytes() == Embedder().transform(SMILES).tobytes() and np.isnan(rows[-1]).all()
