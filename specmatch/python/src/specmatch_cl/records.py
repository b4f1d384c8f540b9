"""Molecules and graphs as the text that the program reads."""
import csv
import io
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

CHUNK = 1024  # records in a piece of text
FIRST = {"csv": 2, "jsonl": 1}  # the line of the first record, by format

def listed(records: Any) -> Any:
    """The records of a list, a Series, an array, a table of one column, or an iterator."""
    if isinstance(records, (str, bytes)):
        raise ValueError("one text is no list of molecules: put it into a list")
    if hasattr(records, "to_numpy") or isinstance(records, np.ndarray):
        records = np.asarray(records, dtype=object)
        if records.ndim != 1 and records.shape[1:] != (1,):
            raise ValueError(f"an array of shape {records.shape}; want a column of molecules or graphs")
        records = records.ravel()
    return records

def missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or isinstance(value, float) and value != value

def encode(records: Iterable[Any], targets: Sequence[Sequence[str]] = (), ignore: Collection[str] = (),
           default: Callable[[], str] = lambda: "csv") -> tuple[str, Iterator[bytes]]:
    """The format of the records, and their text in pieces.

    targets are further columns y0, y1 and so on; every record has its number, from 0, as row.
    ignore names what of a graph is skipped, where it would be an error that it cannot be used.
    default is asked for the format if all of the first records are missing.
    """
    rest = iter(records)
    head = list(islice(rest, CHUNK))
    numbered = enumerate(chain(head, rest))
    names = [f"y{k}" for k in range(len(targets))]
    first = next((r for r in head if not missing(r)), None)
    if isinstance(first, str) or hasattr(first, "GetNumAtoms") or first is None and default() == "csv":
        rows = ([i, smiles(i, r), *(t[i] for t in targets)] for i, r in numbered)
        return "csv", table(chain([["row", "smiles", *names]], rows))
    known = ({"row": i} | graph(i, r, ignore) | {name: t[i] for name, t in zip(names, targets)} for i, r in numbered)
    return "jsonl", (line(keys).encode() + b"\n" for keys in known)

def line(keys: dict[str, Any]) -> str:
    """A line of JSON Lines. NaN and infinity, which are not JSON, become null: the program names where one is."""
    try:
        return json.dumps(keys, allow_nan=False)
    except ValueError:
        return json.dumps(finite(keys))

def finite(value: Any) -> Any:
    """The value with None in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [finite(item) for item in cast(list[Any], value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value

def table(rows: Iterator[list[Any]]) -> Iterator[bytes]:
    while piece := list(islice(rows, CHUNK)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(piece)
        yield text.getvalue().encode("utf-8", "replace")

def smiles(i: int, record: Any) -> str:
    """A molecule as a text on one line, so that lines and records count alike."""
    if missing(record):
        return ""
    if hasattr(record, "GetNumAtoms"):  # rdkit.Chem.Mol
        chem: Any = import_module("rdkit.Chem")
        return chem.MolToSmiles(record)
    if not isinstance(record, str):
        raise TypeError(f"record {i} is of type {type(record).__name__}, where the first one is a text")
    return record.replace("\r", "↵").replace("\n", "↵")

def by_atom(i: int, molecule: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows in the order of the SMILES that the program got, put into that of the atoms of RDKit's molecule.

    The program drops the hydrogens that RDKit's reader of SMILES drops: their rows are 0.
    """
    chem: Any = import_module("rdkit.Chem")
    order: list[int] = list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    numbered = chem.Mol(molecule)
    for atom in numbered.GetAtoms():
        atom.SetIntProp("number", atom.GetIdx())
    without = {atom.GetIntProp("number") for atom in chem.RemoveHs(numbered, sanitize=False).GetAtoms()}
    heavy = [a for a in order if a in without]
    explained = order if len(order) == len(rows) else heavy
    if len(explained) != len(rows):
        raise ValueError(f"record {i}: which {len(rows)} of {len(order)} atoms are explained is not known: "
                         "explain its SMILES, or remove hydrogens first")
    scattered = np.zeros((len(order), rows.shape[1]))
    scattered[explained] = rows
    return scattered

def graph(i: int, record: Any, ignore: Collection[str] = ()) -> dict[str, Any]:
    """The keys of a line of JSON Lines, without edges if there is no record."""
    if missing(record):
        return {}
    if hasattr(record, "edge_index"):
        return from_data(i, record, ignore)
    if hasattr(record, "adjacency"):
        return from_networkx(i, record, ignore)
    if type(record) not in (tuple, list) or len(record) not in (2, 3):
        raise TypeError(f"record {i} is of type {type(record).__name__}; want SMILES, networkx graphs, PyG's Data, "
                        "or tuples of edges, features and, perhaps, features of edges")
    edges, features = np.asarray(record[0]), np.asarray(record[1])
    if edges.size and (edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu"):
        raise ValueError(f"record {i}: edges of shape {edges.shape} and type {edges.dtype}; "
                         "want whole numbers [edges×2]")
    name = {0: "nodes", 1: "labels", 2: "attributes"}.get(features.ndim, "")
    if not name or features.ndim < 2 and features.dtype.kind not in "iuU":
        raise ValueError(f"record {i}: features of shape {features.shape} and type {features.dtype}; "
                         "want whole numbers or texts [nodes], numbers [nodes×width], or the number of nodes")
    keys = {"edges": edges.reshape(-1, 2).tolist(), name: features.tolist()}
    return keys | edge_values(i, "features of edges", record[2]) if len(record) == 3 else keys

def edge_values(i: int, name: str, given: Any) -> dict[str, Any]:
    """The key for features of edges: whole numbers or texts are labels, other numbers are weights."""
    values = np.asarray(given)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iufU":
        raise ValueError(f"record {i}: {name} of shape {values.shape} and type {values.dtype}; "
                         "want one label or one weight for each edge")
    return {"edge_weights" if values.dtype.kind == "f" else "edge_labels": values.tolist()}

def refuse(i: int, what: str, names: Iterable[object], remedy: str, ignore: Collection[str]) -> None:
    """Raises an error that names the first of these attributes, unless all are to be ignored."""
    for name in names:
        if str(name) not in ignore:
            raise ValueError(f"record {i}: the {what} attribute {name!r} is not used: {remedy}, or skip it by "
                             f"ignore={str(name)!r}")

def from_networkx(i: int, record: Any, ignore: Collection[str]) -> dict[str, Any]:
    """The keys of a graph of networkx."""
    number = {node: k for k, node in enumerate(record.nodes)}
    edges = [[number[a], number[b]] for a, b in record.edges()]
    keys: dict[str, Any] = {"nodes": len(number), "edges": edges, "directed": record.is_directed()}
    pairs: list[object] = [tuple(e) if record.is_directed() else frozenset(e) for e in edges]
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"record {i}: a multigraph joins two nodes by several edges, which are not read: "
                         "merge them, as networkx.Graph(g) does")
    for key, name in (("label", "labels"), ("attributes", "attributes")):
        values = [np.asarray(data[key]).tolist() for _, data in record.nodes(data=True) if key in data]
        if values and key not in ignore:
            keys[name] = values
            if len(values) < len(number):
                raise ValueError(f"record {i}: {len(values)} of {len(number)} nodes have {key!r}")
    others = (name for _, data in record.nodes(data=True) for name in data if name not in ("label", "attributes"))
    refuse(i, "node", others, "call it 'label' or 'attributes'", ignore)
    for key, name in (("label", "edge_labels"), ("weight", "edge_weights")):
        values = [np.asarray(data[key]).tolist() for _, _, data in record.edges(data=True) if key in data]
        if values and key not in ignore:
            keys[name] = values
            if len(values) < len(edges):
                raise ValueError(f"record {i}: {len(values)} of {len(edges)} edges have {key!r}")
    others = (name for _, _, data in record.edges(data=True) for name in data if name not in ("label", "weight"))
    refuse(i, "edge", others, "call it 'label' or 'weight'", ignore)
    return keys

def from_data(i: int, record: Any, ignore: Collection[str]) -> dict[str, Any]:
    """The keys of torch_geometric.data.Data."""
    nodes, edges = record.num_nodes, record.edge_index.t().tolist()
    keys: dict[str, Any] = {"nodes": nodes, "edges": edges, "directed": getattr(record, "is_directed", bool)()}
    names: Any = getattr(record, "keys", ())
    for name in cast(Iterable[str], names() if callable(names) else names):
        value = record[name]
        rows = value.shape[0] if getattr(value, "shape", ()) else 0
        if name in ("x", "y", "edge_index", "batch", "ptr") or rows == 0:
            continue
        if name in ("edge_attr", "edge_weight") and name not in ignore:
            keys |= edge_values(i, name, value if name == "edge_attr" else np.asarray(value, float))
        elif name.startswith("edge_") or rows == len(edges) != nodes:
            refuse(i, "edge", [name], "call it 'edge_attr' or 'edge_weight'", ignore)
        elif rows == nodes > 1:
            refuse(i, "node", [name], "make it a part of x", ignore)
    return keys if record.x is None else keys | {"attributes": record.x.tolist()}
