"""The notebook runs from its first cell to its last, and its outputs are small."""
import json
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[1] / "tour.ipynb"


def test_tour(tmp_path):
    for module in ("matplotlib", "networkx", "ipykernel", "nbformat"):
        pytest.importorskip(module, reason=f"{module} is not installed: the notebook is not run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: the notebook is not run")
    import nbformat

    assert TOUR.stat().st_size < 100_000
    for cell in json.loads(TOUR.read_text("utf-8"))["cells"]:
        assert cell["cell_type"] != "code" or cell["execution_count"], "a cell without its output"
    nbclient.NotebookClient(nbformat.read(TOUR, 4), timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
